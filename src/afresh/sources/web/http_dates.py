"""Parse and format HTTP dates and Retry-After headers."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

MAX_WAIT_SECONDS = 3600.0

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_FORMS = (
    re.compile(rf"[A-Z][a-z]{{2}}, (?P<day>\d\d) (?P<month>[A-Z][a-z]{{2}}) (?P<year>\d{{4}}) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]{{5,8}}, (?P<day>\d\d)-(?P<month>[A-Z][a-z]{{2}})-(?P<year>\d\d) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]{{2}} (?P<month>[A-Z][a-z]{{2}}) (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})"),
)


def parse_http_date(value: str, now: datetime) -> datetime | None:
    return _parsed(value, now.year)


def is_past(value: str, now: datetime) -> bool:
    moment = _parsed(value, now.year)
    return moment is not None and moment <= now


@lru_cache(maxsize=4096)  # a run parses a date per page, and pages deployed together have the same one
def _parsed(value: str, this_year: int) -> datetime | None:
    found = next(filter(None, (form.fullmatch(value.strip()) for form in _FORMS)), None)
    if found is None or found["month"] not in _MONTHS:
        return None
    month = _MONTHS.index(found["month"]) + 1
    year = int(found["year"])
    if len(found["year"]) == 2:  # RFC 9110: a date that seems over 50 years ahead means the last century
        year += this_year - this_year % 100
        year -= 100 if year > this_year + 50 else 0
    second = min(int(found["second"]), 59)  # a leap second is valid, but datetime cannot hold it
    try:
        return datetime(year, month, int(found["day"]), int(found["hour"]), int(found["minute"]), second, tzinfo=UTC)
    except ValueError:
        return None


def parse_retry_after(value: str | None, now: datetime, max_seconds: float = MAX_WAIT_SECONDS) -> float | None:
    """Return the wait that a Retry-After header asks for, at most `max_seconds`; None if it is missing or invalid."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return max_seconds if len(text) > 9 else min(float(text), max_seconds)
    moment = parse_http_date(text, now)
    if moment is None:
        return None
    wait = max(moment - now, timedelta(0))
    return min(wait.total_seconds(), max_seconds)


def time_of(mtime_ns: int | None) -> datetime | None:
    if mtime_ns is None:
        return None
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=mtime_ns // 1_000)
    except OverflowError:
        return None


def http_date_of(mtime_ns: int | None) -> str | None:
    from email.utils import format_datetime

    moment = time_of(mtime_ns)
    return None if moment is None else format_datetime(moment, usegmt=True)
