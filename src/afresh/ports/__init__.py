"""The places where afresh meets the world: the protocols that adapters fulfil."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from afresh.core.asking import Narrowed
from afresh.core.embedding import Cut, Lack, Model, Wanting
from afresh.core.ending import Ending
from afresh.core.found import Match, Nearest, Passage
from afresh.core.kb_cache import Cache, SeenCache
from afresh.core.kb_pages import KbPage, Told
from afresh.core.listing import OnRecord
from afresh.core.looks import Body, Chunk, Document, Fetched, Request
from afresh.core.model import (
    Attempt,
    Backlog,
    Claim,
    Held,
    Limits,
    Listed,
    Page,
    PageId,
    PageStatus,
    Run,
    RunId,
    RunMode,
    Source,
    SourceId,
    Visit,
    Worker,
)
from afresh.core.schedule import Waiting
from afresh.core.views import BackingOff, ChangeView, HostQueue, LinkView, PageView, SourceView
from afresh.ports.access import Tokens as Tokens
from afresh.ports.by_hand import Handled as Handled
from afresh.ports.by_number import Numbered as Numbered
from afresh.ports.copies import Copies as Copies
from afresh.ports.hooks import Inbox as Inbox
from afresh.ports.hooks import Outbox as Outbox
from afresh.ports.link_scores import LinkAnswers as LinkAnswers
from afresh.ports.link_scores import LinkScorer as LinkScorer
from afresh.ports.measures import Measured as Measured
from afresh.ports.models import Caller as Caller
from afresh.ports.models import Reply as Reply
from afresh.ports.models import Summarizer as Summarizer
from afresh.ports.pictures import Pictured as Pictured
from afresh.ports.schedules import Appointments as Appointments
from afresh.ports.schedules import Rhythms as Rhythms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]

Clock = Callable[[], datetime]


class Access(Enum):
    """What a command wants of the store: only a crawl may make one."""

    READ = "read"
    CHANGE = "change"
    CREATE = "create"


class Fetcher(Protocol):
    """Takes one look at an address; expected trouble is a value, never an exception."""

    async def fetch(self, request: Request) -> Fetched: ...

    async def close(self) -> None: ...


class Lister(Protocol):
    """Tells what a source lists by itself (root, sitemap, files) and what belongs to it."""

    kind: str

    @property
    def listing_errors(self) -> Sequence[str]:
        """What could not be listed; an incomplete listing proves nothing."""
        ...

    @property
    def dropped(self) -> Mapping[str, int]:
        """What was listed and left out: why to how many."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What a reader of the report should know of the listing, known when the run ends."""
        ...

    @property
    def mark(self) -> str | None:
        """What names the state that was listed, for the next lister to know it again."""
        ...

    @property
    def unchanged(self) -> bool:
        """Whether that is the state the last mark names: then only walked pages were listed."""
        ...

    def walks(self, url: str) -> bool:
        """Whether a page is found by links and asked by itself; of all others the listing tells all."""
        ...

    def list(self) -> AsyncIterator[Listed]:
        """What there is; SourceError if the source cannot be read at all, which proves nothing."""
        ...

    def refusal(self, url: str, depth: int) -> str | None:
        """Why an address is not part of the source, or None if it is."""
        ...


class Sifted(NamedTuple):
    """What paths mean that something happened to."""

    there: Sequence[Listed] = ()  # files that belong to the source
    others: Sequence[str] = ()  # addresses with no such file: pages at or below them may be on record
    everything: bool = False  # more than single files may have changed


class Lookout(Protocol):
    """Hears of changes at the root of a source, without ever reading a file; all of it may block."""

    place: str

    def open(self, heard: Callable[[Sequence[str]], None], lost: Callable[[str], None]) -> None:
        """Tell of paths from now on, or why that ended, from another thread; OSError if it cannot."""
        ...

    def close(self) -> None: ...

    def stands(self) -> bool:
        """Whether the root is still the one that changes are heard of."""
        ...

    def sift(self, paths: Iterable[str]) -> Sifted:
        """What is to be looked at for some paths."""
        ...


class Extractor(Protocol):
    """Reads a body into a document; pure, so that it can run in another process."""

    version: str

    def extract(self, body: Body) -> Document: ...


class Chunker(Protocol):
    """Cuts a document into the pieces that are searched; pure like the extractor."""

    version: str

    def chunk(self, document: Document) -> Sequence[Chunk]: ...


class Embedder(Protocol):
    """Turns texts into vectors; trouble is an EmbedError that names the fix."""

    model: str  # a fingerprint: vectors under two of them are never compared

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """One row of length 1 for each text, in their order."""
        ...

    async def embed_query(self, text: str) -> "Matrix":
        """The one row of a question, which some models want to be told apart."""
        ...

    async def close(self) -> None: ...


class Shelf(Protocol):
    """The two files of the knowledge base, cache and index; all but the lock may block."""

    digest: str | None  # of the cache as it was last read or written

    def one_writer(self, clock: Clock) -> AbstractAsyncContextManager[None]:
        """Nobody else writes meanwhile; KbBusy names who does."""
        ...

    def read(self) -> Cache | None:
        """The cache; None where there is none yet, KbError where it cannot be used."""
        ...

    def write(self, cache: Cache) -> bool:
        """Bring both files in line with the cache; whether any of them had to be written."""
        ...


