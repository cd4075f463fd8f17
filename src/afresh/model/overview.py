"""What an overview shows of a source: its numbers, how fresh it is, and how its last run went."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Self

from afresh.model.charts import Receipt
from afresh.model.records import PageId
from afresh.model.reports import Plan, RunReport, SourceView
from afresh.urls.scope import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGlance:
    """A source at a glance."""

    label: str
    view: SourceView
    due: int  # pages whose time has come
    next_at: datetime | None  # when the next of the others is due
    run: RunReport | None  # the last one, as far as it is
    receipt: Receipt  # of the last one that ended

    @property
    def fresh(self) -> int | None:
        """The share of its pages whose time has not come, in full percent; 100 means all."""
        return 100 * self.receipt.fresh // self.receipt.pages if self.receipt.pages else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSourceView(SourceView):
    """A source that was changed, with what follows from it."""

    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, view: SourceView, notes: Sequence[str]) -> Self:
        """Return a view with notes."""
        return cls(**{each.name: getattr(view, each.name) for each in fields(view)}, notes=tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would be read of a source that somebody is about to add."""

    kind: str
    url: str
    name: str
    known: str | None  # the label of the source that has this root already
    plan: Plan | None  # what a refresh of that one would do
    rules: Rules
    title: str | None = None  # of the start page
    language: str | None = None
    begins: str = ""  # its text
    belong: tuple[str, ...] = ()  # addresses that it leads to and that would be read
    left_out: tuple[tuple[str, str], ...] = ()  # those that would not, each with the reason
    trouble: str | None = None  # why the start page or the list of files cannot be read just now
    listed: int | None = None  # files or addresses that would be read, where a source lists them
    dropped: Mapping[str, int] = field(default_factory=dict)  # those that would not: why, and how many
    notes: tuple[str, ...] = ()  # what else there is to know of the list


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a source lists by itself."""

    urls: tuple[str, ...]
    dropped: Mapping[str, int]  # what is left out: why, and how many
    errors: tuple[str, ...]  # what could not be listed
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPage:
    """A page that would be deleted."""

    id: PageId
    url: str
    title: str | None
    moved_to: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the brake holds: pages that would be deleted once somebody confirms it."""

    pages: tuple[HeldPage, ...]  # the first of them
    count: int
    percent: float  # of the pages of its source, above which deletions wait …
    allowed: int  # … unless they are so few


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageView:
    """A piece of a page that is searched, with the headings above it."""

    content: str
    path: tuple[str, ...]
    types: tuple[str, ...]  # of text, code, table, list
