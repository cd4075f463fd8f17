"""What the faces show: answers of the use cases, as frozen records with the field names scripts rely on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from afresh.model.records import Attempt, ChangeKind, PageId, PageStatus, RunId, RunState, SourceId
from afresh.model.versions import Match
from afresh.sync.reports import CopyView, DocumentCounts, SinkView


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What a run did and what it saved."""

    run: RunId
    source: str
    version: str | None
    mode: str
    state: str
    known: int = 0  # pages that had content when it began; none: a first crawl
    queued: int = 0  # pages that it took up so far, those that are checked among them
    checked: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0  # 200, same content
    not_modified: int = 0  # 304
    deleted: int = 0
    missing: int = 0
    moved: int = 0
    failed: int = 0
    refused: int = 0
    doubtful: int = 0  # 200, but not believed: the content on record stays
    flagged: int = 0  # of the changed: those that lost nearly all of their text
    held: int = 0  # deletions the brake holds until `afresh confirm`
    rendered: int = 0  # of all that was read: what a browser had to show
    bytes: int = 0
    chunks_embedded: int = 0
    chunks_reused: int = 0
    summaries: int = 0  # made for the knowledge base
    links_scored: int = 0  # by keywords; those asked about in this run
    links_unscored: int = 0  # left for the next run
    links_saved: int = 0  # whose scores were known
    link_calls: int = 0  # of the calls to a model, those for links
    link_calls_saved: int = 0
    ai_calls: int = 0
    ai_tokens: int = 0
    seconds: float = 0.0
    error: str | None = None
    notes: tuple[str, ...] = ()  # what else the user should know, one sentence each
    sinks: tuple[SinkView, ...] | None = None  # where its documents are to be, and how they stand there
    documents: DocumentCounts | None = None  # of a sync: what it did
    started_at: datetime | None = None
    finished_at: datetime | None = None
    kept: bool = True  # False: the source is gone, because its first run read nothing

    @property
    def interrupted(self) -> bool:
        """Whether its worker died: nobody cancelled it, and nothing wrote down when it ended."""
        return self.state == RunState.CANCELLED and self.started_at is not None and self.finished_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class KbReport:
    """What an update of the knowledge base did."""

    index: str  # the file
    cache: str
    file_records: int
    url_records: int
    added: int = 0
    removed: int = 0
    summaries: int = 0
    ai_calls: int = 0
    due: int = 0  # links whose time has come and that the budget left for the next update
    next_check_at: datetime | None = None  # when the next of the others is due
    written: bool = False  # a file had to be written
    failing_links: tuple["BackingOff", ...] = ()  # listed links whose last check failed, by URL
    files: RunReport | None = None
    links: RunReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One answer of a search: the best passage of a page, and how fresh it is."""

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
    also_at: tuple[str, ...] = ()  # other addresses with the same content
    depth: int = 0  # of its page
    seen_at: datetime | None = None  # when the page last answered with this content
    context: str | None = None  # the passage with what stands around it, where asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a search found, and what the user should know about it."""

    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """What was made anew from stored text, and what is left to do."""

    source: str | None  # None: all of them
    state: str  # completed, partial or failed
    pages_cut: int
    chunks_embedded: int
    chunks_reused: int
    left: int  # pages and chunks that are still as another recipe made them
    model: str | None  # that the settings want
    serving: str | None  # that answers searches
    seconds: float
    error: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPage:
    """The stored text of a page, and how fresh it is."""

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
    moved_from: tuple[str, ...] = ()  # the addresses that led here, first the one that was asked for
    also_in: tuple[str, ...] = ()  # other sources that hold the address, as they are typed
    doubt: str | None = None  # why its last look is not believed, or was believed with a flag


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundVersion:
    """The version of a source that is meant, and the versions there are."""

    source: str
    wanted: str | None
    version: str | None  # None: the source without a version
    match: Match
    url: str
    versions: tuple[str, ...]  # newest first
    unversioned: bool  # whether there is a source of this name without a version

    @property
    def is_stand_in(self) -> bool:
        """Whether it is less than what was asked for."""
        return self.match is Match.NEAREST_LOWER or (
            self.match is Match.UNVERSIONED and self.wanted is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """A source with its numbers."""

    name: str
    version: str | None
    kind: str
    url: str
    crawl_time: datetime | None
    pages: int
    chunks: int
    links: int
    errors: int
    doubtful: int
    oldest_check: datetime | None
    last_run: RunId | None
    last_state: str | None
    last_mode: str | None
    rules: Mapping[str, object] = field(default_factory=dict)
    policy: Mapping[str, object] = field(default_factory=dict)
    last_end: datetime | None = None  # when the last run ended
    next_time: datetime | None = None  # when its schedule wants the next look, if it has one
    model: str | None = None  # whose vectors answer searches; told of one source, not in lists
    unembedded: int | None = None  # chunks that lack them
    keywords: Mapping[str, float] | None = None  # its links are scored by; told of one source, not in lists
    sinks: tuple[SinkView, ...] | None = None  # that are to hold it; told of one source, not in lists
    trouble: str | None = None  # why its settings cannot be used, so that it is not looked at
    id: SourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """When a source is looked at by itself, and how that last went."""

    source: str
    version: str | None
    schedule: str
    time_zone: str | None  # None where the rule needs none
    next_time: datetime | None
    overdue: bool
    running: bool  # a scheduler looks at it just now
    last_time: datetime | None
    last_run: RunId | None
    last_state: str | None
    budget: str | None = None  # looks in a length of time, where pages are looked at as often as they change
    due: int | None = None  # pages whose time has come
    source_id: SourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class NextLook:
    """A page that waits, and when it is looked at by a run of what is due."""

    url: str
    next_look: datetime
    due: bool  # its time has come
    planned: datetime  # what the order of turns goes by; an age makes a page due before


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """A page as it is listed."""

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
    doubt: str | None = None  # why its last look is not believed, or was believed with a flag
    copies: tuple[CopyView, ...] = ()  # in the external stores that are to hold it
    created_at: datetime | None = None
    updated_at: datetime | None = None  # the last time that anything but its checks was written
    last_scraped: datetime | None = None  # the last time that its content was read
    size: int | None = None  # of a file, in bytes
    mtime: datetime | None = None  # when a file was last written
    next_look: datetime | None = None  # None: when its source lists it, or a page links to it
    source_id: SourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkView:
    """A link with its score and the pages it stands on."""

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
    """One change of a page that a run found."""

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
class Why:
    """The evidence behind the present state of a page."""

    url: str
    source: str
    version: str | None
    status: PageStatus
    summary: str  # one sentence: what the last look showed and what was decided
    page: PageView
    latest: Attempt | None
    next_look: datetime | None
    linked_from: tuple[str, ...]
    attempts: int
    former: str | None = None  # the text before a change that was flagged
    former_until: datetime | None = None  # when that is removed; None: never, or there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a refresh would do and cost."""

    source: str
    version: str | None
    mode: str
    known: int  # pages on record that would be looked at
    conditional: int  # of those, asked with validators
    unconditional: int
    first_looks: int  # pages known by a link but never read
    not_looked_at: int  # pages on record that the rules now leave out
    last_run_bytes: int
    last_full_bytes: int
    estimated_seconds: float | None
    root: str
    notes: tuple[str, ...] = ()
    next_time: datetime | None = None  # when the schedule wants the next look, if there is one
    due: int = 0  # pages whose time for another look has come
    budget: int | None = None  # of those, how many one `refresh --due` looks at; None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class BackingOff:
    """A page that failed and waits before it is tried again."""

    url: str
    failures: int
    next_at: datetime
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How fresh a source is, and what waits in it."""

    source: str
    version: str | None
    kind: str
    oldest_check: datetime | None  # of its pages with content
    due: int  # pages whose time has come
    next_at: datetime | None  # when the next of the others is due
    backing_off: tuple[BackingOff, ...] = ()  # the first few, soonest first
    backing_off_count: int = 0
    trouble: str | None = None  # why its settings cannot be used, so that it is not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """A process that works on the store, or stands by."""

    host: str
    pid: int
    since: datetime
    heartbeat_at: datetime
    runs: tuple[int, ...]  # that it leads
    held: int  # pages it looks at, or is about to


@dataclass(frozen=True, slots=True, kw_only=True)
class HostQueue:
    """What waits for one host in the runs that are open."""

    domain: str
    waiting: int
    held: int
    oldest: datetime | None  # since when the first of it has been due


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """The store at a glance."""

    store: str
    sources: int
    pages: int
    doubtful: int  # pages whose last look is not believed, or is worth a look
    chunks: int
    attempts: int
    pending: int
    in_flight: int  # held by workers that live
    oldest_pending: datetime | None
    runs: tuple[RunReport, ...]  # running or waiting for a confirmation, newest first
    workers: tuple[WorkerView, ...]
    size_bytes: int
    hosts: tuple[HostQueue, ...] = ()  # that most waits for
    pages_per_second: float = 0.0  # of the runs under way, since each began
    model: str | None = None  # whose vectors answer searches
    unembedded: int = 0  # chunks that lack them, so that only their words find them
    wanted_model: str | None = None  # that the settings name
    freshness: tuple[Freshness, ...] = ()  # of every source
    sinks: tuple[SinkView, ...] = ()  # the external stores
