"""What the faces show of external stores."""

from dataclasses import dataclass
from datetime import datetime

from afresh.core.model import PageId, PageStatus


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
