"""Prepare the input of models (text without Markdown) and check their output (rows of length 1)."""

import re
from typing import TYPE_CHECKING

from afresh.errors import EmbedError

if TYPE_CHECKING:
    from afresh.ports import Matrix


_SHORTEST = 1e-6


def unit_rows(rows: "Matrix") -> "Matrix":
    """Return each row scaled to length 1; a zero row becomes the first axis, never NaN."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    nowhere = lengths[:, 0] < _SHORTEST
    lengths[nowhere] = 1.0
    out: Matrix = (rows / lengths).astype(np.float32, copy=False)
    out[nowhere] = np.eye(1, rows.shape[1], dtype=np.float32)
    return out


def checked(rows: object, count: int, dimension: int | None, model: str) -> "Matrix":
    """Return a model's output as unit rows; raise EmbedError if it cannot be the vectors of `count` texts."""
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
    return unit_rows(found / largest)  # scale first, so that squares do not overflow


MAX_TEXT_CHARS = 8_000  # a chunk has about 2,000, and a query is short

_MARKS = re.compile(
    r"\{[ *#][^}]{0,200}\}"  # { #anchor }
    r"|\]\([^)\s]{0,2000}(?:\s[^)]{0,200})?\)"  # the target of a link
    r"|https?://\S+"
    r"|[`*#_>|\[\]]+"
)


def prose(text: str) -> str:
    """Return the text on one line without Markdown marks, URLs and invalid Unicode."""
    whole = text[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
    return " ".join(_MARKS.sub(" ", whole).split())
