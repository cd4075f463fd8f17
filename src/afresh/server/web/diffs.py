"""Differences of two texts as rows: one below the other, or side by side."""

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import NamedTuple

_HUNK = re.compile(r"@@ -(\d+),\d+ \+(\d+),\d+ @@")


class Line(NamedTuple):
    """A line of one of both texts."""

    number: int | None
    text: str


class Row(NamedTuple):
    """What stands beside each other."""

    kind: str  # same, old, new, both, gap
    old: Line | None
    new: Line | None


def inline(diff: str) -> list[Row]:
    """Each line by itself, those that went before those that came."""
    return list(_rows(diff))


def split(diff: str) -> list[Row]:
    """Lines that went beside lines that came."""
    found: list[Row] = []
    old: list[Row] = []
    new: list[Row] = []
    for row in (*_rows(diff), Row("gap", None, None)):
        if row.kind in ("old", "new"):
            (old if row.kind == "old" else new).append(row)
            continue
        for left, right in zip_longest(old, new):
            kind = "both" if left and right else "old" if left else "new"
            found.append(Row(kind, left.old if left else None, right.new if right else None))
        old, new = [], []
        found.append(row)
    return found[:-1]


def cut_for(view: str) -> Callable[[str], list[Row]]:
    """How differences are cut into rows for a view."""
    return split if view == "split" else inline


def _rows(diff: str) -> Iterator[Row]:
    before = after = 0
    for line in diff.split("\n"):
        if hunk := _HUNK.fullmatch(line):
            before, after = int(hunk[1]), int(hunk[2])
            yield Row("gap", Line(None, line), None)
        elif line.startswith("-"):
            yield Row("old", Line(before, line[1:]), None)
            before += 1
        elif line.startswith("+"):
            yield Row("new", None, Line(after, line[1:]))
            after += 1
        elif line.startswith("…"):
            yield Row("gap", Line(None, line), None)
        elif line:
            yield Row("same", Line(before, line[1:]), Line(after, line[1:]))
            before, after = before + 1, after + 1
