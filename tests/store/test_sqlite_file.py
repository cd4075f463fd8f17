"""The SQLite file: made, kept, refused; its indexes; and what only a look inside can tell."""

import asyncio
import os
import shutil
import sqlite3
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.store.asking import search
from tests.store.crawler import ManualCrawler, at, read

from afresh.config.forms import sqlite_path
from afresh.errors import ConfigError, SchemaTooNew, StoreError
from afresh.model.fetch import NotModified, Seen
from afresh.ports import StoreAccess
from afresh.store.dialect import Transaction, migrations
from afresh.store.open import open_store
from afresh.store.sqlite import SqliteDatabase
from afresh.store.store import Store
from afresh.testing import FrozenClock


def _rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def _schema(path: Path) -> list[tuple[object, ...]]:
    return _rows(path, "select sql from sqlite_master order by name")


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


async def _refused(path: Path) -> StoreError:
    """Why a file is not opened; whatever it says, the file is as it was."""
    before = _bytes(path)
    with pytest.raises(StoreError) as caught:
        await open_store(f"sqlite:///{path}")
    assert _bytes(path) == before
    return caught.value


# ---- opening


async def test_a_file_and_its_folder_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "afresh.db"
    store = await open_store(f"sqlite:///{path}")
    assert store.url == f"sqlite:///{path}"
    await store.close()
    assert _rows(path, "pragma user_version") == [(migrations("sqlite")[-1][0],)]
    assert _rows(path, "pragma journal_mode") == [("wal",)]


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def wide_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("wide_umask")
async def test_S6_F125_a_store_is_private_before_anything_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "folder"
    path = folder / "afresh.db"
    modes = []
    connect: Any = sqlite3.connect

    def watched(*args: Any, **kwargs: Any) -> Any:
        modes.append(_mode(path))
        return connect(*args, **kwargs)

    monkeypatch.setattr(sqlite3, "connect", watched)
    tmp_path.chmod(0o755)
    store = await open_store(f"sqlite:///{path}")
    try:
        beside = {each.name: _mode(each) for each in folder.iterdir()}
    finally:
        await store.close()
    assert set(modes) == {0o600}
    assert beside == {"afresh.db": 0o600, "afresh.db-wal": 0o600, "afresh.db-shm": 0o600}
    assert (_mode(folder), _mode(folder.parent), _mode(tmp_path)) == (0o700, 0o700, 0o755)


@pytest.mark.usefixtures("wide_umask")
async def test_S6_a_store_behind_a_link_that_leads_nowhere_yet_is_private(tmp_path: Path) -> None:
    link = tmp_path / "afresh.db"
    link.symlink_to(tmp_path / "real.db")
    store = await open_store(f"sqlite:///{link}")
    await store.close()
    assert _mode(tmp_path / "real.db") == 0o600


async def test_S6_an_existing_store_that_others_can_read_is_narrowed(sqlite_file: Path) -> None:
    store = await open_store(f"sqlite:///{sqlite_file}")
    beside = [sqlite_file, *(sqlite_file.with_name(sqlite_file.name + end) for end in ("-wal", "-shm"))]
    for each in beside:
        each.chmod(0o664)
    again = await open_store(f"sqlite:///{sqlite_file}", StoreAccess.READ)
    assert [_mode(each) for each in beside] == [0o600] * 3
    await again.close()
    await store.close()


async def test_opening_again_changes_nothing(sqlite_file: Path, clock: FrozenClock) -> None:
    store = await open_store(f"sqlite:///{sqlite_file}")
    await (await ManualCrawler.at(store, clock)).crawl({"": read("Quokka")})
    await store.close()
    schema, before = _schema(sqlite_file), _bytes(sqlite_file)
    store = await open_store(f"sqlite:///{sqlite_file}")
    assert len(await search(store, "quokka")) == 1
    await store.close()
    assert _schema(sqlite_file) == schema
    assert _bytes(sqlite_file) == before


async def test_an_empty_file_is_a_new_store(sqlite_file: Path) -> None:
    await asyncio.to_thread(sqlite_file.touch)
    store = await open_store(f"sqlite:///{sqlite_file}")
    assert await store.sources.all() == []
    await store.close()


async def test_F16_a_newer_schema_is_refused_and_left_alone(sqlite_file: Path) -> None:
    await (await open_store(f"sqlite:///{sqlite_file}")).close()
    with closing(sqlite3.connect(sqlite_file)) as connection:
        connection.execute("pragma user_version = 99")
    error = await _refused(sqlite_file)
    assert isinstance(error, SchemaTooNew)
    assert "99" in str(error)
    assert str(sqlite_file) in str(error)


