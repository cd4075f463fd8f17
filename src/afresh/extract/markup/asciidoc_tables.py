"""The tables of AsciiDoc as rows of cells."""

import re
from collections.abc import Sequence

from afresh.extract.markup.rst_tables import MOST_COLUMNS, Rows, csv_rows

_CELL = re.compile(
    r"(?:(?<=\s)|^)(?P<spec>(?:\d+(?:\.\d+)?[+*]|\.\d+\+)?[<^>]?(?:\.[<^>])?[a-z]?)\||(?<!\\)\|"
)
_TIMES = re.compile(r"(\d+)\*")


def table_rows(lines: Sequence[str], attributes: str, mark: str) -> tuple[Rows, bool]:
    """The rows of a table between its borders, and whether the first is its head."""
    told = "header" in attributes and "noheader" not in attributes
    if mark == "," or "format=csv" in attributes.replace('"', ""):
        return csv_rows("\n".join(lines)), told
    cells, first = _cells(lines)
    wide = min(_columns(attributes) or first or 1, MOST_COLUMNS)
    rows = [cells[at : at + wide] for at in range(0, len(cells), wide)]
    return rows, told or (first == wide > 0 and _is_head(lines) and "noheader" not in attributes)


def _cells(lines: Sequence[str]) -> tuple[list[str], int]:
    """All cells in their order, and how many stand on the first line."""
    cells: list[str] = []
    first = 0
    for line in lines:
        parts = _split(line)
        if cells and parts[0].strip():
            cells[-1] = f"{cells[-1]} {parts[0].strip()}".strip()
        cells += [part.strip() for part in parts[1:]]
        first = first or len(cells)
    return cells, first


def _split(line: str) -> list[str]:
    parts, at = [], 0
    for found in _CELL.finditer(line):
        parts.append(line[at : found.start()].replace("\\|", "|"))
        at = found.end()
    return [*parts, line[at:].replace("\\|", "|")]


def _columns(attributes: str) -> int:
    """How many columns the attributes name: `cols="1,2"`, `cols="3*"`, `cols=2*,1`."""
    found = re.search(r"cols=(?:\"([^\"]*)\"|'([^']*)'|([^,\]]*))", attributes)
    if found is None:
        return 0
    columns = 0
    for part in re.split("[,;]", found[1] or found[2] or found[3] or ""):
        times = _TIMES.match(part.strip())
        columns += int(times[1][:3]) if times else 1
    return columns


def _is_head(lines: Sequence[str]) -> bool:
    """Whether a blank line follows the first one: that makes it a head."""
    return len(lines) > 1 and bool(lines[0].strip()) and not lines[1].strip()
