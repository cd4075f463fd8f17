"""Reads tar archives by their headers alone (ustar, pax, GNU), within limits.

The standard library's reader reads headers of any length at once and, in some versions, can be sent into a
loop; all that is needed of a tar is where its files begin and how long they are.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from afresh.errors import SourceError
from afresh.model.fetch import Validators
from afresh.sources.archive.limits import STEP, BadEntry, Deadline, Unpacking
from afresh.sources.archive.paths import OUTSIDE, Entry, name_refusal, plain_name

BLOCK = 512
LONGEST_EXTRA = 64 * 1024  # a longer name, or more about one file, is none that is needed

_FOLDER = b"5"
_WITHOUT_DATA = frozenset({b"1", b"2", b"3", b"4", b"5", b"6"})
_EXTRA = frozenset({b"x", b"g", b"L", b"K"})  # about the record that follows, or about all
_LABELS = frozenset({b"V", b"N"})
_SPECIAL = "a device or a pipe"
_REASONS = {
    b"1": "a link",
    b"2": "a link",
    b"3": _SPECIAL,
    b"4": _SPECIAL,
    b"6": _SPECIAL,
    b"S": "a sparse file",
    b"M": "a part of a file",
}


@dataclass(slots=True)
class _Record:
    """One file of a tar, as its headers tell."""

    name: bytes = b""
    kind: bytes = b"0"
    size: int | None = None
    start: int = 0
    sparse: bool = False


class TarArchive:
    """A tar archive that is not compressed (any more); entries of one name count once, the last of them."""

    def __init__(self, file: IO[bytes], url: str, limits: Unpacking, deadline: Deadline) -> None:
        self._file, self._url, self._limits, self._deadline = file, url, limits, deadline
        self._end = file.seek(0, 2)
        self.entries: dict[str, Entry] = {}
        unpacked = 0
        for record in self._records():
            entry = self._entry(record)
            self.entries[entry.name] = entry
            if len(self.entries) > limits.entries:
                raise SourceError(limits.too_many)
            unpacked += entry.size if entry.refusal is None else 0
            if unpacked > limits.total_bytes:
                raise SourceError(limits.too_large)

    def read(self, entry: Entry) -> bytes:
        """The bytes of an entry, which are those that were listed; BadEntry if not."""
        self._file.seek(entry.place)
        data = self._file.read(entry.size)
        if _etag(len(data), zlib.crc32(data)) != entry.validators.etag:
            raise BadEntry("it changed while it was read")
        return data

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    # ---- records ------------------------------------------------------------------------------

    def _records(self) -> Iterator[_Record]:
        """The files in their order; what a header says of the next one is put together with it."""
        at, told = 0, _Record()
        for _ in range(3 * self._limits.entries):  # a file may have two headers before its own
            self._deadline.check()
            block = self._block(at)
            if not block.strip(b"\0"):
                return
            kind, size = block[156:157], _number(block[124:136])
            at += BLOCK
            if kind in _EXTRA:
                _tell(told, kind, self._extra(at, size))
                at = self._after(at, size)
                continue
            if kind == b"S" and block[482]:
                at = self._after_map(at)
            size = size if told.size is None else told.size
            name = told.name or _name(block)
            if kind != _FOLDER and kind not in _LABELS and not name.endswith(b"/"):
                yield _Record(name, kind, size, at, told.sparse)
            at = at if kind in _WITHOUT_DATA else self._after(at, size)
            told = _Record()
        raise SourceError(self._limits.too_many)

    def _block(self, at: int) -> bytes:
        self._file.seek(at)
        block = self._file.read(BLOCK)
        if len(block) < BLOCK:
            raise SourceError("the archive is damaged: it ends too early")
        told = _number(block[148:156])
        if block.strip(b"\0") and sum(block) - sum(block[148:156]) + 8 * 0x20 != told:
            raise SourceError("the archive is damaged: a header does not fit its sum")
        return block

    def _after(self, at: int, size: int) -> int:
        """Where the record behind data of this size begins."""
        after = at + -(-size // BLOCK) * BLOCK
        if size < 0 or after > self._end:
            raise SourceError("the archive is damaged: it ends too early")
        return after

    def _after_map(self, at: int) -> int:
        """Where the data of a sparse file begins: behind the blocks that list its parts."""
        more = True
        while more:
            self._deadline.check()
            self._file.seek(at)
            block = self._file.read(BLOCK)
            at = self._after(at, BLOCK)
            more = bool(block[504])
        return at

    def _extra(self, at: int, size: int) -> bytes:
        if size < 0 or size > LONGEST_EXTRA:
            raise SourceError("the archive is damaged: a header is too long")
        self._file.seek(at)
        return self._file.read(size)

    # ---- entries ------------------------------------------------------------------------------

    def _entry(self, record: _Record) -> Entry:
        raw, size = record.name.decode("utf-8", "surrogateescape"), record.size or 0
        name = plain_name(raw)
        refusal = name_refusal(raw, self._url) if name else OUTSIDE
        refusal = refusal or ("a sparse file" if record.sparse else _REASONS.get(record.kind))
        refusal = refusal or self._limits.refusal(size, size)
        etag = f"{size:x}" if refusal else _etag(size, self._sum(record.start, size))
        return Entry(name or raw, size, Validators(etag=etag), record.start, refusal)

    def _sum(self, at: int, size: int) -> int:
        """The sum of an entry's bytes: dates in a tar are often all the same."""
        self._file.seek(at)
        total = 0
        while size > 0 and (part := self._file.read(min(size, STEP))):
            total = zlib.crc32(part, total)
            size -= len(part)
        return total


def _etag(size: int, total: int) -> str:
    return f"{size:x}-{total:08x}"


def _name(block: bytes) -> bytes:
    name, prefix = (_text(block[start:stop]) for start, stop in ((0, 100), (345, 500)))
    is_posix = block[257:263] == b"ustar\0"  # GNU keeps times where others keep the start of a name
    return prefix + b"/" + name if prefix and is_posix else name


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes) -> int:
    """A number as tars write it: octal digits, or bytes behind a mark."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big") if field[0] != 0xFF else -1
    digits = _text(field).strip()
    return int(digits, 8) if digits and not digits.strip(b"01234567") else 0 if not digits else -1


def _tell(told: _Record, kind: bytes, data: bytes) -> None:
    """Note what a header says of the record that follows."""
    if kind == b"L":
        told.name = _text(data)
    elif kind == b"x":
        for key, value in _pairs(data):
            if key in (b"path", b"GNU.sparse.name"):
                told.name = value
            elif key == b"size":
                told.size = int(value) if value.isdigit() and len(value) < 20 else -1
            told.sparse = told.sparse or key.startswith(b"GNU.sparse.")


def _pairs(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The pairs of a pax header: `11 path=ab` and so on, each with its length before it."""
    at = 0
    while at < len(data):
        length, space, _ = data[at : at + 20].partition(b" ")
        if not space or not length.isdigit() or not len(length) < int(length) <= len(data) - at:
            return
        key, _, value = data[at + len(length) + 1 : at + int(length) - 1].partition(b"=")
        yield key, value
        at += int(length)
