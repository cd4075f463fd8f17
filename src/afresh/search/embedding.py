"""Vectors for new text: requested by many pages, created in batches, stored immediately."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from afresh.errors import EmbedderUnavailable, EmbedError, StoreError
from afresh.model.fetch import Chunk, embedded_text
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock, Embedder
from afresh.search.records import UnembeddedChunk
from afresh.store.store import Store

if TYPE_CHECKING:
    pass

log = logging.getLogger("afresh.embedding")

BATCH = 512  # texts to look up, embed and store together
SPLITS = 32  # times that a refused batch is halved to find the bad texts
LONGEST = 900.0  # seconds per batch: the slowest of our models needs a third
STRIKES = 3  # failures of the embedder in a row after which a run stops calling it
ALL_BAD = 3  # single texts refused without any success: then the embedder is the problem


class Embedding:
    """Creates a vector for every text once; pages wait for them together."""

    def __init__(
        self, store: Store, embedder: Embedder, clock: Clock, *, batch: int = BATCH, seconds: float = LONGEST
    ) -> None:
        self.trouble: str | None = None  # the last error
        self._store = store
        self._embedder = embedder
        self.model = embedder.model  # its fingerprint
        self._clock = clock
        self._batch = batch
        self._seconds = seconds
        self._texts: dict[str, str] = {}  # waiting, by hash
        self._promises: dict[str, asyncio.Future[bool]] = {}  # whether the vector was created now
        self._worker: asyncio.Task[None] | None = None
        self._strikes = 0
        self._down: EmbedError | None = None

    @property
    def waiting(self) -> int:
        """Return how many texts are waited for."""
        return len(self._promises)

    async def ensure(self, chunks: Sequence[Chunk]) -> int:
        """Wait until every chunk has a vector; return how many were created for this call."""
        wanted = {chunk.text_hash: chunk for chunk in chunks}
        mine = {key: chunk for key, chunk in wanted.items() if key not in self._promises}
        for key, chunk in mine.items():
            self._texts[key] = embedded_text(chunk.path, chunk.content)
            self._promises[key] = asyncio.get_running_loop().create_future()
        promises = {key: self._promises[key] for key in wanted}
        if self._texts and (self._worker is None or self._worker.done()):
            self._worker = asyncio.create_task(self._work())
        if promises:
            await asyncio.wait(promises.values())  # a cancelled caller does not affect others
        made = {key: promise.result() for key, promise in promises.items()}
        return sum(made[key] for key in mine)

    async def fill(self, lacking: Sequence[UnembeddedChunk]) -> int:
        """Create missing vectors for stored chunks; return how many were created."""
        chunks = [Chunk(content=each.content, path=each.path, text_hash=each.text_hash) for each in lacking]
        return await self.ensure(chunks)

    async def _work(self) -> None:
        await asyncio.sleep(0)  # let others join the first batch
        while self._texts:
            batch = dict(list(self._texts.items())[: self._batch])
            for key in batch:
                del self._texts[key]
            try:
                known = await self._store.vectors.known(self.model, list(batch))
                self._settle(known, made=False)
                await self._make({key: text for key, text in batch.items() if key not in known})
            except StoreError as error:
                self._refuse(batch, error)
            except BaseException as error:
                self._refuse(batch, EmbedError(f"embedding stumbled: {type(error).__name__}: {error}"))
                if not isinstance(error, Exception):
                    raise
                log.exception("a batch of %d texts was not embedded", len(batch))

    async def _make(self, texts: dict[str, str]) -> None:
        """Embed and store texts; split a refused batch, so that a bad text fails alone."""
        parts, splits, bad, made = [texts], SPLITS, 0, False
        while parts:
            part = parts.pop()
            try:
                await self._make_together(part)
                made = True
            except EmbedderUnavailable as error:
                self._strike(error, [*parts, part])
                return
            except EmbedError as error:
                self.trouble = str(error)
                if len(part) > 1 and splits:
                    splits -= 1
                    items, middle = list(part.items()), len(part) // 2
                    parts += [dict(items[:middle]), dict(items[middle:])]
                    continue
                self._refuse(part, error)
                bad += 1
                if bad >= ALL_BAD and not made:
                    self._strike(EmbedderUnavailable(str(error)), parts)
                    return

    async def _make_together(self, texts: dict[str, str]) -> None:
        if not texts:
            return
        if self._down is not None:
            raise self._down
        import numpy as np

        try:
            async with asyncio.timeout(self._seconds):
                vectors = await self._embedder.embed(list(texts.values()))
        except TimeoutError:
            raise EmbedderUnavailable(f"{self.model} gave no answer within {self._seconds:.0f} s") from None
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise EmbedError(f"{self.model} gave {len(vectors)} vectors for {len(texts)} texts")
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise EmbedError(f"{self.model} gave vectors that are no numbers, or all zero")
        self._strikes = 0
        failpoint("embed.made")
        rows = vectors.astype("<f2")
        kept = {key: row.tobytes() for key, row in zip(texts, rows, strict=True)}
        await self._store.vectors.keep(self.model, kept, self._clock())
        failpoint("embed.kept")
        self._settle(texts, made=True)

    def _strike(self, error: EmbedError, parts: Iterable[dict[str, str]]) -> None:
        """Fail texts because of the embedder; after several failures in a row stop using it."""
        self.trouble = str(error)
        self._strikes += 1
        if self._strikes >= STRIKES:
            self._down = error
        for part in parts:
            self._refuse(part, error)

    def _settle(self, keys: Iterable[str], *, made: bool) -> None:
        for key in keys:
            promise = self._promises.pop(key, None)
            if promise is not None and not promise.done():
                promise.set_result(made)

    def _refuse(self, keys: Iterable[str], error: Exception) -> None:
        """Fail the waiting calls; a later call tries again."""
        for key in keys:
            promise = self._promises.pop(key, None)
            if promise is not None and not promise.done():
                promise.set_exception(error)
                promise.exception()  # mark as retrieved: perhaps no caller is waiting

    async def close(self) -> None:
        """Stop and drop pending work; created vectors stay stored."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
        await self._embedder.close()
