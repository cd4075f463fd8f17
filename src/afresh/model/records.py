"""The nouns of the system, as frozen records that any layer may share; what a look shows is in looks.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType

from afresh.digest.records import Told
from afresh.model.fetch import Chunk, Document, Link, Outcome, Validators
from afresh.schedule.change_rate import Plan, Rhythm

SourceId = NewType("SourceId", int)
RunId = NewType("RunId", int)
PageId = NewType("PageId", int)
CrawlId = NewType("CrawlId", int)


class PageStatus(StrEnum):
    """The life of a page, in the words the outside sees."""

    PENDING = "pending"
    READY_FOR_INDEXING = "ready_for_indexing"
    PROCESSING = "processing"
    ACTIVE = "active"
    ERROR = "error"
    DELETED = "deleted"
    REDIRECT = "redirect"


class RunMode(StrEnum):
    """Why a run was started."""

    CRAWL = "crawl"
    REFRESH = "refresh"
    DUE = "due"
    CHECK = "check"  # a few pages: before a search answers from them, or as their files changed
    SYNC = "sync"  # no look: external stores are brought in line with the pages


class RunState(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"  # waits for a worker
    RUNNING = "running"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
    NEEDS_CONFIRMATION = "needs_confirmation"


class ChangeKind(StrEnum):
    """What happened to a page as a reader of the index sees it."""

    NEW = "new"
    CHANGED = "changed"
    DELETED = "deleted"
    MOVED = "moved"


class Content(StrEnum):
    """What a decision means for the stored content of a page."""

    KEEP = "keep"
    REPLACE = "replace"
    DROP = "drop"


class Follow(StrEnum):
    """Which links a decision follows: none, those on record, or those just read."""

    NONE = "none"
    STORED = "stored"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One thing that is kept fresh; `rules` and `policy` hold just what differs from the configuration."""

    id: SourceId
    name: str
    version: str | None
    kind: str
    url: str
    rules: Mapping[str, object] = field(default_factory=dict)
    policy: Mapping[str, object] = field(default_factory=dict)
    mark: str | None = None  # the state that was listed when all of it was last read
    trial: bool = False  # not kept if its first run reads nothing
    crawl_time: datetime | None = None
    operator_url: str | None = None  # the root as the operator named it; empty: a caller did; None: unknown
    created_at: datetime
    updated_at: datetime

    @property
    def is_operators(self) -> bool:
        """Whether the operator named the root that it has now: then the operator's keys may read it."""
        return bool(self.operator_url) and self.operator_url == self.url

    @property
    def label(self) -> str:
        """The name as it is typed: `react@18`."""
        return f"{self.name}@{self.version}" if self.version else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pass over a source; its start time stamps everything it saw."""

    id: RunId
    source_id: SourceId
    mode: RunMode
    state: RunState
    full: bool = False  # looks without validators
    started_at: datetime
    finished_at: datetime | None = None
    worker: str | None = None
    taken_at: datetime | None = None  # when its present worker took it up
    worked_at: datetime | None = None  # when something was last written for it
    queued: int = 0  # pages put into the queue by this run
    known: int = 0  # pages that had content when it began
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One address in a source, and what is known of its content."""

    id: PageId
    source_id: SourceId
    url: str
    status: PageStatus = PageStatus.PENDING
    title: str | None = None
    depth: int = 0
    language: str | None = None
    validators: Validators = Validators()  # noqa: RUF009 - frozen, so it can be shared
    content_type: str | None = None
    content_hash: str | None = None  # set exactly while content is stored
    links_hash: str | None = None
    links_left_out: int = 0  # more links than are kept: absence proves nothing
    recipe: str | None = None
    chunker: str | None = None  # the version that cut its chunks
    failures: int = 0  # failed looks in a row: the fold of the history
    gone_count: int = 0  # 404/410 in a row
    missing_count: int = 0  # complete runs in a row that did not reach the page
    doomed_by: RunId | None = None  # the run whose sweep is to drop the content
    crashes: int = 0  # of the parser on this page, in a row
    doubt: str | None = None  # why what was last seen is not believed, or is worth a look
    doubt_hash: str | None = None  # of the content or the body that is not believed
    doubt_run: RunId | None = None  # the run that had the doubt
    refused_hash: str | None = None  # of the content in whose place the former text was restored
    moved_to: str | None = None
    crawl_time: datetime | None = None  # start of the last run that looked at it
    last_seen: datetime | None = None  # start of the last complete run that reached it
    last_scraped: datetime | None = None
    checked_at: datetime | None = None
    changed_at: datetime | None = None
    observed_at: datetime | None = None  # the last answer that told whether it had changed
    rhythm: Rhythm = Rhythm()  # noqa: RUF009 - frozen, so it can be shared
    created_at: datetime | None = None  # kept by the store, as is:
    updated_at: datetime | None = None  # the last time that anything but its checks was written


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The content on record of a page, as far as it is kept."""

    markdown: str | None = None  # None where only the words are kept
    sketch: str = ""
    length: int | None = None
    former: str | None = None  # the text before a change that was flagged
    former_title: str | None = None
    former_at: datetime | None = None  # when it was replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One row of the history: an attempt to look at a page, open while `outcome` is None."""

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
    reason: str | None = None  # the evidence: why the outcome is what it is
    created_at: datetime
    updated_at: datetime
    unchanged: int | None = None  # of a listing: how many pages it shows unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to look at one page, held until its lease ends."""

    crawl_id: CrawlId
    page: Page
    run_id: RunId
    domain: str
    arrived: bool = False  # its host comes from another worker, who may have asked it a moment ago


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The numbers that `decide` obeys."""

    recipe: str = ""
    chunker: str = ""
    recheck_seconds: float = 86_400.0
    backoff_base_seconds: float = 2.0
    backoff_max_seconds: float = 86_400.0
    retries: int = 2  # further looks within one run after a failure that may pass
    gone_after: int = 1
    missing_after: int = 3
    brake_percent: float = 10.0
    brake_pages: int = 10
    respect_noindex: bool = True
    respect_nofollow: bool = True
    doubts: bool = True  # False: whatever comes with a 200 is believed
    holds: bool = True  # False: what is doubted is taken and flagged, its former text is kept (E23)
    redetect: bool = False  # the language of a page that is read is set anew
    reread_seconds: float = 2_592_000.0  # how long a page is believed on "not modified" alone; 0: for ever
    max_age_seconds: float | None = None  # since its last answer, after which a page is due in any case
    budget_per_run: int | None = None  # looks of one run at what is due; None: no limit
    adapt: bool = False  # pages that stay as they are wait longer, up to:
    adapt_max_seconds: float = 2_592_000.0
    refusals_back_off: bool = False  # a refusal makes a page wait as a failure does
    trust_lastmod: bool = False  # a page that its site lists as older than the last look is not asked
    looks: Plan | None = None  # pages are looked at as often as it is worth


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one look means: a value, made apart from carrying it out."""

    page: Page  # as it is to be stored
    outcome: Outcome
    content: Content
    follow: Follow
    next_at: datetime | None  # when to look again; None: when something links here again
    retry: bool = False  # the next look belongs to this run
    refused: bool = False  # we may not read the page: not a failure of the source
    doubtful: bool = False  # content came and is not believed
    keeps_former: bool = False  # the text that is replaced is kept, to be restored
    reason: str = ""
    status_code: int | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """What a visit made; empty where it made nothing."""

    document: Document | None = None  # set when content is replaced
    chunks: tuple[Chunk, ...] = ()
    embedded: int | None = None  # of the chunks; None where no model is used
    links: tuple[Link, ...] | None = None  # set when the links on record are to be replaced
    children: frozenset[str] = frozenset()  # targets of links that belong to the source
    diff: str | None = None
    body_bytes: int = 0
    rendered: bool = False  # shown in a browser
    trapped: int = 0  # links left out because they look endless
    long_links: int = 0
    told: Told | None = None  # for the cache of the knowledge base


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A finished visit, ready to be committed."""

    claim: Claim
    decision: Decision
    harvest: Harvest = Harvest()
    pause: float | None = None  # seconds that the host asked to be left alone
    hinted: bool = False  # its site had said that the page changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that holds claims as long as its heart beats."""

    name: str
    host: str
    pid: int
    heartbeat_at: datetime
    started_at: datetime | None = None
    helps: RunId | None = None  # the run of another worker that it works on


@dataclass(frozen=True, slots=True)
class Listed:
    """An address that a source lists by itself (its root, a sitemap entry, a file)."""

    url: str
    depth: int = 0
    validators: Validators | None = None  # as the listing shows them: those on record mean "unchanged"
    modified: datetime | None = None  # when the source says it changed: a hint, no proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a run may go."""

    max_pages: int
    max_depth: int
    budget: int | None = None  # pages that a run of what is due queues in all; the rest waits for the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What is left of a run."""

    open: int
    held: int
    next_at: datetime | None  # when the first row that nobody holds is due and its host does not rest
