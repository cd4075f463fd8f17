"""Dates of HTTP in their three forms, and what a Retry-After header asks for."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

LONGEST_WAIT_SECONDS = 3600.0

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_FORMS = (
    re.compile(rf"[A-Z][a-z]{{2}}, (?P<day>\d\d) (?P<month>[A-Z][a-z]{{2}}) (?P<year>\d{{4}}) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]{{5,8}}, (?P<day>\d\d)-(?P<month>[A-Z][a-z]{{2}})-(?P<year>\d\d) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]{{2}} (?P<month>[A-Z][a-z]{{2}}) (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})"),
)


def parse_http_date(value: str, now: datetime) -> datetime | None:
    """The moment an HTTP date names, in any of its three forms; None for anything else."""
    return _parsed(value, now.year)


def is_past(value: str, now: datetime) -> bool:
    """Whether an HTTP date is well-formed and not ahead of `now`."""
    moment = _parsed(value, now.year)
    return moment is not None and moment <= now


@lru_cache(
    maxsize=4096
)  # asked for every page of a refresh, and the pages of one deployment share their date
def _parsed(value: str, this_year: int) -> datetime | None:
    found = next(filter(None, (form.fullmatch(value.strip()) for form in _FORMS)), None)
    month = _MONTHS.get(found["month"]) if found else None
    if found is None or month is None:
        return None
    year = int(found["year"])
    if len(found["year"]) == 2:
        year = _full_year(year, this_year)
    second = min(int(found["second"]), 59)  # a leap second is a valid date that datetime cannot hold
    try:
        return datetime(
            year, month, int(found["day"]), int(found["hour"]), int(found["minute"]), second, tzinfo=UTC
        )
    except ValueError:
        return None


def _full_year(short: int, this_year: int) -> int:
    """RFC 9110: a two-digit year that seems over 50 years ahead means the most recent past one."""
    year = this_year - this_year % 100 + short
    return year - 100 if year > this_year + 50 else year


def parse_retry_after(
    value: str | None, now: datetime, longest: float = LONGEST_WAIT_SECONDS
) -> float | None:
    """Seconds a Retry-After header asks for, never more than `longest`; None when it says nothing usable."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return longest if len(text) > 9 else min(float(text), longest)
    moment = parse_http_date(text, now)
    if moment is None:
        return None
    wait = max(moment - now, timedelta(0))
    return min(wait.total_seconds(), longest)


def time_of(mtime_ns: int | None) -> datetime | None:
    """Return the moment of a modification time in nanoseconds; None where there is none."""
    if mtime_ns is None:
        return None
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=mtime_ns // 1_000)
    except OverflowError:
        return None


def http_date_of(mtime_ns: int | None) -> str | None:
    """Return a modification time in nanoseconds as an HTTP date."""
    moment = time_of(mtime_ns)
    if moment is None:
        return None
    month = next(name for name, number in _MONTHS.items() if number == moment.month)
    return f"{_DAYS[moment.weekday()]}, {moment:%d} {month} {moment.year:04} {moment:%H:%M:%S} GMT"
