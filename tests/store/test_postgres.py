"""What holds on PostgreSQL alone: whose database it is, who comes first, and what if it goes away."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import cast
from unittest.mock import patch

import asyncpg
import pytest
from tests.postgres import Postgres
from tests.store.asking import search
from tests.store.crawler import ManualCrawler, at, read

from afresh.config import load
from afresh.digest.cache import SeenCache
from afresh.errors import SchemaTooNew, StoreBusy, StoreError, StoreMissing, StoreUnreachable
from afresh.events import Notice
from afresh.extract.pool.pool import ParserPool
from afresh.model.fetch import Gone
from afresh.model.records import Source
from afresh.ports import StoreAccess
from afresh.search.model_provider import ModelProvider
from afresh.search.records import SearchFilter, SearchMode
from afresh.store import postgres as postgres_news
from afresh.store import postgres as postgres_schema
from afresh.store.dialect import migrations
from afresh.store.open import open_store
from afresh.store.postgres import PostgresDatabase, PostgresSession, explain
from afresh.store.repository import DOWN, GOING_ON, Caches, RetryPolicy
from afresh.store.sources import SourceRepository
from afresh.store.store import Store
from afresh.testing import FrozenClock
from afresh.text.normalize import text_hash


@pytest.fixture
async def url(postgres: Postgres) -> str:
    return await postgres.emptied()


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = await open_store(url)
    yield store
    await store.close()


@pytest.fixture
async def crawler(store: Store, clock: FrozenClock) -> ManualCrawler:
    return await ManualCrawler.at(store, clock)


async def fetched(url: str, sql: str) -> object:
    """What another program on the same database is told."""
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


END_OTHERS = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
where datname = current_database() and application_name = 'afresh'
"""

# ---- whose database it is


@pytest.mark.parametrize("access", [StoreAccess.READ, StoreAccess.CHANGE])
async def test_only_a_crawl_makes_the_tables(postgres: Postgres, access: StoreAccess) -> None:
    async with postgres.bare() as url:
        with pytest.raises(StoreMissing, match="no store at"):
            await open_store(url, access)
        assert await fetched(url, "select count(*) from pg_class where relname = 'pages'") == 0
        await (await open_store(url)).close()
        await (await open_store(url, access)).close()


LATER = "alter table sources add column later {real} not null default 0; update sources set later = 1"


async def test_P20_two_processes_that_create_the_tables_at_once_create_them_once(postgres: Postgres) -> None:
    async with postgres.bare() as url:
        stores = await asyncio.gather(*(open_store(url) for _ in range(4)))
        for store in stores:
            assert await store.sources.all() == []
            await store.close()
        assert await fetched(url, "select version from afresh_schema") == migrations("postgres")[-1][0]


async def test_P20_a_migration_that_fails_leaves_nothing_of_itself(postgres: Postgres) -> None:
    broken = [*migrations("postgres"), (9999, "create table half (id integer); select 1 / 0")]
    async with postgres.bare() as url:
        with patch.object(postgres_schema, "migrations", return_value=broken), pytest.raises(StoreError):
            await open_store(url)
        assert await fetched(url, "select count(*) from pg_tables where schemaname = 'public'") == 0


async def test_P20_a_migration_whose_process_is_killed_leaves_the_old_schema(postgres: Postgres) -> None:
    """The server ends the connection in the middle of the last step, as it does when the other end dies."""
    steps = migrations("postgres")
    newest = steps[-1][0]
    ends = "create table half (id integer); select pg_terminate_backend(pg_backend_pid())"
    later, killed = [*steps, (newest + 1, LATER)], [*steps, (newest + 1, LATER), (newest + 2, ends)]
    tables = "select string_agg(tablename, ' ' order by tablename) from pg_tables where schemaname = 'public'"
    async with postgres.bare() as url:
        connection = await asyncpg.connect(url)
        await postgres_schema.migrate(connection)
        await connection.close()
        before = await fetched(url, tables)
        with patch.object(postgres_schema, "migrations", return_value=killed), pytest.raises(StoreUnreachable):
            await PostgresDatabase(url)._connected()
        assert await fetched(url, tables) == before
        assert await fetched(url, "select version from afresh_schema") == newest
        with patch.object(postgres_schema, "migrations", return_value=later):
            await (await open_store(url)).close()
        assert await fetched(url, "select version from afresh_schema") == newest + 1


