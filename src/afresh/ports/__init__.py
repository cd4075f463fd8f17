"""The places where afresh meets the world: the protocols that adapters fulfil."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from afresh.digest.cache import Cache
from afresh.model.fetch import Body, Chunk, Document, Fetched, Request
from afresh.model.records import Listed
from afresh.ports.link_scores import LinkScorer as LinkScorer
from afresh.ports.models import Caller as Caller
from afresh.ports.models import Reply as Reply
from afresh.ports.models import Summarizer as Summarizer

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
