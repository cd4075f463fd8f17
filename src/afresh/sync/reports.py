"""What the faces show of external stores."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from afresh.model.records import PageId, PageStatus, RunId
from afresh.sync.copy import Copy

DOCUMENTS = "documents_"  # before the counts of a sync among those of its run
SYNC_INTERRUPTED = "interrupted; the next sync goes on where it was"


class DocumentOutcome(StrEnum):
    """What a sync did about a document."""

    UPLOADED = "uploaded"
    REPLACED = "replaced"
    DELETED = "deleted"
    ADOPTED = "adopted"  # it was there and not on record
    VERIFIED = "verified"  # the store says that it can be searched
    WAITING = "waiting"  # the store still processes it
    STUCK = "stuck"  # for longer than it may take
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentCounts:
    """How many documents of a sync ended how."""

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
    """A document that a sync did something about: as the sync left it, and as it is now."""

    id: int
    page_id: PageId | None  # None: the page is no longer on record
    sink: str
    url: str
    outcome: DocumentOutcome
    state: PageStatus  # then
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
    stuck: bool = False  # processed for longer than it may take
    error: str | None = None
    next_try_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCopy:
    """A page with content, and how it stands in one external store."""

    id: PageId
    url: str
    title: str | None
    copy: CopyView


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncFailure:
    """A page that could not be brought in line, and why."""

    url: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """What a listing of a store showed beside what was expected."""

    listed: int = 0
    missing: int = 0  # ours, known, and not there
    orphaned: int = 0  # ours, of no page
    doubled: int = 0  # ours, a second one of a page
    stale: int = 0  # ours, of another content than on record
    adopted: int = 0  # ours, there, and not on record
    foreign: int = 0  # not ours: never touched
    foreign_names: tuple[str, ...] = ()  # the first few


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What a sync did in one external store, or would do."""

    sink: str
    kind: str
    state: str  # completed, partial, failed, busy (another process syncs it) or planned
    dry_run: bool = False  # the numbers are what a sync would do
    runs: tuple[int, ...] = ()  # the numbers it is on record by: a run for each source
    uploaded: int = 0
    replaced: int = 0
    deleted: int = 0
    verified: int = 0  # documents that the store confirmed
    waiting: int = 0  # what the store still works on, or the next sync has to do
    failed: int = 0
    stuck: int = 0  # of those that wait: for longer than it may take
    failures: tuple[SyncFailure, ...] = ()  # the first few
    audit: AuditView | None = None  # where the store was listed
    seconds: float = 0.0
    error: str | None = None  # why it could not go on
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkView:
    """An external store, and how many pages of a source, or of all, stand how in it."""

    sink: str
    kind: str
    states: dict[str, int]
    stuck: int = 0  # of those that are processed: for longer than it may take
    synced_at: datetime | None = None
    error: str | None = None
    failing_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentNote:
    """What a sync did about a copy, and how that stands now."""

    run: RunId
    copy: Copy
    outcome: DocumentOutcome
