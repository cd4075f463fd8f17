"""Embed new text: collect the texts of concurrently processed pages in batches, and store each batch at once."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

from afresh.dataclass import dataclass, field
from afresh.errors import EmbedderUnavailable, EmbedError, ExtractError, ParserUnavailable, StoreError
from afresh.extract.pool.pool import ParserPool
from afresh.extract.pool.wire import LazyFunction
from afresh.model.fetch import Chunk, embedded_text
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock, Embedder
from afresh.store.store import Store

log = logging.getLogger("afresh.embedding")

BATCH_TEXTS = 512  # to look up, embed and store together
MAX_SPLITS = 32  # times that a refused batch is halved to find the bad texts
MAX_BATCH_SECONDS = 900.0  # the slowest built-in model needs a third of it
MAX_FAILURES = 3  # of the embedder in a row after which a run stops calling it
MAX_BAD_TEXTS = 3  # refused single texts without any success, after which the embedder counts as unavailable

EMBED = LazyFunction("afresh.models.fast", "embed_chunks", bytes, goes_first=True)


@dataclass(slots=True)
class Embedding:
    """Creates missing vectors in batches; calls with the same text share one vector.

    With `parsers`, a parser process computes the vectors with the built-in fast model, so that this process is not
    blocked meanwhile; without, `embedder` computes them.
    """

    store: Store
    embedder: Embedder
    clock: Clock
    parsers: ParserPool | None = None
    batch: int = BATCH_TEXTS
    last_error: str | None = None
    _waiting: dict[str, Chunk] = field(default_factory=dict)  # by the hash of their text
    _promises: dict[str, asyncio.Future[bool]] = field(default_factory=dict)  # whether the vector was created now
    _worker: asyncio.Task[None] | None = None
    _failures: int = 0  # of the embedder in a row

    async def ensure(self, chunks: Iterable[Chunk]) -> int:
        """Wait until every chunk has a vector; return how many vectors were created for this call."""
        wanted = {chunk.text_hash: chunk for chunk in chunks}
        mine = {key: chunk for key, chunk in wanted.items() if key not in self._promises}
        for key, chunk in mine.items():
            self._waiting[key] = chunk
            self._promises[key] = asyncio.get_running_loop().create_future()
        promises = {key: self._promises[key] for key in wanted}
        if self._waiting and (self._worker is None or self._worker.done()):
            self._worker = asyncio.create_task(self._work())
        if promises:
            await asyncio.wait(promises.values())  # a cancelled caller does not affect others
        made = {key: promise.result() for key, promise in promises.items()}
        return sum(made[key] for key in mine)

    async def _work(self) -> None:
        await asyncio.sleep(0)  # let others join the first batch
        while self._waiting:
            batch = dict(list(self._waiting.items())[: self.batch])
            for key in batch:
                del self._waiting[key]
            try:
                known = await self.store.vectors.known(self.embedder.model, list(batch))
                self._resolve(known, made=False)
                if new := {key: chunk for key, chunk in batch.items() if key not in known}:
                    await self._embed(new)
            except StoreError as error:
                self._resolve(batch, error)
            except BaseException as error:
                self._resolve(batch, EmbedError(f"embedding failed: {type(error).__name__}: {error}"))
                if not isinstance(error, Exception):
                    raise
                log.exception("a batch of %d texts was not embedded", len(batch))

    async def _embed(self, chunks: dict[str, Chunk]) -> None:
        """Embed chunks and store their vectors; if a batch is refused, halve it until the refused text is found."""
        parts, splits, bad, has_success = [chunks], MAX_SPLITS, 0, False
        while parts:
            part = parts.pop()
            try:
                await self._embed_together(part)
                has_success = True
                continue
            except EmbedderUnavailable as error:
                down = error
            except EmbedError as error:
                self.last_error = str(error)
                if len(part) > 1 and splits:
                    splits -= 1
                    items, middle = list(part.items()), len(part) // 2
                    parts += [dict(items[:middle]), dict(items[middle:])]
                    continue
                self._resolve(part, error)
                bad += 1
                if bad < MAX_BAD_TEXTS or has_success:
                    continue
                down = EmbedderUnavailable(str(error))
            self.last_error = str(down)
            self._failures += 1
            for failed in (part, *parts):
                self._resolve(failed, down)
            return

    async def _embed_together(self, chunks: dict[str, Chunk]) -> None:
        import numpy as np

        if self._failures >= MAX_FAILURES:
            raise EmbedderUnavailable(str(self.last_error))
        try:
            async with asyncio.timeout(MAX_BATCH_SECONDS):
                if self.parsers is None:
                    texts = [embedded_text(chunk.path, chunk.content) for chunk in chunks.values()]
                    vectors = await self.embedder.embed(texts)
                else:
                    rows = await self.parsers.call(EMBED, [(each.path, each.content) for each in chunks.values()])
                    vectors = np.frombuffer(rows, np.float32).reshape(len(chunks), -1)
        except ParserUnavailable as error:
            raise EmbedderUnavailable(f"{self.embedder.model}: {error}") from error
        except ExtractError as error:
            raise EmbedError(f"{self.embedder.model}: {error}") from error
        except TimeoutError:
            raise EmbedderUnavailable(
                f"{self.embedder.model} gave no answer within {MAX_BATCH_SECONDS:.0f} s"
            ) from None
        if vectors.ndim != 2 or len(vectors) != len(chunks):
            raise EmbedError(f"{self.embedder.model} gave {len(vectors)} vectors for {len(chunks)} texts")
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise EmbedError(f"{self.embedder.model} gave vectors that are all zero or not numbers")
        self._failures = 0
        failpoint("embed.made")
        halves = {key: row.tobytes() for key, row in zip(chunks, vectors.astype("<f2"), strict=True)}
        await self.store.vectors.keep(self.embedder.model, halves, self.clock())
        failpoint("embed.kept")
        self._resolve(chunks, made=True)

    def _resolve(self, keys: Iterable[str], error: Exception | None = None, *, made: bool = False) -> None:
        """Pass the error, or whether vectors were `made`, to waiting calls; after an error, later calls try again."""
        for key in keys:
            promise = self._promises.pop(key, None)
            if promise is None or promise.done():
                continue
            if error is None:
                promise.set_result(made)
            else:
                promise.set_exception(error)
                promise.exception()  # mark as retrieved: perhaps no caller is waiting

    async def close(self) -> None:
        """Close the embedder and stop; texts without a vector are dropped, created vectors stay stored."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
        await self.embedder.close()
