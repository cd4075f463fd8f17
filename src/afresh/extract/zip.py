"""ZIP files read within limits: how many members, how large, how tightly packed, and none outside."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from afresh.errors import ExtractError
from afresh.extract.zip_errors import BROKEN_ZIP

MEGABYTE = 1024 * 1024
MOST_MEMBERS = 10_000
MOST_BYTES = 128 * MEGABYTE  # of all that is read of one file, unpacked
LARGEST_MEMBER = 64 * MEGABYTE
TIGHTEST = 250  # times smaller than unpacked: a sheet of equal rows may be a hundred times
SMALL = MEGABYTE  # up to this size a member may be packed as tightly as it likes

_ENTRY = b"PK\x01\x02"
_ENCRYPTED = 0x1


class Member(NamedTuple):
    """A file in a ZIP file, with the size it claims to have."""

    name: str
    size: int


class Zipped:
    """A ZIP file in memory; ExtractError says what is wrong with it, or which limit it passes."""

    def __init__(
        self, data: bytes, *, most_members: int = MOST_MEMBERS, most_bytes: int = MOST_BYTES
    ) -> None:
        if data.count(_ENTRY) > most_members:  # before anything is made for each of them
            raise ExtractError(f"a ZIP file with more than {most_members:,} members")
        self._left = most_bytes
        with _told():
            self._file = ZipFile(BytesIO(data))
        self._infos = {info.filename: info for info in self._file.infolist() if is_inside(info.filename)}

    @property
    def members(self) -> tuple[Member, ...]:
        """The files in it, in its order, but those that would lie outside the folder it is unpacked to."""
        return tuple(Member(name, info.file_size) for name, info in self._infos.items() if not info.is_dir())

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def read(self, name: str, most: int = LARGEST_MEMBER) -> bytes:
        """The bytes of a member, at most `most`."""
        info = self._infos.get(name)
        if info is None:
            raise ExtractError(f"a ZIP file without {name}")
        _refuse(info, min(most, self._left))
        with _told(), self._file.open(info) as member:
            data = member.read(info.file_size)
        self._left -= len(data)
        return data


def is_inside(name: str) -> bool:
    """Whether a member's name leads to a place below the folder that a ZIP file is unpacked to."""
    if not name or name[0] in "/\\" or name[1:2] == ":" or "\0" in name:
        return False
    return ".." not in name.replace("\\", "/").split("/")


def _refuse(info: ZipInfo, most: int) -> None:
    if info.flag_bits & _ENCRYPTED:
        raise ExtractError("encrypted: it cannot be read without its password")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ExtractError("a ZIP file packed in a way that is not read")
    if info.file_size > most:
        raise ExtractError(
            f"a ZIP file that unpacks to more than {most // MEGABYTE} MB ({info.filename[:80]})"
        )
    if info.file_size > SMALL and info.file_size > TIGHTEST * info.compress_size:
        raise ExtractError(f"a ZIP bomb: {info.filename[:80]} unpacks to {info.file_size // MEGABYTE} MB")


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BROKEN_ZIP as error:
        raise ExtractError(f"a broken ZIP file ({error})") from error
