"""Write and parse the cache file of `init-kb`, which has a JSON record of each file and link; write `index.txt`."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn

from afresh.dataclass import dataclass
from afresh.errors import KbError
from afresh.text.redact import one_line

SCHEMA_VERSION = 1
NOTHING_READ = hashlib.sha256(b"").hexdigest()  # hash of a file or link that was never read
NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # means "not yet" in the file, in which times are never null
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
REPAIR = "Repair the file, restore a backup, or move it away so that a new one is written"
UPDATE = "Update afresh, or name another file in kb.index_cache_path"
_MAX_VALUE_CHARS = 60  # characters of a value in an error message


class FetchStatus(StrEnum):
    SUCCESS = "success"
    NOT_MODIFIED = "not_modified"
    TIMEOUT = "timeout"
    ERROR = "error"
    REFUSED = "refused"  # only in the store; the cache has `error` for it


STATUSES = {status.value: status for status in FetchStatus}
CACHE_STATUSES = {name: status for name, status in STATUSES.items() if status is not FetchStatus.REFUSED}


class SeenCache(NamedTuple):
    """Path and hash of the cache file that was last imported into the store."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    rel_path: str
    size_bytes: int
    mtime_ns: int
    content_hash: str
    summary_text: str
    last_indexed_at: datetime  # when the content with this hash and summary was read

    @property
    def source_id(self) -> str:
        return self.rel_path


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRecord:
    url: str
    content_hash: str
    summary_text: str
    last_indexed_at: datetime | None  # when the content with this hash and summary was read; None: never
    last_fetched_at: datetime | None  # when a request last succeeded (200 or 304); None: never
    etag: str | None
    last_modified: str | None
    fetch_status: FetchStatus
    consecutive_failures: int
    next_check_at: datetime

    @property
    def source_id(self) -> str:
        return self.url


Record = FileRecord | UrlRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    generated_at: datetime
    sources: Mapping[str, Record]

    def with_sources(self, sources: Mapping[str, Record], now: datetime) -> "Cache":
        """Return a cache with these records; this one itself if they are the same."""
        return self if self.sources == sources else Cache(generated_at=now, sources=sources)


def format_cache(cache: Cache) -> str:
    """Return the text of the cache file: sorted, with one line per record."""
    head = f'{{\n  "schema_version": {SCHEMA_VERSION},\n  "generated_at": "{rfc3339(cache.generated_at)}",\n'
    lines = [f"    {_ENCODE(name)}: {_ENCODE(_plain(cache.sources[name]))}" for name in sorted(cache.sources)]
    body = "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"
    # File names that are not UTF-8 contain lone surrogates, which JSON can only represent as escapes.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", f'{head}  "sources": {body}\n}}\n')


def rfc3339(at: datetime | None) -> str:
    """Format a time in UTC; None becomes the beginning of 1970."""
    return (at or NEVER).astimezone(UTC).isoformat().replace("+00:00", "Z")


def _plain(record: Record) -> dict[str, object]:
    kind = "file" if isinstance(record, FileRecord) else "url"
    return {"source_type": kind, **_written(record, _FORMS), kind: _written(record, _ABOUT[kind])}


def _written(record: Record, keys: Iterable[str]) -> dict[str, object]:
    values = {key: getattr(record, key) for key in keys}
    return {key: rfc3339(value) if key.endswith("_at") else value for key, value in values.items()}


# ---- reading: a file that does not match the schema exactly is an error


class _Wrong(ValueError):
    """A value does not match the schema."""


class _Newer(_Wrong):
    """The schema version is newer than this program."""


def parse_cache(data: bytes, path: str) -> Cache:
    """Parse a cache file; raise KbError with its path if it does not match the schema."""
    try:
        return _cache(_json(data))
    except _Wrong as wrong:
        advice = UPDATE if isinstance(wrong, _Newer) else REPAIR
        raise KbError(f"{path} cannot be used as the cache: {one_line(str(wrong))}. {advice}") from None


