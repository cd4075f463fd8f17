"""Define the parsers of text settings; each returns the normalised value or raises InvalidValue."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from afresh.config.spec import HIDDEN, Form, InvalidValue, operator_only, quote_value, text
from afresh.errors import ConfigError, UsageError
from afresh.text.quantities import read_duration
from afresh.text.redact import MASK, mask_pairs, mask_secrets
from afresh.urls.globs import MAX_GLOB_CHARACTERS

EXPECTED_PLACE = "expected a network, an IP address or a host name, such as 10.0.0.0/8, 127.0.0.1:8000, docs.internal"
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"({_LABEL}\.)*(?!\d+$){_LABEL}")  # a last label of digits is a mistyped IP address
_WITH_PORT = re.compile(r"(?P<host>[^\s:/\[\]]+|\[[0-9a-f:.]+\]):(?P<port>[0-9]{1,5})")
SQLITE_PREFIX = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")


def _form(
    expected: str, fits: Callable[[str], object], *, operator: bool = False, secret: bool = False, lower: bool = False
) -> Form:
    """Return a parser that accepts the texts for which `fits` is true; with `lower`, it converts them to lower case.

    Its error says that `expected` was expected; the value of a `secret` is not quoted. With `operator`, neither
    sources nor remote callers may set the value.
    """

    def read(text: str) -> str:
        value = text.lower() if lower else text
        if fits(value):
            return value
        raise InvalidValue(f"expected {expected}, got {HIDDEN if secret else quote_value(text)}")

    return operator_only(read) if operator else read


@operator_only
def network_place(typed: str) -> str:
    entry = typed.strip().lower()
    if with_port := _WITH_PORT.fullmatch(entry):
        host, port = with_port["host"], int(with_port["port"])
        if not 1 <= port <= 65_535:
            raise InvalidValue(f"expected a port from 1 to 65535, got {quote_value(typed)}")
        bare = host.strip("[]")
        spelled = host if _block(bare) else "" if bare != host else _name(host)
        found = f"{spelled}:{port}" if spelled else ""
    else:
        found = _block(entry) or _name(entry)
    if not found:
        raise InvalidValue(f"{EXPECTED_PLACE}; got {quote_value(typed)}")
    return found


def _block(entry: str) -> str:
    import ipaddress

    try:
        bare = entry[1:-1] if entry.startswith("[") and entry.endswith("]") else entry
        return str(ipaddress.ip_network(bare, strict=False))
    except ValueError:
        return ""


def _name(entry: str) -> str:
    name = entry.rstrip(".")
    return name if len(name) <= 253 and _NAME.fullmatch(name) else ""


_CONTACT = re.compile(r"(?:https?://[!-'*-~]{1,500}|[!-'*-?A-~]{1,64}@[!-'*-~]{1,255})")  # no parentheses
_API_URL = re.compile(
    r"https?://(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::(?P<port>\d{1,5}))?(?:/[\w.~%/:+-]*)?",
    re.IGNORECASE | re.ASCII,
)
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")
_REPOSITORY_PATH = re.compile(r"(?!\.{1,2}(?:/|$))[\w.~-]+(?:/(?!\.{1,2}(?:/|$))[\w.~-]+)*")
_ORIGIN = re.compile(r"https?://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")
_PASSWORD = re.compile(r"(://[^/@\s:]*):(\S*)@")


@operator_only
def store_url(url: str) -> str:
    if is_postgres(url):
        return url
    if ":memory:" in url:
        raise InvalidValue("expected sqlite:///FILE, got :memory:, which would be lost after each command")
    if url.startswith(SQLITE_PREFIX) and not url.endswith("/"):
        return url
    hint = f"; did you mean sqlite:///{url}?" if re.fullmatch(r"[\w./~-]*[\w~-]", url) else ""
    expected = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
    raise InvalidValue(f"expected {expected}, got {quote_value(mask(url))}{hint}")


header = _form("printable ASCII text", lambda text: text.strip() and text.isascii() and text.isprintable())
contact = _form("a URL or an e-mail address", _CONTACT.fullmatch)
file = _form("the path of a file", lambda text: text.strip() and text.isprintable(), operator=True)
name = _form("a name without blanks around it", lambda text: text and text.strip() == text and text.isprintable())
key = _form(
    "printable ASCII text without blanks around it",
    lambda text: text and text.strip() == text and text.isascii() and text.isprintable(),
    operator=True,
    secret=True,
)
secret = _form(  # not blank, because anyone could sign messages with a blank secret
    "printable text that is not blank", lambda text: text.strip() and text.isprintable(), operator=True, secret=True
)
host_name = _form("a host such as docs.example.org", _HOST.fullmatch, operator=True, lower=True)
origin = _form("a site such as https://docs.example.org", _ORIGIN.fullmatch, operator=True, lower=True)


def glob(pattern: str) -> str:
    if len(pattern) > MAX_GLOB_CHARACTERS:
        raise InvalidValue(
            f"expected patterns of at most {MAX_GLOB_CHARACTERS} characters, "
            f"got one of {len(pattern):,}: {quote_value(pattern)}"
        )
    if pattern.strip() and pattern.isprintable():
        return pattern
    raise InvalidValue(f"expected a pattern such as */api/*, got {quote_value(pattern)}")


@operator_only
def api_url(url: str) -> str:
    if (found := _API_URL.fullmatch(url)) and 0 < int(found["port"] or 1) < 65_536:
        return url.rstrip("/")
    raise InvalidValue(f"expected a URL such as http://localhost:8080/v1, without a key, got {quote_value(mask(url))}")


def user_folder(kind: str) -> Path | None:
    """Return the user's data, config or cache folder; None if the user has no home folder."""
    import platformdirs

    try:
        return Path(getattr(platformdirs, f"user_{kind}_dir")("afresh", appauthor=False))
    except RuntimeError:
        return None


