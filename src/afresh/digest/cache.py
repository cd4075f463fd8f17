"""The cache of the knowledge base: what is known of every file and link, written as JSON."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

SCHEMA_VERSION = 1
NOTHING_READ = hashlib.sha256(b"").hexdigest()  # the hash of a source whose content was never read
NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # how the file, whose times are never null, writes "not yet"
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


class FetchStatus(StrEnum):
    """How the last request for a link ended."""

    SUCCESS = "success"
    NOT_MODIFIED = "not_modified"
    TIMEOUT = "timeout"
    ERROR = "error"
    REFUSED = "refused"  # in the store alone; the cache says error


STATUSES = {status.value: status for status in FetchStatus}
CACHE_STATUSES = {name: status for name, status in STATUSES.items() if status is not FetchStatus.REFUSED}


class SeenCache(NamedTuple):
    """The cache file that a store agrees with."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """What is known of a file below `kb.sources_dir`."""

    rel_path: str
    size_bytes: int
    mtime_ns: int
    content_hash: str
    summary_text: str
    last_indexed_at: datetime  # when the content behind hash and summary was last read

    @property
    def source_id(self) -> str:
        """What the file is called in cache and index."""
        return self.rel_path


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRecord:
    """What is known of a link in `kb.links_file_path`."""

    url: str
    content_hash: str
    summary_text: str
    last_indexed_at: datetime | None  # when the content behind hash and summary was last read; None: never
    last_fetched_at: datetime | None  # when a request was last answered (200 or 304); None: never
    etag: str | None
    last_modified: str | None
    fetch_status: FetchStatus
    consecutive_failures: int
    next_check_at: datetime

    @property
    def source_id(self) -> str:
        """What the link is called in cache and index."""
        return self.url

    @classmethod
    def added(cls, url: str, now: datetime) -> "UrlRecord":
        """A link that nobody has asked for yet: due at once, without a failure, without content."""
        return cls(
            url=url,
            content_hash=NOTHING_READ,
            summary_text="",
            last_indexed_at=None,
            last_fetched_at=None,
            etag=None,
            last_modified=None,
            fetch_status=FetchStatus.ERROR,  # of the four words the one that promises no content
            consecutive_failures=0,
            next_check_at=now,
        )


Record = FileRecord | UrlRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """All records, by source id."""

    generated_at: datetime
    sources: Mapping[str, Record]

    def with_sources(self, sources: Mapping[str, Record], now: datetime) -> "Cache":
        """The cache with other records; the very same one where nothing differs."""
        return self if self.sources == sources else replace(self, generated_at=now, sources=sources)


def format_cache(cache: Cache) -> str:
    """The text of the cache file, a line for each source; equal caches give equal texts."""
    head = f'{{\n  "schema_version": {SCHEMA_VERSION},\n  "generated_at": "{rfc3339(cache.generated_at)}",\n'
    lines = [f"    {_ENCODE(name)}: {_ENCODE(_plain(cache.sources[name]))}" for name in sorted(cache.sources)]
    body = "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"
    # A name that is not UTF-8 on disk holds lone surrogates, which JSON can only write as escapes.
    return _SURROGATE.sub(_escaped, f'{head}  "sources": {body}\n}}\n')


def rfc3339(at: datetime | None) -> str:
    """A time as RFC 3339 in UTC; the beginning of 1970 for one that never was."""
    return (at or NEVER).astimezone(UTC).isoformat().replace("+00:00", "Z")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _plain(record: Record) -> dict[str, object]:
    about = _about_file(record) if isinstance(record, FileRecord) else _about_url(record)
    source_type = "file" if isinstance(record, FileRecord) else "url"
    return {
        "source_type": source_type,
        "content_hash": record.content_hash,
        "summary_text": record.summary_text,
        "last_indexed_at": rfc3339(record.last_indexed_at),
        source_type: about,
    }


def _about_file(record: FileRecord) -> dict[str, object]:
    return {"rel_path": record.rel_path, "size_bytes": record.size_bytes, "mtime_ns": record.mtime_ns}


def _about_url(record: UrlRecord) -> dict[str, object]:
    return {
        "url": record.url,
        "last_fetched_at": rfc3339(record.last_fetched_at),
        "etag": record.etag,
        "last_modified": record.last_modified,
        "fetch_status": record.fetch_status.value,
        "consecutive_failures": record.consecutive_failures,
        "next_check_at": rfc3339(record.next_check_at),
    }
