"""What the engine works with: everything a run needs, handed over once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from afresh.crawl.detect_walls import Crowd
from afresh.crawl.heartbeat import Vigil
from afresh.crawl.politeness import Hosts
from afresh.crawl.soft_404 import Probe
from afresh.crawl.url_patterns import Patterns
from afresh.digest.summaries import Telling
from afresh.events import Listener, ignore
from afresh.extract.pool.pool import Offload
from afresh.links.scoring import LinkScoring
from afresh.model.fetch import Body, Chunk, Document, Fetched
from afresh.model.records import Listed, Policy, RunMode
from afresh.model.retention import Retention
from afresh.notify.outbox import Target
from afresh.ports import Clock, Lister
from afresh.ports.web import Web
from afresh.search.embedding import Embedding
from afresh.store.store import Store
from afresh.urls.scope import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast and how far a run goes."""

    concurrency: int = 3
    delay_seconds: float = 0.0
    max_pages: int = 10_000
    max_depth: int = 20
    lease_seconds: float = 60.0
    heartbeat_seconds: float = 10.0
    patience_seconds: float = 300.0  # how long a run waits for a host that asked for a pause


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What is asked of one run of a source."""

    mode: RunMode
    full: bool = False  # read every page again
    trust: bool = False  # believe every 200
    redetect: bool = False  # read every page again and set its language again
    follow_move: bool = False  # the root may lead to another site
    slot: datetime | None = None  # the time of a schedule that the run is for
    pages: Sequence[Listed] = ()  # only these
    budget: int | None = None  # of what is due


Chunking = Callable[[Document], Sequence[Chunk]]


def _unknown(url: str) -> None:
    return None


def _never(url: str, depth: int) -> bool:
    return False


@dataclass(slots=True, kw_only=True)
class Kit:
    """The tools of one run."""

    store: Store
    web: Web
    lister: Lister
    trim: Callable[[str], str]
    patterns: Patterns
    extract: Callable[[Body], Document]
    chunk: Chunking
    diff: Callable[[str, str], str]
    offload: Offload
    hosts: Hosts
    policy: Policy
    pace: Pace
    keep_body: bool
    vigil: Vigil
    clock: Clock
    embedding: Embedding | None = None
    telling: Telling | None = None  # for sources of the knowledge base
    scoring: LinkScoring | None = None  # where keywords are set
    best_first: bool = False  # new pages are read in the order of what their links are worth
    full: bool = False
    probe: Probe | None = None
    crowd: Crowd = field(default_factory=Crowd)
    listener: Listener = field(default=ignore)
    modified: Callable[[str], datetime | None] = _unknown  # when a source says that a page changed
    mark: str | None = None  # the state of the source that the lister was told to know again
    notes: Callable[[], Sequence[str]] = tuple  # what the web learned that a reader of the report should know
    targets: Sequence[Target] = ()  # who is told how the run ended
    retention: Retention = field(default_factory=Retention)  # of deleted pages and messages
    aim: Callable[[Rules], None] | None = None  # points web and lister at another root
    was_ours: Callable[[str, int], bool] = _never  # whether a URL belonged before the root moved
    answers: dict[str, Fetched] = field(default_factory=dict)  # of roots that were asked ahead, by URL
    tells_news: bool = False  # the lists of the source say which pages changed lately

    def budget(self, mode: RunMode) -> int | None:
        """How many pages a run may queue: a budget is for runs of what is due."""
        return self.policy.budget_per_run if mode is RunMode.DUE else None

    @property
    def worker(self) -> str:
        """The name under which claims are held."""
        return self.vigil.me.name
