"""Results that the interfaces show. Scripts rely on the field names, so do not rename them."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from afresh.dataclass import dataclass, field, replace
from afresh.model.records import Attempt, ChangeKind, PageId, PageStatus, RunId, RunState, SourceId
from afresh.model.versions import Match
from afresh.sync.reports import CopyView, DocumentCounts, SinkView

REFUSED = "refused: "  # prefix of the counts of a run by the reason of a refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The state and the counts of a run."""

    run: RunId
    source: str
    version: str | None
    mode: str
    state: str
    known: int = 0  # pages that had content when the run began; 0: a first crawl
    queued: int = 0  # pages queued so far, checked ones included
    checked: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0  # 200, same content
    not_modified: int = 0  # 304
    deleted: int = 0
    missing: int = 0
    moved: int = 0
    moved_read: int = 0  # of the moved pages, those read at their new URL
    failed: int = 0
    refused: int = 0
    refusals: Mapping[str, int] = field(default_factory=dict)  # refused pages by reason
    doubtful: int = 0  # 200 with suspicious content: the stored content stays
    flagged: int = 0  # of the changed pages, those that lost nearly all text
    held: int = 0  # deletions that wait for `afresh confirm`
    rendered: int = 0  # of all read pages: rendered in a browser
    bytes: int = 0
    chunks_embedded: int = 0
    chunks_reused: int = 0
    summaries: int = 0  # made for the knowledge base
    links_scored: int = 0  # by keywords, in this run
    links_unscored: int = 0  # left for the next run
    links_saved: int = 0  # with known scores
    link_calls: int = 0  # of the AI calls: those for links
    link_calls_saved: int = 0
    ai_calls: int = 0
    ai_tokens: int = 0
    seconds: float = 0.0
    error: str | None = None
    notes: tuple[str, ...] = ()  # one sentence each
    sinks: tuple[SinkView, ...] | None = None  # the external stores of the source, with counts
    documents: DocumentCounts | None = None  # of a sync
    started_at: datetime | None = None
    finished_at: datetime | None = None
    kept: bool = True  # False: the source was removed because its first run read nothing

    @property
    def interrupted(self) -> bool:
        """Return whether the worker of the run died before the run ended."""
        return self.state == RunState.CANCELLED and self.started_at is not None and self.finished_at is None

    @property
    def found_nothing(self) -> bool:
        """Return whether a first run completed without reading anything, so that its source was removed."""
        return self.state == RunState.COMPLETED and not self.kept

    @property
    def redirected_or_gone(self) -> int:
        """Return how many of the checked pages redirected, or had no content any more."""
        read = self.new + self.changed + self.moved_read + self.unchanged + self.not_modified
        return max(0, self.checked - read - self.refused - self.doubtful - self.failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class KbReport:
    """What an update of the knowledge base did."""

    index: str  # path of the file
    cache: str
    file_records: int
    url_records: int
    added: int = 0
    removed: int = 0
    summaries: int = 0
    ai_calls: int = 0
    due: int = 0  # due links that the budget left for the next update
    next_check_at: datetime | None = None  # when the next link becomes due
    written: bool = False  # whether a file was written
    failing_links: tuple["BackingOffPage", ...] = ()  # whose last check failed, by URL
    files: RunReport | None = None
    links: RunReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One search result: the best passage of a page, and how fresh it is."""

    url: str
    title: str
    text: str  # the passage; matched words between U+0002 and U+0003
    path: tuple[str, ...]
    score: float
    source: str
    version: str | None
    language: str | None
    checked_at: datetime | None
    changed_at: datetime | None
    also_at: tuple[str, ...] = ()  # other URLs with the same content
    depth: int = 0  # of its page
    seen_at: datetime | None = None  # when the page last had this content
    context: str | None = None  # the passage with the text around it, if requested
    relevance: float = 0.0  # from 0 to 1; unlike `score`, comparable between queries
    weak: bool = False  # whether no hit of the answer is a good match


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    hits: tuple[SearchHit, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def weak(self) -> bool:
        """Return whether no hit is a good match, or there is none."""
        return all(hit.weak for hit in self.hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexReport:
    """What a reindex rebuilt from stored text, and what is left to do."""

    source: str | None  # None: all sources
    state: str  # completed, partial or failed
    pages_cut: int  # pages that were split into chunks again
    chunks_embedded: int
    chunks_reused: int
    left: int  # pages and chunks that still have another recipe
    model: str | None  # as configured
    serving: str | None  # the model that answers searches
    seconds: float
    error: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPage:
    """The stored text of a page, and how fresh the text is."""

    url: str
    title: str
    source: str
    version: str | None
    language: str | None
    status: PageStatus
    content_type: str | None
    checked_at: datetime | None
    changed_at: datetime | None
    markdown: str
    moved_from: tuple[str, ...] = ()  # URLs that redirected here, the requested one first
    also_in: tuple[str, ...] = ()  # labels of other sources with this URL
    doubt: str | None = None  # why its last content is suspicious or flagged


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundVersion:
    """The version of a source that a label refers to, and all existing versions."""

    source: str
    wanted: str | None
    version: str | None  # None: the source without a version
    match: Match
    url: str
    versions: tuple[str, ...]  # newest first
    unversioned: bool  # whether a source of this name has no version

    @property
    def is_stand_in(self) -> bool:
        """Return whether this version is used because the requested one does not exist."""
        return self.match is Match.NEAREST_LOWER or (self.match is Match.UNVERSIONED and self.wanted is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """A source with its numbers of pages, chunks, links and errors, its last run and its settings."""

    name: str
    version: str | None
    kind: str
    url: str
    crawl_time: datetime | None
    pages: int
    chunks: int
    links: int
    errors: int  # pages that were never read, because each check of them failed
    doubtful: int
    oldest_check: datetime | None
    last_run: RunId | None
    last_state: str | None
    last_mode: str | None
    rules: Mapping[str, object] = field(default_factory=dict)
    policy: Mapping[str, object] = field(default_factory=dict)
    last_end: datetime | None = None  # when the last run ended
    next_time: datetime | None = None  # when its schedule starts the next run
    model: str | None = None  # whose vectors answer searches; only set for a single source
    unembedded: int | None = None  # chunks without such a vector
    keywords: Mapping[str, float] | None = None  # that score its links; only set for a single source
    sinks: tuple[SinkView, ...] | None = None  # that are to hold it; only set for a single source
    trouble: str | None = None  # why its settings are invalid, so that it is not checked
    id: SourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """The schedule of a source, and how its last run went."""

    source: str
    version: str | None
    schedule: str
    time_zone: str | None  # None if the rule needs none
    next_time: datetime | None
    overdue: bool
    running: bool  # a scheduler runs it now
    last_time: datetime | None
    last_run: RunId | None
    last_state: str | None
    budget: str | None = None  # checks per unit of time, for the schedule "auto"
    due: int | None = None  # pages that are due
    source_id: SourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCheck:
    """A page that waits for its next check."""

    url: str
    next_look: datetime  # the time of the check
    due: bool  # now
    planned: datetime  # the list is sorted by it; later than `next_look` if a maximum age makes the page due earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """A page as shown in a list, with its copies in external stores."""

    id: PageId
    url: str
    status: PageStatus
    title: str | None
    depth: int
    language: str | None
    content_hash: str | None
    etag: str | None
    last_modified: str | None
    content_type: str | None
    crawl_time: datetime | None
    last_seen: datetime | None
    checked_at: datetime | None
    changed_at: datetime | None
    missing_count: int
    moved_to: str | None
    doubt: str | None = None  # why its last content is suspicious or flagged
    copies: tuple[CopyView, ...] = ()  # in its external stores
    created_at: datetime | None = None
    updated_at: datetime | None = None  # when anything but its checks was last written
    last_scraped: datetime | None = None  # when its content was last read
    size: int | None = None  # of a file, in bytes
    mtime: datetime | None = None  # of a file
    next_look: datetime | None = None  # None: only when its source lists it or a page links to it
    source_id: SourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkView:
    url: str
    text: str
    score: float | None
    keywords: Mapping[str, float]
    comment: str | None
    crawl_time: datetime | None
    pages: tuple[str, ...]
    page_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    id: int
    source: str
    version: str | None
    url: str
    kind: ChangeKind
    run: RunId | None
    at: datetime
    old_hash: str | None
    new_hash: str | None
    diff: str | None
    moved_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageExplanation:
    """The current state of a page, with the attempts and links that explain it."""

    url: str
    source: str
    version: str | None
    status: PageStatus
    summary: str  # one sentence: the result of the last check and the decision
    page: PageView
    latest: Attempt | None
    next_look: datetime | None
    linked_from: tuple[str, ...]
    attempts: int
    former: str | None = None  # the text before a flagged change
    former_until: datetime | None = None  # when it is removed; None: never, or there is none
    linked_from_count: int = 0  # all pages that link to it
    next_check: datetime | None = None  # when a scheduled run will check it
    next_check_note: str = ""  # without that time: what has to happen first


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshPlan:
    """What a refresh would do and cost."""

    source: str
    version: str | None
    mode: str
    known: int  # stored pages that would be checked
    conditional: int  # of those, requested with validators
    unconditional: int
    first_looks: int  # pages known from links but never read
    not_looked_at: int  # stored pages that the rules now exclude
    last_run_bytes: int
    last_full_bytes: int
    estimated_seconds: float | None
    root: str
    notes: tuple[str, ...] = ()
    next_time: datetime | None = None  # when the schedule starts the next run
    due: int = 0  # pages that are due
    budget: int | None = None  # of those, how many one `refresh --due` checks; None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class BackingOffPage:
    """A failed page that waits for its next attempt."""

    url: str
    failures: int
    next_at: datetime
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackingOffGroup:
    """Failed pages of a host with the same reason."""

    host: str
    reason: str | None
    count: int
    first: BackingOffPage  # the one that is checked first


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How fresh a source is: its oldest check, its due pages and its failed pages."""

    source: str
    version: str | None
    kind: str
    oldest_check: datetime | None  # of its pages with content
    due: int  # pages that are due
    next_at: datetime | None  # when the next page becomes due
    backing_off: tuple[BackingOffPage, ...] = ()  # the first few, soonest first
    backing_off_count: int = 0
    backing_off_groups: tuple[BackingOffGroup, ...] = ()  # the first few
    trouble: str | None = None  # why its settings are invalid, so that it is not checked


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """A worker process, active or idle."""

    host: str
    pid: int
    since: datetime
    heartbeat_at: datetime
    runs: tuple[int, ...]  # the runs that it processes
    held: int  # pages that it has claimed


@dataclass(frozen=True, slots=True, kw_only=True)
class HostQueue:
    """How many pages of open runs wait for one host, and since when."""

    domain: str
    waiting: int
    held: int  # pages that workers have claimed, not counted in `waiting`
    oldest: datetime | None  # when the first waiting one became due


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    store: str
    sources: int
    pages: int
    doubtful: int  # pages whose last content is suspicious or flagged
    chunks: int
    attempts: int
    pending: int
    in_flight: int  # claimed by live workers
    oldest_pending: datetime | None
    runs: tuple[RunReport, ...]  # running or waiting for a confirmation, newest first
    workers: tuple[WorkerView, ...]
    size_bytes: int
    hosts: tuple[HostQueue, ...] = ()  # with the longest queues
    pages_per_second: float = 0.0  # of the active runs, since their start
    model: str | None = None  # whose vectors answer searches
    unembedded: int = 0  # chunks without a vector, which only a keyword search finds
    wanted_model: str | None = None  # as configured
    freshness: tuple[Freshness, ...] = ()  # of every source
    sinks: tuple[SinkView, ...] = ()  # the external stores


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry(Attempt):
    """An attempt to fetch a page, with the source of the page."""

    source: str | None = None  # None: the source was removed
    version: str | None = None


def listing_reason(unchanged: int) -> str:
    """Return the reason to show for the attempt that read a listing: how many pages the listing shows unchanged."""
    return f"the listing shows {unchanged} {'page' if unchanged == 1 else 'pages'} unchanged"


def newest_first(own: Iterable[Attempt], listings: Iterable[Attempt]) -> list[Attempt]:
    """Return all attempts that concern a page, newest first: its own, and listings that show it unchanged."""
    covered = [
        replace(each, reason=f"unchanged according to the listing of {each.url}, run {each.run_id}")
        for each in listings
    ]
    return sorted([*own, *covered], key=recency, reverse=True)


def recency(attempt: Attempt) -> tuple[bool, datetime, int]:
    """Return a sort key by time, in which open attempts are the newest."""
    is_open = attempt.completed_at is None
    return is_open, attempt.completed_at or attempt.scheduled_for, attempt.id


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """A table that was copied, with the checksum that is the same in both stores."""

    table: str
    rows: int
    sha256: str  # over all rows in key order


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    origin: str
    target: str
    sources: tuple[str, ...]
    tables: tuple[CopiedTable, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """The result of a migration or of its dry run; the numbers are schema versions."""

    store: str
    before: int
    after: int
    newest: int  # that this version of afresh supports


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of `afresh doctor`."""

    check: str
    ok: bool
    detail: str
    fix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The pages that open runs still have to check."""

    waiting: int = 0  # not claimed by a live worker
    held: int = 0  # claimed by a live worker
    oldest: datetime | None = None  # when the first waiting one became due
