"""F11-F17: a SQLite file that is locked, full, read-only or damaged; one sentence, and nothing lost."""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.store.asking import search
from tests.store.crawler import ManualCrawler, at, read
from tests.store.powerless import powerless

from afresh.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreMissing
from afresh.ports import StoreAccess
from afresh.store import sqlite_file as file_module
from afresh.store.open import open_store
from afresh.store.sqlite import SqliteDatabase
from afresh.store.sqlite_file import EXPLANATIONS, explain, needs_check
from afresh.store.store import Store
from afresh.testing import FrozenClock


async def _filled(file: Path, pages: int = 30) -> None:
    """A store with some pages, closed in order."""
    store = await open_store(f"sqlite:///{file}")
    crawler = await ManualCrawler.at(store, FrozenClock())
    links = [f"p{n}" for n in range(pages)]
    long = {path: read(f"Quokka {path}\n\n" + f"{path} words and words. " * 300) for path in links}
    await crawler.crawl({"": read("Root", *links), **long})
    await store.close()


async def _opened(file: Path, access: StoreAccess = StoreAccess.CHANGE) -> Store:
    return await open_store(f"sqlite:///{file}", access, wait_seconds=0.0)


def _state(file: Path) -> tuple[bytes, int]:
    return file.read_bytes(), file.stat().st_mtime_ns


async def _refusal(file: Path, access: StoreAccess = StoreAccess.CHANGE) -> StoreError:
    """Why a file is not opened; bytes and time of it are as they were."""
    before = _state(file)
    with pytest.raises(StoreError) as caught:
        await _opened(file, access)
    assert _state(file) == before
    assert str(file) in str(caught.value)
    return caught.value


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Another one writes, and takes its time."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("begin exclusive")
        yield


# ---- F14: locked by another process


async def test_F14_a_write_waits_for_another_process(sqlite_store: Store, sqlite_file: Path) -> None:
    with _locked(sqlite_file):
        waiting = asyncio.create_task(ManualCrawler.at(sqlite_store, FrozenClock()))
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done
        assert await sqlite_store.sources.all() == [], "reading goes on meanwhile"
    await waiting
    assert [source.name for source in await sqlite_store.sources.all()] == ["docs"]


async def test_F14_a_lock_that_stays_is_reported_in_one_sentence(sqlite_file: Path) -> None:
    await _filled(sqlite_file, 1)
    store = await _opened(sqlite_file)
    with _locked(sqlite_file):
        with pytest.raises(StoreBusy, match=r"locked by another process; wait .* or stop it"):
            await store.stats.try_to_write()
        assert len(await search(store, "quokka")) == 1
    await store.stats.try_to_write()
    await store.close()


async def test_F14_a_locked_store_opens_for_reading_and_writing(sqlite_file: Path) -> None:
    await _filled(sqlite_file, 1)
    with _locked(sqlite_file):
        for access in StoreAccess:
            store = await _opened(sqlite_file, access)
            assert len(await search(store, "quokka")) == 1
            await store.close()


async def test_F14_a_new_file_that_another_process_is_making_is_waited_for(sqlite_file: Path) -> None:
    with _locked(sqlite_file):
        opening = asyncio.create_task(open_store(f"sqlite:///{sqlite_file}", wait_seconds=0.0))
        done, _ = await asyncio.wait({opening}, timeout=0.05)
        assert not done
    await (await opening).close()
    database = SqliteDatabase(sqlite_file.with_name("b.db"), wait_seconds=0.0, open_seconds=0.0)
    with _locked(database.path), pytest.raises(StoreBusy):
        await database.open()


# ---- F12: no room


async def _pages_at_most(store: Store, number: int) -> None:
    """Let the file grow to so many of SQLite's pages, as on a small disk."""
    database = store.db
    assert isinstance(database, SqliteDatabase)
    connection = database._connections["write"]
    await database._calls["write"](lambda: connection.execute(f"pragma max_page_count = {number}").fetchone())


async def test_F12_a_commit_on_a_full_disk_is_undone_and_can_be_repeated(
    sqlite_store: Store, sqlite_crawler: ManualCrawler
) -> None:
    await sqlite_crawler.begin()
    await sqlite_crawler.enqueue("")
    [claim] = await sqlite_crawler.claim()
    visit = sqlite_crawler.visit(claim, read("Quokka " + "words " * 100_000, "a", "b"))
    await _pages_at_most(sqlite_store, 1)
    with pytest.raises(StoreFull, match="disk full; make room"):
        await sqlite_crawler.commit(visit)
    assert await search(sqlite_store, "quokka") == []
    assert await sqlite_store.stats.integrity() is None
    await _pages_at_most(sqlite_store, 100_000)
    assert await sqlite_crawler.commit(visit) == [at("")]
    assert {each.page.url for each in await sqlite_crawler.claim()} == {at("a"), at("b")}
    assert await sqlite_store.stats.integrity() is None


