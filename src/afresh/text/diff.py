"""The difference of two Markdown texts, bounded in time and in size whatever the texts are."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

CONTEXT = 3  # lines around a change
MAX_LINE = 1_000  # longer lines are cut where they are shown
_DEPTH = 12  # how often a gap is searched again for lines that are unique within it


class _Same(NamedTuple):
    """Lines that both texts share, from `old` and from `new` on."""

    old: int
    new: int
    size: int


def markdown_diff(old: str, new: str, *, limit: int = 65_536) -> str:
    """A unified diff without file header, at most `limit` characters long; empty if the texts are equal."""
    if old == new:
        return ""
    before, after = old.split("\n"), new.split("\n")
    same = _joined(_common(before, after, 0, len(before), 0, len(after), _DEPTH))
    hunks = _hunks(same, len(before), len(after))
    return _shown((line for hunk in hunks for line in _written(hunk, before, after)), limit)


# ---- what stayed ------------------------------------------------------------------------------


def _common(
    a: Sequence[str], b: Sequence[str], a_low: int, a_high: int, b_low: int, b_high: int, depth: int
) -> Iterator[_Same]:
    """Runs of equal lines, in order: the equal start and end, and what hangs on unique lines between them.

    Lines that stand once in both texts are matched in their longest common order, and the gaps between
    them likewise. This needs n log n steps where the shortest edit would need n squared.
    """
    head = _equal(a, b, range(a_low, a_high), range(b_low, b_high))
    yield _Same(a_low, b_low, head)
    a_low, b_low = a_low + head, b_low + head
    tail = _equal(a, b, range(a_high - 1, a_low - 1, -1), range(b_high - 1, b_low - 1, -1))
    a_high, b_high = a_high - tail, b_high - tail
    if depth and a_low < a_high and b_low < b_high:
        i, j = a_low, b_low
        anchors = _anchors(a, b, a_low, a_high, b_low, b_high)
        for next_i, next_j in anchors:
            yield from _common(a, b, i, next_i, j, next_j, depth - 1)
            yield _Same(next_i, next_j, 1)
            i, j = next_i + 1, next_j + 1
        if anchors:
            yield from _common(a, b, i, a_high, j, b_high, depth - 1)
    yield _Same(a_high, b_high, tail)


def _equal(a: Sequence[str], b: Sequence[str], a_range: range, b_range: range) -> int:
    count = 0
    for i, j in zip(a_range, b_range, strict=False):
        if a[i] != b[j]:
            break
        count += 1
    return count


def _anchors(
    a: Sequence[str], b: Sequence[str], a_low: int, a_high: int, b_low: int, b_high: int
) -> list[tuple[int, int]]:
    """Pairs of lines that are unique on both sides, as many as keep their order."""
    old_counts = Counter(islice(a, a_low, a_high))
    new_counts = Counter(islice(b, b_low, b_high))
    places = {b[j]: j for j in range(b_low, b_high) if new_counts[b[j]] == 1}
    pairs = [(i, places[a[i]]) for i in range(a_low, a_high) if a[i] in places and old_counts[a[i]] == 1]
    return _rising(pairs)


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs, sorted by the first number, whose second number rises too."""
    ends: list[int] = []  # the smallest second number that ends a run of each length
    at: list[int] = []  # which pair that is
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


def _joined(runs: Iterator[_Same]) -> list[_Same]:
    """Runs with neighbours made one."""
    joined: list[_Same] = []
    for run in runs:
        last = joined[-1] if joined else None
        if last and (last.old + last.size, last.new + last.size) == (run.old, run.new):
            joined[-1] = last._replace(size=last.size + run.size)
        elif run.size:
            joined.append(run)
    return joined


# ---- what changed -----------------------------------------------------------------------------


class _Change(NamedTuple):
    """Lines `old_low:old_high` became `new_low:new_high`."""

    old_low: int
    old_high: int
    new_low: int
    new_high: int


def _hunks(same: Sequence[_Same], old_size: int, new_size: int) -> Iterator[list[_Change]]:
    """Changes, together where less than their context lies between them."""
    hunk: list[_Change] = []
    i = j = 0
    for run in (*same, _Same(old_size, new_size, 0)):
        if (i, j) != (run.old, run.new):
            if hunk and i - hunk[-1].old_high > 2 * CONTEXT:
                yield hunk
                hunk = []
            hunk.append(_Change(i, run.old, j, run.new))
        i, j = run.old + run.size, run.new + run.size
    if hunk:
        yield hunk


def _written(hunk: Sequence[_Change], a: Sequence[str], b: Sequence[str]) -> Iterator[str]:
    first, last = hunk[0], hunk[-1]
    lead = min(CONTEXT, first.old_low)
    trail = min(CONTEXT, len(a) - last.old_high)
    old_span = _span(first.old_low - lead, last.old_high + trail)
    new_span = _span(first.new_low - lead, last.new_high + trail)
    yield f"@@ -{old_span} +{new_span} @@"
    at = first.old_low - lead
    for change in hunk:
        yield from (" " + line for line in a[at : change.old_low])
        yield from ("-" + line for line in a[change.old_low : change.old_high])
        yield from ("+" + line for line in b[change.new_low : change.new_high])
        at = change.old_high
    yield from (" " + line for line in a[at : at + trail])


def _span(low: int, high: int) -> str:
    """Lines as a hunk's head counts them: from 1, and an empty stretch by the line before it."""
    count = high - low
    return f"{low + 1 if count else low},{count}"


def _shown(lines: Iterator[str], limit: int) -> str:
    """The lines that fit, and how many more there are."""
    shown: list[str] = []
    room = limit - 32  # for the line that tells of the rest
    for line in lines:
        cut = line if len(line) <= MAX_LINE else line[:MAX_LINE] + "…"
        room -= len(cut) + 1
        if room < 0:
            return "\n".join([*shown, f"… {1 + sum(1 for _ in lines)} more lines"])
        shown.append(cut)
    return "\n".join(shown)
