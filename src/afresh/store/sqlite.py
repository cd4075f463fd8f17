"""SQLite: one writer thread, one reader thread, WAL, every write BEGIN IMMEDIATE."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar, cast

from afresh.core.errors import SchemaTooNew, StoreError
from afresh.failpoints import failpoint
from afresh.store.dialect import Row, Session
from afresh.store.sql import migrations, queries

T = TypeVar("T")
BUSY_SECONDS = 30.0
DDL = {
    "pk": "integer primary key",
    "kept_pk": "integer primary key autoincrement",  # a number once given is never given again
    "time": "text",
    "blob": "blob",
    "real": "real",
    "without_rowid": "without rowid",
}
ADVICE = {
    "unable to open": " (can its folder be written to?)",
    "readonly": " (can the file and its folder be written to?)",
    "full": "; make room, then run the command again: it goes on where it was",
    "malformed": "; restore it from a backup, or move it away and crawl again",
    "not a database": "; name another file with --store",
    "locked": "; another process is writing for a long time, try again",
}
PRAGMAS = (
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma temp_store = memory",
    "pragma cache_size = -16000",
    "pragma wal_autocheckpoint = 4000",
)
_LIST = re.compile(r"\{list (\w+)\}")
_ROWS = re.compile(r"\{rows ([\w ]+)\}")


@lru_cache(256)  # a batch writes the same few times over and over
def write_time(at: datetime) -> str:
    """A time as it is stored: UTC, fixed width, so that text order is time order."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


sqlite3.register_adapter(datetime, write_time)
sqlite3.register_adapter(list, json.dumps)
sqlite3.register_adapter(tuple, json.dumps)


@cache
def statement(name: str) -> str:
    """A named statement in SQLite's words.

    `{list x}` is the members of the list parameter x, `{rows a b}` a table with these columns that is
    handed over whole: one step of SQLite for a batch, so that its thread holds no other one up.
    """
    sql = _LIST.sub(r"(select value from json_each(:\1))", queries()[name])
    return _ROWS.sub(_table, sql)


def _table(match: re.Match[str]) -> str:
    columns = ", ".join(f"json_extract(value, '$.{name}') as {name}" for name in match[1].split())
    return f"(select {columns} from json_each(:rows))"


class SqliteSession:
    """One transaction on one connection, whose calls run on that connection's thread."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        call: Callable[..., "asyncio.Future[object]"],
        at: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._call = call
        self._at = at

    async def all(self, name: str, /, **params: object) -> Sequence[Row]:
        def work() -> list[Row]:
            return cast("list[Row]", self._connection.execute(statement(name), params).fetchall())

        rows = cast("list[Row]", await self._call(work))
        self._at("sql")
        return rows

    async def one(self, name: str, /, **params: object) -> Row | None:
        rows = await self.all(name, **params)
        return rows[0] if rows else None

    async def run(self, name: str, /, **params: object) -> int:
        def work() -> int:
            return self._connection.execute(statement(name), params).rowcount

        touched = cast("int", await self._call(work))
        self._at("sql")
        return touched

    async def many(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> None:
        if not rows:
            return
        if "{rows " in queries()[name]:
            await self._call(lambda: self._connection.execute(statement(name), {"rows": _as_json(rows)}))
        else:
            await self._call(lambda: self._connection.executemany(statement(name), rows))
        self._at("sql")


def _nothing(point: str) -> None:
    del point


def _as_json(rows: Sequence[Mapping[str, object]]) -> str:
    return json.dumps(rows, default=write_time)


class SqliteDatabase:
    """One SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = {role: ThreadPoolExecutor(1, f"sqlite-{role}") for role in ("write", "read")}
        self._connections: dict[str, sqlite3.Connection] = {}
        self._locks = {role: asyncio.Lock() for role in self._threads}

    async def open(self) -> None:
        """Open the file, creating or migrating it; a newer or foreign file is refused untouched."""
        loop = asyncio.get_running_loop()
        for role, thread in self._threads.items():
            try:
                self._connections[role] = await loop.run_in_executor(thread, self._connect)
                if role == "write":
                    await loop.run_in_executor(thread, migrate, self._connections[role])
            except BaseException as error:
                await self.close()
                if isinstance(error, sqlite3.Error):
                    raise StoreError(self._explain(error)) from error
                raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        connection.row_factory = sqlite3.Row
        try:
            check_owner(connection, self.path)
            for pragma in PRAGMAS:
                connection.execute(pragma)
        except BaseException:
            connection.close()
            raise
        return connection

    def _explain(self, error: sqlite3.Error) -> str:
        text = str(error)
        hint = next((advice for words, advice in ADVICE.items() if words in text), "")
        return f"the store {self.path} cannot be used: {text}{hint}"

    @asynccontextmanager
    async def _session(self, role: str, begin: str) -> AsyncIterator[SqliteSession]:
        loop = asyncio.get_running_loop()
        connection = self._connections[role]
        at = failpoint if role == "write" else _nothing  # a read that ends early leaves no trace

        def call(work: Callable[[], object]) -> "asyncio.Future[object]":
            return loop.run_in_executor(self._threads[role], work)

        async with self._locks[role]:
            try:
                await call(lambda: connection.execute(begin))
                at("sql.begin")
                yield SqliteSession(connection, call, at)
                at("sql.commit")
                await asyncio.shield(call(lambda: connection.execute("commit")))
                at("sql.done")
            except sqlite3.Error as error:
                await asyncio.shield(call(connection.rollback))
                raise StoreError(self._explain(error)) from error
            except BaseException:
                await asyncio.shield(call(connection.rollback))
                raise

    def write(self) -> AbstractAsyncContextManager[Session]:
        """One transaction that is whole or absent."""
        return self._session("write", "begin immediate")

    def read(self) -> AbstractAsyncContextManager[Session]:
        """A consistent snapshot."""
        return self._session("read", "begin")

    async def size_bytes(self) -> int:
        """The file and its log on disk."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def close(self) -> None:
        """Close the file."""
        loop = asyncio.get_running_loop()
        while self._connections:
            role, connection = self._connections.popitem()
            await loop.run_in_executor(self._threads[role], connection.close)
        for thread in self._threads.values():
            thread.shutdown()


def check_owner(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a newer or foreign file before anything about it is changed."""
    newest = migrations("sqlite")[-1][0]
    tables, version = connection.execute(
        "select (select count(*) from sqlite_master), user_version from pragma_user_version"
    ).fetchone()
    if version > newest:
        raise SchemaTooNew(
            f"the store {path} was written by a newer afresh (schema {version}, this one knows {newest}); "
            "upgrade afresh or name another store with --store"
        )
    if version == 0 and tables:
        raise StoreError(f"{path} is a database, but not one of afresh; name another store with --store")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, each step in one transaction."""
    version = _version(connection)
    for number, text in migrations("sqlite"):
        if number > version:
            _apply(connection, number, text.format(**DDL))


def _apply(connection: sqlite3.Connection, number: int, script: str) -> None:
    connection.execute("begin immediate")
    try:
        if _version(connection) < number:  # another process may have been faster
            for sql in split(script):
                connection.execute(sql)
            connection.execute(f"pragma user_version = {number}")
        connection.execute("commit")
    except BaseException:
        connection.rollback()
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


def split(script: str) -> list[str]:
    """The statements of a script; a trigger's body stays in one piece."""
    found, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current.strip())
            current = ""
    return found