async def test_F14_a_check_of_a_locked_store_says_that_it_is_locked(tmp_path: Path) -> None:
    """It must not report the text index as damaged."""
    file = tmp_path / "locked.db"
    await _filled(file, 3)
    store = await _opened(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreBusy):
            await store.stats.integrity()
    assert await store.stats.integrity() is None
    await store.close()


# ---- F11: power loss


async def test_F11_after_a_power_loss_every_acknowledged_commit_is_there(
    sqlite_store: Store, sqlite_crawler: ManualCrawler, sqlite_file: Path, tmp_path: Path
) -> None:
    """What is on disk at a moment is the file and its log; a log cut anywhere holds the first commits."""
    await sqlite_crawler.begin()
    paths = [f"p{n}" for n in range(12)]
    await sqlite_crawler.enqueue(*paths)
    for number, claim in enumerate(await sqlite_crawler.claim(), 1):
        await sqlite_crawler.commit(sqlite_crawler.visit(claim, read(f"Quokka {claim.page.url}")))
        copy = _copied(sqlite_file, tmp_path / f"whole-{number}")
        assert await _urls(copy) == [at(path) for path in paths[:number]]
    log = sqlite_file.with_name("afresh.db-wal").read_bytes()
    seen = []
    for part in range(0, 21, 2):
        copy = _copied(sqlite_file, tmp_path / f"cut-{part}", log[: len(log) * part // 20 + part])
        urls = await _urls(copy)
        assert urls == [at(path) for path in paths[: len(urls)]]
        seen.append(len(urls))
    assert seen == sorted(seen)
    assert seen[0] < 3 < seen[-1] == len(paths)


def _copied(file: Path, folder: Path, log: bytes | None = None) -> Path:
    folder.mkdir()
    shutil.copy(file, folder)
    wal = file.with_name(file.name + "-wal")
    (folder / wal.name).write_bytes(wal.read_bytes() if log is None else log)
    return folder / file.name


async def _urls(file: Path) -> list[str]:
    """The pages of a copy that is opened and found sound, in the order they were written."""
    store = await open_store(f"sqlite:///{file}")
    try:
        assert await store.stats.integrity() is None
        found = [view.url for view in await store.history.changes(None, limit=1000)]
        return list(reversed(found))
    finally:
        await store.close()


# ---- F16: not there, not ours, not writable


async def test_F16_only_a_crawl_makes_a_store(tmp_path: Path) -> None:
    for access in (StoreAccess.READ, StoreAccess.CHANGE):
        with pytest.raises(StoreMissing, match=r"there is no store at .* yet; `afresh crawl URL` creates one"):
            await _opened(tmp_path / "none" / "afresh.db", access)
    assert list(tmp_path.iterdir()) == []


async def test_F16_an_empty_file_is_no_store_to_read(sqlite_file: Path) -> None:
    await asyncio.to_thread(sqlite_file.touch)
    assert isinstance(await _refusal(sqlite_file, StoreAccess.READ), StoreMissing)


@pytest.mark.parametrize("only_the_folder", [True, False])
async def test_F16_a_read_only_store_is_read_and_nothing_else(sqlite_file: Path, only_the_folder: bool) -> None:
    await _filled(sqlite_file, 2)
    _forbid(sqlite_file, only_the_folder)
    before = _state(sqlite_file)
    with powerless():
        store = await _opened(sqlite_file, StoreAccess.READ)
        assert len(await search(store, "quokka")) == 2
        assert await store.stats.integrity() is None
        with pytest.raises(StoreError, match="can only be read"):
            await store.stats.try_to_write()
        await store.close()
        for access in (StoreAccess.CHANGE, StoreAccess.CREATE):
            assert "make the file and its folder writable" in str(await _refusal(sqlite_file, access))
    assert _state(sqlite_file) == before


def _forbid(file: Path, only_the_folder: bool = True) -> None:
    if not only_the_folder:
        file.chmod(0o444)
    file.parent.chmod(0o555)


async def test_F16_a_read_only_store_with_an_older_schema_says_what_it_needs(sqlite_file: Path) -> None:
    await _filled(sqlite_file, 1)
    with closing(sqlite3.connect(sqlite_file)) as connection:
        connection.execute("pragma user_version = 0")
        connection.execute("pragma writable_schema = on")
        connection.execute("delete from sqlite_master")
        connection.commit()
    _forbid(sqlite_file)
    with powerless():
        assert "older afresh" in str(await _refusal(sqlite_file, StoreAccess.READ))


async def test_F16_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    _forbid(tmp_path / "afresh.db")
    with powerless(), pytest.raises(StoreError, match="its folder cannot be written to"):
        await open_store(f"sqlite:///{tmp_path / 'afresh.db'}")


async def test_F16_a_file_that_cannot_be_read_is_named(sqlite_file: Path) -> None:
    await _filled(sqlite_file, 1)
    await asyncio.to_thread(sqlite_file.chmod, 0o000)
    with powerless():
        for access in StoreAccess:
            with pytest.raises(StoreError, match=str(sqlite_file)):
                await _opened(sqlite_file, access)


async def test_F16_a_drive_without_shared_memory_is_refused(sqlite_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on network drives: SQLite stays in the mode in which readers and writers shut each other out."""
    way = f"file:{sqlite_file}?mode=rwc&vfs=unix-dotfile"
    monkeypatch.setattr("afresh.store.sqlite.ways_in", lambda *_: (way,))
    with pytest.raises(StoreError, match="keep it on a disk of this machine"):
        await open_store(f"sqlite:///{sqlite_file}")


@pytest.mark.parametrize("code", sorted(EXPLANATIONS))
def test_F16_every_error_names_the_store_and_what_to_do(code: int) -> None:
    error = sqlite3.OperationalError("words of SQLite")
    error.sqlite_errorcode = code
    message = str(explain(error, Path("/data/kb.db")))
    assert message.startswith("the store /data/kb.db ")
    assert ";" in message
    assert "words of SQLite" not in message


# ---- F17: damaged


def _overwrite(file: Path, offset: int, data: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(offset)
        stream.write(data)


def _cut(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size // 2 // 4096 * 4096)


DAMAGE = {
    "a page of the middle": lambda file: _overwrite(file, 40 * 4096, b"\xa5" * 4096),
    "the table of contents": lambda file: _overwrite(file, 100, b"\xa5" * 2000),
    "a zeroed beginning": lambda file: _overwrite(file, 0, bytes(100)),
    "cut off": _cut,
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_F17_a_damaged_file_is_refused_with_the_way_back(sqlite_file: Path, damage: str) -> None:
    await _filled(sqlite_file)
    DAMAGE[damage](sqlite_file)
    for access in (StoreAccess.CHANGE, StoreAccess.CREATE):
        error = await _refusal(sqlite_file, access)
        assert isinstance(error, StoreDamaged)
        assert "restore it from a backup" in str(error)


async def test_F17_damage_found_while_reading_is_reported_in_the_same_words(sqlite_file: Path) -> None:
    await _filled(sqlite_file)
    with closing(sqlite3.connect(sqlite_file)) as connection:
        [page] = connection.execute("select rootpage from sqlite_master where name = 'chunks'").fetchone()
    _overwrite(sqlite_file, (page - 1) * 4096, b"\xa5" * 4096)
    store = await _opened(sqlite_file, StoreAccess.READ)
    with pytest.raises(StoreDamaged, match="is damaged; restore it from a backup"):
        await search(store, "quokka")
    await store.close()


async def test_F17_a_file_emptied_beside_its_log_is_not_created_again(
    sqlite_store: Store, sqlite_crawler: ManualCrawler, sqlite_file: Path, tmp_path: Path
) -> None:
    await sqlite_crawler.crawl({"": read("Quokka")})
    copy = _copied(sqlite_file, tmp_path / "copy")
    await asyncio.to_thread(copy.write_bytes, b"")
    for access in StoreAccess:
        assert isinstance(await _refusal(copy, access), StoreDamaged)


async def test_F17_garbage_in_the_log_costs_nothing_that_is_in_the_file(sqlite_file: Path, tmp_path: Path) -> None:
    await _filled(sqlite_file, 3)
    log = sqlite_file.with_name("afresh.db-wal")
    await asyncio.to_thread(log.write_bytes, b"\xa5" * 50_000)
    store = await _opened(sqlite_file)
    assert len(await search(store, "quokka")) == 3
    assert await store.stats.integrity() is None
    await store.close()


async def test_F17_a_large_file_is_read_whole_only_when_there_is_a_reason(
    sqlite_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _filled(sqlite_file, 1)
    log = sqlite_file.with_name("afresh.db-wal")
    changed = sqlite_file.stat().st_mtime
    assert needs_check(sqlite_file), "small"
    monkeypatch.setattr(file_module, "SMALL_BYTES", 0)
    assert not needs_check(sqlite_file, lambda: changed + 3600)
    assert needs_check(sqlite_file, lambda: changed + 90_000), "idle for long"
    await asyncio.to_thread(log.write_bytes, b"left behind")
    assert needs_check(sqlite_file, lambda: changed + 3600), "not closed by its last writer"
