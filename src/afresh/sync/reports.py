"""Records of external stores (sinks) for users."""

from datetime import datetime
from enum import StrEnum

from afresh.dataclass import dataclass
from afresh.model.records import PageId, PageStatus, RunId
from afresh.sync.copy import Copy

DOCUMENTS = "documents_"  # prefix of the counts of a sync in its run
SYNC_INTERRUPTED = "interrupted; the next sync continues it"


class DocumentOutcome(StrEnum):
    """What a sync did with a document."""

    UPLOADED = "uploaded"
    REPLACED = "replaced"
    DELETED = "deleted"
    ADOPTED = "adopted"  # it existed and was not stored
    VERIFIED = "verified"  # the sink reports it as searchable
    WAITING = "waiting"  # the sink is processing it
    STUCK = "stuck"  # in processing for too long
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentCounts:
    uploaded: int = 0
    replaced: int = 0
    deleted: int = 0
    adopted: int = 0
    verified: int = 0
    waiting: int = 0
    stuck: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedDocument:
    """A document of a sync: as the sync left it, and as it is now."""

    id: int
    page_id: PageId | None  # None: the page is no longer stored
    sink: str
    url: str
    outcome: DocumentOutcome
    state: PageStatus  # after the sync
    remote_id: str | None = None
    remote_name: str | None = None
    error: str | None = None
    at: datetime
    state_now: PageStatus
    remote_id_now: str | None = None
    error_now: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyView:
    """One page in one external store."""

    sink: str
    state: PageStatus
    remote_id: str | None = None
    remote_name: str | None = None
    held_hash: str | None = None
    stuck: bool = False  # in processing for too long
    error: str | None = None
    next_try_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCopy:
    """A page with content and its copy in one sink."""

    id: PageId
    url: str
    title: str | None
    copy: CopyView


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncFailure:
    url: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """The differences that a listing of a sink showed."""

    listed: int = 0
    missing: int = 0  # ours, known, and not there
    orphaned: int = 0  # ours, without a page
    doubled: int = 0  # ours, a second document of a page
    stale: int = 0  # ours, with other content than stored
    adopted: int = 0  # ours, existing, and not stored
    foreign: int = 0  # not ours: never changed
    foreign_names: tuple[str, ...] = ()  # the first few


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What a sync did in one sink, or would do."""

    sink: str
    kind: str
    state: str  # completed, partial, failed, busy (another process syncs it) or planned
    dry_run: bool = False  # the counts are what a sync would do
    runs: tuple[int, ...] = ()  # ids of its runs, one per source
    uploaded: int = 0
    replaced: int = 0
    deleted: int = 0
    verified: int = 0  # documents that the sink confirmed
    waiting: int = 0  # in processing, or left for the next sync
    failed: int = 0
    stuck: int = 0  # of the waiting ones: in processing for too long
    failures: tuple[SyncFailure, ...] = ()  # the first few
    audit: AuditView | None = None  # if the sink was listed
    seconds: float = 0.0
    error: str | None = None  # why it stopped
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkView:
    """A sink with the number of pages by state, of one source or all."""

    sink: str
    kind: str
    states: dict[str, int]
    stuck: int = 0  # of those in processing: for too long
    synced_at: datetime | None = None
    error: str | None = None
    failing_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentNote:
    """What a sync did with a copy, and its state after that."""

    run: RunId
    copy: Copy
    outcome: DocumentOutcome


MAX_LISTED = 20  # failures and foreign names in a report
