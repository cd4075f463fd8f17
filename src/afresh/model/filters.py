"""Filters and cursors for lists of pages, links and attempts, and the entries of lists of links."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from afresh.dataclass import dataclass
from afresh.model.fetch import WORST_FIRST, Outcome
from afresh.model.records import PageId, PageStatus, SourceId
from afresh.model.reports import PageView


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFilter:
    """The conditions for the pages of a list; a page must match each one that is set."""

    status: PageStatus | None = None
    everything: bool = False  # also deleted pages and redirects; ignored if a status is set
    doubtful: bool = False  # only pages whose last check showed suspicious content
    language: str | None = None
    depth: int | None = None
    text: str | None = None  # in URL or title, case-insensitive

    def fits(self, page: PageView) -> bool:
        if self.status is not None:
            if page.status is not self.status:
                return False
        elif page.status in (PageStatus.DELETED, PageStatus.REDIRECT) and not self.everything:
            return False
        return (
            (page.doubt is not None or not self.doubtful)
            and self.language in (None, page.language)
            and self.depth in (None, page.depth)
            and (self.text or "").lower() in f"{page.url}\n{page.title or ''}".lower()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFilter:
    """The conditions for the links of a list; a link must match each one that is set."""

    page: PageId | None = None  # the page that contains the links
    url: str | None = None
    keyword: str | None = None
    min_score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPage:
    """A page that holds a link, and the text of the link there."""

    id: PageId
    url: str
    title: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord:
    """A link with the pages that hold it."""

    id: int
    source_id: SourceId
    url: str
    score: float | None
    keywords: Mapping[str, float]
    comment: str | None
    crawl_time: datetime | None
    page_count: int
    pages: tuple[LinkedPage, ...]  # nearest to the root, the first few


class LinkCursor(NamedTuple):
    """A position in a list of links: the last link that was returned."""

    score: float
    url: str
    id: int


class AttemptCursor(NamedTuple):
    """A position in a list of attempts: the last attempt that was returned."""

    outcome: Outcome
    id: int


def parts_of_run(outcome: Outcome | None, after: AttemptCursor | None) -> list[AttemptCursor]:
    """Return where to continue a list of the attempts of a run: a cursor for each outcome, worst first.

    `outcome` limits the list to one outcome; outcomes before the last returned attempt (`after`) are left out.
    """
    left = WORST_FIRST[WORST_FIRST.index(after.outcome) :] if after else WORST_FIRST
    return [
        after if after and after.outcome is each else AttemptCursor(each, 0) for each in left if outcome in (None, each)
    ]


class CheckCursor(NamedTuple):
    """A position in a list of next checks: the last page that was returned."""

    planned: datetime
    url: str


Sources = Sequence[SourceId] | None  # None: all of them
LIVE_PAGES = PageFilter()
ALL_PAGES = PageFilter(everything=True)
ALL_LINKS = LinkFilter()
