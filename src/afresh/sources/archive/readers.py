"""Read ZIP and tar archives within limits for their number of entries, size and compression ratio.

Tar headers (ustar, pax, GNU) are parsed here: the standard library reads headers of any length at once and,
in some versions, can be made to loop forever.
"""

import bz2
import lzma
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from time import monotonic
from typing import IO, Any, TypeAlias, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from afresh.dataclass import dataclass
from afresh.errors import SourceError
from afresh.model.fetch import Validators
from afresh.sources.archive.paths import OUTSIDE, ArchiveEntry, name_refusal, plain_name

MEGABYTE = 1024 * 1024
STEP_BYTES = 64 * 1024
SMALL_ENTRY_BYTES = MEGABYTE  # up to this size an entry may have any compression ratio
# Up to this size a compressed tar may have any ratio: with many tiny files, it is mostly padding.
SMALL_STREAM_BYTES = 64 * MEGABYTE
MAX_XZ_MEMORY_BYTES = 128 * MEGABYTE
ENDS_EARLY = "the archive is damaged: it ends too early"

Decompressor: TypeAlias = "zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor"
_DECOMPRESSORS: tuple[tuple[bytes, Callable[[], Decompressor]], ...] = (
    (b"\x1f\x8b", lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY_BYTES)),
)
MAX_DIRECTORY_BYTES = 16 * MEGABYTE
BROKEN_ZIP = (BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError)  # raised by zipfile
_LOCAL_HEADER = 30
_ENCRYPTED_BITS = 0x2041  # flags for an encrypted entry, strong encryption and an encrypted directory
_DOS = frozenset({0, 10, 14})  # operating systems whose archives may contain paths with backslashes


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    entry_bytes: int = 10 * MEGABYTE  # maximum size of one entry, unpacked
    total_bytes: int = 2048 * MEGABYTE  # maximum size of all entries, unpacked
    stream_bytes: int = 512 * MEGABYTE  # maximum size of a compressed tar, unpacked into a temporary file
    entries: int = 100_000
    ratio: int = 250  # maximum ratio of the unpacked to the packed size of an entry or a stream
    seconds: float = 120.0  # time limit for opening an archive: reading its directory, unpacking its stream

    def check(self, entries: int, size: int) -> None:
        if entries > self.entries:
            raise SourceError(f"the archive holds more than {self.entries:,} entries")
        if size > self.total_bytes:
            raise SourceError(f"the archive unpacks to more than {self.total_bytes // MEGABYTE} MB")

    def refusal(self, size: int, packed: int) -> str | None:
        if size > self.entry_bytes:
            return f"larger than {self.entry_bytes // MEGABYTE or 1} MB"
        return "possible zip bomb" if size > SMALL_ENTRY_BYTES and size > self.ratio * packed else None


class BadEntry(Exception):
    """Raised if one entry cannot be read; the rest of the archive may be intact."""


class OpeningDeadline:
    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._seconds = clock, seconds
        self._end = clock() + seconds

    def check(self) -> None:
        if self._clock() > self._end:
            raise SourceError(f"opening the archive takes longer than {self._seconds:g} s")


def find_decompressor(head: bytes) -> Callable[[], Decompressor] | None:
    return next((make for magic, make in _DECOMPRESSORS if head.startswith(magic)), None)


def decompress(
    file: IO[bytes], out: IO[bytes], make: Callable[[], Decompressor], limits: ArchiveLimits, deadline: OpeningDeadline
) -> None:
    """Decompress all members of a stream into a file; raise SourceError if it exceeds a limit or is damaged."""
    stream, size, data = make(), 0, b""
    while True:
        deadline.check()
        if stream.eof:
            data = (stream.unused_data or file.read(STEP_BYTES)).lstrip(b"\0")
            if not data:
                return
            stream = make()
        try:
            unused = getattr(stream, "unconsumed_tail", b"")  # only zlib does not keep unused input itself
            piece = stream.decompress(unused + data, STEP_BYTES)
        except (zlib.error, OSError, EOFError, lzma.LZMAError) as error:
            raise SourceError(f"the archive is damaged ({error})") from error
        size += out.write(piece)
        limits.check(0, size)
        if size > limits.stream_bytes:
            raise SourceError(
                f"the compressed tar unpacks to more than {limits.stream_bytes // MEGABYTE} MB: "
                "unpack it, or convert it to ZIP or an uncompressed tar"
            )
        if size > SMALL_STREAM_BYTES and size > limits.ratio * file.tell():
            raise SourceError("the archive may be a zip bomb: its compression ratio is too high")
        data = b""
        if len(piece) < STEP_BYTES and not stream.eof:
            data = file.read(STEP_BYTES)
            if not data and not piece:
                raise SourceError(ENDS_EARLY)


