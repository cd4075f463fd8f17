"""Read HTTP responses: the body within limits of time and size, status, headers and redirects; sends nothing."""

import asyncio
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple, Protocol

from multidict import CIMultiDictProxy

from afresh.dataclass import dataclass, replace
from afresh.model.fetch import Body, Failed, Gone, Moved, Outcome, Refused, Validators
from afresh.ops.failpoints import failpoint
from afresh.sources.web.http_dates import is_past, parse_retry_after
from afresh.urls.canonical import host_of

Headers = CIMultiDictProxy[str]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
CONTENT = frozenset({200, 203})
EMPTY = frozenset({204, 205})
CHALLENGING = frozenset({401, 429, 503})  # have another meaning if the body is a browser check

_MAX_VALIDATOR_CHARS = 1024
_UNREAD_KINDS = ("image/", "audio/", "video/", "font/", "model/")
_UNREAD = frozenset(
    f"application/{kind}"
    for kind in (
        "font-woff", "gzip", "java-archive", "vnd.ms-fontobject", "vnd.rar", "wasm", "x-7z-compressed", "x-bzip2",
        "x-executable", "x-gzip", "x-iso9660-image", "x-msdownload", "x-rar-compressed", "x-shockwave-flash",
        "x-tar", "x-xz", "zip", "zstd",
    )
)  # fmt: skip
_READ_IMAGES = frozenset({"image/svg+xml"})
MAX_UNNAMED_BYTES = 1024 * 1024  # a larger body of type octet-stream is not mislabelled text
_TAG_VALUES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
_SLACK = 1.1  # a silent request may last this much longer, so that not every piece of data sets a new timer
STEP = 64 * 1024
UNPACKED_PER_TURN_BYTES = 16 * STEP  # after so many bytes, other tasks get a turn
OFFERED = "gzip, deflate"
_MAX_GZIP_MEMBERS = 1_000  # members may be empty, so a size limit alone does not limit the work


def conditions(validators: Validators, now: datetime) -> dict[str, str]:
    """Return the headers of a conditional request, without invalid or future dates."""
    asked: dict[str, str] = {}
    if validators.etag:
        asked["If-None-Match"] = validators.etag
    if validators.last_modified and is_past(validators.last_modified, now):
        asked["If-Modified-Since"] = validators.last_modified
    return asked


def renewed(old: Validators, headers: Headers) -> Validators:
    """Return the validators of a response; a missing or unusable one is taken from `old`."""
    etag, modified = headers.get("ETag") or old.etag, headers.get("Last-Modified") or old.last_modified
    if etag and (len(etag) > _MAX_VALIDATOR_CHARS or not etag.isprintable()):  # surrogates, too, are not printable
        etag = old.etag
    if modified and (len(modified) > _MAX_VALIDATOR_CHARS or not modified.isprintable()):
        modified = old.last_modified
    if etag == old.etag and modified == old.last_modified:
        return old
    return replace(old, etag=etag, last_modified=modified)


def refusal_of(status: int, headers: Headers, now: datetime) -> Gone | Refused | Failed:
    if status in (404, 410):
        return Gone(status_code=status)
    words = status_words(status)
    if status == 408:
        return Failed(outcome=Outcome.TIMEOUT, reason=words, status_code=status)
    if status == 304:
        return Failed(reason="304 Not Modified to an unconditional request", status_code=status)
    if status in (412, 425, 429) or status >= 500:
        blocked = Outcome.BLOCKED_5XX if status >= 500 else Outcome.BLOCKED_4XX
        wait = parse_retry_after(headers.get("Retry-After"), now)
        return Failed(outcome=blocked, reason=words, status_code=status, retry_after=wait)
    if 400 <= status < 500:
        return Refused(outcome=Outcome.BLOCKED_4XX, reason=words, status_code=status)
    no_content = Refused if status in EMPTY else Failed
    return no_content(reason=f"{words}: unexpected status", status_code=status)


def status_words(status: int) -> str:
    """Return a status as text like `404 Not Found`, with the standard phrase instead of the server's."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def as_text(value: str) -> str:
    """Return a header value as text that can be stored; bytes that are not UTF-8 become U+FFFD."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class MediaType(NamedTuple):
    name: str  # lower case, without parameters; "" if missing
    charset: str | None
    is_unread: bool  # a page of this type is not downloaded
    is_unnamed: bool  # may be anything


