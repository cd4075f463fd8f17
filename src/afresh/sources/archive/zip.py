"""Reads ZIP archives: their directory once, then entry by entry, within limits."""

import stat
from collections.abc import Iterable
from itertools import pairwise
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from afresh.errors import SourceError
from afresh.extract.zip_errors import BROKEN_ZIP
from afresh.model.fetch import Validators
from afresh.sources.archive.limits import MEGABYTE, STEP, BadEntry, Unpacking
from afresh.sources.archive.paths import OUTSIDE, Entry, name_refusal, plain_name

LARGEST_DIRECTORY = 16 * MEGABYTE
ENCRYPTED = "encrypted"
LINK = "a link"

_LOCAL_HEADER = 30
_ENCRYPTED_BITS = 0x2041  # the entry, strongly, and the directory
_DOS = frozenset({0, 10, 14})  # systems whose archives may part names by backslashes


class _Guarded:
    """A file that refuses a read for which memory would have to be found first."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.close = file.seek, file.tell, file.close

    def read(self, size: int = -1) -> bytes:
        """So many bytes, if that is not too many."""
        if size > LARGEST_DIRECTORY:
            raise BadZipFile("its directory is too large")
        return self._file.read(size)

    def seekable(self) -> bool:
        """A file on disk can be read anywhere."""
        return True


class ZipArchive:
    """A ZIP archive; entries of one name count once, the last of them."""

    def __init__(self, file: IO[bytes], url: str, limits: Unpacking) -> None:
        try:
            self._zip = ZipFile(_Guarded(file))
        except BROKEN_ZIP as error:
            raise SourceError(f"the archive is damaged ({error})") from error
        self._infos = self._zip.infolist()
        if len(self._infos) > limits.entries:
            raise SourceError(limits.too_many)
        _refuse_overlaps(self._infos, self._zip.start_dir)
        found = (_entry(place, info, url, limits) for place, info in enumerate(self._infos))
        self.entries = {entry.name: entry for entry in found if entry is not None}
        unpacked = sum(entry.size for entry in self.entries.values() if entry.refusal is None)
        if unpacked > limits.total_bytes:
            raise SourceError(limits.too_large)

    def read(self, entry: Entry) -> bytes:
        """The bytes of an entry, which fit the sum that the archive keeps of them; BadEntry if not."""
        parts, left = [], entry.size
        try:
            with self._zip.open(self._infos[entry.place]) as file:
                while left and (part := file.read(min(left, STEP))):
                    parts.append(part)
                    left -= len(part)
                file.read(1)  # the sum is checked at the end
        except BROKEN_ZIP as error:
            raise BadEntry(f"damaged in the archive ({error})") from error
        if left:
            raise BadEntry("damaged in the archive (it ends too early)")
        return b"".join(parts)

    def close(self) -> None:
        """Let go of the file."""
        self._zip.close()


def _refuse_overlaps(infos: Iterable[ZipInfo], end: int) -> None:
    """Refuse an archive whose entries share bytes: a few of them can unpack to any size."""
    ordered = sorted(infos, key=lambda info: info.header_offset)
    starts = [info.header_offset for info in ordered]
    for info, (start, following) in zip(ordered, pairwise([*starts, end]), strict=True):
        if start + _LOCAL_HEADER + info.compress_size > following:
            raise SourceError("the archive is a bomb or damaged: its entries overlap")


def _entry(place: int, info: ZipInfo, url: str, limits: Unpacking) -> Entry | None:
    """The entry of a record of the directory; None for a folder."""
    raw = _name(info)
    name = plain_name(raw)
    if raw.endswith("/") or info.is_dir():
        return None
    refusal = name_refusal(raw, url) if name else OUTSIDE
    refusal = refusal or _refusal(info) or limits.refusal(info.file_size, info.compress_size)
    etag = f"{info.file_size:x}-{info.CRC:08x}"
    return Entry(name or raw, info.file_size, Validators(etag=etag), place, refusal)


def _name(info: ZipInfo) -> str:
    """The name of an entry; without a word on its encoding it is UTF-8 if it can be."""
    name = info.orig_filename
    if not info.flag_bits & 0x800 and not name.isascii():
        raw = name.encode("cp437", "replace")
        name = raw.decode("utf-8", "surrogateescape")
    return name.replace("\\", "/") if info.create_system in _DOS else name


def _refusal(info: ZipInfo) -> str | None:
    if info.flag_bits & _ENCRYPTED_BITS:
        return ENCRYPTED
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return "packed in a way that is not read"
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return LINK
    special = stat.S_IFMT(mode) not in (0, stat.S_IFREG)
    return "a device or a pipe" if special else None