class Store(LinkAnswers, Copies, Rhythms, Protocol):
    """What the engine asks of a store: every method is one query or one transaction."""

    # runs and workers
    @property
    def news(self) -> int: ...
    async def hear(self, since: int, seconds: float) -> None: ...
    async def start_run(
        self,
        source: SourceId,
        mode: RunMode,
        *,
        full: bool,
        worker: str | None,
        now: datetime,
        slot: datetime | None = None,
        only: RunId | None = None,
    ) -> tuple[Run, bool]: ...
    async def run_by_id(self, run: RunId) -> Run | None: ...
    async def join_run(self, run: RunId) -> Run | None: ...
    async def finish_run(self, run: Run, ending: Ending, now: datetime) -> Run: ...
    async def join(self, worker: Worker) -> None: ...
    async def beat(self, worker: Worker) -> bool: ...
    async def workers(self) -> Sequence[Worker]: ...

    # the queue
    async def enqueue(self, run: Run, listed: Sequence[Listed], limits: Limits, now: datetime) -> int: ...
    async def enqueue_known(self, run: Run, limits: Limits, now: datetime) -> None: ...
    async def enqueue_due(
        self, run: Run, limits: Limits, now: datetime, *, max_age: float | None = None
    ) -> None: ...
    async def schedule(
        self, run: Run, listed: Sequence[Listed], limits: Limits, recheck: float, now: datetime
    ) -> None: ...
    async def unlisted(self, source: SourceId) -> Sequence[Listed]: ...
    async def frontier(self, source: SourceId) -> Sequence[Listed]: ...
    async def frontier_is_open(self, source: SourceId, rules: str) -> tuple[bool, bool]: ...
    async def judge_links(self, source: SourceId, admits: Callable[[str, str | None], bool]) -> None: ...
    async def addresses(self, source: SourceId) -> Sequence[tuple[str, bool]]: ...
    async def left_out(self, source: SourceId) -> Sequence[str]: ...
    async def close_frontier(self, source: SourceId, rules: str, max_depth: int) -> None: ...
    async def claim(
        self, run: RunId, worker: str, now: datetime, *, limit: int, crowded: Collection[str] = ()
    ) -> Sequence[Claim]: ...
    async def claim_again(
        self, run: RunId, worker: str, now: datetime, *, limit: int, crowded: Collection[str] = ()
    ) -> Sequence[Claim]: ...
    async def commit(
        self,
        run: Run,
        visits: Sequence[Visit],
        worker: str,
        now: datetime,
        *,
        limits: Limits,
        keep_body: bool,
    ) -> Sequence[Visit]: ...
    async def backlog(self, run: RunId) -> Backlog: ...
    async def pause_host(self, domain: str, until: datetime) -> None: ...
    async def give_back(self, claims: Sequence[Claim], worker: str, now: datetime) -> None: ...
    async def release(self, worker: str, now: datetime) -> None: ...
    async def reclaim(
        self, dead: Sequence[str], now: datetime, hearts: Mapping[str, datetime | None] | None = None
    ) -> int: ...
    async def lock_owners(self) -> set[str]: ...

    # listings
    async def on_record(self, source: SourceId, recipe: str) -> Sequence[OnRecord]: ...
    async def unsound(self, source: SourceId, recipe: str) -> Sequence[Listed]: ...
    async def on_record_at(self, source: SourceId, urls: Sequence[str]) -> Sequence[Listed]: ...
    async def believe_listing(self, run: Run, now: datetime, others: Sequence[PageId] = ()) -> int: ...
    async def tell_unchanged(self, run: Run, now: datetime, *, others: int = 0) -> None: ...
    async def has_mark(self, source: SourceId, mark: str | None) -> bool: ...
    async def forget_mark(self, source: SourceId) -> None: ...
    async def record_listing(
        self, source: SourceId, listed: Sequence[Listed], *, complete: bool = True
    ) -> None: ...

    # the end of a run
    async def root_attempt(self, source: SourceId, root: str) -> tuple[Page | None, Attempt | None]: ...
    async def unreached(self, source: SourceId, root: str, max_depth: int) -> Sequence[Page]: ...
    async def doomed(
        self, source: SourceId, missed: Sequence[Page] = ()
    ) -> Sequence[tuple[Page, PageStatus | None]]: ...
    async def live_count(self, source: SourceId) -> int: ...

    # vectors
    async def serving_model(self) -> Model | None: ...
    async def known_vectors(self, model: str, hashes: Sequence[str]) -> set[str]: ...
    async def keep_vectors(self, model: str, vectors: Mapping[str, bytes], now: datetime) -> None: ...
    async def forget_vectors(self, before: datetime) -> int: ...
    async def unembedded(
        self, model: str, *, source: SourceId | None = None, after: int = 0, limit: int = 1000
    ) -> Sequence[Wanting]: ...
    async def lacks_vectors(self, model: str) -> bool: ...
    async def lack(self, model: str, source: SourceId | None = None) -> Lack: ...
    async def serve(self, model: str) -> bool: ...
    async def cut_by_others(
        self, chunker: str, *, source: SourceId | None = None, after: int = 0, limit: int = 100
    ) -> Sequence[Cut]: ...
    async def count_cut_by_others(self, chunker: str, source: SourceId | None = None) -> Lack: ...
    async def recut(self, cuts: Sequence[Cut], chunker: str, now: datetime) -> int: ...

    # searching
    async def matches(
        self, query: str, within: Narrowed, limit: int, *, strict: bool = False
    ) -> Sequence[Match]: ...
    async def scores(self, query: str, chunks: Sequence[int]) -> Sequence[Match]: ...
    async def nearest(self, model: str, vector: "Matrix", within: Narrowed, limit: int) -> Nearest: ...
    async def likeness(self, model: str, vector: "Matrix", chunks: Sequence[int]) -> Nearest: ...
    async def vectors_of(self, model: str, chunks: Sequence[int]) -> "Matrix": ...
    async def passages(self, chunks: Sequence[int]) -> Sequence[Passage]: ...
    async def page_chunks(self, pages: Sequence[PageId]) -> Mapping[PageId, Sequence[Chunk]]: ...

    # reading
    async def held(self, page: PageId) -> Held: ...
    async def alike(self, page: Page, document: Document, run: RunId) -> int: ...
    async def history(self, page: PageId) -> Sequence[Attempt]: ...

    # the knowledge base
    async def kb_pages(self, source: SourceId) -> Sequence[KbPage]: ...
    async def kb_told(self, page: PageId) -> Told | None: ...
    async def impose(self, source: SourceId, pages: Sequence[KbPage], now: datetime) -> None: ...
    async def cache_seen(self) -> SeenCache | None: ...
    async def see_cache(self, cache: SeenCache) -> None: ...


