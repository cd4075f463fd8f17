"""Scripts of HostileSite that misuse the wire: slow, broken off, endless, packed, framed wrongly."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from typing import Literal

from tests.fakes.hostile import Script
from tests.fakes.wire import answer, sent

from afresh.testing.script import Answer
from afresh.testing.site import RecordedRequest

MEGABYTE = 1024 * 1024
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_BROKEN_CHUNKS = {
    "short": b"5\r\nhel",
    "unended": b"5\r\nhello\r\n",
    "size": b"zz\r\nhello\r\n0\r\n\r\n",
    "negative": b"-5\r\nhello\r\n0\r\n\r\n",
    "huge": b"fffffffffffffffffffffffff\r\nhello",
}


def then_close(raw: bytes) -> Script:
    """These bytes, and the end of the connection."""

    async def pieces() -> AsyncIterator[bytes]:
        yield raw

    return lambda asked, own: pieces()


def drip(part: Literal["head", "body"], every: float = 0.02) -> Script:
    """A byte at a time, for ever: of a header, or of a body after its head."""

    async def pieces() -> AsyncIterator[bytes]:
        yield _OK + (b"X: " if part == "head" else b"Content-Length: 1000000\r\n\r\n")
        while True:
            yield b"x"
            await asyncio.sleep(every)

    return lambda asked, own: pieces()


def truncated(missing: int = 100) -> Script:
    """The site's own page, which breaks off that many bytes before the length it announced."""

    async def pieces(own: Answer) -> AsyncIterator[bytes]:
        length = {"Content-Length": str(len(own.body) + missing)}
        yield sent(Answer(status=own.status, headers={**own.headers, **length}, body=own.body))

    return lambda asked, own: pieces(own)


def broken_chunks(kind: Literal["short", "unended", "size", "negative", "huge"]) -> Script:
    """A chunked body that breaks off, or whose sizes make no sense."""
    return then_close(_CHUNKED + _BROKEN_CHUNKS[kind])


def lengths(*values: str, body: bytes = b"hello1234") -> Script:
    """A body under several lengths, or an odd one."""
    named = b"".join(b"Content-Length: " + value.encode() + b"\r\n" for value in values)
    return then_close(_OK + named + b"\r\n" + body)


def surplus(extra: bytes) -> bytes:
    """Five bytes as announced, and then more on a connection that stays open."""
    return _OK + b"Content-Length: 5\r\n\r\nhello" + extra


def both_framings(extra: bytes = b"") -> bytes:
    """A length and chunks that disagree, and then more on a connection that stays open."""
    head = _OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"4\r\nhell\r\n0\r\n\r\n" + extra


def endless() -> Script:
    """Chunks without end."""
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"

    async def pieces() -> AsyncIterator[bytes]:
        yield _CHUNKED
        while True:
            yield chunk

    return lambda asked, own: pieces()


def giant(size: int, *, announced: bool = True) -> Script:
    """A page of that many bytes, made as it is sent."""
    block = b"<p>word word word</p>" * 3000

    async def pieces() -> AsyncIterator[bytes]:
        yield _OK + (f"Content-Length: {size}\r\n\r\n".encode() if announced else b"\r\n")
        for start in range(0, size, len(block)):
            yield block[: size - start]

    return lambda asked, own: pieces()


def packed(coding: str, megabytes: int) -> bytes:
    """That many megabytes of blanks in a coding: gzip, deflate (zlib), raw (deflate), nested (gzip twice).

    One packed megabyte is repeated, so that ten gigabytes are made at once; the end of the stream is missing.
    """
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(b" " * MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    head = {"deflate": b"\x78\x01", "raw": b""}.get(coding, b"\x1f\x8b\x08" + bytes(6) + b"\x03")
    data = head + block * megabytes
    return gzip.compress(data, mtime=0) if coding == "nested" else data


def bomb(coding: str, megabytes: int = 64, *, named: str | None = None) -> bytes:
    """A small body that unpacks to that many megabytes, under the name of its coding or another."""
    usual = {"raw": "deflate", "nested": "gzip, gzip"}.get(coding, coding)
    return coded(named or usual, packed(coding, megabytes))


def members() -> Script:
    """A gzip body of parts that are all empty, without end."""
    empty = gzip.compress(b"", mtime=0) * 3000

    async def pieces() -> AsyncIterator[bytes]:
        yield _OK + b"Content-Encoding: gzip\r\n\r\n"
        while True:
            yield empty

    return lambda asked, own: pieces()


def coded(coding: str, body: bytes) -> bytes:
    """A body under a Content-Encoding, whether it is so coded or not."""
    return answer(200, body, content_type="text/html", content_encoding=coding)


def flood(kind: Literal["endless", "giant", "many"]) -> Script:
    """A head that never ends, or with one header of a megabyte, or with ten thousand."""
    match kind:
        case "giant":
            return then_close(_OK + b"X: " + b"y" * MEGABYTE + b"\r\nContent-Length: 0\r\n\r\n")
        case "many":
            return then_close(_OK + b"X: y\r\n" * 10_000 + b"Content-Length: 0\r\n\r\n")
        case "endless":
            return _endless_head


def _endless_head(asked: RecordedRequest, own: Answer) -> AsyncIterator[bytes]:
    async def pieces() -> AsyncIterator[bytes]:
        yield _OK
        while True:
            yield b"X-Header: y\r\n" * 100

    return pieces()
