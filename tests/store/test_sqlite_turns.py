"""F15, P9: many writers and readers on one SQLite file; `python -m soak locks` is the long form of this."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from soak.locks import Tally, search, write
from tests.store.crawler import ManualCrawler

from afresh.store import sqlite
from afresh.store.open import open_store
from afresh.store.sqlite import SqliteDatabase, begin, pause
from afresh.store.store import Store

WRITERS, READERS, SECONDS = 16, 8, 1.5


@pytest.mark.slow
async def test_F15_P9_sixteen_writers_and_eight_readers_never_meet_a_lock(sqlite_file: Path) -> None:
    url = f"sqlite:///{sqlite_file}"
    await (await open_store(url)).close()
    tallies: list[Tally] = await asyncio.gather(
        *(write(url, number, SECONDS) for number in range(WRITERS)),
        *(search(url, number, SECONDS) for number in range(READERS)),
    )
    assert [error for tally in tallies for error in tally.errors] == []
    assert all(tally.written for tally in tallies[:WRITERS]), "nobody starves"
    assert all(tally.seconds for tally in tallies[WRITERS:])
    store = await open_store(url)
    assert (await store.stats.totals())["pages"] == sum(tally.written for tally in tallies)
    assert await store.stats.integrity() is None
    await store.close()


ENDLESS = "with recursive n (i) as (select 1 union all select i + 1 from n) select count(*) from n"


async def test_a_reader_that_is_cancelled_again_and_again_is_free_only_when_it_is_done(
    sqlite_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a client leaves a stream: whoever serves it is cancelled at every turn of the loop."""
    database = SqliteDatabase(sqlite_file)
    await database.open()
    monkeypatch.setitem(sqlite.statements(), "endless", ENDLESS)

    async def read(name: str) -> int:
        async with database.read() as tx:
            return len(await tx.all(name))

    for _ in range(5):
        left = [asyncio.create_task(read("endless")) for _ in sqlite.READERS]
        await asyncio.sleep(0.01)
        while not all(task.done() for task in left):
            for task in left:
                task.cancel()
            await asyncio.sleep(0)
        assert all(task.cancelled() for task in left)
        assert await asyncio.gather(*(read("sources") for _ in range(6))) == [0] * 6
    await database.close()


class Held:
    """A connection whose file others hold for a while, and the time of this test."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = 0.0
        self.asked = 0

    def execute(self, sql: str) -> None:
        """Take the lock, if nobody holds it."""
        assert sql == "begin immediate"
        self.asked += 1
        if self.now < self.seconds:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY_SNAPSHOT
            raise error

    def clock(self) -> float:
        """The time of this test."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


def _begin(held: Held, seconds: float) -> None:
    begin(held, seconds, held.clock, held.sleep)  # type: ignore[arg-type]


def test_F14_a_writer_waits_as_long_as_configured() -> None:
    held = Held(9.9)
    _begin(held, 10)
    assert 9.9 <= held.now < 10
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        _begin(Held(60), 10)
    at_once = Held(0)
    _begin(at_once, 0)
    assert (at_once.asked, at_once.now) == (1, 0)


def test_F15_an_older_waiter_polls_more_often() -> None:
    assert pause(0.0) > pause(0.5)
    assert pause(30) > pause(0.0), "but nobody keeps a processor busy for a lock that stays"


@pytest.mark.usefixtures("durable")
async def test_P9_every_transaction_that_writes_begins_immediate_and_ends_on_disk(
    sqlite_store: Store, sqlite_crawler: ManualCrawler
) -> None:
    """A deferred one would fail at its first write if another process wrote meanwhile."""
    database = sqlite_store.db
    assert isinstance(database, SqliteDatabase)
    connection, statements = database._connections["write"], list[str]()
    await database._calls["write"](connection.set_trace_callback, statements.append)
    await sqlite_crawler.join()
    await sqlite_crawler.crawl({})
    begins = [sql for sql in statements if sql.lower().startswith(("begin", "commit", "rollback", "savepoint"))]
    assert len(begins) > 8
    assert begins == ["begin immediate", "commit"] * (len(begins) // 2)
    for role in ("write", "read"):
        asked = database._connections[role].execute
        [level] = await database._calls[role](lambda ask=asked: ask("pragma synchronous").fetchone())
        assert level == 2, "full"


async def test_a_short_read_does_not_wait_for_a_long_one(sqlite_store: Store) -> None:
    async with sqlite_store.db.read() as long:
        await long.all("configs")
        async with sqlite_store.db.read() as short:
            assert await short.all("configs") == await long.all("configs")
