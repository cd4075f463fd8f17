"""Cron expressions: what is valid, why others are not, and the next time in a zone (F89)."""

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.schedule.rules import ALIASES, Cron, CronError, parse_cron

BERLIN = ZoneInfo("Europe/Berlin")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_F89_every_row_of_the_standard(shared: Path) -> None:
    rows = [json.loads(line) for line in (shared / "data/standards/cron.jsonl").read_text().splitlines()]
    assert len(rows) >= 25
    for row in rows:
        try:
            parse_cron(row["expr"])
            valid = True
        except CronError:
            valid = False
        assert valid == row["valid"], row


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("60 * * * *", 'the minute field is wrong: "60"; minutes are 0 to 59'),
        ("0 24 * * *", 'the hour field is wrong: "24"; hours are 0 to 23'),
        ("* * 32 * *", 'the day-of-month field is wrong: "32"; days are 1 to 31'),
        ("* * * 13 *", "the month field is wrong"),
        ("* * * * 8", "the day-of-week field is wrong"),
        ("5-1 * * * *", 'the minute field is wrong: "5-1"'),
        ("* * * *", "it has 4 fields, not five"),
        ("", "it has 0 fields, not five"),
        ("@noon", "@noon is not one of @yearly"),
        (f"*/{'9' * 5000} * * * *", "longer than 200 characters"),
    ],
)
def test_F89_a_bad_expression_says_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(text)
    assert reason in str(caught.value)


@given(text=st.text(alphabet="0123456789*/,-#LW@ SUNJAdaily\x00١\n", max_size=40))
def test_F89_any_text_is_read_or_refused(text: str) -> None:
    try:
        cron = parse_cron(text)
    except CronError:
        return
    after = cron.next_after(utc("2026-03-04 12:00"))
    assert after is None or after > utc("2026-03-04 12:00")


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("30 4 * * *", "2026-03-04 12:00", "2026-03-05 03:30"),
        ("*/15 * * * *", "2026-03-04 12:00", "2026-03-04 12:15"),
        ("@weekly", "2026-03-04 12:00", "2026-03-07 23:00"),
        ("0 0 29 2 *", "2026-03-04 12:00", "2028-02-28 23:00"),
        # the clocks skip 02:00 to 03:00 on 29 March: at the end of the gap, once
        ("30 2 * * *", "2026-03-28 12:00", "2026-03-29 01:00"),
        ("30 2 * * *", "2026-03-29 01:00", "2026-03-30 00:30"),
        # they pass 02:00 to 03:00 twice on 25 October: the first time, once
        ("30 2 * * *", "2026-10-24 12:00", "2026-10-25 00:30"),
        ("30 2 * * *", "2026-10-25 00:30", "2026-10-26 01:30"),
    ],
)
def test_F89_the_next_time_in_a_zone(text: str, after: str, expected: str) -> None:
    assert parse_cron(text, BERLIN).next_after(utc(after)) == utc(expected)


def test_F89_a_day_that_never_comes_has_no_next_time() -> None:
    cron = parse_cron("0 0 30 2 *")
    assert not cron.fires
    assert cron.next_after(utc("2026-03-04 12:00")) is None


def test_F89_aliases_in_any_case() -> None:
    assert parse_cron(" @Daily ") == Cron("@daily")
    assert all(parse_cron(alias).next_after(utc("2026-03-04 12:00")) for alias in ALIASES)
