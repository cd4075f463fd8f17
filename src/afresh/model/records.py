"""The records that all packages share; those of a fetch are in fetch.py."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NewType

from afresh.dataclass import dataclass, field
from afresh.digest.records import KINDS, DigestUpdate
from afresh.model.fetch import Chunk, Document, Link, Outcome, Validators
from afresh.schedule.change_rate import ChangeStats, CheckPlan

SourceId = NewType("SourceId", int)
RunId = NewType("RunId", int)
PageId = NewType("PageId", int)
CrawlId = NewType("CrawlId", int)


class PageStatus(StrEnum):
    """The state of a page, as users see it."""

    PENDING = "pending"
    READY_FOR_INDEXING = "ready_for_indexing"
    PROCESSING = "processing"
    ACTIVE = "active"
    ERROR = "error"
    DELETED = "deleted"
    REDIRECT = "redirect"


class RunMode(StrEnum):
    """The kind of a run: what it checks or updates."""

    CRAWL = "crawl"
    REFRESH = "refresh"
    DUE = "due"
    CHECK = "check"  # a few pages: before a search returns them, or because their files changed
    SYNC = "sync"  # no fetching: external stores are updated


class RunState(StrEnum):
    QUEUED = "queued"  # waits for a worker
    RUNNING = "running"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
    NEEDS_CONFIRMATION = "needs_confirmation"


class ChangeKind(StrEnum):
    """How a page changed, as users see it."""

    NEW = "new"
    CHANGED = "changed"
    DELETED = "deleted"
    MOVED = "moved"


class ContentAction(StrEnum):
    """What a decision does with the stored content of a page."""

    KEEP = "keep"
    REPLACE = "replace"
    DROP = "drop"


class LinkAction(StrEnum):
    """The links that a decision follows: none, the stored links, or the new links."""

    NONE = "none"
    STORED = "stored"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source that is kept fresh; `rules` and `policy` hold only values that differ from the configuration."""

    id: SourceId
    name: str
    version: str | None
    kind: str
    url: str
    rules: Mapping[str, object] = field(default_factory=dict)
    policy: Mapping[str, object] = field(default_factory=dict)
    mark: str | None = None  # state token of the last complete listing
    trial: bool = False  # removed if its first run reads nothing
    crawl_time: datetime | None = None
    operator_url: str | None = None  # the last root URL that the operator set; "": none; None: unknown
    created_at: datetime
    updated_at: datetime

    @property
    def is_of_digest(self) -> bool:
        """Return whether the source has the files or links of the knowledge base (see `afresh init-kb`)."""
        return self.name in KINDS

    @property
    def is_operators(self) -> bool:
        """Return whether the operator of afresh set the URL; only then may the operator's credentials be used."""
        return bool(self.operator_url) and self.operator_url == self.url

    @property
    def label(self) -> str:
        """Return the name as users type it: `react@18`."""
        return f"{self.name}@{self.version}" if self.version else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pass over a source."""

    id: RunId
    source_id: SourceId
    mode: RunMode
    state: RunState
    full: bool = False  # fetches unconditionally
    started_at: datetime
    finished_at: datetime | None = None
    worker: str | None = None
    taken_at: datetime | None = None  # when its current worker took it
    worked_at: datetime | None = None  # when it was last written to
    queued: int = 0  # pages queued by this run
    known: int = 0  # pages that had content when it began
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One URL of a source, with the state of its content."""

    id: PageId
    source_id: SourceId
    url: str
    status: PageStatus = PageStatus.PENDING
    title: str | None = None
    depth: int = 0
    language: str | None = None
    validators: Validators = Validators()
    content_type: str | None = None
    content_hash: str | None = None  # set exactly while content is stored
    links_hash: str | None = None
    links_left_out: int = 0  # links beyond those stored: a link that is not stored may still exist
    recipe: str | None = None
    chunker: str | None = None  # the version that made its chunks
    failures: int = 0  # failed checks in a row
    gone_count: int = 0  # 404/410 in a row
    missing_count: int = 0  # complete runs in a row that did not reach the page
    doomed_by: RunId | None = None  # the run that is to delete the content
    crashes: int = 0  # of the parser on this page, in a row
    doubt: str | None = None  # why the last content is suspicious
    doubt_hash: str | None = None  # of the suspicious content or body
    doubt_run: RunId | None = None  # the run that found it suspicious
    refused_hash: str | None = None  # of the content that was replaced by the restored former text
    moved_to: str | None = None
    crawl_time: datetime | None = None  # start of the last run that checked it
    last_seen: datetime | None = None  # start of the last complete run that reached it
    last_scraped: datetime | None = None
    checked_at: datetime | None = None
    changed_at: datetime | None = None
    observed_at: datetime | None = None  # the last answer that showed whether it had changed
    rhythm: ChangeStats = ChangeStats()
    created_at: datetime | None = None  # maintained by the store:
    updated_at: datetime | None = None  # the last write other than a check


