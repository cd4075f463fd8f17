"""Define copies: the state of one page in one external store (sink).

A copy is outdated if its hash differs from the `content_hash` of its page. That hash is stored only with the page,
so the transaction that changes a page makes its copies outdated too, and no change is lost.
"""

from datetime import datetime
from enum import StrEnum

from afresh.dataclass import dataclass
from afresh.model.records import PageId, PageStatus, SourceId
from afresh.text.plain import visible

MAX_NAME_BYTES = 512  # limit for display names in Gemini File Search


class ReplaceOrder(StrEnum):
    """The order of the two steps that replace a document."""

    DELETE_FIRST = "delete_first"
    UPLOAD_FIRST = "upload_first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The state of one page in one sink: its documents in the sink, and an upload in progress.

    `remote_id` and `remote_name` are id and display name of the current document.
    """

    id: int
    sink: str
    source_id: SourceId
    source: str  # label of the source, as in the marks of its documents
    page_id: PageId | None  # None: the page is no longer stored
    url: str
    state: PageStatus = PageStatus.READY_FOR_INDEXING
    wanted_hash: str | None = None  # content hash of the last upload, successful or not
    held_hash: str | None = None  # content hash of the current document
    remote_id: str | None = None
    remote_name: str | None = None
    putting: bool = False  # an upload was started, so a document with an unknown id may exist
    former: tuple[str, ...] = ()  # ids of documents to keep until the new one is active
    leftovers: tuple[str, ...] = ()  # ids of documents to delete
    attempts: int = 0  # number of failed uploads in a row
    put_at: datetime | None = None
    failed_at: datetime | None = None  # since when the sink reports FAILED
    next_try_at: datetime | None = None
    error: str | None = None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredCopy:
    """A copy, and in `hash` the content hash that its sink should have; None: the sink should not have the page."""

    copy: Copy
    hash: str | None
    moved: bool = False  # the page now redirects to another URL


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadText:
    hash: str
    url: str
    title: str | None
    language: str | None
    markdown: str | None  # None: the text is not stored


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord:
    name: str
    place: str  # identifies the remote store, from the settings
    worker: str | None = None  # id of the worker that is syncing the sink
    audit: bool = True  # the next sync has to list the sink first
    audited_at: datetime | None = None  # time of the last listing
    resume_at: datetime | None = None  # end of the pause that the sink asked for
    synced_at: datetime | None = None
    error: str | None = None  # why the last sync failed
    failing_since: datetime | None = None  # time of the first failed sync since the last success


def display_name(title: str | None, url: str) -> str:
    """Return the title of a page, or else its URL, cut to the length that sinks accept."""
    name = " ".join(visible(title or "").split()) or url
    if len(name.encode("utf-8", "replace")) <= MAX_NAME_BYTES:
        return name
    room = MAX_NAME_BYTES - len("…".encode())
    return name.encode("utf-8", "replace")[:room].decode("utf-8", "ignore").rstrip() + "…"


class RemoteState(StrEnum):
    PROCESSING = "processing"
    ACTIVE = "active"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class OwnerTag:
    """Metadata that marks a document as uploaded by afresh."""

    store: str  # id of the afresh store, because two stores may share one sink
    source: str  # label of the source
    page: int  # id of the page
    hash: str  # content hash of the page


@dataclass(frozen=True, slots=True)
class Upload:
    mark: OwnerTag
    url: str
    title: str
    name: str  # display name: the title of the page
    markdown: str
    language: str | None


@dataclass(frozen=True, slots=True)
class Remote:
    id: str
    name: str
    state: RemoteState
    mark: OwnerTag | None  # None: the document was not uploaded by afresh
    url: str | None = None  # URL of its page, from the metadata
    size: int = 0
    reason: str | None = None
