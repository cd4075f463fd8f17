"""Define what all HTTP clients share: TLS, deadlines, decoding within limits, and error messages."""

import asyncio
import os
import ssl
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Protocol

from afresh.model.fetch import Failed, Outcome, Refused
from afresh.ops.failpoints import failpoint
from afresh.sources.web.guard import ELSEWHERE, SERVICE, AddressRefused
from afresh.text.redact import NOT_ALLOWED


@contextmanager
def certificates_later() -> Iterator[None]:
    """Prevent aiohttp from loading all certificates when it is imported in this context, which saves 0.1 seconds.

    The TLS contexts that aiohttp creates then trust no certificate, so requests must use `trusted()`.
    """
    read = ssl.SSLContext.set_default_verify_paths
    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        ssl.SSLContext.set_default_verify_paths = read  # type: ignore[method-assign]


@cache
def trusted() -> ssl.SSLContext:
    """Return the TLS context for all https requests, which verifies certificates and host names."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


with certificates_later():
    import aiohttp
    from aiohttp.abc import AbstractResolver
    from aiohttp.http import HttpProcessingError

__all__ = ["AbstractResolver", "HttpProcessingError", "aiohttp"]  # import them from here, not from aiohttp


class NotHttp(aiohttp.ClientError):
    """Raised if a response is not valid HTTP."""


RAISED = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
VARIABLE = "AFRESH_NETWORK__ALLOW"
_PLAIN = " (does the host only support http?)"


def request_failure(error: BaseException, host: str, connect_seconds: float) -> Failed | Refused:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AddressRefused):
            return Refused(reason=not_allowed(host, cause.kind))
        cause = cause.__cause__
    if isinstance(error, TimeoutError):
        late = f"no connection to {host} within {connect_seconds:g} s"
        return Failed(outcome=Outcome.TIMEOUT, reason=late)
    return Failed(reason=_words(error, host))


def not_allowed(host: str, kind: str) -> str:
    """Return why a host is blocked and how to allow it, without revealing the IP address of a name."""
    if kind.endswith(ELSEWHERE):
        return f"{NOT_ALLOWED}: {host} is {kind}"
    entry = "its address" if kind is SERVICE else f'"{host}"'
    return f"{NOT_ALLOWED}: {host} is {kind}; to allow it, add {entry} to network.allow ({VARIABLE})"


def _words(error: BaseException, host: str) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the name {host} cannot be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return f"the TLS certificate of {host} is not valid"
        case aiohttp.ClientConnectorError():
            return _unconnected(error, host)
        case aiohttp.ServerDisconnectedError():
            return f"{host} closed the connection without a response"
        case aiohttp.ClientPayloadError():
            return "the body ended early or is malformed"
        case NotHttp():
            return f"{host} did not answer with valid HTTP"
        case aiohttp.InvalidURL():
            return "the URL is not valid"
    return f"the connection to {host} was lost"


def _unconnected(error: aiohttp.ClientConnectorError, host: str) -> str:
    """Describe a failed connection, without aiohttp's message, which contains the IP address."""
    inner = error.os_error
    if isinstance(inner, ssl.SSLError):
        spoke_tls = "ALERT" in (inner.reason or "")
        return f"no TLS connection to {host}" + ("" if spoke_tls else _PLAIN)
    if error.errno:
        return f"no connection to {host}: {os.strerror(error.errno).lower()}"
    tls = isinstance(error.ssl, ssl.SSLContext)
    return f"no TLS connection to {host}{_PLAIN}" if tls else f"no connection to {host}"


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


_SLACK = 1.1  # a silent request may last this much longer, so that not every piece of data sets a new timer

STEP = 64 * 1024
UNPACKED_PER_TURN_BYTES = 16 * STEP  # after so many bytes, other tasks get a turn
OFFERED = "gzip, deflate"
_MAX_GZIP_MEMBERS = 1_000  # members may be empty, so a size limit alone does not limit the work


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
