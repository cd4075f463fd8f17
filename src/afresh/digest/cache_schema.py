"""The cache of the knowledge base read back: exactly its schema, or an error that says where it differs."""

import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import NoReturn, TypeVar

from afresh.digest.cache import (
    CACHE_STATUSES,
    NEVER,
    NOTHING_READ,
    SCHEMA_VERSION,
    Cache,
    FetchStatus,
    FileRecord,
    Record,
    UrlRecord,
)
from afresh.errors import KbError
from afresh.text.redact import one_line

REPAIR = "Repair it, restore a copy, or move it away and it is written anew"
UPDATE = "Update afresh, or name another file in kb.index_cache_path"
_TOP = frozenset({"schema_version", "generated_at", "sources"})
_COMMON = frozenset({"source_type", "content_hash", "summary_text", "last_indexed_at"})
_ABOUT = {
    "file": frozenset({"rel_path", "size_bytes", "mtime_ns"}),
    "url": frozenset(
        {"url", "last_fetched_at", "etag", "last_modified"}
        | {"fetch_status", "consecutive_failures", "next_check_at"}
    ),
}
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[tT ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[zZ]|[+-]00:00)", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_NAME = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")  # the other surrogates are bytes of a name on disk
_YEARS = range(1970, 9999)  # what databases can hold, and reckon with
_LARGEST = 2**63 - 1
_MOST_FAILURES = 1_000_000_000  # one more can still be counted
_SHOWN = 60  # characters of a value that an error quotes
T = TypeVar("T")
Fields = dict[str, object]


class _Wrong(ValueError):
    """Something is not as the schema says."""


class _Newer(_Wrong):
    """The file follows a schema of a later time."""


def parse_cache(data: bytes, path: str) -> Cache:
    """The cache that a file holds; whatever is not exactly the schema is a KbError that names the path."""
    try:
        return _cache(_json(data))
    except _Wrong as wrong:
        advice = UPDATE if isinstance(wrong, _Newer) else REPAIR
        raise KbError(f"{path} cannot be used as the cache: {one_line(str(wrong))}. {advice}") from None


# ---- JSON, strictly


