"""The vectors of one model in memory: neighbours by one product of a matrix and a vector."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from afresh.errors import EmbedError
from afresh.search.results import Near, Nearest
from afresh.store.dialect import Row, Session
from afresh.store.rough import CANDIDATES, MANY, Rough

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from afresh.ports import Matrix

    Numbers = npt.NDArray[np.int64]


MANY_GONE = 5


class Nearby:
    """Grows with the store: what was read once is not read again, and what is gone shows when it is shown."""

    def __init__(self) -> None:
        import numpy as np

        self._np = np
        self._vectors: Matrix = np.empty((0, 0), dtype=np.float32)
        self._numbers: Numbers = np.empty(0, dtype=np.int64)  # of the vectors, ascending
        self._chunks: Numbers = np.empty(0, dtype=np.int64)  # ascending
        self._pages: Numbers = np.empty(0, dtype=np.int64)  # of the chunks
        self._rows: Numbers = np.empty(0, dtype=np.int64)  # which vector a chunk has
        self._rough: Rough | None = None  # where there are many
        self._middle: Matrix = np.empty((0, 0), dtype=np.float32)  # the mean of all vectors
        self._newest = (0, 0)  # chunk and vector
        self._lacking = 0  # chunks that had no vector when they were read

    async def renew(self, tx: Session, row: Row) -> None:
        """Read what came since the last time, if `model_and_newest` tells of any; chunks that lacked vectors
        then may have them now."""
        model, dimensions, newest = row["id"], row["dimensions"], (row["chunk"], row["vector"])
        if newest == self._newest:
            return
        last = int(self._numbers[-1]) if len(self._numbers) else 0
        vectors = await tx.all("vectors_after", model=model, after=last)
        self._add_vectors(vectors, dimensions)
        if vectors and self._lacking:
            self._forget_chunks()
        await self._place(tx, model, self._newest[0])
        self._newest = newest

    async def _place(self, tx: Session, model: int, after: int) -> None:
        if after:
            placed = await tx.all("placed_vectors_after", model=model, after=after)
        else:
            placed = await tx.all("placed_vectors", model=model)
        number = await tx.one("chunks_after", after=after)
        self._lacking += (number["number"] if number else 0) - len(placed)
        self._add_chunks(placed)

    def _forget_chunks(self) -> None:
        none = self._np.empty(0, dtype=self._np.int64)
        self._chunks, self._pages, self._rows = none, none, none
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
        if self._rough is not None and not self._rough.has_outgrown(len(self._numbers)):
            self._rough.add(new)
        else:
            self._rough = Rough(self._vectors) if len(self._numbers) >= MANY else None
        self._middle = self._vectors.mean(axis=0, keepdims=True)

    def _add_chunks(self, rows: Sequence[Row]) -> None:
        np = self._np
        if not rows:
            return
        chunks, pages, numbers = np.array([tuple(row) for row in rows], dtype=np.int64).T
        order = np.argsort(chunks)
        self._chunks = np.concatenate([self._chunks, chunks[order]])
        self._pages = np.concatenate([self._pages, pages[order]])
        self._rows = np.concatenate([self._rows, np.searchsorted(self._numbers, numbers[order])])

    def let_go(self, chunks: Sequence[int]) -> None:
        """Forget chunks that are gone; where they are many, all of them, to be read anew."""
        np = self._np
        if len(chunks) > MANY_GONE:
            self._forget_chunks()
            return
        stay = np.isin(self._chunks, np.array(chunks, dtype=np.int64), invert=True)
        self._chunks, self._pages, self._rows = self._chunks[stay], self._pages[stay], self._rows[stay]

    async def nearest(self, vector: "Matrix", pages: Sequence[int] | None, limit: int) -> Nearest:
        """The nearest chunks, of some pages or of all; the product is made in a thread of its own."""
        np = self._np
        vectors, rows, chunks, places = self._vectors, self._rows, self._chunks, self._pages
        if not len(chunks):
            return Nearest()
        if vector.shape[1] != vectors.shape[1]:
            sizes = f"{vector.shape[1]} numbers now, but those on record have {vectors.shape[1]}"
            raise EmbedError(
                f"the model gives {sizes}: "
                "name it otherwise (embedding.model, embedding.dimensions) and run `afresh reindex`"
            )
        rough = self._rough
        first = rough.likeness if rough is not None else vectors.__matmul__
        likeness = (await asyncio.to_thread(first, vector[0]))[rows]
        if pages is not None:
            wanted = np.zeros(int(max(places.max(), max(pages, default=0))) + 1, dtype=bool)
            wanted[np.array(pages, dtype=np.int64)] = True
            inside = wanted[places]
            likeness, chunks, rows = likeness[inside], chunks[inside], rows[inside]
        if rough is not None:
            best = self._best(likeness, max(CANDIDATES, 4 * limit))
            chunks, likeness = chunks[best], vectors[rows[best]] @ vector[0]
        best = self._best(likeness, limit)
        return self._sorted(chunks[best], likeness[best], vector)

    def _best(self, likeness: "Matrix", number: int) -> "Numbers | slice":
        """Where the highest of some numbers stand, in no order."""
        return (
            slice(None) if len(likeness) <= number else self._np.argpartition(-likeness, number - 1)[:number]
        )

    def likeness(self, vector: "Matrix", chunks: Sequence[int]) -> Nearest:
        """How near some chunks are, as far as they are here."""
        places = self._places(chunks)
        if not len(places):
            return Nearest()
        return self._sorted(self._chunks[places], self._vectors[self._rows[places]] @ vector[0], vector)

    def of(self, chunks: Sequence[int]) -> "Matrix":
        """The vectors of some chunks, as far as they are here."""
        return self._vectors[self._rows[self._places(chunks)]]

    def _places(self, chunks: Sequence[int]) -> "Numbers":
        np = self._np
        wanted = np.array(chunks, dtype=np.int64)
        if not len(self._chunks) or not len(wanted):
            return cast("Numbers", np.empty(0, dtype=np.int64))
        places = np.minimum(np.searchsorted(self._chunks, wanted), len(self._chunks) - 1)
        return cast("Numbers", places[self._chunks[places] == wanted])

    def _sorted(self, chunks: "Numbers", likeness: "Matrix", vector: "Matrix") -> Nearest:
        np = self._np
        order = np.argsort(-likeness, kind="stable")
        found = tuple(map(Near, chunks[order].tolist(), likeness[order].tolist()))
        return Nearest(found, float((self._middle @ vector[0])[0]))