@lru_cache(maxsize=256)
def media_type_of(content_type: str) -> MediaType:
    media, _, rest = as_text(content_type).partition(";")
    charset = None
    for part in rest.split(";"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'").lower() or None
    name = media.strip().lower()
    is_unread = name in _UNREAD or (name.startswith(_UNREAD_KINDS) and name not in _READ_IMAGES)
    return MediaType(name, charset, is_unread, is_unnamed=name == "application/octet-stream")


def body_of(url: str, data: bytes, status: int, headers: Headers, validators: Validators) -> Body:
    media = media_type_of(headers.get("Content-Type", ""))
    tags: set[str] = set()  # robots directives for all agents or for ours
    for value in headers.getall("X-Robots-Tag", []):
        name, colon, rest = value.partition(":")
        named = name.strip().lower()
        for_one = bool(colon) and "," not in name and named not in _TAG_VALUES
        if not for_one or named in ("afresh", "*"):
            tags.update(part.strip().lower() for part in (rest if for_one else value).split(","))
    language = headers.get("Content-Language")
    return Body(
        url=url,
        data=data,
        media_type=media.name,
        charset=media.charset,
        validators=validators,
        status_code=status,
        language=as_text(language).partition(",")[0].strip() or None if language else None,
        index=not tags & {"noindex", "none"},
        follow=not tags & {"nofollow", "none"},
    )


@dataclass(frozen=True, slots=True)
class Redirect:
    status: int
    to: str | None  # None if it is not an http URL
    raw: str
    wait: float | None = None  # seconds to wait before following it

    def refused(self, reason: str) -> Refused:
        """Return Refused for the redirect; Failed would cause a retry within minutes, with the same result."""
        return Refused(reason=reason, status_code=self.status)


def end_at(hop: Redirect, chain: Sequence[str], *, page: bool, most: int) -> Moved | Refused | None:
    """Return the result if the request ends at this redirect; None if the redirect may be followed.

    With `page`, a permanent redirect of the first URL results in Moved. A redirect that is part of a loop, has no valid
    target, or comes after `most` others results in Refused. `chain` holds the URLs requested so far.
    """
    if hop.to is None:
        if not hop.raw:
            return hop.refused(f"{status_words(hop.status)} without a target")
        return hop.refused(f"redirected to {hop.raw[:200]!r}, which is not an http URL")
    way = " → ".join((*chain, hop.to))
    if hop.to in chain:
        return hop.refused(f"redirect loop: {way}")
    if page and len(chain) == 1 and hop.status in PERMANENT:
        return Moved(to=hop.to, status_code=hop.status, retry_after=hop.wait)
    if len(chain) > most:
        return hop.refused(f"more than {most} redirects: {way}")
    return None


def same_site(one: str, other: str) -> bool:
    return host_of(one).removeprefix("www.") == host_of(other).removeprefix("www.")


class Deadline:
    """Ends a request that takes too long in total or receives nothing for too long."""

    def __init__(self, total: float, idle: float) -> None:
        self._total, self._idle = total, idle
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._end = now + total
        self._when = min(self._end, now + idle * _SLACK)
        self.timeout = asyncio.timeout_at(self._when)

    @property
    def late(self) -> str:
        is_over = self._loop.time() >= self._end
        return f"not complete within {self._total:g} s" if is_over else f"nothing received for {self._idle:g} s"

    def data_arrived(self) -> None:
        """Restart the time limit for receiving nothing, because data has arrived."""
        idle_at = self._loop.time() + self._idle
        if self._when < min(self._end, idle_at):  # else the timer that runs is late enough
            self._move(idle_at)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock of a request in this context, so that waiting for a host's turn does not count."""
        began = self._loop.time()
        self.timeout.reschedule(None)
        try:
            yield
        finally:
            now = self._loop.time()
            self._end += now - began
            self._move(now + self._idle)

    def _move(self, idle_at: float) -> None:
        self._when = min(self._end, idle_at + (_SLACK - 1) * self._idle)
        self.timeout.reschedule(self._when)


class ByteStream(Protocol):
    """A body as it arrives; an empty piece marks the end."""

    async def readany(self) -> bytes: ...


class CodingError(Exception):
    """Raised if a body is not encoded as its header says."""


class BodyTooLarge(Exception):
    """Raised if a body is larger than the limit."""


class Decoder:
    """Decodes one body piece by piece, into pieces of at most STEP bytes."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._inner = zlib.decompressobj(31) if coding == "gzip" else None
        self._started = False
        self._members = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            # "deflate" means zlib, but some servers send the raw stream: the first byte tells them apart
            if self._inner is None:
                self._inner = zlib.decompressobj(15 if data[0] & 0x0F == 8 and data[0] >> 4 <= 7 else -15)
            inner = self._inner
            if inner.eof:
                data = self._next_member(data)
                continue
            try:
                piece = inner.decompress(data, STEP)
            except zlib.error as error:
                raise CodingError(f"the body is not valid {self._coding}") from error
            self._started = True
            if piece:
                yield piece
            data = inner.unused_data if inner.eof else inner.unconsumed_tail

    def finish(self) -> None:
        if self._started and self._inner is not None and not self._inner.eof:
            raise CodingError(f"the {self._coding} body ended early")

    def _next_member(self, data: bytes) -> bytes:
        """Start the next gzip member and return its data; ignore other data after the end of a member."""
        if self._coding != "gzip" or data[:1] != b"\x1f":
            return b""
        self._members += 1
        if self._members > _MAX_GZIP_MEMBERS:
            raise CodingError("the gzip body has too many parts")
        self._inner = zlib.decompressobj(31)
        return data


def coding_of(headers: list[str]) -> str | None:
    """Return the content coding of a body ("gzip", "deflate", "" for none), or None if it is not supported."""
    named = [part.strip().lower() for value in headers for part in value.split(",")]
    codings = [name.removeprefix("x-") for name in named if name and name != "identity"]
    if not codings:
        return ""
    return codings[0] if len(codings) == 1 and codings[0] in ("gzip", "deflate") else None


async def gather(stream: ByteStream, coding: str, limit: int, on_data: Callable[[], None]) -> bytearray:
    """Return the decoded body; stop soon after `limit` bytes, so that a longer result means that the body is too large.

    Call `on_data` for each piece. Raise BodyTooLarge if the encoded data alone shows that the limit is exceeded.
    """
    decoder = Decoder(coding) if coding else None
    data = bytearray()
    raw = turn = 0
    while chunk := await stream.readany():
        on_data()
        failpoint("fetch.body")
        raw += len(chunk)
        for piece in decoder.feed(chunk) if decoder else (chunk,):
            data += piece
            if len(data) > limit:
                return data
            turn += len(piece)
            if turn >= UNPACKED_PER_TURN_BYTES:
                turn = 0
                await asyncio.sleep(0)  # give other tasks a turn: a small piece may unpack to a thousand times its size
        if raw > limit + 64 * 1024:
            raise BodyTooLarge
    if decoder:
        decoder.finish()
    return data
