"""Answers as one JSON document."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from math import isfinite
from typing import TextIO

from afresh.model.reports import Hit
from afresh.present.safe_text import whole_text

# control characters that JSON lets through, and marks that turn the direction of the text
UNSEEN = re.compile(r"[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
MARKS = str.maketrans("", "", "\x02\x03")  # what Hit.text puts around matched words
_NAMES: dict[type, tuple[str, ...]] = {}  # of the fields of each kind of record that was told


def plain(value: object) -> object:
    """The value in the types of JSON."""
    if type(value) is str:  # what most values are
        return whole_text(value)
    if names := _names_of(value):
        return _record(value, names)
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


def _names_of(value: object) -> tuple[str, ...]:
    """The fields of a record; none of anything else."""
    kind = type(value)
    if kind not in _NAMES:
        _NAMES[kind] = tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()
    return _NAMES[kind]


def _record(value: object, names: tuple[str, ...]) -> dict[str, object]:
    items = {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Hit):
        items["text"] = whole_text(value.text.translate(MARKS))
    return items


def moment(value: datetime) -> str:
    """RFC 3339 in UTC, with a Z."""
    if value.tzinfo is not UTC:  # nearly all are
        value = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return value.isoformat().replace("+00:00", "Z")


def write(value: object, file: TextIO) -> None:
    """Writes one document and a line end, in whatever encoding the file has; a list item by item."""
    if isinstance(value, list | Iterator):
        _write_items(value, file)
    else:
        file.write(_document(value, file) + "\n")
    file.flush()


def write_line(value: object, file: TextIO) -> None:
    """Writes one document on a line of its own, at once."""
    text = json.dumps(plain(value), ensure_ascii=not _is_utf8(file))
    file.write(UNSEEN.sub(_escaped, text) + "\n")
    file.flush()


def _write_items(items: Iterable[object], file: TextIO) -> None:
    before = "[\n  "
    for item in items:
        file.write(before + _document(item, file).replace("\n", "\n  "))
        before = ",\n  "
    file.write("[]\n" if before.startswith("[") else "\n]\n")


def _document(value: object, file: TextIO) -> str:
    text = json.dumps(plain(value), indent=2, ensure_ascii=not _is_utf8(file))
    return UNSEEN.sub(_escaped, text)


def _is_utf8(file: TextIO) -> bool:
    return (file.encoding or "").lower().replace("-", "") in {"utf8", ""}


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
