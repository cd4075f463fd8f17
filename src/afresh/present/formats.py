"""Write records as JSON, and as CSV that is safe to open in a spreadsheet."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from math import isfinite
from typing import TextIO

from afresh.dataclass import fields, is_dataclass
from afresh.model.reports import SearchHit
from afresh.present.wording import clean, whole_text

# control characters that JSON allows, and marks that change the text direction
UNSEEN = re.compile(r"[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
MARKS = str.maketrans("", "", "\x02\x03")  # these mark matched words in SearchHit.text
_NAMES: dict[type, tuple[str, ...]] = {}  # field names by record type


def plain(value: object) -> object:
    kind = type(value)
    if kind is str:  # the most frequent case
        return whole_text(str(value))
    if kind not in _NAMES:
        _NAMES[kind] = tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()
    if names := _NAMES[kind]:
        items = {name: plain(getattr(value, name)) for name in names}
        if isinstance(value, SearchHit):
            items["text"] = whole_text(value.text.translate(MARKS))
        return items
    match value:
        case None | bool() | int():
            return value
        case Enum():
            return plain(value.value)
        case str():
            return whole_text(value)
        case float():
            return value if isfinite(value) else None
        case datetime():
            return moment(value)
        case Mapping():
            return {whole_text(str(key)): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
    return whole_text(str(value))


def moment(value: datetime) -> str:
    if value.tzinfo is not UTC:  # rare
        value = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return value.isoformat().replace("+00:00", "Z")


def write(value: object, file: TextIO) -> None:
    """Write a value as one JSON document, escaped for the encoding of the file; write a list item by item."""
    if isinstance(value, list | Iterator):
        before = "[\n  "
        for item in value:
            file.write(before + _document(item, file).replace("\n", "\n  "))
            before = ",\n  "
        file.write("[]\n" if before.startswith("[") else "\n]\n")
    else:
        file.write(_document(value, file) + "\n")
    file.flush()


def write_line(value: object, file: TextIO) -> None:
    file.write(_document(value, file, indent=None) + "\n")
    file.flush()


def _document(value: object, file: TextIO, indent: int | None = 2) -> str:
    is_utf8 = (file.encoding or "").lower().replace("-", "") in {"utf8", ""}
    text = json.dumps(plain(value), indent=indent, ensure_ascii=not is_utf8)
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# First characters that make a spreadsheet read a text as a formula, in normal and full width.
FORMULA = tuple("=+-@\t\r＝＋－＠")


def write_csv(rows: Iterable[object], kind: type, file: TextIO) -> None:
    """Write a header and then each row as it comes; the column names are those of `--json`."""
    names = [each.name for each in fields(kind)]
    lines = csv.writer(file)
    lines.writerow(names)
    for row in rows:
        record = plain(row)
        assert isinstance(record, dict)  # noqa: S101 - a dataclass always becomes one
        lines.writerow([csv_cell(record[name]) for name in names])
    file.flush()


def csv_cell(value: object) -> str:
    """Return the text of a cell: lists and mappings as JSON, formulas neutralised."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case str():
            text = clean(value.replace("\r\n", "\n").replace("\r", "\n"), lines=True)
            return f"'{text}" if text.lstrip().startswith(FORMULA) else text
    return json.dumps(value, ensure_ascii=False)
