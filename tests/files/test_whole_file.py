"""Files that are old or new and never in between: killed writers, full disks, modes and links."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.files import writing

from afresh.digest.cache import Cache, format_cache, index_text
from afresh.digest.files import DigestFiles
from afresh.digest.records import DigestPage, url_record
from afresh.errors import KbError
from afresh.files import write_whole

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
KILLS = 12
OLD, NEW = b"old" * 1000, b"new" * 2000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "index.txt"


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """No file of this process grows beyond a size, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_E7_kill_9_in_a_loop_leaves_old_or_new_whole(file: Path) -> None:
    last = 0
    for kill in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.files.writing", str(file)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(1 + kill % 3):
                message = int(process.stdout.readline())
            for _ in range(kill * 1500):  # another moment of a write each time, without a clock
                pass
            process.kill()
        data = file.read_bytes()
        assert writing.is_whole(data)
        last = int(data[:9])
        assert last >= message, "what was acknowledged is there"
    assert last > 0


def test_what_a_killed_writer_left_is_removed_later(file: Path) -> None:
    left, fresh, other = (file.with_name(name) for name in ("index.txt.1.tmp", "index.txt.2.tmp", "notes.tmp"))
    for each in (left, fresh, other):
        each.write_text("half")
    for each in (left, other):
        os.utime(each, (1, 1))
    assert write_whole(file, NEW)
    assert names(file.parent) == ["index.txt", "index.txt.2.tmp", "notes.tmp"]


def test_E7_a_full_disk_leaves_the_old_file_and_nothing_else(file: Path) -> None:
    file.write_bytes(OLD)
    before = file.stat()
    with full_disk(len(OLD)), pytest.raises(KbError, match=r"cannot write .*index\.txt: .*The file is unchanged"):
        write_whole(file, NEW)
    assert (file.read_bytes(), names(file.parent)) == (OLD, ["index.txt"])
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert write_whole(file, NEW)
    assert (file.read_bytes(), names(file.parent)) == (NEW, ["index.txt"])


@pytest.mark.parametrize("step", ["write", "fsync", "fchmod"])
def test_E7_an_error_at_any_step_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    file.write_bytes(OLD)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(KbError, match="Input/output error"):
            write_whole(file, NEW)
    assert (file.read_bytes(), names(file.parent)) == (OLD, ["index.txt"])


def test_E7_the_new_bytes_are_on_disk_before_they_take_the_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(OLD)
    steps: list[str] = []
    sync = os.fsync

    def noted(handle: int) -> None:
        steps.append("new" if file.read_bytes() == NEW else "old")
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    write_whole(file, NEW)
    assert steps == ["old", "new"], "the file before the rename, the folder after it"


def test_the_same_bytes_are_not_written_again(file: Path) -> None:
    assert write_whole(file, NEW)
    before = file.stat()
    assert not write_whole(file, NEW)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_mode_and_links_are_kept_and_folders_are_made(tmp_path: Path) -> None:
    real, link = tmp_path / "far" / "away" / "index.txt", tmp_path / "link"
    link.symlink_to(real)
    assert write_whole(link, OLD)
    real.chmod(0o640)
    assert write_whole(link, NEW)
    assert link.is_symlink()
    assert (real.read_bytes(), real.stat().st_mode & 0o7777) == (NEW, 0o640)


def test_only_ordinary_files_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        files = DigestFiles(index=tmp_path / "i", cache=tmp_path / name)
        with pytest.raises(KbError, match="not a regular file"):
            write_whole(tmp_path / name, NEW)
        with pytest.raises(KbError, match=r"cannot read .*not a regular file"):
            files.read()
    assert names(tmp_path) == ["folder", "pipe"]


# ---- the two files together


@pytest.fixture
def files(tmp_path: Path) -> DigestFiles:
    return DigestFiles(index=tmp_path / "index.txt", cache=tmp_path / "index-cache.json")


def cache_of(*urls: str) -> Cache:
    return Cache(generated_at=NOON, sources={url: url_record(DigestPage(url=url), url, NOON) for url in urls})


def test_E7_cache_and_index_are_written_once_and_read_back(files: DigestFiles) -> None:
    assert files.read() is None
    cache = cache_of("https://x.test/b", "https://x.test/a")
    assert files.write(cache)
    assert files.read() == cache
    assert files.index.read_text() == "https://x.test/a\n\nhttps://x.test/b\n\n"
    before = [each.stat().st_ino for each in (files.index, files.cache)]
    assert not files.write(cache.with_sources(dict(cache.sources), NOON + timedelta(days=1)))
    assert [each.stat().st_ino for each in (files.index, files.cache)] == before


def test_E7_an_index_that_fell_behind_its_cache_is_put_right(files: DigestFiles) -> None:
    files.write(cache_of("https://x.test/a"))
    new = cache_of("https://x.test/a", "https://x.test/b")
    write_whole(files.cache, format_cache(new).encode())  # and then the process was killed
    held = files.read()
    assert held == new
    assert files.write(held)
    assert files.index.read_text() == index_text(new.sources.values())


def test_a_cache_that_cannot_be_used_is_named_and_stays(files: DigestFiles) -> None:
    files.cache.write_bytes(b'{"schema_version": 9}')
    with pytest.raises(KbError, match=r"index-cache\.json cannot be used .*newer afresh"):
        files.read()
    assert files.cache.read_bytes() == b'{"schema_version": 9}'
