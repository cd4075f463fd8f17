"""The places where afresh meets the world: the protocols that adapters fulfil."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from afresh.core.model import (
    Attempt,
    Body,
    Chunk,
    Claim,
    Document,
    Fetched,
    Listed,
    Page,
    PageId,
    Policy,
    Request,
    Run,
    RunId,
    RunMode,
    RunState,
    Source,
    SourceId,
    Visit,
)

Clock = Callable[[], datetime]


class Fetcher(Protocol):
    """Takes one look at an address; expected trouble is a value, never an exception."""

    async def fetch(self, request: Request) -> Fetched: ...

    async def close(self) -> None: ...


class Lister(Protocol):
    """Tells what a source lists by itself (root, sitemap, files) and what belongs to it."""

    kind: str

    def list(self) -> AsyncIterator[Listed]: ...

    def refusal(self, url: str, depth: int) -> str | None:
        """Why an address is not part of the source, or None if it is."""
        ...


class Extractor(Protocol):
    """Reads a body into a document; pure, so that it can run in another process."""

    version: str

    def extract(self, body: Body) -> Document: ...


class Chunker(Protocol):
    """Cuts a document into the pieces that are searched; pure like the extractor."""

    version: str

    def chunk(self, document: Document) -> Sequence[Chunk]: ...


class Store(Protocol):
    """What the engine asks of a store: every method is one query or one transaction."""

    async def start_run(
        self, source: SourceId, mode: RunMode, *, full: bool, worker: str, now: datetime
    ) -> Run: ...

    async def enqueue(
        self, run: RunId, listed: Sequence[Listed], now: datetime, *, max_pages: int
    ) -> int: ...

    async def claim(self, run: RunId, worker: str, now: datetime, limit: int) -> Sequence[Claim]: ...

    async def commit(
        self, visits: Sequence[Visit], worker: str, now: datetime, *, max_pages: int, keep_body: bool
    ) -> Sequence[Visit]: ...

    async def beat(self, worker: str, now: datetime) -> None: ...

    async def release(self, worker: str, now: datetime) -> None: ...

    async def finish_run(
        self, run: RunId, state: RunState, now: datetime, *, counts: Mapping[str, int], error: str | None
    ) -> Run: ...

    async def history(self, page: PageId) -> Sequence[Attempt]: ...


__all__ = [
    "Chunker",
    "Clock",
    "Extractor",
    "Fetcher",
    "Lister",
    "Page",
    "Policy",
    "Source",
    "Store",
]