async def test_P20_an_older_schema_comes_up_to_date(postgres: Postgres) -> None:
    steps = migrations("postgres")
    async with postgres.bare() as url:
        connection = await asyncpg.connect(url)
        await postgres_schema.migrate(connection)
        await connection.execute(
            "insert into sources (name, kind, url, created_at, updated_at) "
            "values ('docs', 'web', 'https://docs.example.org/', now(), now())"
        )
        await connection.close()
        with patch.object(postgres_schema, "migrations", return_value=[*steps, (steps[-1][0] + 1, LATER)]):
            store = await open_store(url)
            assert [source.name for source in await store.sources.all()] == ["docs"]
            await store.close()
        assert await fetched(url, "select later from sources") == 1


@pytest.mark.parametrize("version", [1, migrations("postgres")[0][0] - 1])
async def test_P20_a_schema_older_than_the_first_is_refused(url: str, version: int) -> None:
    newest = migrations("postgres")[-1][0]
    await fetched(url, f"update afresh_schema set version = {version} returning 1")
    try:
        with pytest.raises(StoreError, match=r"much older afresh .*or move it away and crawl again"):
            await open_store(url)
    finally:
        await fetched(url, f"update afresh_schema set version = {newest} returning 1")


async def test_P20_a_newer_schema_is_refused(url: str) -> None:
    await fetched(url, "update afresh_schema set version = version + 1 returning 1")
    try:
        with pytest.raises(SchemaTooNew, match=r"newer afresh .*upgrade afresh"):
            await open_store(url)
    finally:
        await fetched(url, "update afresh_schema set version = version - 1 returning 1")


async def test_a_database_of_another_program_is_left_alone(postgres: Postgres) -> None:
    async with postgres.bare() as url:
        await fetched(url, "create table pages (id integer)")
        with pytest.raises(StoreError, match="database of another program"):
            await open_store(url)


async def test_an_old_server_is_refused_by_name(url: str) -> None:
    with (
        patch.object(postgres_schema, "OLDEST_MAJOR", 99),
        pytest.raises(StoreError, match="needs PostgreSQL 99 or newer"),
    ):
        await open_store(url)


async def test_errors_do_not_contain_the_password(postgres: Postgres, unused_tcp_port: int) -> None:
    nowhere = f"postgresql://me:geheim@127.0.0.1:{unused_tcp_port}/kb"
    with pytest.raises(StoreUnreachable, match="refuse") as down:
        await open_store(nowhere)
    missing = postgres.database("no_such_database").replace("postgres:@", "postgres:geheim@")
    with pytest.raises(StoreMissing, match="createdb") as gone:
        await open_store(missing)
    assert "geheim" not in f"{down.value} {gone.value}"
    for odd in "/?#":
        with pytest.raises(StoreError, match="%2F") as unread:
            await open_store(f"postgresql://me:geheim{odd}geheim@127.0.0.1:{unused_tcp_port}/kb")
        assert "geheim" not in str(unread.value)
    with pytest.raises(StoreError, match="sslmode") as unknown:
        await open_store(nowhere + "?sslmode=perhaps")
    assert not isinstance(unknown.value, StoreUnreachable)


async def test_a_database_that_cannot_hold_every_text_is_refused(postgres: Postgres) -> None:
    await postgres.run("create database latin encoding 'LATIN1' locale 'C' template template0")
    try:
        with pytest.raises(StoreError, match=r"LATIN1.*createdb --encoding=UTF8"):
            await open_store(postgres.database("latin"))
    finally:
        await postgres.run("drop database latin with (force)")


