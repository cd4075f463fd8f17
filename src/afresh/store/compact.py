"""The compact forms in which SQLite stores texts and vectors, and the functions for them in its SQL.

- `deflated(text)`: the text compressed if that saves space; `inflated(stored)` returns the text of both forms
- `packed(halves)`: a vector of length 1 as one byte per number

A schema of afresh uses `inflated`, so every connection that changes chunks has to have these functions.
"""

import sqlite3
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afresh.ports import Matrix

LEVEL = 4  # saves nearly as much as the highest one, in two thirds of its time
GAIN = 0.9  # share of its size to which a text has to shrink


def add_functions(connection: sqlite3.Connection) -> None:
    for function in (deflated, inflated, packed):
        connection.create_function(function.__name__, 1, function, deterministic=True)


def deflated(text: str | None) -> str | bytes | None:
    if text is None:
        return None
    whole = text.encode()
    short = zlib.compress(whole, LEVEL)
    return short if len(short) < GAIN * len(whole) else text


def inflated(stored: str | bytes | None) -> str | None:
    return zlib.decompress(stored).decode() if isinstance(stored, bytes) else stored


def packed(halves: bytes) -> bytes:
    """Return a vector of 16-bit floats as 8-bit integers; only its direction is kept."""
    import numpy as np

    return pack_rows(np.frombuffer(halves, "<f2")[None, :])[0]


def pack_rows(rows: "Matrix") -> list[bytes]:
    import numpy as np

    wide = rows.astype(np.float32)
    scaled = wide * (127 / np.abs(wide).max(axis=1, keepdims=True))
    return [row.tobytes() for row in np.rint(scaled).astype(np.int8)]


def unpack_rows(blobs: Sequence[bytes], dimensions: int) -> "Matrix":
    """Return packed vectors as rows of length 1."""
    import numpy as np

    rows = np.frombuffer(b"".join(blobs), np.int8).reshape(len(blobs), dimensions).astype(np.float32)
    found: Matrix = rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return found
