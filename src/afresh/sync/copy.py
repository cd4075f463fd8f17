"""Records of copies: one page in one external store (sink), and the document there.

The content that a sink should have is the content hash of the page itself. It is stored only once, so the
transaction that changes a page is the order to change its copies, and nothing can be lost in between.
"""

from datetime import datetime
from enum import StrEnum

from afresh.dataclass import dataclass
from afresh.model.records import PageId, PageStatus, SourceId
from afresh.text.plain import visible

MAX_NAME_BYTES = 512  # of a display name in Gemini File Search


class ReplaceOrder(StrEnum):
    """The order of deletion and upload when a document is replaced."""

    DELETE_FIRST = "delete_first"
    UPLOAD_FIRST = "upload_first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One page in one sink: what is there, and what is planned."""

    id: int
    sink: str
    source_id: SourceId
    source: str  # label, as in the tag
    page_id: PageId | None  # None: the page is no longer stored
    url: str
    state: PageStatus = PageStatus.READY_FOR_INDEXING
    wanted_hash: str | None = None  # of the last upload or attempt
    held_hash: str | None = None  # of the document `remote_id`
    remote_id: str | None = None
    remote_name: str | None = None
    putting: bool = False  # upload intended: a document with unknown id may exist
    former: tuple[str, ...] = ()  # documents that stay until the new one is active
    leftovers: tuple[str, ...] = ()  # documents to delete
    attempts: int = 0  # failed uploads in a row
    put_at: datetime | None = None
    failed_at: datetime | None = None  # since when the sink reports FAILED
    next_try_at: datetime | None = None
    error: str | None = None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredCopy:
    """A copy and the content hash that its sink should have; None: nothing."""

    copy: Copy
    hash: str | None
    moved: bool = False  # the page redirects elsewhere now


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadText:
    """The text of a page for an upload, read in one query."""

    hash: str
    url: str
    title: str | None
    language: str | None
    markdown: str | None  # None: the text is not stored


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord:
    name: str
    place: str  # location from the settings
    worker: str | None = None  # that syncs it
    audit: bool = True  # list the sink before anything else
    audited_at: datetime | None = None  # last listing
    resume_at: datetime | None = None  # the sink asked for a pause until then
    synced_at: datetime | None = None
    error: str | None = None  # of the last sync
    failing_since: datetime | None = None  # since when no sync has succeeded


def display_name(title: str | None, url: str) -> str:
    """Return the name for documents of a page: its title or else its URL, truncated for sinks."""
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
    """Identifies our documents; stored in their metadata."""

    store: str  # id of the afresh store, so that two of them can share one sink
    source: str  # label of the source
    page: int  # page id
    hash: str  # content hash


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
    mark: OwnerTag | None  # None: foreign
    url: str | None = None  # of its page, from the metadata; None if missing
    size: int = 0
    reason: str | None = None
