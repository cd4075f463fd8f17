"""Answers of a scripted site and the rules of conditional requests; no sockets here."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus

Content = str | bytes | Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status, its headers and a body."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """What stands at a path: the content may be made anew for each request."""

    content: Content
    media_type: str
    headers: Mapping[str, str]
    listed: bool  # in the sitemap
    modified_at: datetime

    def body(self) -> bytes:
        """The content as it is sent now."""
        content = self.content() if callable(self.content) else self.content
        return content.encode() if isinstance(content, str) else content

    def answer(self, *, etags: bool) -> Answer:
        """The page as a 200 with its validators."""
        body = self.body()
        headers = {
            "Content-Type": _content_type(self.media_type),
            "Last-Modified": http_date(self.modified_at),
        }
        if etags:
            headers["ETag"] = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        return Answer(status=200, headers={**headers, **self.headers}, body=body)


def notice(status: int, headers: Mapping[str, str] | None = None) -> Answer:
    """A small page that just names a status."""
    phrase = HTTPStatus(status).phrase
    body = f"<!doctype html><title>{status} {phrase}</title><h1>{phrase}</h1>\n".encode()
    return Answer(status=status, headers={"Content-Type": "text/html", **(headers or {})}, body=body)


def unless_known(answer: Answer, if_none_match: str | None, if_modified_since: str | None) -> Answer:
    """The answer, or a 304 where the validators of the request still hold (RFC 9110, 13.2.2)."""
    if answer.status != HTTPStatus.OK:
        return answer
    if if_none_match is not None:
        known = _matches(if_none_match, answer.headers.get("ETag"))
    else:
        known = _unmodified(if_modified_since, answer.headers.get("Last-Modified"))
    if not known:
        return answer
    kept = {name: value for name, value in answer.headers.items() if name != "Content-Type"}
    return replace(answer, status=HTTPStatus.NOT_MODIFIED, headers=kept, body=b"")


def http_date(at: datetime) -> str:
    """A time as HTTP writes it."""
    return format_datetime(at.astimezone(UTC), usegmt=True)


def _matches(if_none_match: str, etag: str | None) -> bool:
    if etag is None:
        return False
    asked = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
    return "*" in asked or etag.removeprefix("W/") in asked


def _unmodified(since: str | None, modified: str | None) -> bool:
    if not since or not modified:
        return False
    try:
        return parsedate_to_datetime(modified) <= parsedate_to_datetime(since)
    except (ValueError, TypeError):
        return False


def _content_type(media_type: str) -> str:
    textual = media_type.startswith("text/") and "charset" not in media_type
    return f"{media_type}; charset=utf-8" if textual else media_type
