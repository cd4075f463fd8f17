"""Decides where to cut: borders are chosen by what stands at them, so that an edit moves just its own."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from afresh.extract.chunk.limits import MAX_CHARS, MIN_CHARS, TINY_CHARS

_LAST_HEADING = 6
_DEPTH = 28  # beyond it a text was made to be costly, and the middle is good enough


def pack(sizes: Sequence[int], keys: Sequence[int]) -> list[tuple[int, int]]:
    """Groups pieces into chunks, as ranges; a key is `rank << 32 | mark`, the smallest cuts first.

    Greedy filling would shift every later border after an edit. Here a stretch that is too large is cut
    at the smallest key that leaves enough on both sides, and so on within its parts: far from an edit the
    keys stay, and so do the cuts.
    """
    packing = _Packing(sizes, keys)
    if sizes:
        packing.cut(0, 0, len(sizes), 0)
    return packing.ranges


class _Packing:
    def __init__(self, sizes: Sequence[int], keys: Sequence[int]) -> None:
        self.keys = keys
        self.at = [0, *accumulate(sizes)]
        self.ranges: list[tuple[int, int]] = []

    def size(self, low: int, high: int) -> int:
        return self.at[high] - self.at[low]

    def cut(self, low: int, first: int, high: int, depth: int) -> None:
        """Cuts `low:high` where it must be; borders up to `first` are not used."""
        if self.size(low, high) <= MAX_CHARS or high - first < 2:
            self.ranges.append((low, high))
            return
        rank = min(self.keys[first + 1 : high]) >> 32
        if rank > _LAST_HEADING:
            self._halve(low, first, range(first + 1, high), high, depth)
            return
        borders = [i for i in range(first + 1, high) if self.keys[i] >> 32 == rank]
        runs = self._runs(low, first, borders, high)
        if len(runs) == 1 and runs[0][1] == first:
            self._halve(low, first, borders, high, depth)
            return
        for run in runs:
            self.cut(*run, depth + 1)

    def _halve(self, low: int, first: int, borders: Sequence[int], high: int, depth: int) -> None:
        border = self._best(low, borders, high, depth)
        self.cut(low, first, border, depth + 1)
        self.cut(border, border, high, depth + 1)

    def _best(self, low: int, borders: Sequence[int], high: int, depth: int) -> int:
        """The border with the smallest key that leaves enough on both sides, else the one in the middle."""
        at = self.at
        start = bisect_left(borders, at[low] + MIN_CHARS, key=at.__getitem__)
        stop = bisect_right(borders, at[high] - MIN_CHARS, key=at.__getitem__)
        if start < stop and depth < _DEPTH:
            best = min(borders[start:stop], key=self.keys.__getitem__)
            if best != borders[start] or self.keys[best] != self.keys[borders[stop - 1]]:
                return best  # otherwise all look the same, and taking the first would eat them one by one
        middle = (at[low] + at[high]) // 2
        near = bisect_left(borders, middle, key=at.__getitem__)
        return min(borders[max(near - 1, 0) : near + 1], key=lambda i: abs(at[i] - middle))

    def _runs(self, low: int, first: int, borders: list[int], high: int) -> list[tuple[int, int, int]]:
        """Sections too large for one chunk stand alone; their smaller neighbours stay together."""
        runs: list[tuple[int, int, int]] = []
        joinable = False
        for start, stop in pairwise((low, *borders, high)):
            large = self.size(start, stop) > MAX_CHARS
            introduced = start == borders[0] and self.size(low, start) <= TINY_CHARS
            if runs and joinable and not large:
                runs[-1] = (*runs[-1][:2], stop)
            elif large and introduced:
                runs[-1] = (low, start, stop)
            else:
                runs.append((start, first if start == low else start, stop))
            joinable = not large
        return runs
