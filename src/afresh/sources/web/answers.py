"""What the head of an HTTP answer means, apart from asking for it."""

from datetime import datetime
from http import HTTPStatus

from multidict import CIMultiDictProxy

from afresh.model.fetch import Body, Failed, Gone, Outcome, Refused, Validators
from afresh.sources.web.http_dates import is_past, parse_retry_after

Headers = CIMultiDictProxy[str]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
CONTENT = frozenset({200, 203})
EMPTY = frozenset({204, 205})
CHALLENGING = frozenset(
    {401, 429, 503}
)  # statuses that mean something else where a check for browsers comes with them

_LONGEST_VALIDATOR = 1024
_UNREAD_KINDS = ("image/", "audio/", "video/", "font/", "model/")
_UNREAD = frozenset(
    {
        "application/font-woff",
        "application/gzip",
        "application/java-archive",
        "application/vnd.ms-fontobject",
        "application/vnd.rar",
        "application/wasm",
        "application/x-7z-compressed",
        "application/x-bzip2",
        "application/x-executable",
        "application/x-gzip",
        "application/x-iso9660-image",
        "application/x-msdownload",
        "application/x-rar-compressed",
        "application/x-shockwave-flash",
        "application/x-tar",
        "application/x-xz",
        "application/zip",
        "application/zstd",
    }
)
_READ_IMAGES = frozenset({"image/svg+xml"})
_LARGEST_UNNAMED = 1024 * 1024  # octet-stream may be text with a careless label, but not a large one
_TAG_VALUES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")


def conditions(validators: Validators, now: datetime) -> dict[str, str]:
    """The headers that ask "has it changed?"; a date that is garbage or ahead of our clock is not sent."""
    asked: dict[str, str] = {}
    if validators.etag:
        asked["If-None-Match"] = validators.etag
    if validators.last_modified and is_past(validators.last_modified, now):
        asked["If-Modified-Since"] = validators.last_modified
    return asked


def validators_of(headers: Headers, url: str | None) -> Validators:
    """The validators an answer carries; `url` names their issuer when it is not the address asked for."""
    return Validators(
        etag=_clean(headers.get("ETag")), last_modified=_clean(headers.get("Last-Modified")), url=url
    )


def renewed(old: Validators, headers: Headers) -> Validators:
    """The validators after a 304: what it brought, over what was known."""
    etag, modified = _clean(headers.get("ETag")), _clean(headers.get("Last-Modified"))
    if (etag or old.etag) == old.etag and (modified or old.last_modified) == old.last_modified:
        return old
    return Validators(
        etag=etag or old.etag,
        last_modified=modified or old.last_modified,
        size=old.size,
        mtime_ns=old.mtime_ns,
        url=old.url,
    )


def _clean(value: str | None) -> str | None:
    """A validator that can be stored and sent back byte for byte, else None."""
    if not value or len(value) > _LONGEST_VALIDATOR or not value.isprintable():
        return None  # surrogates stand for bytes that are not UTF-8; they are not printable
    return value


def refusal_of(status: int, headers: Headers, now: datetime) -> Gone | Refused | Failed | None:
    """What a status other than content, redirect or 304 means; None for content."""
    if status in CONTENT:
        return None
    words = status_words(status)
    if status in (404, 410):
        return Gone(status_code=status)
    if status == 408:
        return Failed(outcome=Outcome.TIMEOUT, reason=words, status_code=status)
    if status == 304:
        reason = "304 Not Modified, though nothing was asked conditionally"
        return Failed(outcome=Outcome.FAILED, reason=reason, status_code=status)
    if status in (412, 425, 429) or status >= 500:
        blocked = Outcome.BLOCKED_5XX if status >= 500 else Outcome.BLOCKED_4XX
        return Failed(outcome=blocked, reason=words, status_code=status, retry_after=wait_of(headers, now))
    if 400 <= status < 500:
        return Refused(outcome=Outcome.BLOCKED_4XX, reason=words, status_code=status)
    no_content = Refused if status in EMPTY else Failed
    return no_content(outcome=Outcome.FAILED, reason=f"{words}: not content", status_code=status)


def wait_of(headers: Headers, now: datetime) -> float | None:
    """Seconds that an answer asks us to wait; None if it does not say."""
    return parse_retry_after(headers.get("Retry-After"), now)


def status_words(status: int) -> str:
    """`404 Not Found`, in the words of the standard rather than the server's."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def as_text(value: str) -> str:
    """A header as text that can be stored: bytes that are not UTF-8, which come as surrogates, are U+FFFD."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def media_of(headers: Headers) -> tuple[str, str | None]:
    """Media type in lower case and charset, as the Content-Type header says; "" and None without one."""
    media, _, rest = as_text(headers.get("Content-Type", "")).partition(";")
    charset = None
    for part in rest.split(";"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'").lower() or None
    return media.strip().lower(), charset


def unread(media: str, length: int | None) -> str | None:
    """Why a body of this media type is not worth downloading, or None."""
    certain = media.startswith(_UNREAD_KINDS) and media not in _READ_IMAGES
    large = media == "application/octet-stream" and (length or 0) > _LARGEST_UNNAMED
    return f"media type {media} is not read" if certain or large or media in _UNREAD else None


def body_of(url: str, data: bytes, status: int, headers: Headers, validators: Validators, agent: str) -> Body:
    """The content an answer brought."""
    media, charset = media_of(headers)
    tags = robots_tags(headers.getall("X-Robots-Tag", []), agent)
    language = as_text(headers.get("Content-Language", "")).partition(",")[0].strip()
    return Body(
        url=url,
        data=data,
        media_type=media,
        charset=charset,
        validators=validators,
        status_code=status,
        language=language or None,
        index=not tags & {"noindex", "none"},
        follow=not tags & {"nofollow", "none"},
    )


def robots_tags(values: list[str], agent: str) -> frozenset[str]:
    """The X-Robots-Tag directives that are meant for everyone or for `agent`."""
    tags: set[str] = set()
    for value in values:
        name, colon, rest = value.partition(":")
        named = name.strip().lower()
        for_one = bool(colon) and "," not in name and named not in _TAG_VALUES
        if not for_one or named in (agent.lower(), "*"):
            tags.update(part.strip().lower() for part in (rest if for_one else value).split(","))
    return frozenset(tags)
