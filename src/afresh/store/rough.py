"""A quick first look at who is near: vectors turned so that their first numbers tell most of them.

The turn comes from the vectors themselves (their principal axes), so it suits any model. Of 100,000 texts
the best 2,000 by three eighths of the numbers hold 99.6 of the 100 nearest, in a third of the time
that the whole takes: the product is bound by memory, not by arithmetic.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from afresh.ports import Matrix

    Numbers = npt.NDArray[np.int64]

MANY = 20_000  # vectors; fewer are compared whole
CANDIDATES = 2_000
_SAMPLE = 8_000
_KEPT = 3 / 8  # of the numbers of a vector
_OUTGROWN = 2  # times the vectors it was made from: then it is made anew


class Rough:
    """The first numbers of many turned vectors."""

    def __init__(self, vectors: "Matrix") -> None:
        import numpy as np

        self._np = np
        sample = vectors[:: max(1, len(vectors) // _SAMPLE)]
        _, axes = np.linalg.eigh(sample.T @ sample)  # ascending: the last axes tell most
        self._axes = np.ascontiguousarray(axes[:, -max(1, int(vectors.shape[1] * _KEPT)) :])
        self._vectors: Matrix = vectors @ self._axes
        self._most = _OUTGROWN * len(vectors)

    def has_outgrown(self, number: int) -> bool:
        """Whether there are so many vectors now that the turn may no longer suit them."""
        return number > self._most

    def add(self, vectors: "Matrix") -> None:
        """Turn more vectors the same way."""
        self._vectors = self._np.vstack([self._vectors, vectors @ self._axes])

    def likeness(self, vector: "Matrix") -> "Matrix":
        """About how near each vector is."""
        near: Matrix = self._vectors @ (vector @ self._axes)
        return near
