"""Records as they are shown by their numbers, and where a list of them goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from afresh.model.fetch import WORST_FIRST, Outcome
from afresh.model.records import PageId, PageStatus, SourceId
from afresh.model.reports import PageView


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFilter:
    """Which pages are asked for: those that everything said here fits."""

    status: PageStatus | None = None
    everything: bool = False  # also deleted ones; a status says so by itself
    doubtful: bool = False  # only those whose last look is not believed
    language: str | None = None
    depth: int | None = None
    text: str | None = None  # in address or title, whatever the case

    def fits(self, page: PageView) -> bool:
        """Whether a page is among them."""
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
    """Which links are asked for: those that everything said here fits."""

    page: PageId | None = None  # that they stand on
    url: str | None = None
    keyword: str | None = None
    min_score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPage:
    """A page that a link stands on, and the words it has there."""

    id: PageId
    url: str
    title: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord:
    """A link joined with the pages it stands on."""

    id: int
    source_id: SourceId
    url: str
    score: float | None
    keywords: Mapping[str, float]
    comment: str | None
    crawl_time: datetime | None
    page_count: int
    pages: tuple[LinkedPage, ...]  # the nearest of them


class LinkPlace(NamedTuple):
    """Where a list of links goes on: behind this one."""

    score: float
    url: str
    id: int


class AttemptPlace(NamedTuple):
    """Where a list of the attempts of a run goes on: behind this one."""

    outcome: Outcome
    id: int


def parts_of_run(outcome: Outcome | None, after: AttemptPlace | None) -> list[AttemptPlace]:
    """The places behind which attempts of a run are found in turn, one for each outcome that is left."""
    left = WORST_FIRST[WORST_FIRST.index(after.outcome) :] if after else WORST_FIRST
    return [
        after if after and after.outcome is each else AttemptPlace(each, 0)
        for each in left
        if outcome in (None, each)
    ]


class LookPlace(NamedTuple):
    """Where a list of pages that wait goes on: behind this one."""

    planned: datetime
    url: str


Sources = Sequence[SourceId] | None  # None: all of them
LIVE_PAGES = PageFilter()
ALL_PAGES = PageFilter(everything=True)
ALL_LINKS = LinkFilter()
