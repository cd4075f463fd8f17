"""Convert tables of markup languages to Markdown, and limit how much substitutions may lengthen a text."""

import csv
import re
from collections.abc import Sequence
from itertools import islice

TIMES = 4
AT_LEAST = 64 * 1024  # minimum budget in characters
MOST_COLUMNS = 100
MOST_BLANK = 1_000  # number of empty cells that may always be added to short rows
_GRID = re.compile(r"\+(?:[-=]+\+)+\s*$")
_SIMPLE = re.compile(r"=+(?:[ \t]+=+)+\s*$")
_SPAN = re.compile(r"-+(?:[ \t]+-+)*\s*$")
Rows = list[list[str]]


class ExpansionBudget:
    """Limits how many characters substituted values may add to a text; beyond that, names stay unresolved."""

    def __init__(self, written: int) -> None:
        self._left = TIMES * written + AT_LEAST

    def take(self, value: str) -> bool:
        if len(value) > self._left:
            return False
        self._left -= len(value)
        return True


def is_grid(line: str) -> bool:
    return line.startswith("+") and _GRID.match(line) is not None


def is_simple(line: str) -> bool:
    return line.startswith("=") and _SIMPLE.match(line) is not None


def grid_rows(lines: Sequence[str]) -> tuple[Rows, bool]:
    """Return the rows of a grid table, and whether the first one is its head."""
    borders = (re.finditer(r"\+", line[: MOST_COLUMNS * 100]) for line in lines if line.startswith("+"))
    edges = sorted({found.start() for border in borders for found in islice(border, MOST_COLUMNS + 1)})
    rows: Rows = []
    cells = [""] * (len(edges) - 1)
    head = False
    for line in lines[1:]:
        if line.startswith("+") and not line.strip("+-= "):
            rows.append(cells)
            cells = [""] * (len(edges) - 1)
            head = head or ("=" in line and len(rows) == 1)
        else:
            _fill(cells, line, edges)
    return [row for row in rows if any(row)], head


def _fill(cells: list[str], line: str, edges: Sequence[int]) -> None:
    """Append the text of a line to its cells; text that spans several cells goes into the first."""
    start = 0
    for column in range(len(cells)):
        stop = edges[column + 1]
        if column + 1 < len(cells) and line[stop : stop + 1] not in ("|", "+", ""):
            continue  # the cell spans the next column too
        text = line[edges[start] + 1 : stop].strip(" \t+|")
        if text and text.strip("-="):
            cells[start] = f"{cells[start]} {text}".strip()
        start = column + 1


def simple_rows(lines: Sequence[str]) -> tuple[Rows, bool]:
    """Return the rows of a simple table, and whether the first one is its head."""
    columns = [(found.start(), found.end()) for found in re.finditer("=+", lines[0])][:MOST_COLUMNS]
    starts = [start for start, _ in columns] + [None]
    rows: Rows = []
    borders, head = 0, 0
    for line in lines:
        if is_simple(line):
            borders += 1
            head = len(rows) if borders == 2 else head
        elif line.strip() and not (_SPAN.match(line) and "--" in line and " " in line.strip()):
            cells = [line[starts[at] : starts[at + 1]].strip() for at in range(len(columns))]
            if cells[0] or not rows:
                rows.append(cells)
            else:
                rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    if borders > 2 and head > 1:
        rows[:head] = [[" ".join(filter(None, column)) for column in zip(*rows[:head], strict=True)]]
    return rows, borders > 2 and head > 0


def csv_rows(text: str, delimiter: str = ",") -> Rows:
    mark = {"tab": "\t", "space": " "}.get(delimiter.lower(), delimiter)[:1] or ","
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [row[:MOST_COLUMNS] for row in csv.reader(lines, delimiter=mark, skipinitialspace=True)]
    except (csv.Error, ValueError):
        return [[line] for line in lines]


def list_rows(lines: Sequence[str]) -> Rows:
    rows: Rows = []
    for line in lines:
        bare = line.strip()
        begins = re.match(r"[*-][ \t]+[*-](?:[ \t]+(.*))?$", bare)
        if begins is not None:
            rows.append([begins[1] or ""])
        elif rows and re.match(r"[ \t]+[*-](?:\s|$)", line) and len(line) - len(line.lstrip()) <= 3:
            rows[-1].append(bare[1:].strip())
        elif rows and bare:
            rows[-1][-1] = f"{rows[-1][-1]} {bare}".strip()
    return rows


def markdown_table(rows: Rows, head: bool) -> str:
    """Return rows as a Markdown table, with an empty head if there is none, because Markdown requires a head."""
    wide = max((len(row) for row in rows), default=0)
    if not wide:
        return ""
    if wide * len(rows) <= MOST_BLANK + 4 * sum(map(len, rows)):  # otherwise do not fill up short rows
        rows = [row + [""] * (wide - len(row)) for row in rows]
    first, rest = (rows[0], rows[1:]) if head else ([""] * wide, rows)
    return "\n".join([_row(first), "|" + " --- |" * wide, *map(_row, rest)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
