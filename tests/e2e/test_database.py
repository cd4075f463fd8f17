"""A database that goes away, is full, cuts in or can only be read: the crawl goes on as if undisturbed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import Held, assert_sound, counts, in_database, index_of, opened, rows, url_of
from tests.e2e.sites import BusySite, lay, looks, star
from tests.postgres import Postgres, mortal

from afresh.errors import StoreError, StoreUnreachable
from afresh.events import Event, Notice, PageStep
from afresh.store.open import open_store
from afresh.store.postgres import PostgresDatabase, explain

END_AFRESH = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'afresh'"
PAGES = 31
Blow = Callable[["Crawl"], Coroutine[None, None, None]]


@pytest.fixture(scope="module")
def mortal_server() -> Iterator[tuple[Postgres, Callable[[str], None]]]:
    with mortal(connections=12) as served:
        yield served


@pytest.fixture
async def mortal_store(tmp_path: Path, mortal_server: tuple[Postgres, Callable[[str], None]]) -> AsyncIterator[Path]:
    """A store on a server that a test may mistreat."""
    with in_database(tmp_path / "kb.db", await mortal_server[0].emptied()) as store:
        yield store


@pytest.fixture(scope="module")
def busy() -> Iterator[BusySite]:
    with BusySite() as site:
        lay(site, star(PAGES - 1))
        yield site


@pytest.fixture
async def undisturbed(busy: BusySite, tmp_path: Path, work: type[InProcess]) -> dict[str, Held]:
    """The index that a crawl without trouble gives."""
    async with opened(tmp_path / "undisturbed.db") as kb:
        await kb.runs.crawl(busy.url, name="docs")
    busy.requests.clear()
    return index_of(tmp_path / "undisturbed.db")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.store.repository.PAUSE", 0.02)


class Crawl:
    """A crawl under way: what it said, and when it wrote."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.message: list[str] = []
        self.written = asyncio.Event()

    def receive(self, event: Event) -> None:
        """Note what the crawl says."""
        if isinstance(event, Notice):
            self.message.append(event.text)
        if isinstance(event, Notice) or (isinstance(event, PageStep) and event.name == "commit"):
            self.written.set()

    async def says(self, words: str) -> None:
        """Wait until the crawl says so."""
        while not any(words in text for text in self.message):
            self.written.clear()
            await asyncio.wait_for(self.written.wait(), 30)


