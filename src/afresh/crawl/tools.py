"""The objects with which a run works, and its options."""

from collections.abc import Callable, Sequence
from datetime import datetime

from afresh.config import CrawlSettings
from afresh.crawl.heartbeat import Heartbeat
from afresh.crawl.hosts import HostLimiter
from afresh.crawl.soft_404 import Soft404Probe, WallDetector
from afresh.crawl.url_patterns import UrlPatternCounter
from afresh.dataclass import dataclass, field
from afresh.digest.summaries import DigestSummaries
from afresh.events import Listener, ignore
from afresh.extract.pool.pool import ParserPool
from afresh.links.scoring import LinkScoring
from afresh.model.fetch import Body, Document, Fetched
from afresh.model.records import ListedUrl, Policy, RunMode
from afresh.model.retention import Retention
from afresh.notify.outbox import MessageTarget
from afresh.ports import Clock, Lister, Web
from afresh.search.embedding import Embedding
from afresh.store.store import Store
from afresh.urls.scope import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    mode: RunMode
    full: bool = False  # fetch every page unconditionally
    trust: bool = False  # accept every 200 response
    redetect: bool = False  # fetch every page and detect its language again
    follow_move: bool = False  # the root may move to another site
    slot: datetime | None = None  # the scheduled time that the run is for
    pages: Sequence[ListedUrl] = ()  # the pages that a run of the mode CHECK checks
    budget: int | None = None  # maximum number of due pages to check
    for_digest: bool = False  # keep a summary of each page


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTools:
    """The objects with which a run works, such as store, client and parsers; the state of the run is in RunContext."""

    store: Store
    web: Web
    lister: Lister
    trim: Callable[[str], str]  # returns the URL under which a link is stored
    patterns: UrlPatternCounter
    extract: Callable[[Body], Document]
    parsers: ParserPool
    hosts: HostLimiter
    policy: Policy
    settings: CrawlSettings  # of the source
    keep_body: bool  # store the text of pages, not only their passages
    heartbeat: Heartbeat
    clock: Clock
    embedding: Embedding | None = None
    summaries: DigestSummaries | None = None  # for sources of the digest
    scoring: LinkScoring | None = None  # where keywords are set
    best_first: bool = False  # new pages are read in order of their link scores
    full: bool = False
    probe: Soft404Probe | None = None
    wall_detector: WallDetector = field(default_factory=WallDetector)
    listener: Listener = field(default=ignore)
    wants_steps: bool = True  # whether the listener gets a PageStep for each step of a page
    traced: bool = False  # whether a share of the pages is recorded for a tracing system
    modified: Callable[[str], datetime | None]  # when a page changed, according to its source
    mark: str | None = None  # the state token of the last complete listing
    notes: Callable[[], Sequence[str]] = tuple  # notes of the fetcher for the report
    targets: Sequence[MessageTarget] = ()  # targets to notify when the run ends
    retention: Retention = field(default_factory=Retention)  # of deleted pages and messages
    aim: "Callable[[RunTools, Rules], RunTools] | None" = None  # returns the tools for another root
    was_ours: Callable[[str, int], bool]  # whether a URL belonged to the source before its root moved
    answers: dict[str, Fetched] = field(default_factory=dict)  # prefetched answers of roots, by URL
    has_change_dates: bool = False  # the listing says which pages changed lately

    def budget(self, mode: RunMode) -> int | None:
        """Return how many pages a run may queue; only runs of due pages have a budget."""
        return self.policy.budget_per_run if mode is RunMode.DUE else None

    @property
    def worker(self) -> str:
        return self.heartbeat.me.name
