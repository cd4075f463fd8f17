"""Rows of numbers as vectors that can be compared: checked, and of length 1."""

from typing import TYPE_CHECKING

from afresh.errors import EmbedError

if TYPE_CHECKING:
    from afresh.ports import Matrix

_SHORTEST = 1e-6


def unit_rows(rows: "Matrix") -> "Matrix":
    """Each row scaled to length 1; one that points nowhere becomes the first axis, never NaN."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    nowhere = lengths[:, 0] < _SHORTEST
    lengths[nowhere] = 1.0
    out: Matrix = (rows / lengths).astype(np.float32, copy=False)
    out[nowhere] = np.eye(1, rows.shape[1], dtype=np.float32)
    return out


def checked(rows: object, count: int, dimension: int | None, model: str) -> "Matrix":
    """What a model answered as unit rows, or an EmbedError if it cannot be the vectors of `count` texts."""
    import numpy as np

    try:
        with np.errstate(over="ignore"):
            found = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise EmbedError(f"{model} answered with something other than rows of numbers") from None
    if found.shape[:1] != (count,):
        raise EmbedError(f"{model} answered with {len(found) if found.ndim else 0} vectors for {count} texts")
    if found.ndim != 2 or not found.shape[1]:
        raise EmbedError(f"{model} answered with vectors of different or no length")
    if dimension is not None and found.shape[1] != dimension:
        raise EmbedError(
            f"{model} answered with {found.shape[1]} numbers a vector instead of {dimension}: "
            "if the model was changed, name it in embedding.model and run afresh reindex"
        )
    largest = np.abs(found).max(axis=1, initial=0, keepdims=True)
    if not np.isfinite(largest).all() or not largest.all():
        raise EmbedError(f"{model} answered with a vector that is all zeros or no number")
    return unit_rows(found / largest)  # first to a size at which squares are numbers too
