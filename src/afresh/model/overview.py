"""Views of sources: overview, preview, listing, blocked deletions, and fetched pages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Self

from afresh.dataclass import dataclass, field, fields
from afresh.model.charts import RunSavings
from afresh.model.records import PageId
from afresh.model.reports import RefreshPlan, RunReport, SourceView
from afresh.urls.scope import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOverview:
    """A source with its due pages, its last run, and the savings of the last run that ended."""

    label: str
    view: SourceView
    due: int  # pages that are due
    next_at: datetime | None  # when the next page becomes due
    run: RunReport | None  # the last one, with its progress
    receipt: RunSavings  # of the last run that ended

    @property
    def fresh(self) -> int | None:
        """Return the share of pages that are not due, in percent."""
        return 100 * self.receipt.fresh // self.receipt.pages if self.receipt.pages else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSourceView(SourceView):
    """A source after its settings were changed, with notes on the effects of the change."""

    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, view: SourceView, notes: Sequence[str]) -> Self:
        return cls(**{each.name: getattr(view, each.name) for each in fields(view)}, notes=tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A new source before its first crawl: its start page, and the pages that the crawl would read."""

    kind: str
    url: str
    name: str
    known: str | None  # the label of the existing source with this root
    plan: RefreshPlan | None  # of a refresh of that source
    rules: Rules
    title: str | None = None  # of the start page
    language: str | None = None
    begins: str = ""  # the beginning of its text
    belong: tuple[str, ...] = ()  # linked URLs that would be read
    left_out: tuple[tuple[str, str], ...] = ()  # linked URLs that would not be read, each with the reason
    trouble: str | None = None  # why the start page or the listing cannot be read now
    listed: int | None = None  # number of URLs that would be read, if the source lists them
    dropped: Mapping[str, int] = field(default_factory=dict)  # number of listed URLs that would not be read, by reason
    notes: tuple[str, ...] = ()  # about the listing


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceListing:
    """The URLs that a source lists now, with the numbers of excluded URLs, and with errors and notes."""

    urls: tuple[str, ...]
    dropped: Mapping[str, int]  # excluded URLs: their number by reason
    errors: tuple[str, ...]  # what could not be listed
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedPage:
    id: PageId
    url: str
    title: str | None
    moved_to: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedDeletions:
    """The deletions of a run that await confirmation."""

    pages: tuple[BlockedPage, ...]  # the first few
    count: int
    percent: float  # the deletion limit as a share of the source's pages
    allowed: int  # the deletion limit as a number of pages


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageView:
    """A searchable passage of a page, with the headings above it."""

    content: str
    path: tuple[str, ...]
    types: tuple[str, ...]  # of text, code, table, list


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """The current text at a URL."""

    url: str  # after redirects
    asked: str  # the requested URL
    title: str
    markdown: str
    language: str | None
    media_type: str
    content_hash: str
    looked_at: datetime
    links: tuple[str, ...] = ()  # without duplicates