async def test_F16_a_foreign_database_is_refused_and_left_alone(sqlite_file: Path) -> None:
    with closing(sqlite3.connect(sqlite_file)) as connection:
        connection.execute("create table recipes (name text)")
        connection.commit()
    assert "a database of another program" in str(await _refused(sqlite_file))
    assert _rows(sqlite_file, "pragma journal_mode") == [("delete",)]


async def test_F16_garbage_is_refused_and_left_alone(sqlite_file: Path) -> None:
    await asyncio.to_thread(sqlite_file.write_bytes, b"This is no database at all. " * 100)
    assert str(sqlite_file) in str(await _refused(sqlite_file))


async def test_F16_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        await open_store(f"sqlite:///{tmp_path}")


async def test_F16_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    await asyncio.to_thread((tmp_path / "file").touch)
    with pytest.raises(StoreError, match="cannot be created"):
        await open_store(f"sqlite:///{tmp_path / 'file' / 'afresh.db'}")


@pytest.mark.parametrize("url", ["", "sqlite:///", "postgresql://x/y", "/tmp/afresh.db", "sqlite://afresh.db"])
def test_F87_a_store_url_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"store\.url"):
        sqlite_path(url)


def test_three_slashes_are_relative_and_four_absolute() -> None:
    assert sqlite_path("sqlite:///a/b.db") == Path("a/b.db")
    assert sqlite_path("sqlite:////a/b.db") == Path("/a/b.db")


# ---- the schema


def _indexes(path: Path, table: str) -> dict[str, str]:
    rows = _rows(path, f"select name, sql from sqlite_master where type = 'index' and tbl_name = '{table}'")
    return {str(name): " ".join(str(sql).lower().split()) for name, sql in rows if sql}


async def test_B8_B9_the_indexes_of_the_queue(sqlite_store: Store, sqlite_file: Path) -> None:
    indexes = list(_indexes(sqlite_file, "page_crawls").values())
    for columns in ("(domain) where outcome is null", "(scheduled_for, locked_at) where outcome is null"):
        assert any(index.endswith(columns) for index in indexes), columns
    assert any(index.endswith("(page_id, created_at desc)") for index in indexes)


async def test_B5_history_is_not_unique_and_nothing_counts_attempts(sqlite_store: Store, sqlite_file: Path) -> None:
    unique = [sql for sql in _indexes(sqlite_file, "page_crawls").values() if "unique" in sql]
    assert all("where outcome is null" in sql for sql in unique), "unique among open rows alone"
    columns = {str(row[1]) for row in _rows(sqlite_file, "pragma table_info(page_crawls)")}
    assert not {name for name in columns if "attempt" in name or "count" in name or "retr" in name}


async def test_B10_the_language_is_indexed(sqlite_store: Store, sqlite_file: Path) -> None:
    assert any("(language)" in sql for sql in _indexes(sqlite_file, "pages").values())


async def test_B11_a_page_has_no_copy_of_its_last_answer(sqlite_store: Store, sqlite_file: Path) -> None:
    columns = {row[1] for row in _rows(sqlite_file, "pragma table_info(pages)")}
    assert not columns & {"status_code", "error", "error_message", "last_error", "outcome"}


