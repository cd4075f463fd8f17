"""Parse durations (`90s`, `15m`, `1h30m`, `2w`), and format numbers with nouns."""

import re
from datetime import timedelta

from afresh.errors import UsageError

MAX_DURATION = timedelta(days=36_500)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(?:[0-9]{1,9}[smhdw])+", re.IGNORECASE)
_PART = re.compile(r"(?<![0-9])([0-9]+)([smhdw])", re.IGNORECASE)


def read_duration(text: str) -> timedelta:
    typed = text.strip()
    if not _DURATION.fullmatch(typed):
        raise UsageError(f"expected a duration such as 90s, 15m, 1h, 7d or 2w, got {text[:40]!r}")
    seconds = sum(int(number) * _SECONDS[unit.lower()] for number, unit in _PART.findall(typed))
    if seconds > MAX_DURATION.total_seconds():
        raise UsageError(f"the duration {text[:40]!r} is longer than a hundred years")
    return timedelta(seconds=seconds)


def count(number: int, noun: str = "", plural: str = "") -> str:
    """Return a number with its noun, such as `1,169 pages` or `1 page`."""
    word = noun if number == 1 else plural or f"{noun}s"
    return f"{number:,} {word}" if noun else f"{number:,}"