def secret_text(default: str | None, doc: str, form: Form = key) -> Any:
    return text(default, doc, secret=True, form=form)


def schedule(text: str) -> str:
    from afresh.schedule.rules import CronError, parse_schedule

    try:
        return parse_schedule(text).text
    except CronError as wrong:
        raise InvalidValue(
            f'expected five cron fields ("30 4 * * *"), an alias (@daily), "every 6h" or "auto", '
            f"got {quote_value(text)}: {wrong}"
        ) from None


def duration(text: str) -> str:
    try:
        read_duration(text)
    except UsageError as wrong:
        raise InvalidValue(str(wrong)) from None
    return text.strip().lower()


def budget(text: str) -> str:
    from afresh.schedule.rules import CronError, parse_budget

    try:
        parse_budget(text)
    except CronError as wrong:
        raise InvalidValue(str(wrong)) from None
    return text


def zone(name: str) -> str:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name).key
    except (ValueError, OSError, KeyError):
        raise InvalidValue(f"expected a time zone such as UTC or Europe/Berlin, got {quote_value(name)}") from None


def mask(value: object) -> object:
    """Return a value with the password in its URL masked."""
    if not isinstance(value, str):
        return value
    return mask_pairs(_PASSWORD.sub(rf"\1:{MASK}@", value))


def find_password(value: object) -> str:
    """Return the password in a URL; "" if it has none."""
    found = _PASSWORD.search(value) if isinstance(value, str) else None
    return found[2] if found else ""


@operator_only
def repository_place(text: str) -> str:
    """Parse a host of repositories, or an owner or a repository on it, such as `github.com/acme`."""
    host, slash, path = text.strip().rstrip("/").partition("/")
    if not _HOST.fullmatch(host.lower()) or (slash and not _REPOSITORY_PATH.fullmatch(path)):
        raise InvalidValue(f"expected a host or an owner such as github.com/acme, got {quote_value(text)}")
    return f"{host.lower()}{slash}{path}"


@operator_only
def service(text: str) -> str:
    """Parse a URL in the format of apprise; errors do not quote it, because it contains a secret."""
    kind, separator, rest = text.strip().partition("://")
    if not (separator and rest and kind.replace("+", "").isalnum() and text.strip().isprintable()):
        raise InvalidValue(f"expected a URL such as slack://…, got {HIDDEN}")
    return text.strip()


def is_postgres(url: str) -> bool:
    return url.startswith(POSTGRES)


def sqlite_path(url: str) -> Path:
    """Return the path in `sqlite:///path`, which is relative after three slashes and absolute after four."""
    if not url.startswith(SQLITE_PREFIX) or len(url) == len(SQLITE_PREFIX):
        raise ConfigError(
            "store.url must look like sqlite:///path/to/afresh.db or postgresql://host/database, "
            f"not {mask_secrets(url)!r}"
        )
    return Path(url.removeprefix(SQLITE_PREFIX)).expanduser()


def store_file(url: str) -> Path | None:
    """Return the file of an SQLite store; None for a PostgreSQL database."""
    return None if is_postgres(url) else sqlite_path(url)