@asynccontextmanager
async def beside(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Another program on the same database."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


def name_of(url: str) -> str:
    """The database that an address names."""
    return urlsplit(url).path.removeprefix("/")


async def ends_as_undisturbed(store: Path, site: BusySite, undisturbed: dict[str, Held], blow: Blow) -> Crawl:
    """Strike in the middle of a crawl; what is on record in the end, and what was asked for, is the same."""
    held = site.hold("/p5")
    async with opened(store) as kb:
        crawl = Crawl(url_of(store))
        task = asyncio.create_task(kb.runs.crawl(site.url, name="docs", listener=crawl.receive))
        await held.arrived()
        striking = asyncio.create_task(blow(crawl))
        await asyncio.wait({striking, task}, return_when=asyncio.FIRST_COMPLETED)
        site.release("/p5")
        report = await task
        await striking
        assert (report.state, counts(report)) == ("completed", {"new": PAGES})
        assert (await kb.status.get()).in_flight == 0
    assert index_of(store) == undisturbed
    assert_sound(store)
    assert looks(site) == dict.fromkeys(star(PAGES - 1), 1)
    assert rows(store, "select count(*) from changes where kind = 'new'") == [(PAGES,)]
    return crawl


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_F19_P10_a_crawl_goes_on_after_the_server_was_restarted(
    mode: str,
    mortal_store: Path,
    mortal_server: tuple[Postgres, Callable[[str], None]],
    busy: BusySite,
    undisturbed: dict[str, Held],
) -> None:
    async def restart(crawl: Crawl) -> None:
        await asyncio.to_thread(mortal_server[1], mode)

    await ends_as_undisturbed(mortal_store, busy, undisturbed, restart)


async def test_F20_a_crawl_whose_connections_are_ended_again_and_again_goes_on(
    mortal_store: Path, busy: BusySite, undisturbed: dict[str, Held]
) -> None:
    ended: list[int] = []

    async def end(crawl: Crawl) -> None:
        async with beside(crawl.url) as other:
            for _ in range(5):
                crawl.written.clear()
                ended.append(len(await other.fetch(END_AFRESH)))
                busy.release("/p5")
                with suppress(TimeoutError):
                    await asyncio.wait_for(crawl.written.wait(), 1)

    await ends_as_undisturbed(mortal_store, busy, undisturbed, end)
    assert sum(ended) >= 3


async def test_F21_a_crawl_waits_for_a_connection_and_says_so(
    mortal_store: Path, busy: BusySite, undisturbed: dict[str, Held]
) -> None:
    async def many_workers(crawl: Crawl) -> None:
        async with AsyncExitStack() as others:
            first = await others.enter_async_context(beside(crawl.url))
            await first.fetch(END_AFRESH)
            while not any("no free connection" in text for text in crawl.message):
                try:
                    await others.enter_async_context(beside(crawl.url))
                except asyncpg.TooManyConnectionsError:
                    await first.fetch(END_AFRESH)
                    busy.release("/p5")
                    await asyncio.sleep(0)

    crawl = await ends_as_undisturbed(mortal_store, busy, undisturbed, many_workers)
    assert any("raise max_connections" in text for text in crawl.message)


async def test_P3_F20_a_commit_whose_answer_was_lost_is_not_repeated(
    mortal_store: Path, busy: BusySite, undisturbed: dict[str, Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim whose answer is lost would be held for as long as its worker lives."""
    numbers, end = iter(range(10**6)), PostgresDatabase._end

    async def silent(self: PostgresDatabase, connection: asyncpg.Connection) -> str:
        reported = await end(self, connection)
        if next(numbers) % 4:
            return reported
        connection.terminate()
        raise asyncpg.ConnectionDoesNotExistError("the connection is lost")

    async def deafen(crawl: Crawl) -> None:
        monkeypatch.setattr(PostgresDatabase, "_end", silent)

    monkeypatch.setattr("afresh.store.postgres.PAUSE", 0.01)
    await ends_as_undisturbed(mortal_store, busy, undisturbed, deafen)
    assert next(numbers) > 10


# ---- what the server answers

CODES = ("40001", "40P01", "53200", "55P03", "57014", "57P03", "08006", "25006", "sleep")
TRIGGER = """
create sequence blows;
create function strike() returns trigger language plpgsql as $$
declare code text := (array[{codes}])[nextval('blows')];
begin
    if code = 'sleep' then perform pg_sleep(30); end if;
    if code is not null then raise exception 'struck' using errcode = code; end if;
    return null;
end $$;
create trigger strike after insert or update on page_crawls for each statement execute function strike()
"""
PEACE = "drop trigger if exists strike on page_crawls; drop function strike; drop sequence blows"


async def test_F22_every_problems_that_passes_is_tried_again(
    mortal_store: Path, busy: BusySite, undisturbed: dict[str, Held]
) -> None:
    """One after the other; the last is a statement that the server cuts for its length."""
    codes = ", ".join(f"'{code}'" for code in CODES)
    name = name_of(url_of(mortal_store))

    async def strike(crawl: Crawl) -> None:
        async with beside(crawl.url) as other:
            await other.execute(f"alter database {name} set statement_timeout = '700ms'")
            await other.execute(TRIGGER.format(codes=codes))
            await other.execute(END_AFRESH)

    try:
        await ends_as_undisturbed(mortal_store, busy, undisturbed, strike)
        assert rows(mortal_store, "select last_value from blows")[0][0] > len(CODES)
    finally:
        async with beside(url_of(mortal_store)) as other:
            await other.execute(f"alter database {name} reset statement_timeout")
            await other.execute(PEACE)


async def test_F22_a_crawl_that_crosses_another_transaction_gives_way_and_goes_on(
    mortal_store: Path, busy: BusySite, undisturbed: dict[str, Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[BaseException] = []

    def noted(error: BaseException, displayed: str) -> StoreError:
        met.append(error)
        return explain(error, displayed)

    async def cross(crawl: Crawl) -> None:
        async with beside(crawl.url) as other, beside(crawl.url) as third:
            await other.execute(f"alter database {name_of(crawl.url)} set deadlock_timeout = '300ms'")
            await other.execute("set deadlock_timeout = '1min'")  # so it is the crawl that finds out
            await other.execute(END_AFRESH)
            while not any(isinstance(error, asyncpg.DeadlockDetectedError) for error in met):
                async with other.transaction():
                    await other.execute("update runs set counts = counts")
                    busy.release("/p5")
                    while not await third.fetchval("select count(*) from pg_locks where not granted"):
                        pass
                    await other.execute("lock table pages in exclusive mode")  # what the crawl wrote to
            await other.execute(f"alter database {name_of(crawl.url)} reset deadlock_timeout")

    monkeypatch.setattr("afresh.store.postgres.explain", noted)
    await ends_as_undisturbed(mortal_store, busy, undisturbed, cross)


async def test_P10_a_server_that_can_only_be_read_is_waited_for(
    mortal_store: Path, busy: BusySite, undisturbed: dict[str, Held]
) -> None:
    """As after a failover, when the connections still lead to the server that was left."""
    name = name_of(url_of(mortal_store))

    async def read_only(crawl: Crawl) -> None:
        async with beside(crawl.url) as other:
            await other.execute(f"alter database {name} set default_transaction_read_only = on")
            await other.execute(END_AFRESH)
            busy.release("/p5")
            try:
                await crawl.says("can only be read")
            finally:
                await other.execute(f"alter database {name} reset default_transaction_read_only")

    await ends_as_undisturbed(mortal_store, busy, undisturbed, read_only)


async def test_F24_a_worker_that_falls_asleep_in_a_transaction_keeps_nobody_waiting(
    mortal_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.store.postgres.ASLEEP_SECONDS", 0.1)
    sleeper = await open_store(url_of(mortal_store))
    monkeypatch.undo()
    other = await open_store(url_of(mortal_store))

    async def sleep() -> None:
        async with sleeper.db.write(1) as tx:
            async with other.db.write(1):  # waits for the turn that the sleeper has
                pass
            await tx.all("sources")

    try:
        with pytest.raises(StoreUnreachable):
            await sleep()
    finally:
        await sleeper.close()
        await other.close()
