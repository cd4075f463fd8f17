"""Hostile and damaged archives: bounded cost, nothing outside, nothing lost."""

import gzip
import io
import lzma
import os
import struct
import tarfile
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources.archive.archives import ArchiveSource, overlapping_zip, tar_of, tar_with, zip_of

from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Refused
from afresh.sources.archive.readers import ArchiveLimits, OpeningDeadline

MEGABYTE = 1024 * 1024
CPU_SECONDS = 5.0
MEMORY = 40 * MEGABYTE


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Every archive here costs bounded time and memory, whatever it claims to hold."""
    tracemalloc.start()
    begun = time.process_time()
    yield
    spent, (_, peak) = time.process_time() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert spent < CPU_SECONDS
    assert peak < MEMORY


def write_archive(tmp_path: Path, name: str, data: bytes, limits: ArchiveLimits | None = None) -> ArchiveSource:
    path = tmp_path / name
    path.write_bytes(data)
    tracemalloc.reset_peak()  # making it may cost more than reading it
    return ArchiveSource(path, limits)


def with_room(pieces: int, piece: bytes = bytes(MEGABYTE)) -> bytes:
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="w", compresslevel=9) as file:
        for _ in range(pieces):
            file.write(piece)
    return made.getvalue()


async def test_a_flat_bomb_is_refused_entry_by_entry(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("good.md", b"# Good")
        for number in range(4):
            with archive.open(f"{number}.txt", "w") as file:
                for _ in range(8):
                    file.write(bytes(MEGABYTE))
        with archive.open("huge.txt", "w") as file:
            for _ in range(16):
                file.write(os.urandom(MEGABYTE // 16) * 16)
    source = write_archive(tmp_path, "bomb.zip", made.getvalue())
    assert await source.names() == ["good.md"]
    assert source.lister.dropped == {"possible zip bomb": 4, "larger than 10 MB": 1}
    assert isinstance(await source.fetch("0.txt"), Refused)
    await source.fetcher.close()


async def test_a_nested_bomb_is_not_opened(tmp_path: Path) -> None:
    inner = zip_of({"0.txt": bytes(MEGABYTE)})
    source = write_archive(tmp_path, "42.zip", zip_of({f"lib {n}.zip": inner for n in range(16)}))
    assert await source.names() == []
    assert source.lister.dropped == {"an archive within an archive": 16}
    await source.fetcher.close()


async def test_entries_that_overlap_are_refused_with_their_archive(tmp_path: Path) -> None:
    source = write_archive(tmp_path, "better.zip", overlapping_zip(1_000, MEGABYTE))
    with pytest.raises(SourceError, match="overlap"):
        await source.listed()
    assert isinstance(await source.fetch("0001"), Failed)


async def test_an_entry_that_quotes_the_next_one_is_refused_with_its_archive(tmp_path: Path) -> None:
    data = bytearray(zip_of({"a.md": os.urandom(50), "b.md": os.urandom(50)}))
    at = data.index(b"PK\x01\x02") + 20
    data[at : at + 4] = struct.pack("<I", 120)  # packed, it reaches into the header of the next entry
    with pytest.raises(SourceError, match="overlap"):
        await write_archive(tmp_path, "quoted.zip", bytes(data)).listed()


async def test_an_entry_larger_than_it_claims_is_damaged(tmp_path: Path) -> None:
    data = zip_of({"a.md": b"a" * 500_000, "b.md": b"# Fine"})
    lying = data.replace(struct.pack("<I", 500_000), struct.pack("<I", 1_000))
    source = write_archive(tmp_path, "lies.zip", lying)
    assert await source.names() == ["a.md", "b.md"]
    seen = await source.fetch("a.md")
    assert isinstance(seen, Failed)
    assert "damaged in the archive" in seen.reason
    assert isinstance(await source.fetch("b.md"), Body)
    await source.fetcher.close()


@pytest.mark.parametrize("name", ["bomb.tar.gz", "bomb.tar.xz"])
async def test_F58_a_compressed_bomb_ends_at_the_limit(tmp_path: Path, name: str) -> None:
    data = with_room(80) if name.endswith("gz") else lzma.compress(bytes(80 * MEGABYTE), preset=0)
    with pytest.raises(SourceError, match="may be a zip bomb"):
        await write_archive(tmp_path, name, data).listed()
    small = ArchiveLimits(total_bytes=2 * MEGABYTE)
    with pytest.raises(SourceError, match="more than 2 MB"):
        await write_archive(tmp_path, name, data, small).listed()


async def test_F58_an_xz_stream_that_wants_much_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 4 * MEGABYTE}]
    data = bytearray(lzma.compress(tar_of({"a.md": b"# A"}), filters=filters, check=lzma.CHECK_NONE))
    at = data.index(0x21, 12) + 2  # the size of the dictionary, in the header of the block
    data[at] = 38  # 2 GB
    header = 12, 12 + (data[12] + 1) * 4
    data[header[1] - 4 : header[1]] = struct.pack("<I", zlib.crc32(data[header[0] : header[1] - 4]))
    with pytest.raises(SourceError, match="damaged"):
        await write_archive(tmp_path, "big.tar.xz", bytes(data)).listed()


async def test_names_that_lead_out_are_dropped(tmp_path: Path) -> None:
    names = ["../up.md", "a/../../up.md", "/etc/passwd", "C:\\x.md", "..\\up.md", "\\\\host\\x.md"]
    source = write_archive(tmp_path, "slip.zip", zip_of({"in.md": b"", **dict.fromkeys(names, b"x")}))
    assert await source.names() == ["in.md"]
    assert source.lister.dropped == {"its name leads out of the archive": len(names)}
    other = write_archive(tmp_path, "slip.tar", tar_of({"in.md": b"", **dict.fromkeys(names, b"x")}))
    assert await other.names() == ["in.md"]
    assert other.lister.dropped == source.lister.dropped
    assert isinstance(await other.fetch("../up.md"), Refused)
    await source.fetcher.close()
    await other.fetcher.close()


async def test_F78_F79_links_devices_and_pipes_in_a_tar_are_dropped_with_their_reason(tmp_path: Path) -> None:
    infos = []
    for name, kind in (("l", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE), ("c", tarfile.CHRTYPE), ("p", tarfile.FIFOTYPE)):
        infos.append(tarfile.TarInfo(name))
        infos[-1].type, infos[-1].linkname = kind, "/etc/passwd"
    good = tarfile.TarInfo("good.md")
    source = write_archive(tmp_path, "links.tar", tar_with(*infos, good))
    assert await source.names() == ["good.md"]
    assert source.lister.dropped == {"a link": 2, "a device or a pipe": 2}
    await source.fetcher.close()


async def test_F78_a_link_in_a_zip_is_dropped(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        link = zipfile.ZipInfo("link.md")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    source = write_archive(tmp_path, "link.zip", made.getvalue())
    assert await source.names() == []
    assert source.lister.dropped == {"a link": 1}
    await source.fetcher.close()


async def test_F83_huge_and_sparse_files_in_a_tar_are_dropped(tmp_path: Path) -> None:
    sparse = tarfile.TarInfo("sparse.txt")
    sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(2**40)}
    huge = tarfile.TarInfo("huge.txt")
    huge.size = 11 * MEGABYTE
    source = write_archive(tmp_path, "huge.tar", tar_with(sparse, huge, tarfile.TarInfo("good.md")))
    assert await source.names() == ["good.md"]
    assert source.lister.dropped == {"a sparse file": 1, "larger than 10 MB": 1}
    await source.fetcher.close()


@pytest.mark.parametrize("claim", [2**40, -1, 2**62])
async def test_a_size_that_the_file_cannot_hold_is_damage(tmp_path: Path, claim: int) -> None:
    info = tarfile.TarInfo("a.md")
    info.size = claim
    data = info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    with pytest.raises(SourceError, match="damaged"):
        await write_archive(tmp_path, "a.tar", data).listed()


async def test_a_header_without_end_is_not_read_into_memory(tmp_path: Path) -> None:
    for kind in (b"x", b"L"):
        info = tarfile.TarInfo("a.md")
        info.type, info.size = kind, 30 * MEGABYTE
        path = tmp_path / "long.tar"
        path.write_bytes(info.tobuf(tarfile.GNU_FORMAT))
        os.truncate(path, 30 * MEGABYTE + 2048)
        with pytest.raises(SourceError, match="a header is too long"):
            await ArchiveSource(path).listed()


async def test_a_directory_too_large_for_memory_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "wide.zip"
    size = 300 * MEGABYTE
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 65_535, 65_535, size, 4, 0)
    with path.open("wb") as file:
        file.write(b"PK\x03\x04")
        file.seek(size + 4)
        file.write(end)
    with pytest.raises(SourceError, match="directory is too large"):
        await ArchiveSource(path).listed()


async def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    files = {f"{number}.md": b"" for number in range(11)}
    limits = ArchiveLimits(entries=10)
    for name, data in (("many.zip", zip_of(files)), ("many.tar", tar_of(files))):
        with pytest.raises(SourceError, match="more than 10 entries"):
            await write_archive(tmp_path, name, data, limits).listed()


async def test_too_much_in_all_is_refused(tmp_path: Path) -> None:
    files = {f"{number}.md": os.urandom(MEGABYTE) for number in range(3)}
    limits = ArchiveLimits(total_bytes=2 * MEGABYTE)
    for name, data in (("much.zip", zip_of(files)), ("much.tar", tar_of(files)), ("much.tgz", tar_of(files, "w:gz"))):
        with pytest.raises(SourceError, match="more than 2 MB"):
            await write_archive(tmp_path, name, data, limits).listed()


async def test_F58_a_compressed_tar_takes_no_more_room_than_it_may(tmp_path: Path) -> None:
    files = {f"{number}.md": os.urandom(MEGABYTE) for number in range(3)}
    limits = ArchiveLimits(stream_bytes=2 * MEGABYTE)
    with pytest.raises(SourceError, match="more than 2 MB: unpack it"):
        await write_archive(tmp_path, "much.tgz", tar_of(files, "w:gz"), limits).listed()
    plain = write_archive(tmp_path, "much.tar", tar_of(files), limits)
    assert len(await plain.listed()) == 3
    await plain.fetcher.close()


async def test_encrypted_entries_are_dropped(tmp_path: Path) -> None:
    data = bytearray(zip_of({"a.md": b"secret", "b.md": b"open"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    source = write_archive(tmp_path, "locked.zip", bytes(data))
    assert await source.names() == ["b.md"]
    assert source.lister.dropped == {"encrypted": 1}
    await source.fetcher.close()


async def test_a_damaged_entry_fails_alone(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.md", b"these words are damaged")
        archive.writestr("b.md", b"these are not")
    source = write_archive(tmp_path, "crc.zip", made.getvalue().replace(b"words", b"swords"[:5]))
    assert await source.names() == ["a.md", "b.md"]
    seen = await source.fetch("a.md")
    assert isinstance(seen, Failed)
    assert "CRC" in seen.reason
    assert seen.hopeless
    assert isinstance(await source.fetch("b.md"), Body)
    await source.fetcher.close()


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz"])
async def test_F80_an_archive_cut_anywhere_proves_nothing(tmp_path: Path, name: str) -> None:
    files = {f"{number}.md": os.urandom(700) for number in range(6)}
    mode = {".gz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}.get(Path(name).suffix, "w")
    data = zip_of(files) if name == "a.zip" else tar_of(files, mode)
    whole = 6 * 1536 if name == "a.tar" else len(data)  # behind it a tar is only padded
    for cut in range(1, whole, max(1, whole // 40)):
        with pytest.raises(SourceError, match=r"damaged|empty"):
            await write_archive(tmp_path, name, data[:cut]).listed()
    if name == "a.tar":
        for cut in range(512, whole + 1, 512):  # where one file ends and the next begins
            with pytest.raises(SourceError, match="ends too early"):
                await write_archive(tmp_path, name, data[:cut]).listed()


async def test_F79_a_pipe_in_place_of_an_archive_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "docs.zip")
    with pytest.raises(SourceError, match="not a regular file"):
        await ArchiveSource(tmp_path / "docs.zip").listed()


async def test_F81_an_archive_written_to_while_it_is_open_is_not_believed(tmp_path: Path) -> None:
    source = write_archive(tmp_path, "docs.tar", tar_of({"a.md": b"one", "b.md": b"two"}))
    entries = await source.fetcher.entries()
    opened = source.fetcher._opened
    assert opened is not None
    with source.path.open("r+b") as file:
        file.seek(entries["a.md"].place)
        file.write(b"six")
    os.utime(source.path, ns=(1, 1))
    with pytest.raises(SourceError, match="changed while it was read"):
        opened.check()
    body = await source.fetch("a.md")
    assert isinstance(body, Body)
    assert body.data == b"six"  # opened again
    await source.fetcher.close()


def test_opening_has_a_deadline() -> None:
    times = iter([0.0, 1.0, 3.0])
    deadline = OpeningDeadline(2.0, lambda: next(times))
    deadline.check()
    with pytest.raises(SourceError, match="longer than 2 s"):
        deadline.check()
