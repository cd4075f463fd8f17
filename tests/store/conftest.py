"""The stores under test: one line per store, and every test of this folder runs over all of them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.postgres import Postgres
from tests.quick import DURABLE
from tests.store.crawler import ManualCrawler

from afresh.store.open import open_store
from afresh.store.store import Store
from afresh.testing import FrozenClock

Open = Callable[[], Awaitable[Store]]  # every call is one more process on the same store


@asynccontextmanager
async def sqlite(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """One file, opened as often as there are users."""
    folder: Path = request.getfixturevalue("tmp_path")
    yield lambda: open_store(f"sqlite:///{folder / 'afresh.db'}")


@asynccontextmanager
async def postgresql(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """One database, opened as often as there are users."""
    server: Postgres = request.getfixturevalue("postgres")
    url = await server.emptied()
    yield lambda: open_store(url)


STORES = {"sqlite": sqlite, "postgres": postgresql}


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture(params=STORES)
async def open_another(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Opens the store under test, each time as another process would."""
    async with STORES[request.param](request) as opener, AsyncExitStack() as opened:

        async def one_more() -> Store:
            store = await opener()
            opened.push_async_callback(store.close)
            return store

        yield one_more


@pytest.fixture
async def store(open_another: Open) -> Store:
    """The store under test."""
    return await open_another()


@pytest.fixture
async def crawler(store: Store, clock: FrozenClock) -> ManualCrawler:
    """One source in the store under test, walked by hand."""
    return await ManualCrawler.at(store, clock)


@pytest.fixture
def durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written waits for the disk, as it does outside of tests."""
    monkeypatch.setattr("afresh.store.sqlite.PRAGMAS", DURABLE)


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    """Where a test that is about SQLite alone keeps its file."""
    return tmp_path / "afresh.db"


@pytest.fixture
async def sqlite_store(sqlite_file: Path) -> AsyncIterator[Store]:
    """A SQLite store, for what only a look into the file can tell."""
    store = await open_store(f"sqlite:///{sqlite_file}")
    yield store
    await store.close()


@pytest.fixture
async def sqlite_crawler(sqlite_store: Store, clock: FrozenClock) -> ManualCrawler:
    """One source in a SQLite store."""
    return await ManualCrawler.at(sqlite_store, clock)