def _json(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise _Wrong(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _Wrong(f"line {error.lineno} is not JSON ({error.msg})") from None
    except RecursionError:
        raise _Wrong("it is nested too deeply") from None
    except _Wrong:
        raise
    except ValueError:  # Python reads no whole number of thousands of digits
        raise _Wrong("it holds a number that is too long") from None


def _once(pairs: list[tuple[str, object]]) -> Fields:
    held = dict(pairs)
    if len(held) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Wrong(f"{_shown(twice)} stands twice in one object")
    return held


def _no_number(word: str) -> NoReturn:
    raise _Wrong(f"{word} is no number")


# ---- the schema


def _cache(held: object) -> Cache:
    top = _fields(held)
    _check_version(top.get("schema_version"))
    _check_keys(top, _TOP)
    sources = _read(top, "sources", _fields)
    return Cache(
        generated_at=_read(top, "generated_at", _time),
        sources={name: _named(name, held) for name, held in sources.items()},
    )


def _check_version(version: object) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or version < SCHEMA_VERSION:
        raise _Wrong(f"schema_version: expected {SCHEMA_VERSION}, got {_shown(version)}")
    if version > SCHEMA_VERSION:
        raise _Newer(
            f"schema_version {_shown(version)} is of a newer afresh, this one knows {SCHEMA_VERSION}"
        )


def _named(name: str, held: object) -> Record:
    try:
        return _record(name, held)
    except _Wrong as wrong:
        raise _Wrong(f"sources[{_shown(name)}]: {wrong}") from None


def _record(name: str, held: object) -> Record:
    fields = _fields(held)
    kind = fields.get("source_type")
    if kind != "file" and kind != "url":
        raise _Wrong(f'source_type: expected "file" or "url", got {_shown(kind)}')
    _check_keys(fields, _COMMON | {kind})
    about = _read(fields, kind, _fields)
    _check_keys(about, _ABOUT[kind])
    record = _file(fields, about) if kind == "file" else _url(fields, about)
    if record.source_id != name:
        raise _Wrong(f"it is about {_shown(record.source_id)}")
    return record


def _file(fields: Fields, about: Fields) -> FileRecord:
    return FileRecord(
        rel_path=_read(about, "rel_path", _path),
        size_bytes=_read(about, "size_bytes", _count),
        mtime_ns=_read(about, "mtime_ns", _whole),
        content_hash=_read(fields, "content_hash", _hash),
        summary_text=_read(fields, "summary_text", _text),
        last_indexed_at=_read(fields, "last_indexed_at", _time),
    )


def _url(fields: Fields, about: Fields) -> UrlRecord:
    return UrlRecord(
        url=_read(about, "url", _address),
        content_hash=_read(fields, "content_hash", _hash),
        summary_text=_read(fields, "summary_text", _text),
        last_indexed_at=_read(fields, "last_indexed_at", _time_or_never),
        last_fetched_at=_read(about, "last_fetched_at", _time_or_never),
        etag=_read(about, "etag", _header),
        last_modified=_read(about, "last_modified", _header),
        fetch_status=_read(about, "fetch_status", _status),
        consecutive_failures=_read(about, "consecutive_failures", _failures),
        next_check_at=_read(about, "next_check_at", _time),
    )


def _read(held: Fields, key: str, check: Callable[[object], T]) -> T:
    try:
        return check(held[key])
    except _Wrong as wrong:
        raise _Wrong(f"{key}: {wrong}") from None


def _check_keys(held: Fields, keys: frozenset[str]) -> None:
    if held.keys() == keys:
        return
    missing = sorted(keys - held.keys())
    if missing:
        raise _Wrong(f"{missing[0]} is missing")
    raise _Wrong(f"{_shown(min(held.keys() - keys))} is no key of the schema")


# ---- values


def _fields(value: object) -> Fields:
    return value if isinstance(value, dict) else _refuse("an object", value)


def _text(value: object) -> str:
    return value if isinstance(value, str) and not _SURROGATE.search(value) else _refuse("text", value)


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST:
        return value
    return _refuse("a whole number", value)


def _count(value: object) -> int:
    number = _whole(value)
    return number if number >= 0 else _refuse("a whole number from 0", value)


def _failures(value: object) -> int:
    number = _count(value)
    return number if number <= _MOST_FAILURES else _refuse(f"at most {_MOST_FAILURES}", value)


def _hash(value: object) -> str:
    if value == "":  # how others may write that nothing was read yet
        return NOTHING_READ
    return value if isinstance(value, str) and _HASH.fullmatch(value) else _refuse("a SHA-256 in hex", value)


def _time(value: object) -> datetime:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    try:
        if found and int(found[1][:4]) in _YEARS:
            fraction = (found[3] or "")[:6].ljust(6, "0")
            return datetime.fromisoformat(f"{found[1]}T{found[2]}.{fraction}+00:00")
    except ValueError:
        pass
    return _refuse("a time in UTC such as 2026-03-01T12:00:00Z", value)


def _time_or_never(value: object) -> datetime | None:
    at = None if value is None else _time(value)
    return None if at == NEVER else at


def _header(value: object) -> str | None:
    if value is None or (isinstance(value, str) and not _CONTROL.search(value)):
        return None if value is None else _text(value)
    return _refuse("text without control characters, or null", value)


def _status(value: object) -> FetchStatus:
    found = CACHE_STATUSES.get(value) if isinstance(value, str) else None
    return found or _refuse(f"one of {', '.join(CACHE_STATUSES)}", value)


def _address(value: object) -> str:
    if isinstance(value, str) and _WEB.match(value) and not _CONTROL.search(value):
        return _text(value)
    return _refuse("an http or https address", value)


def _path(value: object) -> str:
    if isinstance(value, str) and value and not _NO_NAME.search(value):
        parts = value.split("/")
        if "" not in parts and "." not in parts and ".." not in parts:
            return value
    return _refuse("a path below kb.sources_dir", value)


def _refuse(expected: str, value: object) -> NoReturn:
    raise _Wrong(f"expected {expected}, got {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
