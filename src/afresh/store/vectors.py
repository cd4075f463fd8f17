"""Vectors of chunks in the store, and a copy of the vectors of one model in memory."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, cast

from afresh.errors import EmbedError
from afresh.model.fetch import Chunk
from afresh.model.records import SourceId
from afresh.search.records import ChunkMatch, SearchFilter, StoredModel, VectorMatches
from afresh.store.dialect import Row, Transaction
from afresh.store.records import record
from afresh.store.repository import Repository
from afresh.store.search import chunk_from, pages_within

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from afresh.ports import Matrix

    Numbers = npt.NDArray[np.int64]


MIN_COARSE = 20_000  # number of vectors from which a coarse search selects candidates first
CANDIDATES = 2_000
_SAMPLE = 8_000
_KEPT = 3 / 8  # share of the dimensions of a vector
_OUTGROWN = 2  # factor of growth after which the axes are recomputed


class CoarseVectors:
    """Vectors projected on the axes with the most variance, to find candidates quickly."""

    def __init__(self, vectors: "Matrix") -> None:
        import numpy as np

        self._np = np
        sample = vectors[:: max(1, len(vectors) // _SAMPLE)]
        _, axes = np.linalg.eigh(sample.T @ sample)  # ascending: the last axes have the most variance
        self._axes = np.ascontiguousarray(axes[:, -max(1, int(vectors.shape[1] * _KEPT)) :])
        self._vectors: Matrix = vectors @ self._axes
        self.most = _OUTGROWN * len(vectors)  # number of vectors up to which the axes are good enough

    def add(self, vectors: "Matrix") -> None:
        self._vectors = self._np.vstack([self._vectors, vectors @ self._axes])

    def likeness(self, vector: "Matrix") -> "Matrix":
        near: Matrix = self._vectors @ (vector @ self._axes)
        return near


MAX_DROPPED_SINGLY = 5


class VectorMatrix:
    """The vectors of a model in memory; only new vectors are read, and removed chunks are dropped when found."""

    def __init__(self) -> None:
        import numpy as np

        self._np = np
        self._vectors: Matrix = np.empty((0, 0), dtype=np.float32)
        self._numbers: Numbers = np.empty(0, dtype=np.int64)  # ids of the vectors, ascending
        # Columns of chunk id (ascending), page id and row of the vector:
        self._placed: Numbers = np.empty((3, 0), dtype=np.int64)
        self._coarse: CoarseVectors | None = None  # None if there are few vectors
        self._middle: Matrix = np.empty((0, 0), dtype=np.float32)  # the mean of all vectors
        self._newest = (0, 0)  # ids of the newest chunk and vector
        self._lacking = 0  # chunks without a vector when they were read

    async def renew(self, tx: Transaction, row: Row) -> None:
        """Read new chunks and vectors, if the row of `model_and_newest` shows any.

        If chunks without a vector were read before and vectors were added, all chunks are read again.
        """
        model, dimensions, newest = row["id"], row["dimensions"], (row["chunk"], row["vector"])
        if newest == self._newest:
            return
        last = int(self._numbers[-1]) if len(self._numbers) else 0
        vectors = await tx.all("vectors_after", model=model, after=last)
        self._add_vectors(vectors, dimensions)
        if vectors and self._lacking:
            self._forget_chunks()
        after = self._newest[0]
        if after:
            placed = await tx.all("placed_vectors_after", model=model, after=after)
        else:
            placed = await tx.all("placed_vectors", model=model)
        self._lacking += await tx.number("chunks_after", after=after) - len(placed)
        self._add_chunks(placed)
        self._newest = newest

    def _forget_chunks(self) -> None:
        self._placed = self._placed[:, :0]
        self._newest, self._lacking = (0, 0), 0

    def _add_vectors(self, rows: Sequence[Row], dimensions: int) -> None:
        np = self._np
        if not rows:
            return
        halves = np.frombuffer(b"".join([row["vector"] for row in rows]), dtype="<f2")
        new = halves.reshape(len(rows), dimensions).astype(np.float32)
        numbers = np.array([row["id"] for row in rows], dtype=np.int64)
        self._vectors = np.vstack([self._vectors, new]) if len(self._numbers) else new
        self._numbers = np.concatenate([self._numbers, numbers])
        if self._coarse is not None and len(self._numbers) <= self._coarse.most:
            self._coarse.add(new)
        else:
            self._coarse = CoarseVectors(self._vectors) if len(self._numbers) >= MIN_COARSE else None
        self._middle = self._vectors.mean(axis=0, keepdims=True)

    def _add_chunks(self, rows: Sequence[Row]) -> None:
        np = self._np
        if not rows:
            return
        chunks, pages, numbers = np.array([tuple(row) for row in rows], dtype=np.int64).T
        placed = np.stack([chunks, pages, np.searchsorted(self._numbers, numbers)])
        self._placed = np.hstack([self._placed, placed[:, np.argsort(chunks)]])

    def drop(self, chunks: Sequence[int]) -> None:
        """Drop removed chunks; if they are many, drop all chunks, which are then read again."""
        np = self._np
        if len(chunks) > MAX_DROPPED_SINGLY:
            self._forget_chunks()
            return
        stay = np.isin(self._placed[0], np.array(chunks, dtype=np.int64), invert=True)
        self._placed = self._placed[:, stay]

    async def nearest(self, vector: "Matrix", pages: Sequence[int] | None, limit: int) -> VectorMatches:
        """Return the chunks nearest to a vector, of some pages or of all; a thread computes the similarities."""
        np = self._np
        vectors, (chunks, places, rows) = self._vectors, self._placed
        if not len(chunks):
            return VectorMatches()
        check_size(vector, vectors.shape[1])
        coarse = self._coarse
        first = coarse.likeness if coarse is not None else vectors.__matmul__
        likeness = (await asyncio.to_thread(first, vector[0]))[rows]
        if pages is not None:
            wanted = np.zeros(int(max(places.max(), max(pages, default=0))) + 1, dtype=bool)
            wanted[np.array(pages, dtype=np.int64)] = True
            inside = wanted[places]
            likeness, chunks, rows = likeness[inside], chunks[inside], rows[inside]
        if coarse is not None:
            best = self._best(likeness, max(CANDIDATES, 4 * limit))
            chunks, likeness = chunks[best], vectors[rows[best]] @ vector[0]
        best = self._best(likeness, limit)
        return self._sorted(chunks[best], likeness[best], vector)

    def _best(self, likeness: "Matrix", number: int) -> "Numbers | slice":
        """Return the positions of the highest values, unsorted."""
        few = len(likeness) <= number
        return slice(None) if few else self._np.argpartition(-likeness, number - 1)[:number]

    def likeness(self, vector: "Matrix", chunks: Sequence[int]) -> VectorMatches:
        """Return the similarity of chunks to a vector, without chunks that are not in memory."""
        places = self._places(chunks)
        if not len(places):
            return VectorMatches()
        found, _, rows = self._placed[:, places]
        return self._sorted(found, self._vectors[rows] @ vector[0], vector)

    def of(self, chunks: Sequence[int]) -> "Matrix":
        """Return the vectors of chunks, without chunks that are not in memory."""
        rows: Numbers = self._placed[2][self._places(chunks)]
        return self._vectors[rows]

    def _places(self, chunks: Sequence[int]) -> "Numbers":
        np = self._np
        known, wanted = self._placed[0], np.array(chunks, dtype=np.int64)
        if not len(known) or not len(wanted):
            return cast("Numbers", np.empty(0, dtype=np.int64))
        places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return cast("Numbers", places[known[places] == wanted])

    def _sorted(self, chunks: "Numbers", likeness: "Matrix", vector: "Matrix") -> VectorMatches:
        np = self._np
        order = np.argsort(-likeness, kind="stable")
        found = tuple(map(ChunkMatch, chunks[order].tolist(), likeness[order].tolist()))
        return VectorMatches(found, float((self._middle @ vector[0])[0]))


BYTES = 2  # per number of a vector, a float16


class VectorRepository(Repository):
    no_vectors: str | None = None  # why vectors cannot be compared in this store

    async def is_first_notice(self, name: str, now: datetime) -> bool:
        """Return whether this store has not recorded a notice yet, and record it."""
        if await self._one("notice", name=name) is not None:
            return False
        return await self._run("record_notice", name=name, now=now) > 0

    async def serving_model(self) -> StoredModel | None:
        return await self._find(partial(record, StoredModel), "serving_model")

    async def known(self, model: str, hashes: Sequence[str]) -> set[str]:
        async with self.db.read() as tx:
            return {row["text_hash"] for row in await tx.all("known_vectors", name=model, hashes=list(hashes))}

    async def keep(self, model: str, vectors: Mapping[str, bytes], now: datetime) -> None:
        """Store vectors by the hash of their text; the first model of an empty store answers searches."""
        sizes = {len(vector) // BYTES for vector in vectors.values()}
        if not sizes:
            return
        async with self.db.write() as tx:
            rows = await tx.all("model_by_name", name=model)
            if not rows:
                await tx.run("add_model", name=model, dimensions=min(sizes), now=now)
                rows = await tx.all("model_by_name", name=model)
            row = rows[0]
            if sizes != {row["dimensions"]}:
                raise EmbedError(
                    f"{model} gave vectors of {max(sizes)} numbers, but its stored vectors have {row['dimensions']}: "
                    "set embedding.dimensions or another embedding.model, then run `afresh reindex`"
                )
            made = [{"model": row["id"], "text_hash": h, "vector": v, "now": now} for h, v in vectors.items()]
            await tx.many("keep_vector", made)

    async def forget(self, before: datetime) -> int:
        """Delete vectors unused since a time and return their number; delete none while a run is in progress."""
        return await self._run("forget_vectors", before=before)

    async def unembedded(
        self, model: str, *, source: SourceId | None = None, after: int = 0, limit: int = 1000
    ) -> dict[int, Chunk]:
        """Return chunks with stored text that have no vector of the model, by their id, in order."""
        async with self.db.read() as tx:
            number = await tx.number("model_by_name", name=model)
            rows = await tx.all("unembedded", model=number, source=source, after=after, limit=limit)
            return {row["id"]: chunk_from(row) for row in rows}

    async def are_missing(self, model: str) -> bool:
        """Return whether any chunk lacks a vector of a model; reads indexes only."""
        async with self.db.read() as tx:
            number = await tx.number("model_by_name", name=model)  # 0: it has no vectors yet
            return await tx.one("lacks_vectors", model=number) is not None

    async def serve(self, model: str) -> bool:
        """Let a model answer searches and delete all other models; return False if chunks lack vectors of it.

        In a store without vectors, all models are deleted: the first one that adds a vector answers searches.
        """
        async with self.db.write() as tx:
            number = await tx.number("model_by_name", name=model)
            if await tx.number("unembedded_number", model=number):
                return False
            await tx.run("drop_other_models", model=number)
            await tx.run("serve_model", model=number)
            return True

    async def nearest(self, model: str, vector: "Matrix", within: SearchFilter, limit: int) -> VectorMatches:
        """Return the chunks whose vectors are nearest to a vector, nearest first."""
        async with self.db.read() as tx:
            matrix = await self._renewed(tx, model)
            if matrix is None:
                return VectorMatches()
            pages = [row["id"] for row in await pages_within(tx, within)] if within else None
        return await matrix.nearest(vector, pages, limit)

    async def likeness(self, model: str, vector: "Matrix", chunks: Sequence[int]) -> VectorMatches:
        """Return the similarity of chunks to a vector, nearest first."""
        return (await self._near(model)).likeness(vector, chunks)

    async def of_chunks(self, model: str, chunks: Sequence[int]) -> "Matrix":
        """Return the vectors of chunks, without chunks that have none."""
        return (await self._near(model)).of(chunks)

    async def _near(self, model: str) -> VectorMatrix:
        """Return the vectors as they were last read, because the given chunks were found in that state."""
        if model not in self.caches.matrices:
            async with self.db.read() as tx:
                return await self._renewed(tx, model) or VectorMatrix()
        return self.caches.matrices[model][1]

    async def _renewed(self, tx: Transaction, model: str) -> VectorMatrix | None:
        async with self.caches.renewing:  # a later reader must not see an older state
            row = await tx.one("model_and_newest", name=model)
            number, matrix = self.caches.matrices.pop(model, (0, VectorMatrix()))
            if row is None:
                return None
            if number != row["id"]:  # deleted and created again
                matrix = VectorMatrix()
            self.caches.matrices.clear()  # only one model answers searches at a time
            self.caches.matrices[model] = row["id"], matrix
            await matrix.renew(tx, row)
            return matrix


def check_size(vector: "Matrix", dimensions: int) -> None:
    """Raise EmbedError if the size of a vector differs from that of the stored ones."""
    if vector.shape[1] != dimensions:
        sizes = f"{vector.shape[1]} numbers now, but the stored vectors have {dimensions}"
        raise EmbedError(
            f"the model gives {sizes}: set embedding.dimensions or another embedding.model, then run `afresh reindex`"
        )
