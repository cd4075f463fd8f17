"""Undoes gzip and deflate in small steps, so that a bomb is cut where it passes the cap."""

import asyncio
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from afresh.ops.failpoints import failpoint

STEP = 64 * 1024
UNPACKED_PER_TURN_BYTES = 16 * STEP  # before the event loop gets a turn
OFFERED = "gzip, deflate"
_MOST_MEMBERS = 1_000  # each may be empty, so that the size alone does not bound the work


class Stream(Protocol):
    """A body as it arrives; an empty piece is its end."""

    async def readany(self) -> bytes: ...


class CodingError(Exception):
    """The body is not coded as its header says."""


class TooLarge(Exception):
    """The body is larger than its content may be."""


class Decoder:
    """Decodes one body piece by piece; no piece it yields is larger than STEP."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._inner = zlib.decompressobj(31) if coding == "gzip" else None
        self._started = False
        self._members = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded bytes that `data` leads to."""
        while data:
            inner = self._inner or self._choose(data)
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
        """Raise CodingError if the coded body broke off."""
        if self._started and self._inner is not None and not self._inner.eof:
            raise CodingError(f"the {self._coding} body broke off")

    def _choose(self, data: bytes) -> "zlib._Decompress":
        # "deflate" means zlib, but some servers send the bare stream: the first byte tells them apart
        self._inner = zlib.decompressobj(15 if data[0] & 0x0F == 8 and data[0] >> 4 <= 7 else -15)
        return self._inner

    def _next_member(self, data: bytes) -> bytes:
        """Start the next gzip member; whatever else follows the end of the stream is ignored."""
        if self._coding != "gzip" or data[:1] != b"\x1f":
            return b""
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise CodingError("the gzip body has too many parts")
        self._inner = zlib.decompressobj(31)
        return data


def coding_of(headers: list[str]) -> str | None:
    """The one coding of a body ("" for none, "gzip", "deflate"), or None when we cannot undo it."""
    named = [part.strip().lower() for value in headers for part in value.split(",")]
    codings = [name.removeprefix("x-") for name in named if name and name != "identity"]
    if not codings:
        return ""
    return codings[0] if len(codings) == 1 and codings[0] in ("gzip", "deflate") else None


async def gather(stream: Stream, coding: str, limit: int, stir: Callable[[], None]) -> bytearray:
    """The decoded body, or its beginning and at least one byte more than `limit`; `stir` hears each piece.

    TooLarge if so much comes coded that its content cannot be within the limit.
    """
    decoder = Decoder(coding) if coding else None
    data = bytearray()
    raw = turn = 0
    while chunk := await stream.readany():
        stir()
        failpoint("fetch.body")
        raw += len(chunk)
        for piece in decoder.feed(chunk) if decoder else (chunk,):
            data += piece
            if len(data) > limit:
                return data
            turn += len(piece)
            if turn >= UNPACKED_PER_TURN_BYTES:
                turn = 0
                await asyncio.sleep(0)  # a small chunk may unpack to a thousand times its size
        if raw > limit + 64 * 1024:
            raise TooLarge
    if decoder:
        decoder.finish()
    return data