def _json(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise _Wrong(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _Wrong(f"line {error.lineno} is not JSON ({error.msg})") from None
    except RecursionError:
        raise _Wrong("the JSON is nested too deeply") from None
    except _Wrong:
        raise
    except ValueError:  # Python refuses integers with thousands of digits
        raise _Wrong("a number is too long") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    held = dict(pairs)
    if len(held) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Wrong(f"{_describe(twice)} occurs twice in one object")
    return held


def _no_number(word: str) -> NoReturn:
    raise _Wrong(f"{word} is not a valid number")


def _cache(held: object) -> Cache:
    if not isinstance(held, dict):
        raise _Wrong(f"expected an object, got {_describe(held)}")
    version = held.get("schema_version")
    if type(version) is not int or version < SCHEMA_VERSION:
        raise _Wrong(f"schema_version: expected {SCHEMA_VERSION}, got {_describe(version)}")
    if version > SCHEMA_VERSION:
        known = f"this one supports {SCHEMA_VERSION}"
        raise _Newer(f"schema_version {_describe(version)} is from a newer afresh, {known}")
    forms = {"generated_at": _TIME, "sources": _OBJECT}
    _check_keys(held, {"schema_version", *forms})
    top, sources = _read(held, forms), {}
    for name, each in top["sources"].items():
        try:
            sources[name] = _record(name, each)
        except _Wrong as wrong:
            raise _Wrong(f"sources[{_describe(name)}]: {wrong}") from None
    return Cache(generated_at=top["generated_at"], sources=sources)


def _record(name: str, held: object) -> Record:
    if not isinstance(held, dict):
        raise _Wrong(f"expected an object, got {_describe(held)}")
    kind = held.get("source_type")
    if kind != "file" and kind != "url":
        raise _Wrong(f'source_type: expected "file" or "url", got {_describe(kind)}')
    _check_keys(held, {"source_type", kind, *_FORMS})
    about = _read(held, {kind: _OBJECT})[kind]
    _check_keys(about, _ABOUT[kind].keys())
    if kind == "file":
        record: Record = FileRecord(**_read(held, _FORMS), **_read(about, _ABOUT[kind]))
    else:
        forms = {**_FORMS, "last_indexed_at": _TIME_OR_NEVER}
        record = UrlRecord(**_read(held, forms), **_read(about, _ABOUT[kind]))
    if record.source_id != name:
        raise _Wrong(f"the record is for another source, {_describe(record.source_id)}")
    return record


def _check_keys(held: Mapping[str, object], keys: AbstractSet[str]) -> None:
    if missing := sorted(keys - held.keys()):
        raise _Wrong(f"{missing[0]} is missing")
    if odd := sorted(held.keys() - keys):
        raise _Wrong(f"unknown key {_describe(odd[0])}")


def _read(held: Mapping[str, object], forms: "Mapping[str, _Form]") -> dict[str, Any]:
    values = {}
    for key, form in forms.items():
        try:
            values[key] = form.read(held[key])
        except (ValueError, TypeError, KeyError):
            raise _Wrong(f"{key}: expected {form.expected}, got {_describe(held[key])}") from None
    return values


def _describe(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[: _MAX_VALUE_CHARS - 1]}…"


class _Form(NamedTuple):
    expected: str
    read: Callable[[Any], object]


def _valid(is_valid: Callable[[Any], object]) -> Callable[[Any], Any]:
    """Return a parser that returns valid values unchanged and raises ValueError for others."""

    def read(value: object) -> object:
        if not is_valid(value):
            raise ValueError
        return value

    return read


def _text(pattern: str, flags: int = 0) -> Callable[[Any], Any]:
    return _valid(re.compile(pattern, flags).fullmatch)


def _number(low: int, high: int) -> Callable[[Any], Any]:
    return _valid(lambda value: type(value) is int and low <= value <= high)


def _time(value: str) -> datetime:
    found = _RFC3339.fullmatch(value)
    if found is None or int(found[1][:4]) not in _YEARS:
        raise ValueError
    return datetime.fromisoformat(f"{found[1]}T{found[2]}.{(found[3] or '')[:6].ljust(6, '0')}+00:00")


def _time_or_never(value: str | None) -> datetime | None:
    at = None if value is None else _time(value)
    return None if at == NEVER else at


def _is_path(value: str) -> bool:
    return not _NO_NAME.search(value) and {"", ".", ".."}.isdisjoint(value.split("/"))


_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[tT ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[zZ]|[+-]00:00)", re.ASCII)
_NO_NAME = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")  # other surrogates represent bytes of a file name
_YEARS = range(1970, 9999)  # years that databases can store and compute with
_LARGEST = 2**63 - 1
_MOST_FAILURES = 1_000_000_000  # limited so that the number can be incremented
_LINE = "[^\x00-\x1f\x7f\ud800-\udfff]"
_OBJECT = _Form("an object", _valid(lambda value: isinstance(value, dict)))
_TIME = _Form("a time in UTC such as 2026-03-01T12:00:00Z", _time)
_TIME_OR_NEVER = _Form(_TIME.expected, _time_or_never)
_hash, _header = _text("[0-9a-f]{64}"), _text(f"{_LINE}*")
_HEADER = _Form("text without control characters, or null", lambda value: None if value is None else _header(value))
_FORMS = {
    # other programs may write an empty hash if the source was not read yet
    "content_hash": _Form("a SHA-256 in hex", lambda value: _hash(value) if value != "" else NOTHING_READ),
    "summary_text": _Form("text", _text("[^\ud800-\udfff]*")),
    "last_indexed_at": _TIME,
}
_ABOUT = {
    "file": {
        "rel_path": _Form("a path below kb.sources_dir", _valid(_is_path)),
        "size_bytes": _Form("a whole number from 0", _number(0, _LARGEST)),
        "mtime_ns": _Form("a whole number", _number(-_LARGEST, _LARGEST)),
    },
    "url": {
        "url": _Form("an http or https URL", _text(f"https?://(?!/){_LINE}+", re.IGNORECASE)),
        "last_fetched_at": _TIME_OR_NEVER,
        "etag": _HEADER,
        "last_modified": _HEADER,
        "fetch_status": _Form(f"one of {', '.join(CACHE_STATUSES)}", CACHE_STATUSES.__getitem__),
        "consecutive_failures": _Form(f"a whole number from 0, at most {_MOST_FAILURES}", _number(0, _MOST_FAILURES)),
        "next_check_at": _TIME,
    },
}

# ---- index.txt: for each source its id, its summary and a blank line

# Line breaks, terminal controls, direction marks, invisible characters and lone surrogates, but not the two
# joiners (200C, 200D), which are parts of words and emoji.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def index_text(records: Iterable[Record]) -> str:
    """Return the text of the index: files, then links, sorted by id."""
    ordered = sorted(records, key=lambda record: (not isinstance(record, FileRecord), record.source_id))
    entries = ((identifier_line(each.source_id), summary_lines(each.summary_text)) for each in ordered)
    return "".join("\n".join(filter(None, entry)) + "\n\n" for entry in entries)


def identifier_line(source_id: str) -> str:
    """Return the line with the id of a record, as a JSON string if it has unsafe characters."""
    plain = source_id == source_id.strip() and not source_id.startswith('"') and not _UNSAFE.search(source_id)
    return source_id if plain and source_id else json.dumps(source_id)


def summary_lines(summary: str) -> str:
    """Remove blank lines, trailing spaces and control characters."""
    lines = (_NO_TEXT.sub(_REPLACEMENT, line.replace("\t", " ")).rstrip() for line in summary.splitlines())
    return "\n".join(line for line in lines if line)
