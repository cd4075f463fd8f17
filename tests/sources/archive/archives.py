"""Archives for tests, good ones and hostile ones."""

import io
import struct
import tarfile
import zipfile
import zlib
from datetime import UTC, datetime
from pathlib import Path

from afresh.model.fetch import Fetched, Request
from afresh.model.records import ListedUrl
from afresh.sources.archive.fetcher import ArchiveFetcher, ArchiveLister
from afresh.sources.archive.readers import ArchiveLimits
from afresh.testing import FrozenClock


def zip_of(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def tar_of(files: dict[str, bytes], mode: str = "w", format_: int = tarfile.PAX_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode, format=format_, errors="surrogateescape") as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def tar_with(*infos: tarfile.TarInfo) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for info in infos:
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    return made.getvalue()


def overlapping_zip(names: int, size: int) -> bytes:
    """Entries of one kernel, all at one place (Fifield's better bomb, in small)."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    kernel = squeezer.compress(bytes(size)) + squeezer.flush()
    total = zlib.crc32(bytes(size))
    local, directory = b"", b""
    for number in range(names):
        name = b"%04d" % number
        facts = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0, total, len(kernel), size, len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + facts
        directory += struct.pack("<HHHII", 0, 0, 0, 0, 0) + name  # all at the start of the file
        local = local or b"PK\x03\x04" + facts + name + kernel
    end = struct.pack("<HHHHIIH", 0, 0, names, names, len(directory), len(local), 0)
    return local + directory + b"PK\x05\x06" + end


LATER = datetime(2100, 1, 1, tzinfo=UTC)


class ArchiveSource:
    """An archive on disk with a fetcher and listers for it."""

    def __init__(self, path: Path, limits: ArchiveLimits | None = None) -> None:
        self.path, self.url = path, f"file://{path}"
        self.fetcher = ArchiveFetcher(path, self.url, limits)
        self.lister = self.another(None)

    def another(self, mark: str | None) -> ArchiveLister:
        return ArchiveLister(self.fetcher, clock=FrozenClock(LATER), mark=mark)

    async def listed(self) -> list[ListedUrl]:
        return [item async for item in self.lister.list()]

    async def names(self) -> list[str]:
        return [item.url.removeprefix(self.url + "!/") for item in await self.listed()]

    async def fetch(self, name: str) -> Fetched:
        return await self.fetcher.fetch(Request(url=f"{self.url}!/{name}"))
