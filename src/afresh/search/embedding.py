"""Vectors for new text: asked for by many pages at once, made in batches, kept as soon as they are made."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from afresh.errors import EmbedderDown, EmbedError, StoreError
from afresh.model.fetch import Chunk, embedded_text
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock, Embedder
from afresh.search.vectors import Wanting
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.ports import Matrix

log = logging.getLogger("afresh.embedding")

BATCH = 512  # texts that are looked up, embedded and kept together
SPLITS = 32  # times that a refused batch is halved to find the texts that spoil it
LONGEST = 900.0  # seconds that one batch may take: the slowest model of ours needs a third
STRIKES = 3  # failures of the whole embedder in a row after which a run asks it no more
ALL_BAD = 3  # texts refused alone while none was taken: then it is not the texts


class Embedding:
    """Gives every text a vector once; pages wait for theirs together."""

    def __init__(
        self, store: Store, embedder: Embedder, clock: Clock, *, batch: int = BATCH, seconds: float = LONGEST
    ) -> None:
        self.trouble: str | None = None  # what went wrong last
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._batch = batch
        self._seconds = seconds
        self._texts: dict[str, str] = {}  # waiting, by hash
        self._promises: dict[str, asyncio.Future[bool]] = {}  # was it made now?
        self._worker: asyncio.Task[None] | None = None
        self._strikes = 0
        self._down: EmbedError | None = None

    @property
    def model(self) -> str:
        """The fingerprint of the model in use."""
        return self._embedder.model

    @property
    def waiting(self) -> int:
        """How many texts somebody waits for."""
        return len(self._promises)

    async def ensure(self, chunks: Sequence[Chunk]) -> int:
        """Wait until every chunk has a vector; the answer is how many had to be made for this call."""
        wanted = {chunk.text_hash: chunk for chunk in chunks}
        mine = {key: chunk for key, chunk in wanted.items() if key not in self._promises}
        for key, chunk in mine.items():
            self._texts[key] = embedded_text(chunk.path, chunk.content)
            self._promises[key] = asyncio.get_running_loop().create_future()
        promises = {key: self._promises[key] for key in wanted}
        self._wake()
        if promises:
            await asyncio.wait(promises.values())  # who gives up waiting takes nothing from others
        made = {key: promise.result() for key, promise in promises.items()}
        return sum(made[key] for key in mine)

    async def fill(self, lacking: Sequence[Wanting]) -> int:
        """Give chunks of the store the vectors they lack; how many had to be made."""
        chunks = [Chunk(content=each.content, path=each.path, text_hash=each.text_hash) for each in lacking]
        return await self.ensure(chunks)

    def _wake(self) -> None:
        if self._texts and (self._worker is None or self._worker.done()):
            self._worker = asyncio.create_task(self._work())

    async def _work(self) -> None:
        """One batch after the other, as long as pages wait."""
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
        """Embed and keep texts; if they are refused together, in halves, so that one bad text fails alone."""
        parts, splits, bad, made = [texts], SPLITS, 0, False
        while parts:
            part = parts.pop()
            try:
                await self._make_together(part)
                made = True
            except EmbedderDown as error:
                self._strike(error, [*parts, part])
                return
            except EmbedError as error:
                self.trouble = str(error)
                if len(part) > 1 and splits:
                    splits -= 1
                    parts += _halves(part)
                    continue
                self._refuse(part, error)
                bad += 1
                if bad >= ALL_BAD and not made:
                    self._strike(EmbedderDown(str(error)), parts)
                    return

    async def _make_together(self, texts: dict[str, str]) -> None:
        if not texts:
            return
        if self._down is not None:
            raise self._down
        vectors = await self._embedded(list(texts.values()))
        self._strikes = 0
        failpoint("embed.made")
        rows = vectors.astype("<f2")
        kept = {key: row.tobytes() for key, row in zip(texts, rows, strict=True)}
        await self._store.vectors.keep(self.model, kept, self._clock())
        failpoint("embed.kept")
        self._settle(texts, made=True)

    async def _embedded(self, texts: Sequence[str]) -> "Matrix":
        """What the embedder made of texts, if it is what it has to be."""
        import numpy as np

        try:
            async with asyncio.timeout(self._seconds):
                vectors = await self._embedder.embed(texts)
        except TimeoutError:
            raise EmbedderDown(f"{self.model} gave no answer within {self._seconds:.0f} s") from None
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise EmbedError(f"{self.model} gave {len(vectors)} vectors for {len(texts)} texts")
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise EmbedError(f"{self.model} gave vectors that are no numbers, or all zero")
        return vectors

    def _strike(self, error: EmbedError, parts: Iterable[dict[str, str]]) -> None:
        """Give up on texts because of the embedder, and after a few times in a row on it altogether."""
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
        """Those that wait hear why; who asks again gets another try."""
        for key in keys:
            promise = self._promises.pop(key, None)
            if promise is not None and not promise.done():
                promise.set_exception(error)
                promise.exception()  # it may be that nobody waits any more

    async def close(self) -> None:
        """Stop; what is under way is given up, what was made is kept."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
        await self._embedder.close()


def _halves(texts: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    items = list(texts.items())
    middle = len(items) // 2
    return dict(items[:middle]), dict(items[middle:])
