"""What the dates are worth that a site gives its own pages in sitemaps and feeds.

A date is a hint. News makes a page due at once; nothing else about when it is looked at changes, so a wrong
date costs a request and hides nothing. Only who says `crawl.trust_lastmod` has old dates believed, and then
for no longer than "not modified" is. A date ahead of the clock says nothing at all.
"""

from datetime import UTC, datetime, time, timedelta

from afresh.crawl.decide import is_stale
from afresh.model.fetch import NotModified
from afresh.model.records import Page, Policy

SLACK = timedelta(hours=1)  # clocks differ, and caches show the old page for a while
DAY_SLACK = timedelta(hours=36)  # midnight stands for any time of that day, in whatever zone


def is_news(modified: datetime | None, checked_at: datetime | None, now: datetime) -> bool:
    """Whether a page is due now because its site says that it changed after the last look."""
    if modified is None or checked_at is None or modified > now:
        return False
    return modified > checked_at


def is_settled(page: Page, modified: datetime | None, policy: Policy, now: datetime) -> bool:
    """Whether a page need not be asked: its site says that it did not change since the last good look."""
    if not policy.trust_lastmod or modified is None or modified > now or page.checked_at is None:
        return False
    held = page.content_hash is not None and page.moved_to is None and page.recipe == policy.recipe
    well = not page.failures and not page.gone_count and page.doubt is None
    if not held or not well or is_stale(page, policy, now):
        return False
    return modified + _slack(modified) <= page.checked_at


def unasked(modified: datetime) -> NotModified:
    """What is told of a settled page; it stays as checked when it was, for nobody looked."""
    said = f"{modified.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    reason = f"not asked: the site says it last changed {said} (crawl.trust_lastmod)"
    return NotModified(status_code=None, unasked=reason)


def _slack(modified: datetime) -> timedelta:
    return DAY_SLACK if modified.timetz().replace(tzinfo=None) == time() else SLACK
