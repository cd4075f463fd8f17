"""Lists as CSV (RFC 4180): one row per record, safe to open in a spreadsheet."""

import csv
import json
from collections.abc import Iterable
from dataclasses import fields
from typing import TextIO

from afresh.present.as_json import plain
from afresh.present.safe_text import clean

# What makes a spreadsheet take a text for a formula, in plain and in full width.
FORMULA = tuple("=+-@\t\r＝＋－＠")


def write(rows: Iterable[object], kind: type, file: TextIO) -> None:
    """Writes a heading and then each row as it comes; the names are those of `--json`."""
    names = [each.name for each in fields(kind)]
    lines = csv.writer(file)
    lines.writerow(names)
    for row in rows:
        record = plain(row)
        assert isinstance(record, dict)  # noqa: S101 - a dataclass always becomes one
        lines.writerow([cell(record[name]) for name in names])
    file.flush()


def cell(value: object) -> str:
    """A value as it stands in a cell: lists and mappings as JSON, a formula as mere text."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case str():
            shown = clean(value.replace("\r\n", "\n").replace("\r", "\n"), lines=True)
            return f"'{shown}" if shown.lstrip().startswith(FORMULA) else shown
    return json.dumps(value, ensure_ascii=False)
