"""Numbers, sizes and times in the words of a reader."""

from datetime import datetime

from afresh.text import wording

count = wording.count

_UNITS = (("year", 31_557_600), ("month", 2_629_800), ("day", 86_400), ("hour", 3600), ("minute", 60))


def size(number: int) -> str:
    """`4.2 MB`."""
    value = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `2 min 3 s`, `1 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s" if seconds < 0.1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def ago(when: datetime | None, now: datetime, *, never: str = "never") -> str:
    """`2 minutes ago`, `in 3 days`, `just now`."""
    if when is None:
        return never
    seconds = (now - when).total_seconds()
    if abs(seconds) < 60:
        return _near(seconds)
    unit, length = next(pair for pair in _UNITS if abs(seconds) >= pair[1])
    spoken = count(int(abs(seconds) // length), unit)
    return f"{spoken} ago" if seconds > 0 else f"in {spoken}"


def due(when: datetime | None, now: datetime, *, never: str = "never") -> str:
    """`in 3 days`, or `due now` for a time that has come."""
    return "due now" if when is not None and when <= now else ago(when, now, never=never)


def shortened(text: str, width: int = 60) -> str:
    """The text as it may be repeated in a sentence."""
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _near(seconds: float) -> str:
    if seconds >= 10:
        return f"{int(seconds)} seconds ago"
    return "just now" if seconds > -1 else f"in {max(1, int(-seconds))} seconds"


def percent(part: int, whole: int) -> int:
    """The share in full percent; 100 means all of it."""
    rounded = round(100 * part / whole) if whole else 0
    return rounded if part == whole else min(rounded, 99)


def label(name: str, version: str | None) -> str:
    """The name of a source as it is typed."""
    return f"{name}@{version}" if version else name
