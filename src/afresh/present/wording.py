"""Format numbers, sizes and times, parse typed values, and make foreign text safe to print."""

import re
from datetime import datetime, timedelta

from afresh.errors import UsageError
from afresh.model import labels
from afresh.sync.reports import SyncReport
from afresh.text import quantities

count = quantities.count
label = labels.label_of

# Units of time with their seconds, each with the next smaller one.
_UNITS = (
    *(("year", 31_557_600, "month", 2_629_800), ("month", 2_629_800, "day", 86_400), ("day", 86_400, "hour", 3600)),
    *(("hour", 3600, "min", 60), ("minute", 60, "", 1)),
)


def size(number: int) -> str:
    value = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def duration(seconds: float) -> str:
    """Return a duration such as `0.4 s`, `12 s`, `2 min 3 s` or `1 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s" if seconds < 0.1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def ago(when: datetime | None, now: datetime, *, never: str = "never") -> str:
    """Return a relative time such as `2 minutes ago`, `in 3 days` or `just now`."""
    if when is None:
        return never
    seconds = (now - when).total_seconds()
    if -1 < seconds < 10:
        return "just now"
    return f"{span(abs(seconds))} ago" if seconds > 0 else f"in {span(abs(seconds))}"


def span(seconds: float) -> str:
    """Return a rounded length of time such as `6 hours`; below two of a unit with the next one: `1 day 3 hours`."""
    for unit, length, smaller, part in _UNITS:
        rounded = round(seconds / part) * part
        if rounded >= 2 * length or (unit == "minute" and rounded >= length):
            return count(round(seconds / length), unit)
        if rounded >= length:
            rest = round((rounded - length) / part)
            words = count(rest, smaller) if part >= 3600 else f"{rest} {smaller}"
            return f"1 {unit} {words}" if rest else f"1 {unit}"
    return count(max(1, round(seconds)), "second")


def due(when: datetime | None, now: datetime, *, never: str = "never") -> str:
    """Return a relative time such as `in 3 days`, or `due now` for a past one."""
    return "due now" if when is not None and when <= now else ago(when, now, never=never)


def percent(part: int, whole: int) -> int:
    """Return the share of `part` in `whole` in percent, rounded; 100 only if they are equal."""
    rounded = round(100 * part / whole) if whole else 0
    return rounded if part == whole else min(rounded, 99)


def read_language(field: str, typed: str | None) -> str | None:
    """Normalise a language tag that the user typed; return None if none was typed."""
    if typed is None:
        return None
    from afresh.text.language import normalise_tag

    tag = normalise_tag(typed)
    if tag is None:
        raise UsageError(f"{field}: expected a tag such as en or pt-BR, got {typed!r}")
    return tag


def read_path(field: str, typed: str | None) -> str | None:
    """Return a path pattern that the user typed, or None if none was typed; raise UsageError if it is blank."""
    if typed is not None and not typed.strip():
        raise UsageError(f"{field}: expected a pattern such as '/guide/*', got nothing")
    return typed


def read_length(field: str, typed: str | None, least: int = 0) -> timedelta | None:
    """Parse a duration that the user typed (None: none was typed); raise UsageError below `least` seconds."""
    try:
        length = None if typed is None else quantities.read_duration(typed)
    except UsageError as error:
        raise UsageError(f"{field}: {error}") from None
    if length is not None and length.total_seconds() < least:
        raise UsageError(f"{field}: {typed!r} is too short; expected a time such as 7d, at least {least} s")
    return length


FOUND_NOTHING = "nothing was found"


def moved_part(number: int) -> str:
    """Return the part of a sum that counts moved pages: `1 read at its new URL`."""
    return f"{count(number)} read at {'its new URL' if number == 1 else 'their new URLs'}"


def sync_line(report: SyncReport) -> str:
    """Return a line such as `team-search: 3 uploaded, 1 deleted in 0.2 s`."""
    names = ("uploaded", "replaced", "deleted", "waiting", "failed")
    done = [f"{count(number)} {name}" for name in names if (number := getattr(report, name))]
    what = f"{clean(report.sink)}: {', '.join(done) or 'up to date'} in {duration(report.seconds)}"
    error = report.error or (report.failures[0].why if report.failures else None)
    return f"{what} ({clean(error)})" if error else what


# Characters that move the cursor, change colours or reorder text: C0 and C1 controls, DEL, line separators,
# bidirectional overrides, zero-width characters and lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)

# What `inert` replaces: a terminal acts on these characters, and no text needs them.
_ACTED_ON = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str, *, lines: bool = False) -> str:
    """Return a text with control characters made visible; on one line, unless `lines` keeps line breaks."""
    if not lines:
        return _UNSAFE.sub(_visible, " ".join(re.split(r"[ \t\r\n\f\v]+", text)).strip())
    tidy = text.replace("\r\n", "\n").expandtabs(4)
    return "\n".join(_UNSAFE.sub(_visible, line) for line in tidy.split("\n"))


def inert(text: str) -> str:
    """Replace characters that control a terminal with visible symbols; leave all other text as it is."""
    return _ACTED_ON.sub(_visible, whole_text(text).replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # control pictures such as ␛ for escape
    return "␡" if code == 0x7F else "�"


def whole_text(text: str) -> str:
    """Return the text as valid Unicode: surrogate pairs joined, lone surrogates replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
