"""What an archive may cost, and files read within that: no read too large, no stream unpacked without end."""

import bz2
import lzma
import os
import stat
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO, Protocol

from afresh.errors import SourceError

MEGABYTE = 1024 * 1024
STEP = 64 * 1024
SMALL = MEGABYTE  # up to this size an entry may be packed as tightly as it likes
SMALL_STREAM = 64 * MEGABYTE  # and a stream, which is mostly padding where the files in it are tiny
XZ_MEMORY = 128 * MEGABYTE

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_MAGIC = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\0", "xz"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacking:
    """The limits within which an archive is read."""

    entry_bytes: int = 10 * MEGABYTE  # of one entry, unpacked
    total_bytes: int = 2048 * MEGABYTE  # of all entries, unpacked
    stream_bytes: int = 512 * MEGABYTE  # of a compressed tar, which is unpacked into a temporary file
    entries: int = 100_000
    ratio: int = 250  # how many times larger than packed an entry or a stream may be
    seconds: float = 120.0  # for opening: reading the directory, unpacking a stream

    @property
    def too_many(self) -> str:
        """What is said of an archive with too many entries."""
        return f"the archive holds more than {self.entries:,} entries"

    @property
    def too_large(self) -> str:
        """What is said of an archive that holds too much."""
        return f"the archive unpacks to more than {self.total_bytes // MEGABYTE} MB"

    def refusal(self, size: int, packed: int) -> str | None:
        """Why an entry of this size, packed into so many bytes, is not read."""
        if size > self.entry_bytes:
            return f"larger than {self.entry_bytes // MEGABYTE or 1} MB"
        return "packed like a bomb" if size > SMALL and size > self.ratio * packed else None


class BadEntry(Exception):
    """One entry cannot be read; the rest of the archive may be well."""


class Deadline:
    """When opening an archive has taken too long."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._seconds = clock, seconds
        self._end = clock() + seconds

    def check(self) -> None:
        """Raise a SourceError once it is over."""
        if self._clock() > self._end:
            raise SourceError(f"opening the archive takes longer than {self._seconds:g} s")


class Decompressor(Protocol):
    """What the decompressors of the standard library have in common, behind one method."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class Gzip:
    """zlib's decompressor with the manners of the two others: it keeps what it has not used yet."""

    def __init__(self) -> None:
        self._made = zlib.decompressobj(wbits=_GZIP_WINDOW)

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        return self._made.eof

    @property
    def unused_data(self) -> bytes:
        """What follows the end of the stream."""
        return self._made.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """At most so many bytes of what was packed."""
        return self._made.decompress(self._made.unconsumed_tail + data, max_length)


def open_regular(path: Path) -> IO[bytes]:
    """Open a file that is a regular one; a pipe or a device would never end."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise SourceError(f"the archive {path} cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise SourceError(f"the archive {path} is no regular file")
    return os.fdopen(handle, "rb")


def plain(file: IO[bytes], limits: Unpacking, deadline: Deadline) -> IO[bytes]:
    """The file itself, or what it holds unpacked into a file without a name, if it is compressed."""
    head = file.read(6)
    file.seek(0)
    coding = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
    if coding is None:
        return file
    made = tempfile.TemporaryFile()  # noqa: SIM115 - it is handed on
    try:
        _unpack(file, made, coding, limits, deadline)
    except BaseException:
        made.close()
        raise
    made.seek(0)
    return made


def _decompressor(coding: str) -> Decompressor:
    if coding == "gzip":
        return Gzip()
    return bz2.BZ2Decompressor() if coding == "bzip2" else lzma.LZMADecompressor(memlimit=XZ_MEMORY)


def _unpack(file: IO[bytes], made: IO[bytes], coding: str, limits: Unpacking, deadline: Deadline) -> None:
    """Write what a stream holds, member after member, in steps that are counted."""
    stream, size, data = _decompressor(coding), 0, b""
    while True:
        deadline.check()
        if stream.eof:
            data = (stream.unused_data or file.read(STEP)).lstrip(b"\0")
            if not data:
                return
            stream = _decompressor(coding)
        try:
            piece = stream.decompress(data, STEP)
        except (zlib.error, OSError, EOFError, lzma.LZMAError) as error:
            raise SourceError(f"the archive is damaged ({error})") from error
        size += made.write(piece)
        _check_total(size, file.tell(), limits)
        data = b""
        if len(piece) < STEP and not stream.eof:
            data = file.read(STEP)
            if not data and not piece:
                raise SourceError("the archive is damaged: it ends too early")


def _check_total(size: int, packed: int, limits: Unpacking) -> None:
    if size > limits.total_bytes:
        raise SourceError(limits.too_large)
    if size > limits.stream_bytes:
        most = f"{limits.stream_bytes // MEGABYTE} MB"
        raise SourceError(
            f"the compressed tar unpacks to more than {most}: unpack it, or pack it as ZIP or plain tar"
        )
    if size > SMALL_STREAM and size > limits.ratio * packed:
        raise SourceError("the archive is packed like a bomb")
