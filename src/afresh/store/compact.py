"""Compact codes of vectors in SQLite: one bit per dimension, by which a search finds the vectors to compare exactly.

A code has the signs of a vector after a fixed rotation, which spreads the information evenly over all bits.
The query is rotated, too, and keeps four bits per dimension. For its distance to a code, each of the four bits is
compared with the bit of the code; the differences are counted, those in higher bits with a higher weight.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from afresh.ports import Matrix
    from afresh.search.records import SearchFilter

    Ids = npt.NDArray[np.int64]
    Words = npt.NDArray[np.uint64]

BLOCK = 256  # vectors; their ids differ only in the last byte
QUERY_BITS = 4
WORD_BITS = 64
BY_SIGNS = 20  # codes for each one to find that are near by the signs of the query; its other bits order only these
MAX_GROUP_BITS = 256
MAX_BITS = 4_096  # for which a distance fits into 16 bits, which sort faster


class CodeBlock(NamedTuple):
    """Compact codes (a bit per dimension) of vectors; their ids are `number * BLOCK` plus a byte of `places`."""

    number: int
    places: bytes
    codes: bytes
    middle: bytes  # the mean of the vectors, as float32


def code_bytes(dimensions: int) -> int:
    size, groups = _shape(dimensions)
    return size * groups // 8


def _shape(dimensions: int) -> tuple[int, int]:
    """Return how the dimensions of a vector are divided into groups: bits per group, and number of groups."""
    size = min(MAX_GROUP_BITS, max(WORD_BITS, 1 << (dimensions - 1).bit_length()))
    return size, -(-dimensions // size)


def blocks_of(ids: Sequence[int], vectors: "Matrix") -> Iterator[CodeBlock]:
    """Yield blocks with the compact codes of `vectors`, a matrix with a row for each of the ascending `ids`."""
    import numpy as np

    begin = 0
    for number, members in groupby(ids, lambda each: each // BLOCK):
        places = bytes(each % BLOCK for each in members)
        rows = vectors[begin : begin + len(places)]
        codes = np.packbits(_rotated(rows) > 0, axis=1)
        yield CodeBlock(number, places, codes.tobytes(), rows.mean(axis=0).astype("<f4").tobytes())
        begin += len(places)


def _rotated(rows: "Matrix") -> "Matrix":
    """Return rows after a randomised Walsh-Hadamard transform of each group of dimensions."""
    import numpy as np

    # A matrix product would give the same, but would start the threads of the linear algebra library.
    count, dimensions = rows.shape
    size, groups = _shape(dimensions)
    signs = np.unpackbits(np.frombuffer(hashlib.shake_128(b"afresh").digest(dimensions // 8 + 1), np.uint8))
    out = np.zeros((size * groups, count), np.float32)
    out[:dimensions] = (rows * (1.0 - 2.0 * signs[:dimensions])).T
    step = groups * count
    while step < out.size:
        pairs = out.reshape(-1, 2, step)
        out = np.empty_like(pairs)
        np.add(pairs[:, 0], pairs[:, 1], out=out[:, 0])
        np.subtract(pairs[:, 0], pairs[:, 1], out=out[:, 1])
        step *= 2
    return out.reshape(size * groups, count).T


class VectorSubset(NamedTuple):
    """The vectors to search: those of the chunks of `pages`, or all vectors if `pages` is None."""

    newest: tuple[int, int] = (0, 0)  # highest ids of vectors and chunks in the store; higher ones make this outdated
    pages: Sequence[int] | None = None
    ids: "Ids | None" = None  # the vectors of the subset, if they are so few that only their codes are compared
    rarity: int = 1  # number of all vectors divided by those in the subset; 1 if `ids` is set


class VectorCodes:
    """The compact codes of all vectors of a model in memory, used to find the vectors nearest to a query."""

    def __init__(self, model: int, dimensions: int) -> None:
        import numpy as np

        self.subsets: dict[SearchFilter, VectorSubset] = {}  # cache for filters that name only sources
        self.model = model
        self.dimensions = dimensions
        self.newest = 0  # id of the newest vector
        self._np = np
        # Ascending ids, and a row for each word of the codes; replaced at once, as a thread may be reading them.
        words = code_bytes(dimensions) * 8 // WORD_BITS
        self._codes: tuple[Ids, Words] = np.empty(0, np.int64), np.empty((words, 0), np.uint64)
        self._middles: dict[int, tuple[int, Matrix]] = {}  # by block: number of vectors, and their mean
        self.middle: Matrix = np.zeros(dimensions, np.float32)  # the mean of all

    def __len__(self) -> int:
        return len(self._codes[0])

    def put(self, blocks: Iterable[CodeBlock]) -> None:
        """Replace the codes of all blocks from the number of the first given block on by the given blocks."""
        np, blocks = self._np, list(blocks)
        if not blocks:
            return
        ids, words = self._codes
        kept = int(np.searchsorted(ids, blocks[0].number * BLOCK))
        added = [np.frombuffer(each.places, np.uint8).astype(np.int64) + each.number * BLOCK for each in blocks]
        codes = np.frombuffer(b"".join(each.codes for each in blocks), np.uint64)
        new = codes.reshape(-1, len(words)).T
        self._codes = np.concatenate([ids[:kept], *added]), np.concatenate([words[:, :kept], new], axis=1)
        for each in blocks:
            self._middles[each.number] = len(each.places), np.frombuffer(each.middle, "<f4")
        numbers, middles = zip(*self._middles.values(), strict=True)
        self.middle = np.average(np.array(middles), axis=0, weights=numbers)

    def nearest(self, vector: "Matrix", number: int, among: "Ids | None" = None) -> "Ids":
        """Return the ids of the `number` vectors whose codes are nearest to `vector`, best first (only of `among`)."""
        np, (ids, codes) = self._np, self._codes
        if among is not None:
            places = np.flatnonzero(np.isin(ids, among))
            ids, codes = ids[places], codes[:, places]
        row = _rotated(vector[:1])[0]
        top = float(np.abs(row).max()) or 1.0
        levels = np.rint((row / top + 1) * ((1 << QUERY_BITS) - 1) / 2).astype(np.uint8)
        signs, *others = (np.packbits(levels >> bit & 1).view(np.uint64) for bit in reversed(range(QUERY_BITS)))
        distances = np.zeros(len(ids), np.uint16 if len(row) <= MAX_BITS else np.uint32)
        _add_distances(distances, codes, signs)
        last = BY_SIGNS * number
        if last < len(ids):
            places = np.flatnonzero(distances <= np.partition(distances, last)[last])
            ids, codes, distances = ids[places], codes[:, places], distances[places]
        for asked in others:
            _add_distances(distances, codes, asked)
        ordered: Ids = ids[np.argsort(distances, kind="stable")[:number]]
        return ordered


def _add_distances(distances: "npt.NDArray[np.unsignedinteger]", codes: "Words", asked: "Words") -> None:
    """Double `distances`, and add to each the number of bits in which its code differs from the query bits `asked`."""
    import numpy as np

    np.left_shift(distances, 1, out=distances)
    for words, word in zip(codes, asked, strict=True):
        np.add(distances, np.bitwise_count(words ^ word), out=distances)


def is_whole(blocks: Sequence[CodeBlock], dimensions: int) -> bool:
    """Return whether blocks are undamaged: their codes and means have the sizes that their vectors require."""
    size = code_bytes(dimensions)
    return all(len(b.codes) == size * len(b.places) and len(b.middle) == 4 * dimensions for b in blocks)
