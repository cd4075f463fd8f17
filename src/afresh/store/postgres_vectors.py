"""Vectors in PostgreSQL: pgvector compares them where they are."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from afresh.errors import EmbedError, StoreError
from afresh.search.request import Narrowed
from afresh.search.results import Near, Nearest
from afresh.store.dialect import Database, Row, Session
from afresh.store.narrowing import pages_within
from afresh.store.repository import Caches
from afresh.store.retry import RetryPolicy
from afresh.store.vectors import VectorRepository

if TYPE_CHECKING:
    from afresh.ports import Matrix
    from afresh.store.postgres import PostgresDatabase

LARGE = 20_000  # vectors; fewer are all compared, in a few milliseconds
NO_PGVECTOR = (
    "search goes by words alone: this PostgreSQL has no pgvector 0.7 or newer; install it there, "
    "run `create extension vector` as its superuser, then `afresh reindex`"
)


def as_halfvec(row: Mapping[str, object]) -> dict[str, object]:
    """A row of `vectors` whose numbers are written as pgvector reads them."""
    import numpy as np

    return {**row, "vector": _written(np.frombuffer(cast("bytes", row["vector"]), dtype="<f2"))}


def _written(numbers: "Matrix") -> str:
    return "[" + ",".join(map(repr, numbers.tolist())) + "]"


class PostgresVectorRepository(VectorRepository):
    """What the models made of the chunks' texts; without pgvector there is nothing of it."""

    def __init__(self, db: Database, caches: Caches, retry: RetryPolicy | None) -> None:
        super().__init__(db, caches, retry)
        self.no_vectors = None if db.has_vectors else NO_PGVECTOR

    async def keep(self, model: str, vectors: Mapping[str, bytes], now: datetime) -> None:
        """Remember vectors by the hash of their text, in one order for all who do so at once."""
        if self.no_vectors is not None:
            raise StoreError(self.no_vectors)
        await super().keep(model, dict(sorted(vectors.items())), now)

    async def nearest(self, model: str, vector: "Matrix", within: Narrowed, limit: int) -> Nearest:
        """The chunks whose meaning is nearest, the nearest first."""
        async with self.db.read() as tx:
            row = await self._model(tx, model)
            if row is None or not row["vector"]:
                return Nearest()
            _check_size(vector, row["dimensions"])
            pages = [each["id"] for each in await pages_within(tx, within)] if within else None
            asked = {"model": row["id"], "vector": _written(vector[0]), "pages": pages, "limit": limit}
            if await self._by_index(tx, row["id"], pages):
                found = await tx.all("nearest_by_index", dimensions=row["dimensions"], **asked)
            else:
                found = await tx.all("nearest", **asked)
            return await self._nearest(tx, row, found, vector)

    async def _by_index(self, tx: Session, model: int, pages: Sequence[int] | None) -> bool:
        """Whether an index is asked: there is one, and the search is not narrowed to a corner."""
        ready = await tx.one("near_index", model=model)
        if ready is None or not ready["ready"] or pages is None:
            return ready is not None and bool(ready["ready"])
        row = await tx.one("count_chunks", pages=pages)
        return row is not None and row["number"] > LARGE

    async def forget(self, before: datetime) -> int:
        """Let go of vectors that no text has; where many are left, they get an index."""
        forgotten = await super().forget(before)
        if self.no_vectors is None:
            await self._index_if_many()
        return forgotten

    async def _index_if_many(self) -> None:
        async with self.db.read() as tx:
            row = await tx.one("many_vectors", most=LARGE)
            if row is None or row["number"] < LARGE:
                return
            index = await tx.one("near_index", model=row["id"])
            if index is not None and index["ready"]:
                return
        await cast("PostgresDatabase", self.db).index_vectors(row["id"], row["dimensions"])

    async def likeness(self, model: str, vector: "Matrix", chunks: Sequence[int]) -> Nearest:
        """How near some chunks are, the nearest first."""
        async with self.db.read() as tx:
            row = await self._model(tx, model)
            if row is None or not chunks:
                return Nearest()
            asked = _written(vector[0])
            found = await tx.all("likeness", model=row["id"], vector=asked, chunks=list(chunks))
            return await self._nearest(tx, row, found, vector)

    async def of_chunks(self, model: str, chunks: Sequence[int]) -> "Matrix":
        """The vectors of some chunks, as far as there are any."""
        import numpy as np

        async with self.db.read() as tx:
            row = await self._model(tx, model)
            rows = await tx.all("vectors_of", model=row["id"], chunks=list(chunks)) if row else []
        return np.array([each["vector"] for each in rows], dtype=np.float32)

    async def _model(self, tx: Session, model: str) -> Row | None:
        return None if self.no_vectors is not None else await tx.one("model_and_newest", name=model)

    async def _nearest(self, tx: Session, row: Row, found: Sequence[Row], vector: "Matrix") -> Nearest:
        if not found:
            return Nearest()
        middle = await self._middle(tx, row)
        near = tuple(Near(each["chunk"], each["likeness"]) for each in found)
        return Nearest(near, float(middle @ vector[0]))

    async def _middle(self, tx: Session, row: Row) -> "Matrix":
        """The mean of the vectors of a model, or of the newest where there are many."""
        import numpy as np

        newest, middle = self.caches.middles.get(row["id"], (0, np.empty(0, dtype=np.float32)))
        if newest != row["vector"]:
            found = await tx.one("middle", model=row["id"])
            middle = np.array(found["vector"] if found else [], dtype=np.float32)
            self.caches.middles[row["id"]] = row["vector"], middle
        return middle


def _check_size(vector: "Matrix", dimensions: int) -> None:
    if vector.shape[1] != dimensions:
        sizes = f"{vector.shape[1]} numbers now, but those on record have {dimensions}"
        raise EmbedError(
            f"the model gives {sizes}: "
            "name it otherwise (embedding.model, embedding.dimensions) and run `afresh reindex`"
        )