def last_answered(checked_at: datetime | None, *answers: datetime | None) -> datetime | None:
    """Return when a page last answered: the latest time in `answers`, but not after its last check (`checked_at`)."""
    latest = max((time for time in answers if time is not None), default=None)
    return checked_at if checked_at is None or latest is None else min(checked_at, latest)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContent:
    markdown: str | None = None  # None if only the searchable words are stored
    sketch: str = ""
    length: int | None = None
    former: str | None = None  # the text before a flagged change
    former_title: str | None = None
    former_at: datetime | None = None  # when it was replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt to check a page; open while `outcome` is None."""

    id: CrawlId
    page_id: PageId | None
    run_id: RunId | None
    url: str
    domain: str
    priority: int = 0
    scheduled_for: datetime
    locked_at: datetime | None = None
    locked_by: str | None = None
    completed_at: datetime | None = None
    outcome: Outcome | None = None
    status_code: int | None = None
    error_message: str | None = None
    reason: str | None = None  # the evidence for the outcome
    created_at: datetime
    updated_at: datetime
    unchanged: int | None = None  # of a listing: how many pages it shows unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to check one page, held until its lease ends."""

    crawl_id: CrawlId
    page: Page
    run_id: RunId
    domain: str
    starts_delay: bool = False  # the delay of its host starts now: another worker may have just sent a request


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings that decisions about pages follow."""

    recipe: str = ""
    chunker: str = ""
    recheck_seconds: float = 86_400.0
    backoff_base_seconds: float = 2.0
    backoff_max_seconds: float = 86_400.0
    retries: int = 2  # further attempts in the same run after a temporary failure
    gone_after: int = 1
    missing_after: int = 3
    brake_percent: float = 10.0
    brake_pages: int = 10
    respect_noindex: bool = True
    respect_nofollow: bool = True
    doubts: bool = True  # False: accept every 200 response
    holds: bool = True  # False: accept and flag suspicious content, and keep the former text
    redetect: bool = False  # detect the language of every page again
    reread_seconds: float = 2_592_000.0  # how long "not modified" alone is trusted; 0: for ever
    max_age_seconds: float | None = None  # age of the last answer at which a page is due in any case
    budget_per_run: int | None = None  # checks of due pages in one run; None: no limit
    adapt: bool = False  # pages that do not change wait longer, up to:
    adapt_max_seconds: float = 2_592_000.0
    refusals_back_off: bool = False  # a refusal backs off like a failure
    trust_lastmod: bool = False  # skip pages that the site lists as older than the last check
    check_plan: CheckPlan | None = None  # check pages as often as it pays off


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision after a check of a page: what to store, and when to check the page again."""

    page: Page  # as it is to be stored
    outcome: Outcome
    content: ContentAction = ContentAction.KEEP
    follow: LinkAction = LinkAction.NONE
    next_at: datetime | None  # when to check again; None: when it is linked again
    retry: bool = False  # the next attempt belongs to this run
    refused: bool = False  # the page may not be read: not a failure of the source
    doubtful: bool = False  # the content is suspicious
    keeps_former: bool = False  # keep the replaced text, so that it can be restored
    reason: str = ""
    status_code: int | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitContent:
    """The content and links that the check of a page produced; empty if nothing is to be stored."""

    document: Document | None = None  # set when content is replaced
    chunks: tuple[Chunk, ...] = ()
    embedded: int | None = None  # number of chunks; None without a model
    links: tuple[Link, ...] | None = None  # set when the stored links are to be replaced
    children: frozenset[str] = frozenset()  # targets of links that belong to the source
    diff: str | None = None
    body_bytes: int = 0
    rendered: bool = False  # by a browser
    trapped: int = 0  # links left out as part of an infinite URL space
    long_links: int = 0  # links left out because their URLs are too long
    digest: DigestUpdate | None = None  # for the cache of the knowledge base


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The finished check of a page, ready to be committed."""

    claim: Claim
    decision: Decision
    content: VisitContent = VisitContent()
    pause: float | None = None  # seconds that the host asked to wait
    hinted: bool = False  # its site had announced a change


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """A process that holds claims as long as it sends heartbeats."""

    name: str
    host: str
    pid: int
    heartbeat_at: datetime
    started_at: datetime | None = None
    helps: RunId | None = None  # the run of another worker that it assists in


@dataclass(frozen=True, slots=True)
class ListedUrl:
    """A URL that a source lists (its root, a sitemap entry, a file)."""

    url: str
    depth: int = 0
    validators: Validators | None = None  # as listed: equal to the stored ones means unchanged
    modified: datetime | None = None  # when the source says it changed: a hint, no proof


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The limits of a run: number of pages, distance from the root in links, and number of due pages."""

    max_pages: int
    max_depth: int
    budget: int | None = None  # pages that a run of due pages queues in all


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """How many attempts of a run are open, how many of those are claimed, and when the next one can start."""

    open: int
    held: int  # of those, claimed by workers
    next_at: datetime | None  # when the first unclaimed attempt is due and its host available


_P = PageStatus

# The changes of status that are allowed if a source has external stores. While a page has content, its status
# is the state of its copies, and each copy follows the same table. A processing or active page becomes ready
# again when it changes, and a processing page also when its copy is missing or FAILED.
LIFE: dict[PageStatus, frozenset[PageStatus]] = {
    _P.PENDING: frozenset({_P.READY_FOR_INDEXING, _P.ERROR, _P.DELETED, _P.REDIRECT}),
    _P.READY_FOR_INDEXING: frozenset({_P.PROCESSING, _P.ERROR, _P.DELETED, _P.REDIRECT}),
    _P.PROCESSING: frozenset({_P.ACTIVE, _P.ERROR, _P.READY_FOR_INDEXING, _P.DELETED, _P.REDIRECT}),
    _P.ACTIVE: frozenset({_P.READY_FOR_INDEXING, _P.DELETED, _P.REDIRECT}),
    _P.ERROR: frozenset({_P.READY_FOR_INDEXING, _P.DELETED, _P.REDIRECT}),
    _P.DELETED: frozenset({_P.READY_FOR_INDEXING, _P.REDIRECT}),
    _P.REDIRECT: frozenset({_P.READY_FOR_INDEXING, _P.DELETED}),
}

UNFINISHED = (RunState.QUEUED, RunState.RUNNING, RunState.CANCELLED)


def may_change(old: PageStatus, new: PageStatus) -> bool:
    """Return whether the status of a page or copy may change from `old` to `new`."""
    return old == new or new in LIFE[old]
