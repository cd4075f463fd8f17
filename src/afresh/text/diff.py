"""Compute the difference of two Markdown texts within limits of time and size."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import islice

CONTEXT = 3  # unchanged lines shown before and after a change
MAX_LINE = 1_000  # characters; longer lines are cut in the output
_DEPTH = 12  # maximum depth of the recursion for lines between matched ones


def markdown_diff(old: str, new: str, *, limit: int = 65_536) -> str:
    """Return a unified diff without file header, cut to `limit` characters; "" if the texts are equal."""
    if old == new:
        return ""
    before, after = old.split("\n"), new.split("\n")
    same = _joined(_common(before, after, 0, len(before), 0, len(after), _DEPTH))
    hunks = _Matched([*same, Match(len(before), len(after), 0)]).get_grouped_opcodes(CONTEXT)
    return _cut_lines((line for hunk in hunks for line in _written(hunk, before, after)), limit)


def _common(
    a: Sequence[str], b: Sequence[str], a_low: int, a_high: int, b_low: int, b_high: int, depth: int
) -> Iterator[Match]:
    """Yield runs of equal lines in order: at the start, at the end, and around unique lines in between.

    Lines that occur exactly once in each text are matched in their longest common order. The lines between them
    are compared in the same way. This takes n log n steps; the shortest difference would take n squared.
    """
    head = _equal(a, b, range(a_low, a_high), range(b_low, b_high))
    yield Match(a_low, b_low, head)
    a_low, b_low = a_low + head, b_low + head
    tail = _equal(a, b, range(a_high - 1, a_low - 1, -1), range(b_high - 1, b_low - 1, -1))
    a_high, b_high = a_high - tail, b_high - tail
    if depth and a_low < a_high and b_low < b_high:
        i, j = a_low, b_low
        anchors = _anchors(a, b, a_low, a_high, b_low, b_high)
        for next_i, next_j in anchors:
            yield from _common(a, b, i, next_i, j, next_j, depth - 1)
            yield Match(next_i, next_j, 1)
            i, j = next_i + 1, next_j + 1
        if anchors:
            yield from _common(a, b, i, a_high, j, b_high, depth - 1)
    yield Match(a_high, b_high, tail)


def _equal(a: Sequence[str], b: Sequence[str], a_range: range, b_range: range) -> int:
    different = (at for at, (i, j) in enumerate(zip(a_range, b_range, strict=False)) if a[i] != b[j])
    return next(different, min(len(a_range), len(b_range)))


def _anchors(
    a: Sequence[str], b: Sequence[str], a_low: int, a_high: int, b_low: int, b_high: int
) -> list[tuple[int, int]]:
    """Return pairs of equal lines that are unique in each text: the longest sequence in the same order in both."""
    old_counts = Counter(islice(a, a_low, a_high))
    new_counts = Counter(islice(b, b_low, b_high))
    places = {b[j]: j for j in range(b_low, b_high) if new_counts[b[j]] == 1}
    pairs = [(i, places[a[i]]) for i in range(a_low, a_high) if a[i] in places and old_counts[a[i]] == 1]
    return _rising(pairs)


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence in which both numbers increase; `pairs` is sorted by the first number."""
    ends: list[int] = []  # for each length, the smallest second number that ends a sequence of this length
    at: list[int] = []  # for each length, the index of that pair
    before = [-1] * len(pairs)
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before[index] = at[length - 1] if length else -1
        ends[length : length + 1] = [j]
        at[length : length + 1] = [index]
    rising = []
    index = at[-1] if at else -1
    while index >= 0:
        rising.append(pairs[index])
        index = before[index]
    return rising[::-1]


def _joined(runs: Iterator[Match]) -> list[Match]:
    joined: list[Match] = []
    for run in runs:
        last = joined[-1] if joined else None
        if last and (last.a + last.size, last.b + last.size) == (run.a, run.b):
            joined[-1] = last._replace(size=last.size + run.size)
        elif run.size:
            joined.append(run)
    return joined


class _Matched(SequenceMatcher[str]):
    """Groups changes into hunks like difflib, but with given runs of equal lines."""

    def __init__(self, runs: list[Match]) -> None:
        super().__init__()
        self.runs = runs

    def get_matching_blocks(self) -> list[Match]:
        return self.runs


def _written(hunk: Sequence[tuple[str, int, int, int, int]], a: Sequence[str], b: Sequence[str]) -> Iterator[str]:
    (_, old, _, new, _), (_, _, old_end, _, new_end) = hunk[0], hunk[-1]
    yield f"@@ -{_span(old, old_end)} +{_span(new, new_end)} @@"
    for tag, i, next_i, j, next_j in hunk:
        yield from ((" " if tag == "equal" else "-") + line for line in a[i:next_i])
        yield from ("+" + line for line in b[j:next_j] if tag != "equal")


def _span(low: int, high: int) -> str:
    count = high - low
    return f"{low + 1 if count else low},{count}"


def _cut_lines(lines: Iterator[str], limit: int) -> str:
    kept: list[str] = []
    room = limit - 32  # leaves space for the line with the number of omitted lines
    for line in lines:
        cut = line if len(line) <= MAX_LINE else line[:MAX_LINE] + "…"
        room -= len(cut) + 1
        if room < 0:
            return "\n".join([*kept, f"… {1 + sum(1 for _ in lines)} more lines"])
        kept.append(cut)
    return "\n".join(kept)