SETTINGS = (
    *("transaction_isolation", "lock_timeout", "idle_in_transaction_session_timeout"),
    *("jit", "synchronous_commit"),
)
SET_AT_START = "select string_agg(name, ' ' order by name) from pg_settings where source = 'client'"


async def test_a_store_sets_its_options_without_startup_parameters_that_a_pooler_refuses(postgres: Postgres) -> None:
    async with postgres.bare() as url:
        name = url.partition("?")[0].rpartition("/")[2]
        await postgres.run(f"alter database {name} set default_transaction_isolation = 'serializable'")
        await postgres.run(f"alter database {name} set synchronous_commit = 'off'")
        store = await open_store(url, wait_seconds=0.25)
        try:
            database = cast("PostgresDatabase", store.db)
            async with database.write() as tx:
                connection = cast("PostgresSession", tx)._connection
                values = [await connection.fetchval(f"show {setting}") for setting in SETTINGS]
                assert values == ["read committed", "250ms", "30s", "off", "local"]
                assert await connection.fetchval(SET_AT_START) == "application_name client_encoding"
        finally:
            await store.close()


# ---- many at once, and a server that goes away


async def test_F20_P10_a_store_whose_connections_were_ended_goes_on(crawler: ManualCrawler, url: str) -> None:
    await crawler.crawl({"": read("Welcome to the harbour", "cranes")})
    assert await fetched(url, END_OTHERS)
    retry = RetryPolicy(busy_seconds=5.0)
    crawler.store = crawler.store.with_retries(retry)
    await crawler.crawl({"": read("Welcome to the harbour", "cranes"), "cranes": read("Cranes lift crates")})
    assert [hit.url for hit in await search(crawler.store, "cranes")] == [at("cranes")]


async def test_F20_a_transaction_whose_connection_is_ended_leaves_nothing(store: Store, url: str) -> None:
    async def half(tx_done: Callable[[], Awaitable[object]]) -> None:
        async with store.db.write() as tx:
            await tx.run("record_cache", path="a", digest="b")
            await tx_done()

    with pytest.raises(StoreUnreachable):
        await half(lambda: fetched(url, END_OTHERS))
    assert await store.digest.recorded_cache() is None
    await store.digest.record_cache(SeenCache("a", "c"))
    assert await store.digest.recorded_cache() == SeenCache("a", "c")


async def test_P10_a_server_that_is_down_is_waited_for(store: Store) -> None:
    class Down(SourceRepository):
        tries = 0

        async def all(self, name: str | None = None) -> list[Source]:
            self.tries += 1
            if self.tries < 3:
                raise StoreUnreachable("down")
            return []

    notices: list[object] = []
    retry = RetryPolicy(busy_seconds=60.0, listener=notices.append)
    with patch("afresh.store.repository.PAUSE", 0.001):
        assert await Down(store.db, Caches(), retry).all() == []
    assert notices == [Notice(text=DOWN.format(why="down")), Notice(text=GOING_ON)]


async def test_F22_a_deadlock_can_be_retried(store: Store, clock: FrozenClock) -> None:
    now, later = clock(), clock() + timedelta(hours=1)
    for path in ("a", "b"):
        await store.queue.pause_host(path, now)
    met = asyncio.Barrier(2)

    async def cross(first: str, second: str) -> str:
        try:
            async with store.db.write() as tx:
                await tx.run("pause_host", domain=first, until=later)
                await met.wait()
                await tx.run("pause_host", domain=second, until=later)
        except StoreBusy:
            return "again"
        return "done"

    assert sorted(await asyncio.gather(cross("a", "b"), cross("b", "a"))) == ["again", "done"]
    resting = await store.stats.resting_hosts(now, 10)
    assert {host.domain: host.next_allowed_at for host in resting} == {"a": later, "b": later}


async def test_one_writer_at_a_time_writes_to_a_source(store: Store) -> None:
    order: list[str] = []
    begun = asyncio.Event()

    async def first() -> None:
        async with store.db.write(1) as tx:
            begun.set()
            await tx.all("sources")
            await other
            order.append("first")

    async def second(source: int) -> None:
        await begun.wait()
        async with store.db.write(source):
            order.append(f"second on {source}")

    other = asyncio.ensure_future(second(2))
    same = asyncio.ensure_future(second(1))
    await first()
    await same
    assert order == ["second on 2", "first", "second on 1"]


