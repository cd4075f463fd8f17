"""Compare what a source lists with what is stored, so that only differences are fetched."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from afresh.crawl.decide import is_stale
from afresh.dataclass import dataclass
from afresh.model.fetch import NotModified, Validators
from afresh.model.records import ListedUrl, Page, PageId, Policy

SLACK = timedelta(hours=1)  # clocks differ, and caches serve old pages for a while
DAY_SLACK = timedelta(hours=36)  # midnight means any time of that day, in any time zone


class KnownPage(NamedTuple):
    """The stored values of a page that are compared with a listing."""

    id: PageId
    url: str
    depth: int
    validators: Validators
    sound: bool  # read without problems, with the current recipe
    checked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingDiff:
    asked: Sequence[ListedUrl]  # new, changed or of unknown state
    gone: Sequence[ListedUrl]  # stored, but no longer listed


def compare(
    listed: Iterable[ListedUrl], stored_pages: Iterable[KnownPage], walks: Callable[[str], bool], *, full: bool
) -> ListingDiff:
    """Return the pages to check; unless `full`, skip listed pages whose stored validators are the same.

    `walks` tells whether a page is found by links instead of the listing; such a page need not be listed.
    """
    known = {page.url: page for page in stored_pages}
    asked, names = [], set()
    for item in listed:
        names.add(item.url)
        page = known.get(item.url)
        if full or page is None or not (page.sound and item.validators and item.validators == page.validators):
            asked.append(item)
    gone = [ListedUrl(page.url, page.depth) for page in known.values() if page.url not in names and not walks(page.url)]
    return ListingDiff(asked=asked, gone=gone)


def is_dated_newer(modified: datetime | None, checked_at: datetime | None, now: datetime) -> bool:
    """Return whether, by the date that the site gives, a page changed after its last check."""
    return modified is not None and checked_at is not None and checked_at < modified <= now


def is_dated_unchanged(page: Page, modified: datetime | None, policy: Policy, now: datetime) -> bool:
    """Return whether to skip a page because the site dates its last change before the last successful check."""
    if not policy.trust_lastmod or modified is None or modified > now or page.checked_at is None:
        return False
    held = page.content_hash is not None and page.moved_to is None and page.recipe == policy.recipe
    well = not page.failures and not page.gone_count and page.doubt is None
    if not held or not well or is_stale(page, policy, now):
        return False
    slack = DAY_SLACK if modified.timetz().replace(tzinfo=None) == time() else SLACK
    return modified + slack <= page.checked_at


def not_requested(modified: datetime) -> NotModified:
    """Return the result for a page that is not requested because its last change is dated before its last check."""
    reason = f"not requested: last changed {modified.astimezone(UTC):%Y-%m-%d %H:%M} UTC (crawl.trust_lastmod)"
    return NotModified(status_code=None, skip_reason=reason)