class Library(Store, Appointments, Tokens, Numbered, Handled, Inbox, Outbox, Measured, Pictured, Protocol):
    """What the use cases ask of a store beyond what the engine does: sources and answers."""

    url: str

    async def lists_pages(self, source: SourceId) -> bool: ...
    async def add_source(
        self,
        *,
        name: str,
        version: str | None,
        kind: str,
        url: str,
        rules: Mapping[str, object],
        policy: Mapping[str, object],
        now: datetime,
    ) -> Source: ...
    async def find_source(self, name: str, version: str | None) -> Source | None: ...
    async def find_source_by_url(self, url: str, version: str | None) -> Source | None: ...
    async def source_by_id(self, source: SourceId) -> Source | None: ...
    async def sources(self, name: str | None = None) -> Sequence[Source]: ...
    async def remove_source(self, source: SourceId, now: datetime) -> None: ...
    async def cancel_run(self, run: Run, now: datetime) -> Run | None: ...
    async def last_runs(self, source: SourceId, limit: int = 1) -> Sequence[Run]: ...
    async def live_runs(self) -> Sequence[Run]: ...
    async def source_view(self, source: Source) -> SourceView: ...
    async def pages(
        self,
        source: SourceId,
        *,
        status: PageStatus | None = None,
        everything: bool = False,
        doubtful: bool = False,
        limit: int | None = None,
    ) -> list[PageView]: ...
    async def find_pages(
        self, url: str, source: SourceId | None = None
    ) -> Sequence[tuple[Page, PageView, str, str | None]]: ...
    async def addresses_with(
        self, part: str, source: SourceId | None = None, *, limit: int = 500
    ) -> list[str]: ...
    async def history_by_url(self, url: str) -> list[Attempt]: ...
    async def evidence(
        self, page: Page, shown: int = 5
    ) -> tuple[Attempt | None, datetime | None, tuple[str, ...], int]: ...
    async def link_to(
        self, url: str, source: SourceId | None = None
    ) -> tuple[Source, str, int, bool, bool] | None: ...
    async def links(
        self,
        source: SourceId,
        *,
        page: str | None = None,
        keyword: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
    ) -> list[LinkView]: ...
    async def changes(
        self, source: SourceId | None = None, *, run: int | None = None, limit: int = 50
    ) -> list[ChangeView]: ...
    async def totals(self) -> Mapping[str, Any]: ...
    async def held_by(self) -> Mapping[str, int]: ...
    async def busiest_hosts(self, limit: int) -> Sequence[HostQueue]: ...
    async def size_bytes(self) -> int: ...
    async def pages_to_look_at(self, source: SourceId) -> Sequence[Page]: ...
    async def waiting(self, source: SourceId) -> Sequence[Waiting]: ...
    async def due_tally(
        self, source: SourceId, now: datetime, max_age: float | None
    ) -> tuple[int, datetime | None]: ...
    async def due_tallies(self, now: datetime) -> Mapping[SourceId, tuple[int, datetime | None]]: ...
    async def oldest_checks(self) -> Mapping[SourceId, datetime]: ...
    async def backing_off(self, source: SourceId, now: datetime) -> Sequence[BackingOff]: ...
    async def close(self) -> None: ...
