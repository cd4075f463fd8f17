"""A copy: one page in one external store, as we know it.

What a store is to hold of a page is written nowhere twice: it is the content hash of the page itself, so
that the commit which changes a page is the order to change its copies, and nothing can get lost between.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from afresh.model.records import PageId, PageStatus, SourceId
from afresh.text.plain import visible

MAX_NAME_BYTES = 512  # of a display name, as Gemini File Search takes it


class Replace(StrEnum):
    """In which order a document takes the place of another."""

    DELETE_FIRST = "delete_first"
    UPLOAD_FIRST = "upload_first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One page in one store: what is held there, and what we are about to do."""

    id: int
    sink: str
    source_id: SourceId
    source: str  # label, as the mark names it
    page_id: PageId | None  # None: the page is no longer on record
    url: str
    state: PageStatus = PageStatus.READY_FOR_INDEXING
    wanted_hash: str | None = None  # of what was last put, or tried to
    held_hash: str | None = None  # of the document `remote_id`
    remote_id: str | None = None
    remote_name: str | None = None
    putting: bool = False  # the intent: a document may be there of which we do not know the id
    former: tuple[str, ...] = ()  # documents that serve until the new one does
    leftovers: tuple[str, ...] = ()  # documents that are to go
    attempts: int = 0  # uploads in a row that led to nothing
    put_at: datetime | None = None
    failed_at: datetime | None = None  # since when the store says FAILED
    next_try_at: datetime | None = None
    error: str | None = None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A copy, and the content that its store should hold; None: nothing."""

    copy: Copy
    hash: str | None
    moved: bool = False  # the page leads elsewhere now


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """What is uploaded of a page, read in one go."""

    hash: str
    url: str
    title: str | None
    language: str | None
    markdown: str | None  # None: the text is not kept


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord:
    """What is on record of a store as a whole."""

    name: str
    place: str  # where it is, as the settings say
    worker: str | None = None  # who syncs it
    audit: bool = True  # what it holds is to be listed before anything else
    audited_at: datetime | None = None  # when it was last listed
    resume_at: datetime | None = None  # it asked to be left alone until then
    synced_at: datetime | None = None
    error: str | None = None  # what stopped the last sync
    failing_since: datetime | None = None  # no sync went through since then


def display_name(title: str | None, url: str) -> str:
    """The name that documents of a page bear: its title or else its URL, cut to what stores take."""
    name = " ".join(visible(title or "").split()) or url
    if len(name.encode("utf-8", "replace")) <= MAX_NAME_BYTES:
        return name
    room = MAX_NAME_BYTES - len("…".encode())
    return name.encode("utf-8", "replace")[:room].decode("utf-8", "ignore").rstrip() + "…"
