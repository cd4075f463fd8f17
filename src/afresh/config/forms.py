"""The forms that texts among the settings take; each gives the usual spelling or raises WrongValue."""

import re

from afresh.config.spec import WrongValue, operator_only, shown
from afresh.text.redact import MASK, mask_pairs
from afresh.urls.globs import MAX_GLOB_CHARACTERS

_CONTACT = re.compile(r"(?:https?://[!-'*-~]{1,500}|[!-'*-?A-~]{1,64}@[!-'*-~]{1,255})")  # no parentheses
_API_URL = re.compile(
    r"https?://(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::(?P<port>\d{1,5}))?(?:/[\w.~%/:+-]*)?",
    re.IGNORECASE | re.ASCII,
)
_PASSWORD = re.compile(r"(://[^/@\s:]*):(\S*)@")


@operator_only
def store_url(url: str) -> str:
    """A store that can be opened."""
    file = url.removeprefix("sqlite:///")
    if url.startswith(("postgresql://", "postgres://")):
        return url
    if ":memory:" in url:
        raise WrongValue("expected sqlite:///FILE, got :memory:, which would be lost between two commands")
    if file and file != url and not file.endswith("/"):
        return url
    hint = f"; did you mean sqlite:///{url}?" if re.fullmatch(r"[\w./~-]*[\w~-]", url) else ""
    expected = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
    raise WrongValue(f"expected {expected}, got {shown(mask(url))}{hint}")


def header(value: str) -> str:
    """A value that can stand in a header."""
    if value.strip() and value.isascii() and value.isprintable():
        return value
    raise WrongValue(f"expected printable ASCII text, got {shown(value)}")


def contact(value: str) -> str:
    """Where people complain: it stands in a comment of the User-Agent."""
    if _CONTACT.fullmatch(value):
        return value
    raise WrongValue(f"expected a URL or an e-mail address, got {shown(value)}")


def glob(pattern: str) -> str:
    """A pattern for addresses."""
    if len(pattern) > MAX_GLOB_CHARACTERS:
        raise WrongValue(
            f"expected patterns of at most {MAX_GLOB_CHARACTERS} characters, "
            f"got one of {len(pattern):,}: {shown(pattern)}"
        )
    if pattern.strip() and pattern.isprintable():
        return pattern
    raise WrongValue(f"expected a pattern such as */api/*, got {shown(pattern)}")


@operator_only
def file(path: str) -> str:
    """The path of a file."""
    if path.strip() and path.isprintable():
        return path
    raise WrongValue(f"expected the path of a file, got {shown(path)}")


def name(text: str) -> str:
    """The name of a model."""
    if text.strip() == text and text and text.isprintable():
        return text
    raise WrongValue(f"expected a name without blanks around it, got {shown(text)}")


@operator_only
def key(text: str) -> str:
    """A key that can stand in a header."""
    if text.strip() == text and text and text.isascii() and text.isprintable():
        return text
    raise WrongValue(
        "expected printable ASCII text without blanks around it, got a value that is kept secret"
    )


@operator_only
def api_url(url: str) -> str:
    """The address of an API."""
    found = _API_URL.fullmatch(url)
    if found and 0 < int(found["port"] or 1) < 65_536:
        return url.rstrip("/")
    raise WrongValue(
        f"expected an address such as http://localhost:8080/v1, without a key in it, got {shown(mask(url))}"
    )


def schedule(text: str) -> str:
    """Times at which a source is looked at by itself."""
    from afresh.schedule.cron import CronError
    from afresh.schedule.rules import parse_schedule

    try:
        return parse_schedule(text).text
    except CronError as wrong:
        raise WrongValue(
            f'expected five cron fields ("30 4 * * *"), an alias (@daily), "every 6h" or "auto", '
            f"got {shown(text)}: {wrong}"
        ) from None


def duration(text: str) -> str:
    """A length of time such as 30d."""
    from afresh.errors import UsageError
    from afresh.text.durations import read_duration

    try:
        read_duration(text)
    except UsageError as wrong:
        raise WrongValue(str(wrong)) from None
    return text.strip().lower()


def budget(text: str) -> str:
    """Looks in a length of time."""
    from afresh.schedule.cron import CronError
    from afresh.schedule.rules import parse_budget

    try:
        parse_budget(text)
    except CronError as wrong:
        raise WrongValue(str(wrong)) from None
    return text


def zone(name: str) -> str:
    """The name of a time zone."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name).key
    except (ValueError, OSError, KeyError):
        raise WrongValue(f"expected a time zone such as UTC or Europe/Berlin, got {shown(name)}") from None


def mask(value: object) -> object:
    """A value without the password an address may carry."""
    if not isinstance(value, str):
        return value
    return mask_pairs(_PASSWORD.sub(rf"\1:{MASK}@", value))


def password_of(value: object) -> str:
    """The password an address carries, or nothing."""
    found = _PASSWORD.search(value) if isinstance(value, str) else None
    return found[2] if found else ""
