"""HTTP dates and Retry-After (F75), by the rows of standards/retry_after.jsonl."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.fakes.servers import answer, fetching, serving

from afresh.model.fetch import Request
from afresh.sources.web.http_dates import MAX_WAIT_SECONDS, is_past, parse_http_date, parse_retry_after

NOW = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", NOW),
        ("Sunday, 06-Nov-94 08:49:37 GMT", NOW),
        ("Sun Nov  6 08:49:37 1994", NOW),
        ("Saturday, 06-Nov-60 08:49:37 GMT", datetime(1960, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("Sun, 31 Dec 1995 23:59:60 GMT", datetime(1995, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("Sun, 31 Feb 1995 23:59:00 GMT", None),
        ("Sun, 06 Nvm 1994 08:49:37 GMT", None),
        ("1994-11-06T08:49:37Z", None),
        ("0", None),
        ("", None),
    ],
)
def test_the_three_forms_of_a_date(text: str, moment: datetime | None) -> None:
    assert parse_http_date(text, NOW) == moment


async def test_F75_every_row_of_retry_after(shared: Path) -> None:
    rows = [json.loads(row) for row in (shared / "data/standards/retry_after.jsonl").read_text().splitlines()]
    assert len(rows) == 17
    async with serving() as wire, fetching(clock=lambda: NOW) as fetcher:
        for row in rows:
            assert parse_http_date(row["now"], NOW) == NOW
            named = {} if row["retry_after"] is None else {"retry_after": row["retry_after"]}
            wire.routes["/"] = answer(row["status"], location="/b", **named)
            seen = await fetcher.fetch(Request(url=wire.url()))
            found = getattr(seen, "retry_after", None)
            expected = MAX_WAIT_SECONDS if row["expect_delay_s"] == "cap" else row["expect_delay_s"]
            assert found in ((120, None) if expected == "first_or_ignore" else (expected,)), row


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("9" * 5000, 3600.0),
    ],
)
def test_F75_retry_after(text: str, seconds: float | None) -> None:
    assert parse_retry_after(text, NOW) == seconds


@pytest.mark.parametrize(
    ("text", "past"),
    [
        ("Sat, 29 Oct 1993 19:43:31 GMT", True),
        ("Sun, 06 Nov 1994 08:49:37 GMT", True),
        ("Sun, 06 Nov 1994 08:49:38 GMT", False),
        ("Fri, 31 Dec 2099 00:00:00 GMT", False),
        ("Sunday, 06-Nov-94 08:49:37 GMT", True),
        ("2001-01-01", False),
    ],
)
def test_only_a_date_that_is_not_ahead_of_us_is_past(text: str, past: bool) -> None:
    assert is_past(text, NOW) is past