async def test_A9_a_page_is_one_address_of_one_source(sqlite_crawler: ManualCrawler, sqlite_file: Path) -> None:
    await sqlite_crawler.crawl({"": read("Root")})
    with closing(sqlite3.connect(sqlite_file)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(
            "insert into pages (source_id, url, created_at, updated_at) "
            "select source_id, url, created_at, updated_at from pages"
        )


# ---- inside


CHECK_TIMES = {"checked_at", "crawl_time", "last_seen", "queued_run", "observed_at", "quiet_seconds"}


def _tables(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows but those of the history, the runs and the hosts, and of a page all but its check times."""
    found = {}
    for table in ("pages", "documents", "chunks", "links", "page_links", "changes"):
        columns = [str(row[1]) for row in _rows(path, f"pragma table_info({table})") if row[1] not in CHECK_TIMES]
        found[table] = _rows(path, f"select {', '.join(columns)} from {table} order by 1, 2")
    return found


async def test_A4_G4_a_304_writes_nothing_but_attempt_and_check_times(
    sqlite_crawler: ManualCrawler, sqlite_file: Path
) -> None:
    site: dict[str, Seen] = {"": read("Root", "a", etag='"1"'), "a": read("Page a", "", etag='"2"')}
    await sqlite_crawler.crawl(site)
    before = _tables(sqlite_file)
    looks = "select observed_at, checked_at, quiet_seconds from pages order by id"
    assert {quiet for *_, quiet in _rows(sqlite_file, looks)} == {0.0}
    await sqlite_crawler.crawl(dict.fromkeys(site, NotModified()))
    assert _tables(sqlite_file) == before
    for observed, checked, quiet in _rows(sqlite_file, looks):
        assert (observed, quiet) == (checked, 61.0)  # so long nothing changed: the time between two checks


async def test_P7_a_chunk_whose_text_stays_keeps_its_row(sqlite_crawler: ManualCrawler, sqlite_file: Path) -> None:
    chunks = "select content, id, created_at from chunks order by sort_order"
    await sqlite_crawler.crawl({"": read("One\n\nTwo\n\nThree")})
    before = {content: rest for content, *rest in _rows(sqlite_file, chunks)}
    await sqlite_crawler.crawl({"": read("Zero\n\nThree\n\nOne")})
    after = {content: rest for content, *rest in _rows(sqlite_file, chunks)}
    assert list(after) == ["Zero", "Three", "One"]
    assert (after["One"], after["Three"]) == (before["One"], before["Three"])


async def test_the_text_index_is_in_step_with_the_text(sqlite_store: Store, sqlite_crawler: ManualCrawler) -> None:
    await sqlite_crawler.crawl({"": read("One\n\nTwo", "a"), "a": read("Drei", language="de")})
    await sqlite_crawler.crawl({"": read("Two\n\nThree", "a")})
    assert await sqlite_store.stats.integrity() is None


async def test_B19_times_are_stored_as_utc_text_that_sorts(sqlite_crawler: ManualCrawler, sqlite_file: Path) -> None:
    await sqlite_crawler.crawl({"": read("Root")})
    [(stored,)] = _rows(sqlite_file, "select changed_at from pages")
    assert stored == "2026-01-05T09:01:01.000000Z"


@pytest.mark.usefixtures("durable")
async def test_P8_every_commit_is_on_disk(sqlite_store: Store) -> None:
    connection = sqlite_store.db._connections["write"]  # type: ignore[union-attr]
    thread = sqlite_store.db._threads["write"]  # type: ignore[union-attr]
    assert thread.submit(lambda: connection.execute("pragma synchronous").fetchone()[0]).result() == 2


# ---- a transaction that is undone


class Undone:
    """A database whose next write breaks at its very end, as on a full disk."""

    def __init__(self, db: SqliteDatabase) -> None:
        self.db = db

    @asynccontextmanager
    async def write(self, source: int | None = None) -> AsyncIterator[Transaction]:
        async with self.db.write(source) as session:
            yield session
            raise StoreError("the disk is full")


async def test_A22_an_enqueue_that_was_undone_can_be_repeated(
    sqlite_store: Store, sqlite_crawler: ManualCrawler
) -> None:
    """What the store remembers of the queue beside its tables is undone with them."""
    await sqlite_crawler.begin()
    queue = sqlite_store.queue
    with patch.object(queue, "db", Undone(queue.db)), pytest.raises(StoreError):  # type: ignore[arg-type]
        await sqlite_crawler.enqueue("", "a")
    assert await sqlite_crawler.enqueue("", "a") == 2


async def test_A22_a_commit_that_was_undone_can_be_repeated(sqlite_store: Store, sqlite_crawler: ManualCrawler) -> None:
    await sqlite_crawler.begin()
    await sqlite_crawler.enqueue("")
    [claim] = await sqlite_crawler.claim()
    visits = sqlite_store.visits
    visit = sqlite_crawler.visit(claim, read("Root", "a", "b"))
    with patch.object(visits, "db", Undone(visits.db)), pytest.raises(StoreError):  # type: ignore[arg-type]
        await sqlite_crawler.commit(visit)
    assert await sqlite_store.pages.find(at("a")) == []
    assert await sqlite_crawler.commit(visit) == [at("")]
    assert {each.page.url for each in await sqlite_crawler.claim()} == {at("a"), at("b")}
    assert len(await sqlite_store.links.of_source(sqlite_crawler.source.id)) == 2


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
async def test_F18_a_file_that_is_taken_away_while_it_is_in_use_is_not_written_to(
    how: str, tmp_path: Path, clock: FrozenClock
) -> None:
    """What would be lost with the file is not said to be kept."""
    path = tmp_path / "kb.db"
    store = await open_store(f"sqlite:///{path}")
    await ManualCrawler.at(store, clock)
    shutil.copy(path, tmp_path / "backup.db")
    match how:
        case "deleted":
            path.unlink()
        case "moved":
            path.rename(tmp_path / "elsewhere.db")
        case _:
            (tmp_path / "backup.db").replace(path)
    with pytest.raises(StoreError, match="was moved, replaced or deleted while it was in use"):
        await ManualCrawler.at(store, clock, "other")
    await store.close()
