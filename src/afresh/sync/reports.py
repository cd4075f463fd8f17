"""Define the reports and views of syncs that users see."""

from datetime import datetime
from enum import StrEnum

from afresh.dataclass import dataclass
from afresh.model.records import PageId, PageStatus, RunId
from afresh.sync.copy import Copy

DOCUMENTS = "documents_"  # prefix of the counts of a sync in its run
SYNC_INTERRUPTED = "interrupted; the next sync continues"


class DocumentOutcome(StrEnum):
    UPLOADED = "uploaded"
    REPLACED = "replaced"
    DELETED = "deleted"
    ADOPTED = "adopted"  # the document existed in the sink but was not recorded
    VERIFIED = "verified"  # the sink reports the document as searchable
    WAITING = "waiting"  # the sink is processing the document
    STUCK = "stuck"  # the sink has been processing the document for too long
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
    id: int
    page_id: PageId | None  # None: the page is no longer stored
    sink: str
    url: str
    outcome: DocumentOutcome
    state: PageStatus  # the state after the sync
    remote_id: str | None = None
    remote_name: str | None = None
    error: str | None = None
    at: datetime
    state_now: PageStatus
    remote_id_now: str | None = None
    error_now: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyView:
    sink: str
    state: PageStatus
    remote_id: str | None = None
    remote_name: str | None = None
    held_hash: str | None = None
    stuck: bool = False  # the sink has been processing the document for too long
    error: str | None = None
    next_try_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCopy:
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
    """What a listing of a sink showed: the number of its documents, and their differences from the stored copies."""

    listed: int = 0  # all documents in the sink
    missing: int = 0  # recorded documents that the sink does not have
    orphaned: int = 0  # our documents whose page is no longer stored
    doubled: int = 0  # our documents that are a second one of a page
    stale: int = 0  # our documents with outdated content
    adopted: int = 0  # our documents that were not recorded
    foreign: int = 0  # documents that afresh did not upload and never changes
    foreign_names: tuple[str, ...] = ()  # names of the first foreign documents


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    sink: str
    kind: str
    state: str  # completed, partial, failed, busy (another process syncs it) or planned
    dry_run: bool = False  # a preview: the counts are what a sync would do
    runs: tuple[int, ...] = ()  # ids of the stored runs, one per source
    uploaded: int = 0
    replaced: int = 0
    deleted: int = 0
    verified: int = 0  # documents that the sink reported as searchable
    waiting: int = 0  # documents in processing, or left for the next sync
    failed: int = 0
    stuck: int = 0  # waiting documents that have been in processing for too long
    failures: tuple[SyncFailure, ...] = ()  # the first failures
    audit: AuditView | None = None  # None: the sink was not listed
    seconds: float = 0.0
    error: str | None = None  # why the sync stopped
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkView:
    """A sink with the number of pages in each state, of one source or of all."""

    sink: str
    kind: str
    states: dict[str, int]
    stuck: int = 0  # pages that have been in processing for too long
    synced_at: datetime | None = None
    error: str | None = None
    failing_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentNote:
    run: RunId
    copy: Copy
    outcome: DocumentOutcome


MAX_LISTED = 20  # maximum failures and foreign names in a report