BLOCK_BYTES = 512
MAX_EXTRA_BYTES = 64 * 1024  # of a pax or GNU header; valid ones are much shorter

_FOLDER = b"5"
_WITHOUT_DATA = frozenset({b"1", b"2", b"3", b"4", b"5", b"6"})
_EXTRA = frozenset({b"x", b"g", b"L", b"K"})  # headers that describe the next record, or all records
_LABELS = frozenset({b"V", b"N"})
_REASONS = {
    **dict.fromkeys((b"1", b"2"), "a link"),
    **dict.fromkeys((b"3", b"4", b"6"), "a device or a pipe"),
    b"S": "a sparse file",
    b"M": "a part of a file",
}


@dataclass(slots=True)
class _Record:
    name: bytes = b""
    kind: bytes = b"0"
    size: int | None = None
    start: int = 0
    sparse: bool = False


class TarArchive:
    """An uncompressed tar archive; of entries with the same name, only the last counts."""

    def __init__(self, file: IO[bytes], url: str, limits: ArchiveLimits, deadline: OpeningDeadline) -> None:
        self._file, self._url, self._limits, self._deadline = file, url, limits, deadline
        self._end = file.seek(0, 2)
        self.entries: dict[str, ArchiveEntry] = {}
        unpacked = 0
        for record in self._records():
            entry = self._entry(record)
            self.entries[entry.name] = entry
            unpacked += entry.size if entry.refusal is None else 0
            limits.check(len(self.entries), unpacked)

    def read(self, entry: ArchiveEntry) -> bytes:
        self._file.seek(entry.place)
        data = self._file.read(entry.size)
        if _etag(len(data), zlib.crc32(data)) != entry.validators.etag:
            raise BadEntry("it changed while it was being read")
        return data

    def _records(self) -> Iterator[_Record]:
        """Yield the files of the archive; a pax or GNU header applies to the file after it."""
        at, extra = 0, _Record()
        for _ in range(3 * self._limits.entries):  # a file may have two headers before its own
            self._deadline.check()
            block = self._block(at)
            if not block.strip(b"\0"):
                return
            kind, size = block[156:157], _number(block[124:136])
            at += BLOCK_BYTES
            if kind in _EXTRA:
                if size < 0 or size > MAX_EXTRA_BYTES:
                    raise SourceError("the archive is damaged: a header is too long")
                self._file.seek(at)
                _apply_extra_header(extra, kind, self._file.read(size))
                at = self._after(at, size)
                continue
            if kind == b"S" and block[482]:
                at = self._after_map(at)
            size = size if extra.size is None else extra.size
            prefix, name = _text(block[345:500]), _text(block[:100])
            if prefix and block[257:263] == b"ustar\0":  # GNU stores times there
                name = prefix + b"/" + name
            name = extra.name or name
            if kind != _FOLDER and kind not in _LABELS and not name.endswith(b"/"):
                yield _Record(name, kind, size, at, extra.sparse)
            at = at if kind in _WITHOUT_DATA else self._after(at, size)
            extra = _Record()
        raise SourceError(f"the archive holds more than {self._limits.entries:,} entries")

    def _block(self, at: int) -> bytes:
        self._file.seek(at)
        block = self._file.read(BLOCK_BYTES)
        if len(block) < BLOCK_BYTES:
            raise SourceError(ENDS_EARLY)
        if block.strip(b"\0") and sum(block) - sum(block[148:156]) + 8 * 0x20 != _number(block[148:156]):
            raise SourceError("the archive is damaged: a header does not match its checksum")
        return block

    def _after(self, at: int, size: int) -> int:
        """Return the offset of the block after `size` bytes at `at`; raise SourceError if the file ends before it."""
        after = at + -(-size // BLOCK_BYTES) * BLOCK_BYTES
        if size < 0 or after > self._end:
            raise SourceError(ENDS_EARLY)
        return after

    def _after_map(self, at: int) -> int:
        """Return the offset after the blocks that list the parts of a sparse file."""
        while True:
            self._deadline.check()
            self._file.seek(at)
            block = self._file.read(BLOCK_BYTES)
            at = self._after(at, BLOCK_BYTES)
            if not block[504]:
                return at

    def _entry(self, record: _Record) -> ArchiveEntry:
        raw, size = record.name.decode("utf-8", "surrogateescape"), record.size or 0
        name = plain_name(raw)
        refusal = name_refusal(raw, self._url) if name else OUTSIDE
        refusal = refusal or ("a sparse file" if record.sparse else _REASONS.get(record.kind))
        refusal = refusal or self._limits.refusal(size, size)
        etag, checksum, left = f"{size:x}", 0, size
        if not refusal:  # changes are detected by checksum, because all dates in a tar are often equal
            self._file.seek(record.start)
            while left > 0 and (part := self._file.read(min(left, STEP_BYTES))):
                checksum = zlib.crc32(part, checksum)
                left -= len(part)
            etag = _etag(size, checksum)
        return ArchiveEntry(name or raw, size, Validators(etag=etag), record.start, refusal)


def _etag(size: int, checksum: int) -> str:
    return f"{size:x}-{checksum:08x}"


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes) -> int:
    """Parse a number in a tar header (octal digits, or binary with the high bit set); return -1 if it is invalid."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big") if field[0] != 0xFF else -1
    digits = _text(field).strip()
    return int(digits, 8) if digits and not digits.strip(b"01234567") else 0 if not digits else -1


def _apply_extra_header(record: _Record, kind: bytes, data: bytes) -> None:
    if kind == b"L":
        record.name = _text(data)
    elif kind == b"x":
        for key, value in _pairs(data):
            if key in (b"path", b"GNU.sparse.name"):
                record.name = value
            elif key == b"size":
                record.size = int(value) if value.isdigit() and len(value) < 20 else -1
            record.sparse = record.sparse or key.startswith(b"GNU.sparse.")


def _pairs(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key-value pairs of a pax header; each begins with its length, as in `11 path=ab`."""
    at = 0
    while at < len(data):
        length, space, _ = data[at : at + 20].partition(b" ")
        if not space or not length.isdigit() or not len(length) < int(length) <= len(data) - at:
            return
        key, _, value = data[at + len(length) + 1 : at + int(length) - 1].partition(b"=")
        yield key, value
        at += int(length)


