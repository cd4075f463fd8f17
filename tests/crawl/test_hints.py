"""Dates that a site gives its pages: news is due at once, old dates count only where that was asked for."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from afresh.crawl.decide import decide
from afresh.crawl.listing_diff import is_dated_newer, is_dated_unchanged, not_requested
from afresh.model.fetch import Outcome
from afresh.model.records import ContentAction, Page, PageId, Policy, SourceId

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TRUSTING = Policy(recipe="r", trust_lastmod=True, reread_seconds=30 * 86_400)
PAGE = Page(
    id=PageId(1),
    source_id=SourceId(1),
    url="https://x.org/a",
    content_hash="h",
    recipe="r",
    checked_at=NOW - DAY,
    last_scraped=NOW - 3 * DAY,
)


@pytest.mark.parametrize(
    ("modified", "checked_at", "news"),
    [
        (NOW - HOUR, NOW - DAY, True),
        (NOW, NOW - DAY, True),
        (NOW - 2 * DAY, NOW - DAY, False),
        (NOW - DAY, NOW - DAY, False),
        (NOW + HOUR, NOW - DAY, False),  # a date that has not come would make the page due for ever
        (datetime(9999, 12, 31, tzinfo=UTC), NOW - DAY, False),
        (None, NOW - DAY, False),
        (NOW - HOUR, None, False),
    ],
)
def test_F76_news_is_what_is_newer_than_the_last_look_and_not_ahead_of_the_clock(
    modified: datetime | None, checked_at: datetime | None, news: bool
) -> None:
    assert is_dated_newer(modified, checked_at, NOW) is news


def test_a_page_that_did_not_change_since_the_last_look_is_unchanged() -> None:
    assert is_dated_unchanged(PAGE, NOW - 3 * DAY, TRUSTING, NOW)
    seen = not_requested(NOW - 3 * DAY)
    decision = decide(PAGE, seen, TRUSTING, NOW)
    assert (decision.outcome, decision.content, decision.page) == (Outcome.NOT_MODIFIED, ContentAction.KEEP, PAGE)
    assert decision.reason == ("not requested: last changed 2026-05-17 12:00 UTC (crawl.trust_lastmod)")


def test_F76_nothing_is_unchanged_unless_that_was_asked_for() -> None:
    assert not is_dated_unchanged(PAGE, NOW - 3 * DAY, replace(TRUSTING, trust_lastmod=False), NOW)


@pytest.mark.parametrize(
    "page",
    [
        replace(PAGE, content_hash=None),
        replace(PAGE, recipe="older"),
        replace(PAGE, moved_to="https://x.org/b"),
        replace(PAGE, failures=1),
        replace(PAGE, gone_count=1),
        replace(PAGE, doubt="an error page"),
        replace(PAGE, checked_at=None),
        replace(PAGE, last_scraped=NOW - 40 * DAY),
    ],
)
def test_F76_a_page_that_is_not_well_or_was_long_not_read_is_asked(page: Page) -> None:
    assert not is_dated_unchanged(page, NOW - 3 * DAY, TRUSTING, NOW)


@pytest.mark.parametrize(
    ("modified", "unchanged"),
    [
        (PAGE.checked_at, False),
        (NOW - DAY - HOUR, True),
        (NOW - DAY - HOUR / 2, False),  # clocks differ
        (datetime(2026, 5, 19, tzinfo=UTC), False),  # any time of the day of the look
        (datetime(2026, 5, 18, 0, 0, 1, tzinfo=UTC), True),
        (datetime(2026, 5, 18, tzinfo=UTC), True),  # the day ended everywhere just before the look
        (NOW + HOUR, False),
        (None, False),
    ],
)
def test_F76_a_date_counts_only_when_it_is_clearly_before_the_look(modified: datetime | None, unchanged: bool) -> None:
    assert is_dated_unchanged(PAGE, modified, TRUSTING, NOW) is unchanged
