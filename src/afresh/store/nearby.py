"""The vectors of one model in memory: exact neighbours by one product of a matrix and a vector."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from afresh.core.found import Near, Nearest
from afresh.core.model import SourceId
from afresh.store.dialect import Row, Session

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from afresh.ports import Matrix

    Numbers = npt.NDArray[np.int64]


class Nearby:
    """Grows with the store: what was read once is not read again, and what is gone shows when it is shown."""

    def __init__(self) -> None:
        import numpy as np

        self._np = np
        self._vectors: Matrix = np.empty((0, 0), dtype=np.float32)
        self._numbers: Numbers = np.empty(0, dtype=np.int64)  # of the vectors, ascending
        self._chunks: Numbers = np.empty(0, dtype=np.int64)
        self._pages: Numbers = np.empty(0, dtype=np.int64)
        self._sources: Numbers = np.empty(0, dtype=np.int64)
        self._rows: Numbers = np.empty(0, dtype=np.int64)  # which vector a chunk has
        self._newest = 0

    async def renew(self, tx: Session, model: int, dimensions: int) -> None:
        """Read what came since the last time."""
        newest = await tx.one("newest_chunk")
        if newest is None or newest["id"] == self._newest:
            return
        last = int(self._numbers[-1]) if len(self._numbers) else 0
        self._add_vectors(await tx.all("vectors_after", model=model, after=last), dimensions)
        self._add_chunks(await tx.all("placed_vectors", model=model, after=self._newest))
        self._newest = newest["id"]

    def _add_vectors(self, rows: Sequence[Row], dimensions: int) -> None:
        np = self._np
        if not rows:
            return
        halves = np.frombuffer(b"".join([row["vector"] for row in rows]), dtype="<f2")
        new = halves.reshape(len(rows), dimensions).astype(np.float32)
        numbers = np.fromiter((row["id"] for row in rows), dtype=np.int64, count=len(rows))
        self._vectors = np.vstack([self._vectors, new]) if len(self._numbers) else new
        self._numbers = np.concatenate([self._numbers, numbers])

    def _add_chunks(self, rows: Sequence[Row]) -> None:
        np = self._np
        if not rows:
            return
        columns = np.array([tuple(row) for row in rows], dtype=np.int64).T
        chunks, pages, sources, numbers = columns
        self._chunks = np.concatenate([self._chunks, chunks])
        self._pages = np.concatenate([self._pages, pages])
        self._sources = np.concatenate([self._sources, sources])
        self._rows = np.concatenate([self._rows, np.searchsorted(self._numbers, numbers)])

    def nearest(
        self,
        vector: "Matrix",
        sources: Sequence[SourceId] | None,
        pages: Sequence[int] | None,
        limit: int,
        also: Sequence[int] = (),
    ) -> Nearest:
        """The nearest chunks of some sources or pages, and how near some others of them are."""
        np = self._np
        likeness, chunks = (self._vectors @ vector[0])[self._rows] if len(self._rows) else None, self._chunks
        if likeness is None:
            return Nearest()
        if pages is not None or sources is not None:
            places, wanted = (self._sources, sources) if pages is None else (self._pages, pages)
            inside = np.isin(places, np.array(wanted, dtype=np.int64))
            likeness, chunks = likeness[inside], chunks[inside]
        if not len(likeness):
            return Nearest()
        limit = min(limit, len(likeness))
        best = np.argpartition(-likeness, limit - 1)[:limit]
        if also:
            best = np.union1d(best, np.flatnonzero(np.isin(chunks, np.array(also, dtype=np.int64))))
        best = best[np.argsort(-likeness[best], kind="stable")]
        found = tuple(map(Near, chunks[best].tolist(), likeness[best].tolist()))
        return Nearest(found, float(likeness.mean()))

    def of(self, chunks: Sequence[int]) -> "Matrix":
        """The vectors of some chunks, as far as they are here."""
        np = self._np
        if not len(self._chunks):
            return cast("Matrix", np.empty((0, 0), dtype=np.float32))
        places = np.flatnonzero(np.isin(self._chunks, np.array(chunks, dtype=np.int64)))
        return cast("Matrix", self._vectors[self._rows[places]])
