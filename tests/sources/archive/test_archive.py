"""Archives as folders: what they list, how entries are read, what changed."""

import os
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
from tests.sources.archive.archives import ArchiveSource, tar_of, zip_of

from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Gone, NotModified, Refused, Request
from afresh.sources.archive.paths import entry_name, entry_url, is_archive
from afresh.testing import FrozenClock

FILES = {"docs/guide.md": b"# Guide\n", "docs/a b#c?%20.md": b"# Odd\n", "über/größe.txt": "für".encode()}
NAMES = ["docs/guide.md", "docs/a%20b%23c%3F%2520.md", "%C3%BCber/gr%C3%B6%C3%9Fe.txt"]


@pytest.fixture(params=["docs.zip", "docs.tar", "docs.tar.gz", "docs.tgz", "docs.tar.bz2", "docs.tar.xz"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> ArchiveSource:
    path = tmp_path / request.param
    mode = {"gz": "w:gz", "tgz": "w:gz", "bz2": "w:bz2", "xz": "w:xz"}.get(path.name.rpartition(".")[2], "w")
    path.write_bytes(zip_of(FILES) if path.suffix == ".zip" else tar_of(FILES, mode))
    return ArchiveSource(path)


async def test_the_entries_are_pages_with_addresses_that_lead_back_to_them(source: ArchiveSource) -> None:
    assert await source.names() == NAMES
    for name, data in zip(NAMES, FILES.values(), strict=True):
        body = await source.fetch(name)
        assert isinstance(body, Body)
        assert (body.data, body.url) == (data, f"{source.url}!/{name}")
    await source.fetcher.close()


async def test_an_entry_that_is_as_it_was_is_not_read_again(source: ArchiveSource) -> None:
    body = await source.fetch(NAMES[0])
    assert isinstance(body, Body)
    again = Request(url=body.url, validators=body.validators)
    assert isinstance(await source.fetcher.fetch(again), NotModified)
    await source.fetcher.close()


async def test_what_is_not_there_is_gone_and_what_lies_elsewhere_is_refused(source: ArchiveSource) -> None:
    assert isinstance(await source.fetch("docs/none.md"), Gone)
    assert isinstance(await source.fetcher.fetch(Request(url="file:///etc/passwd")), Refused)
    assert source.lister.refusal("file:///etc/passwd", 1) == "not in the archive"
    assert source.lister.refusal(f"{source.url}!/docs/guide.md", 1) is None
    await source.fetcher.close()


async def test_an_unchanged_archive_is_known_by_its_mark_and_not_opened(source: ArchiveSource) -> None:
    assert await source.names()
    assert not source.lister.unchanged
    await source.fetcher.close()
    later = ArchiveSource(source.path)
    later.lister = later.another(source.lister.mark)
    assert await later.listed() == []
    assert later.lister.unchanged
    assert later.lister.mark == source.lister.mark
    assert later.fetcher._opened is None


async def test_an_archive_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "docs.zip"
    path.write_bytes(zip_of({"a.md": b"one", "b.md": b"two"}))
    source = ArchiveSource(path)
    first = await source.fetch("a.md")
    assert await source.names() == ["a.md", "b.md"]
    mark = source.lister.mark
    path.write_bytes(zip_of({"a.md": b"six", "c.md": b"two"}))
    source.lister = source.another(mark)
    assert await source.names() == ["a.md", "c.md"]
    second = await source.fetch("a.md")
    assert isinstance(first, Body)
    assert isinstance(second, Body)
    assert second.data == b"six"
    assert first.validators != second.validators
    assert isinstance(await source.fetch("b.md"), Gone)
    await source.fetcher.close()


async def test_F82_an_edit_that_keeps_size_and_date_shows_in_the_validators(tmp_path: Path) -> None:
    path = tmp_path / "docs.tar"
    path.write_bytes(tar_of({"a.md": b"one"}))
    os.utime(path, (1e9, 1e9))
    source = ArchiveSource(path)
    first = await source.fetch("a.md")
    assert await source.names()
    path.write_bytes(tar_of({"a.md": b"two"}))
    os.utime(path, (1e9, 1e9))
    source.lister = source.another(source.lister.mark)
    assert await source.names() == ["a.md"]
    second = await source.fetch("a.md")
    assert isinstance(first, Body)
    assert isinstance(second, Body)
    assert (second.data, second.validators == first.validators) == (b"two", False)
    await source.fetcher.close()


async def test_F82_an_archive_written_just_now_has_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "docs.zip"
    path.write_bytes(zip_of({"a.md": b"one"}))
    source = ArchiveSource(path)
    source.lister._clock = FrozenClock()  # before the file was written
    assert await source.names() == ["a.md"]
    assert source.lister.mark is None
    await source.fetcher.close()


async def test_F80_an_archive_that_vanished_is_empty_or_no_archive_proves_nothing(tmp_path: Path) -> None:
    source = ArchiveSource(tmp_path / "docs.zip")
    with pytest.raises(SourceError, match="No such file"):
        await source.listed()
    assert isinstance(await source.fetch("a.md"), Failed)
    for name, data in (("none.zip", zip_of({})), ("none.tar", tar_of({}))):
        (tmp_path / name).write_bytes(data)
        source = ArchiveSource(tmp_path / name)
        with pytest.raises(SourceError, match="is empty"):
            await source.listed()
        await source.fetcher.close()
    for name in ("text.zip", "text.tar", "text.tgz"):
        (tmp_path / name).write_bytes(b"words and words\n" * 64)
        with pytest.raises(SourceError, match="damaged"):
            await ArchiveSource(tmp_path / name).listed()


async def test_of_entries_with_one_name_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "docs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.md", b"old")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.md", b"new")
    source = ArchiveSource(path)
    body = await source.fetch("a.md")
    assert await source.names() == ["a.md"]
    assert isinstance(body, Body)
    assert body.data == b"new"
    await source.fetcher.close()


@pytest.mark.parametrize("format_", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
async def test_F83_names_that_are_long_or_no_utf8_round_trip(tmp_path: Path, format_: int) -> None:
    long = "d" * 90 + "/" + "f" * 60 + ".md"
    names = ["\udcff\udce4.md", "new\nline.md", long]
    path = tmp_path / "docs.tar"
    path.write_bytes(tar_of({f"./{name}": name.encode("utf-8", "surrogateescape") for name in names}, "w", format_))
    source = ArchiveSource(path)
    listed = await source.listed()
    assert [entry_name(source.url, item.url) for item in listed] == names
    assert listed[0].url.endswith("!/%FF%E4.md")
    for item, name in zip(listed, names, strict=True):
        body = await source.fetcher.fetch(Request(url=item.url))
        assert isinstance(body, Body)
        assert body.data == name.encode("utf-8", "surrogateescape")
    await source.fetcher.close()


async def test_F83_names_of_zip_archives_without_a_word_on_their_encoding(tmp_path: Path) -> None:
    path = tmp_path / "docs.zip"
    data = zip_of({"a\u00e9.md": b"1", "b\u00e9.md": b"2"})
    data = data.replace("b\u00e9".encode(), b"b\xff\xfe")
    path.write_bytes(data.replace(b"\x00\x08\x08\x00", b"\x00\x00\x08\x00"))  # the flag that says UTF-8
    source = ArchiveSource(path)
    assert await source.names() == ["a%C3%A9.md", "b%FF%FE.md"]
    body = await source.fetch("b%FF%FE.md")
    assert isinstance(body, Body)
    assert body.data == b"2"
    await source.fetcher.close()


async def test_ignored_entries_are_counted_by_their_reason(tmp_path: Path) -> None:
    path = tmp_path / "docs.zip"
    path.write_bytes(zip_of({"a.md": b"", ".git/config": b"", ".git/HEAD": b"", "in.tar.gz": b"", "x/": b""}))
    source = ArchiveSource(path)
    source.fetcher.ignored = lambda name: "hidden" if name.startswith(".") else None
    assert await source.names() == ["a.md"]
    assert source.lister.dropped == {"hidden": 2, "an archive within an archive": 1}
    await source.fetcher.close()


def test_addresses() -> None:
    base = "file:///a!/docs.zip"
    assert entry_url(base, "x/ä!.md") == "file:///a!/docs.zip!/x/%C3%A4!.md"
    assert entry_name(base, "file:///a!/docs.zip!/x/%C3%A4!.md") == "x/ä!.md"
    assert entry_name(base, "file:///a!/docs.zip") is None
    assert [is_archive(name) for name in ("a.ZIP", "a.tar.gz", "a.tgz", "a.gz", "a.docx", "zip")] == [True] * 3 + [
        False
    ] * 3


async def test_many_small_entries_cost_little(tmp_path: Path) -> None:
    path = tmp_path / "docs.tar.gz"
    path.write_bytes(tar_of({f"{number}.md": b"# %d" % number for number in range(2_000)}, "w:gz"))
    source = ArchiveSource(path)
    begun = time.process_time()
    for item in await source.listed():
        assert isinstance(await source.fetcher.fetch(Request(url=item.url)), Body)
    assert time.process_time() - begun < 5  # unpacked once, not once an entry
    await source.fetcher.close()
