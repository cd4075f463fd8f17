"""Convert between the files and links of the digest in the store and their records in the cache file."""

from datetime import datetime
from typing import Any

from afresh.dataclass import dataclass, replace
from afresh.digest.cache import NOTHING_READ, FetchStatus, FileRecord, Record, UrlRecord
from afresh.model.fetch import Outcome

FILES, LINKS = "kb/files", "kb/links"  # names of the digest's two sources
_STATUS = {each: FetchStatus(each) for each in (Outcome.SUCCESS, Outcome.NOT_MODIFIED, Outcome.TIMEOUT)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestUpdate:
    """What one check changes in the record of a file or link of the knowledge base; None: the field is unchanged."""

    text_hash: str | None = None
    summary: str | None = None
    indexed_at: datetime | None = None
    fetched_at: datetime | None = None
    status: FetchStatus | None = None
    asked_model: bool = False  # the summary was made by a model


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestPage:
    """The stored record of a file or link of the knowledge base."""

    url: str
    depth: int = 0
    size: int | None = None
    mtime_ns: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    failures: int = 0
    next_at: datetime | None = None
    text_hash: str | None = None
    summary: str | None = None
    indexed_at: datetime | None = None
    fetched_at: datetime | None = None
    status: FetchStatus | None = None


def status_of(outcome: Outcome, *, refused: bool) -> FetchStatus:
    return FetchStatus.REFUSED if refused else _STATUS.get(outcome, FetchStatus.ERROR)


def is_dead(page: DigestPage) -> bool:
    """Return whether the last request for a link failed; a refusal does not count, because the page exists."""
    return page.failures > 0 and page.status is not FetchStatus.REFUSED


def file_record(page: DigestPage, path: str) -> FileRecord | None:
    """Return the cache record of a file; None if it was never read."""
    if page.text_hash is None or page.size is None or page.mtime_ns is None or page.indexed_at is None:
        return None
    return FileRecord(
        rel_path=path,
        size_bytes=page.size,
        mtime_ns=page.mtime_ns,
        content_hash=page.text_hash,
        summary_text=page.summary or "",
        last_indexed_at=page.indexed_at,
    )


def url_record(page: DigestPage, name: str, now: datetime) -> UrlRecord:
    return UrlRecord(
        url=name,
        content_hash=page.text_hash or NOTHING_READ,
        summary_text=page.summary or "",
        last_indexed_at=page.indexed_at,
        last_fetched_at=page.fetched_at,
        etag=page.etag,
        last_modified=page.last_modified,
        fetch_status=_in_cache(page.status) or FetchStatus.ERROR,
        consecutive_failures=page.failures,
        next_check_at=page.next_at or now,
    )


def page_of(record: Record, url: str) -> DigestPage:
    if isinstance(record, FileRecord):
        return DigestPage(
            url=url,
            depth=record.rel_path.count("/"),
            size=record.size_bytes,
            mtime_ns=record.mtime_ns,
            text_hash=record.content_hash,  # also for empty files
            summary=record.summary_text,
            indexed_at=record.last_indexed_at,
        )
    read = record.content_hash != NOTHING_READ or bool(record.summary_text)
    return DigestPage(
        url=url,
        text_hash=record.content_hash if read else None,
        summary=record.summary_text if read else None,
        etag=record.etag,
        last_modified=record.last_modified,
        failures=record.consecutive_failures,
        next_at=record.next_check_at,
        indexed_at=record.last_indexed_at,
        fetched_at=record.last_fetched_at,
        status=record.fetch_status if read or record.consecutive_failures else None,
    )


def as_cached(page: DigestPage, *, is_file: bool) -> DigestPage:
    """Clear the fields that the cache does not store, to compare the page with one from the cache."""
    if is_file:
        none: Any = dict.fromkeys(("next_at", "fetched_at", "status", "etag", "last_modified"))
        return replace(page, failures=0, **none)
    return replace(page, size=None, mtime_ns=None, depth=0, status=_in_cache(page.status))


def _in_cache(status: FetchStatus | None) -> FetchStatus | None:
    return FetchStatus.ERROR if status is FetchStatus.REFUSED else status


KINDS = {FILES: "folder", LINKS: "links"}
