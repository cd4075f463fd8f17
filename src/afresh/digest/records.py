"""Pages of the knowledge base as the store knows them, and their records in the cache."""

from dataclasses import dataclass, replace
from datetime import datetime

from afresh.digest.cache import NOTHING_READ, FetchStatus, FileRecord, Record, UrlRecord
from afresh.model.fetch import Outcome

FILES, LINKS = "kb/files", "kb/links"  # the names of the two sources: together the library `kb`
_STATUS = {
    Outcome.SUCCESS: FetchStatus.SUCCESS,
    Outcome.NOT_MODIFIED: FetchStatus.NOT_MODIFIED,
    Outcome.TIMEOUT: FetchStatus.TIMEOUT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one look adds to the record of a page; None leaves a field as it is."""

    text_hash: str | None = None
    summary: str | None = None
    indexed_at: datetime | None = None
    fetched_at: datetime | None = None
    status: FetchStatus | None = None
    asked_model: bool = False  # the summary was paid for


@dataclass(frozen=True, slots=True, kw_only=True)
class KbPage:
    """What is known of a file or a link, whichever table holds it."""

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
    """How a look ended."""
    return FetchStatus.REFUSED if refused else _STATUS.get(outcome, FetchStatus.ERROR)


def is_dead(page: KbPage) -> bool:
    """Whether the last look at a link failed; one that refuses us is there."""
    return page.failures > 0 and page.status is not FetchStatus.REFUSED


def file_record(page: KbPage, path: str) -> FileRecord | None:
    """The record of a file; None for one that was never read well."""
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


def url_record(page: KbPage, name: str, now: datetime) -> UrlRecord:
    """The record of a link, also of one that nobody has asked for yet."""
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


def page_of(record: Record, url: str) -> KbPage:
    """What a record of the cache says of the page at an address."""
    if isinstance(record, FileRecord):
        return KbPage(
            url=url,
            depth=record.rel_path.count("/"),
            size=record.size_bytes,
            mtime_ns=record.mtime_ns,
            text_hash=record.content_hash,  # an empty file was read as well
            summary=record.summary_text,
            indexed_at=record.last_indexed_at,
        )
    read = record.content_hash != NOTHING_READ or bool(record.summary_text)
    return KbPage(
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


def forgotten(page: KbPage, now: datetime | None) -> KbPage:
    """A page that the cache does not know: new, and a link due now."""
    return KbPage(url=page.url, depth=page.depth, next_at=now)


def as_cached(page: KbPage, *, is_file: bool) -> KbPage:
    """The page without what the cache does not tell of its kind, to be compared with what it says."""
    if is_file:
        return replace(
            page, failures=0, next_at=None, fetched_at=None, status=None, etag=None, last_modified=None
        )
    return replace(page, size=None, mtime_ns=None, depth=0, status=_in_cache(page.status))


def _in_cache(status: FetchStatus | None) -> FetchStatus | None:
    return FetchStatus.ERROR if status is FetchStatus.REFUSED else status