class _Guarded:
    """Wraps a file and rejects reads larger than MAX_DIRECTORY_BYTES, to save memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size > MAX_DIRECTORY_BYTES:
            raise BadZipFile("its central directory is too large")
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class ZipArchive:
    """A ZIP archive; of entries with the same name, only the last counts."""

    def __init__(self, file: IO[bytes], url: str, limits: ArchiveLimits) -> None:
        try:
            self._zip = ZipFile(cast("IO[bytes]", _Guarded(file)))
        except BROKEN_ZIP as error:
            raise SourceError(f"the archive is damaged ({error})") from error
        self._infos = self._zip.infolist()
        limits.check(len(self._infos), 0)
        ordered = sorted(self._infos, key=lambda info: info.header_offset)
        starts = [info.header_offset for info in ordered]
        for info, (start, following) in zip(ordered, pairwise([*starts, self._zip.start_dir]), strict=True):
            if start + _LOCAL_HEADER + info.compress_size > following:  # could unpack to any size
                raise SourceError("the archive is damaged or a zip bomb: its entries overlap")
        found = (_entry(place, info, url, limits) for place, info in enumerate(self._infos))
        self.entries = {entry.name: entry for entry in found if entry is not None}
        limits.check(0, sum(entry.size for entry in self.entries.values() if entry.refusal is None))

    def read(self, entry: ArchiveEntry) -> bytes:
        parts, left = [], entry.size
        try:
            with self._zip.open(self._infos[entry.place]) as file:
                while left and (part := file.read(min(left, STEP_BYTES))):
                    parts.append(part)
                    left -= len(part)
                file.read(1)  # the checksum is checked at the end
        except BROKEN_ZIP as error:
            raise BadEntry(f"damaged in the archive ({error})") from error
        if left:
            raise BadEntry("damaged in the archive (its data ends too early)")
        return b"".join(parts)


def _entry(place: int, info: ZipInfo, url: str, limits: ArchiveLimits) -> ArchiveEntry | None:
    raw = info.orig_filename
    if not info.flag_bits & 0x800 and not raw.isascii():  # no encoding given
        raw = raw.encode("cp437", "replace").decode("utf-8", "surrogateescape")
    if info.create_system in _DOS:
        raw = raw.replace("\\", "/")
    name = plain_name(raw)
    if raw.endswith("/") or info.is_dir():
        return None
    refusal = name_refusal(raw, url) if name else OUTSIDE
    refusal = refusal or _refusal(info) or limits.refusal(info.file_size, info.compress_size)
    etag = _etag(info.file_size, info.CRC)
    return ArchiveEntry(name or raw, info.file_size, Validators(etag=etag), place, refusal)


def _refusal(info: ZipInfo) -> str | None:
    if info.flag_bits & _ENCRYPTED_BITS:
        return "encrypted"
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return "compressed with an unsupported method"
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return "a link"
    special = stat.S_IFMT(mode) not in (0, stat.S_IFREG)
    return "a device or a pipe" if special else None