async def test_a_lock_is_not_waited_for_longer_than_configured(url: str, store: Store) -> None:
    hasty = await open_store(url, wait_seconds=0.05)
    try:
        async with store.db.write(1):
            with pytest.raises(StoreBusy, match="locked by another process"):
                async with hasty.db.write(1):
                    pass
    finally:
        await hasty.close()


async def test_a_failure_that_was_passed_over_is_no_commit(store: Store) -> None:
    async def passed_over() -> None:
        async with store.db.write() as tx:
            await tx.run("record_cache", path="a", digest="b")
            with suppress(asyncpg.PostgresError):
                await tx.run("record_cache", path=None, digest=None)

    with pytest.raises(StoreError, match="had failed"):
        await passed_over()
    assert await store.digest.recorded_cache() is None


# ---- text and vectors


async def test_F61_the_character_that_postgres_cannot_keep_is_left_out(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Nul\0byte and more", title="Ti\0tle")})
    [hit] = await search(crawler.store, "more")
    assert (hit.title, hit.text) == ("Title", "Nulbyte and \x02more\x03")


async def test_without_pgvector_keyword_search_answers_with_a_note(postgres: Postgres, clock: FrozenClock) -> None:
    import numpy as np

    with patch("afresh.store.postgres.use_pgvector", return_value=False):
        async with postgres.bare() as url:
            store = await open_store(url)
            assert isinstance(store.db, PostgresDatabase)
            crawler = await ManualCrawler.at(store, clock)
            await crawler.crawl({"": read("Welcome to the harbour")})
            assert len(await search(store, "harbour")) == 1
            assert store.vectors.no_vectors is not None
            assert "no pgvector" in store.vectors.no_vectors
            question = np.ones((1, 4), dtype=np.float32)
            assert (await store.vectors.nearest("test/one", question, SearchFilter(), 5)).chunks == ()
            with pytest.raises(StoreError, match="no pgvector"):
                await store.vectors.keep("test/one", {"a": b"\0\0"}, clock())
            await store.close()


async def test_U5_missing_pgvector_is_reported_once_for_a_store(
    postgres: Postgres, clock: FrozenClock, tmp_path: Path
) -> None:
    async def fetched(url: str, mode: SearchMode | None = None, *, provider: str = "local") -> list[str]:
        """What a command of its own process says: a search, or a run."""
        flags = {"store.url": url, "embedding.provider": provider}
        store = await open_store(url)
        models = ModelProvider(load(None, {}, flags, tmp_path), store, clock)
        asking = models.for_queries(mode) if mode else models.for_run("full", store, ParserPool())
        try:
            async with asking as (_, notes):
                return list(notes)
        finally:
            await store.close()

    with (
        patch("afresh.store.postgres.use_pgvector", return_value=False),
        patch.object(ModelProvider, "wanted", lambda self: self._config.embedding.provider == "local" or None),
    ):
        async with postgres.bare() as url:
            assert await fetched(url, provider="none") == []
            await fetched(url, SearchMode.TEXT)  # whose answer shows no such note
            [first] = await fetched(url)
            assert "no pgvector" in first
            assert [await fetched(url), await fetched(url, SearchMode.HYBRID)] == [[], []]
            assert await fetched(url, SearchMode.VECTOR) == [first], "who asks by meaning hears why it cannot be"


async def test_many_vectors_get_an_index_that_finds_what_a_comparison_of_all_finds(
    store: Store, crawler: ManualCrawler, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    dice = np.random.default_rng(1)
    texts = [f"text number {number}" for number in range(60)]
    numbers = dice.normal(size=(60, 8)).astype("<f2")
    made = {text_hash(text): row.tobytes() for text, row in zip(texts, numbers, strict=True)}
    await store.vectors.keep("test/one", made, crawler.clock())
    await crawler.crawl({"": read("\n\n".join(texts[:40]), "b"), "b": read("\n\n".join(texts[40:]))})
    question, page = dice.normal(size=(1, 8)).astype(np.float32), SearchFilter(path="/b")
    before = [await store.vectors.nearest("test/one", question, within, 10) for within in (SearchFilter(), page)]
    await store.vectors.forget(crawler.clock())
    monkeypatch.setattr("afresh.store.postgres_search.MIN_INDEXED", 10)
    for _ in range(2):  # the second finds it made
        await store.vectors.forget(crawler.clock())
    async with store.db.read() as tx:
        model = await tx.one("model_and_newest", name="test/one")
        assert model is not None
        index = await tx.one("near_index", model=model["id"])
        assert index is not None
        assert index["ready"]
    after = [await store.vectors.nearest("test/one", question, within, 10) for within in (SearchFilter(), page)]
    assert [each.chunks for each in after] == [each.chunks for each in before]
    assert len(after[0].chunks) == len(after[1].chunks) == 10


async def test_F21_a_server_without_a_connection_to_spare_is_waited_for(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, refusals = PostgresDatabase._connected, [asyncpg.TooManyConnectionsError("full")] * 2

    async def crowded(self: PostgresDatabase) -> asyncpg.Pool:
        if refusals:
            error = refusals.pop()
            raise explain(error, self.name) from error
        return await connect(self)

    monkeypatch.setattr(PostgresDatabase, "_connected", crowded)
    monkeypatch.setattr("afresh.store.postgres.OPEN_PAUSE", 0.001)
    store = await open_store(url)
    assert await store.sources.all() == []
    await store.close()
    refusals += [asyncpg.TooManyConnectionsError("full")] * 2
    monkeypatch.setattr("afresh.store.postgres.OPEN_SECONDS", -1.0)
    with pytest.raises(StoreUnreachable, match="raise max_connections"):
        await open_store(url)


async def test_the_store_has_a_size_and_no_problem(store: Store, crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read(Random(1).randbytes(200_000).hex())})
    assert await store.stats.size_bytes() > 200_000
    assert await store.stats.integrity() is None


# ---- news of work

END_LISTENERS = END_OTHERS.replace("'afresh'", "'afresh listens'")


async def test_B21_a_waiter_is_woken_by_the_work_of_other_processes(crawler: ManualCrawler, url: str) -> None:
    """Looks that find nothing new tell nobody: each message costs a lock that all commits share."""
    waiting = await open_store(url)
    await waiting.db.news.wait(waiting.db.news.count, 60)  # who begins to listen looks once more
    for work in (crawler.begin(), crawler.enqueue("", "a")):
        resting = asyncio.create_task(waiting.db.news.wait(waiting.db.news.count, 60))
        await work
        async with asyncio.timeout(20):
            await resting
    claims = await crawler.claim()
    quiet = waiting.db.news.count
    await crawler.commit(*[crawler.visit(claim, Gone()) for claim in claims])
    await waiting.db.news.wait(quiet, 0.1)
    assert waiting.db.news.count == quiet
    await waiting.close()


async def test_B21_F20_a_waiter_that_cannot_listen_polls(
    crawler: ManualCrawler, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_news, "LISTEN_AGAIN_SECONDS", 0.0)
    waiting = await open_store(url)
    await waiting.db.news.wait(waiting.db.news.count, 60)
    assert await fetched(url, END_LISTENERS) == 1
    with patch.object(asyncpg, "connect", side_effect=OSError("no more connections")):
        await waiting.db.news.wait(waiting.db.news.count, 0.05)
        await crawler.begin()
        await crawler.enqueue("")
        assert len(await crawler.beside(waiting, "w2").claim()) == 1
    async with asyncio.timeout(20):
        await waiting.db.news.wait(waiting.db.news.count, 60)
        before = waiting.db.news.count
        await crawler.enqueue("a")
        await waiting.db.news.wait(before, 60)
    await waiting.close()
