"""SQLite: one writer thread, two reader threads, WAL, every write BEGIN IMMEDIATE."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TypeVar, cast

from afresh.errors import StoreBusy, StoreError
from afresh.ops.failpoints import failpoint
from afresh.ports import Access
from afresh.store.dialect import Row, Session
from afresh.store.news import News
from afresh.store.sql import queries
from afresh.store.sqlite_file import check_sound, place_of, size_of, wal_of, wants_check, ways_in
from afresh.store.sqlite_schema import check_age, check_owner, migrate
from afresh.store.sqlite_sound import trouble_in
from afresh.store.sqlite_trouble import MOVED, explain
from afresh.store.sqlite_turn import begin

T = TypeVar("T")
BUSY_SECONDS = 30.0
OPEN_PAUSE = 0.05  # seconds between tries to open a file that another process is just making
READERS = ("read", "read too")  # a short read need not wait for a long one
QUICK = frozenset(("newest", "model_and_newest"))  # ends of indexes: to wake a thread would take longer
READ_ONLY = re.compile(r"mode=ro$|immutable=1$")
PRAGMAS = (
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma temp_store = memory",
    "pragma cache_size = -32000",
    "pragma secure_delete = on",  # text that is no longer kept is not left in free pages
    "pragma wal_autocheckpoint = 4000",
)
_LIST = re.compile(r"\{list (\w+)\}")
_ROWS = re.compile(r"\{rows ([\w ]+)\}")
_HOLDS = re.compile(r"\{holds ([\w.]+)\}")
_LOCK = re.compile(r"\s*\{for update[\w ]*\}")


@lru_cache(256)  # a batch writes the same few times over and over
def write_time(at: datetime) -> str:
    """A time as it is stored: UTC, fixed width, so that text order is time order."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


sqlite3.register_adapter(datetime, write_time)
sqlite3.register_adapter(list, json.dumps)
sqlite3.register_adapter(tuple, json.dumps)


@cache
def statement(name: str) -> str:
    """A named statement in SQLite's words; one writes at a time, so nobody is waited for.

    A table of rows is one step of SQLite for a batch, so that its thread holds no other one up.
    """
    sql = _LIST.sub(r"(select value from json_each(:\1))", _LOCK.sub("", queries("sqlite")[name]))
    return _HOLDS.sub(r"lower(\1) glob :glob", _ROWS.sub(_table, sql))


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
        quick: frozenset[str] = frozenset(),
    ) -> None:
        self._connection = connection
        self._call = call
        self._at = at
        self._quick = quick  # statements that need no thread

    async def all(self, name: str, /, **params: object) -> Sequence[Row]:
        def work() -> list[Row]:
            return cast("list[Row]", self._connection.execute(statement(name), params).fetchall())

        rows = work() if name in self._quick else cast("list[Row]", await self._call(work))
        self._at("sql")
        return rows

    async def each(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> Sequence[Sequence[Row]]:
        def work() -> list[list[Row]]:
            return [self._connection.execute(statement(name), row).fetchall() for row in rows]

        found = cast("list[list[Row]]", await self._call(work)) if rows else []
        self._at("sql")
        return found

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
        if "{rows " in queries("sqlite")[name]:
            await self._call(lambda: self._connection.execute(statement(name), {"rows": _as_json(rows)}))
        else:
            await self._call(lambda: self._connection.executemany(statement(name), rows))
        self._at("sql")

    async def turn(self, source: int) -> None:
        del source  # a transaction that writes is the only one


def _nothing(point: str) -> None:
    del point


def _as_json(rows: Sequence[Mapping[str, object]]) -> str:
    return json.dumps(rows, default=write_time)


def _at_once(work: Callable[[], object]) -> "asyncio.Future[object]":
    done = asyncio.get_running_loop().create_future()
    done.set_result(work())
    return done


async def _until_done(work: "asyncio.Future[object]") -> None:
    """Wait until a thread is done, however often we are cancelled: only then its connection is free."""
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            cancelled = True
    work.result()
    if cancelled:
        raise asyncio.CancelledError


def _vacuum(connection: sqlite3.Connection) -> None:
    connection.execute("vacuum")
    connection.execute("pragma wal_checkpoint(truncate)")


def _begin_to_read(connection: sqlite3.Connection) -> None:
    connection.execute("begin")


class SqliteDatabase:
    """One SQLite file."""

    has_vectors = True

    def __init__(
        self,
        path: Path,
        access: Access = Access.CREATE,
        *,
        wait_seconds: float = BUSY_SECONDS,
        open_seconds: float = BUSY_SECONDS,
    ) -> None:
        self.path = path
        self.access = access
        self.wait_seconds = wait_seconds  # how long a transaction waits for that of another process
        self.open_seconds = open_seconds
        self._threads = {role: ThreadPoolExecutor(1, f"sqlite-{role}") for role in ("write", *READERS)}
        self._connections: dict[str, sqlite3.Connection] = {}
        self._writing = asyncio.Lock()
        self._reading = asyncio.Semaphore(len(READERS))
        self._idle = list(READERS)  # readers that nobody uses
        self.news = News()  # a file tells nobody: who waits looks again
        self._place: tuple[int, int] | None = None  # device and number of the file that is written to

    @property
    def read_only(self) -> bool:
        """Whether the file, as it was opened, can only be read."""
        return "write" not in self._connections

    async def open(self) -> None:
        """Open the file, creating or migrating it; a damaged, newer or foreign one is refused untouched."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.open_seconds
        try:
            while not await self._opened(last=loop.time() >= deadline):  # noqa: ASYNC110 - others hold it
                await asyncio.sleep(OPEN_PAUSE)
        except BaseException:
            await self.close()
            raise

    async def _opened(self, *, last: bool) -> bool:
        """Whether it could be opened; not while another process keeps it locked."""
        try:
            ways = ways_in(self.path, self.access)
            roles = READERS if READ_ONLY.search(ways[0]) else ("write", *READERS)
            for role in roles:
                connecting = partial(self._connect, role, ways)
                self._connections[role] = await self._on(role, connecting)
            self._place = place_of(self.path)
        except StoreBusy:
            await self._disconnect()
            if last:
                raise
            return False
        return True

    def _connect(self, role: str, ways: Sequence[str]) -> sqlite3.Connection:
        """A connection by the first way that works."""
        for number, way in enumerate(ways, 1):
            try:
                return self._connect_by(role, way)
            except sqlite3.Error as error:
                if number == len(ways):
                    raise explain(error, self.path) from error
        raise AssertionError("there is always a way")

    def _connect_by(self, role: str, way: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            way,
            timeout=self.wait_seconds,
            isolation_level=None,
            uri=True,
            check_same_thread=role == "write",
        )
        connection.row_factory = sqlite3.Row
        try:
            check_owner(connection, self.path)
            if READ_ONLY.search(way):
                check_age(connection, self.path)
            elif role == "write":
                self._prepare(connection)
            for pragma in PRAGMAS:
                connection.execute(pragma)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make a file ready to be written to."""
        if self.access is not Access.READ and wants_check(self.path):
            check_sound(connection, self.path)
        [mode] = connection.execute("pragma journal_mode = wal").fetchone()
        if mode != "wal":
            raise StoreError(
                f"the store {self.path} cannot be shared between processes on this kind of drive; "
                "keep it on a disk of this machine"
            )
        migrate(connection)
        connection.execute("pragma busy_timeout = 0")  # only the beginning waits, and by our own rules

    def _check_place(self) -> None:
        """A file that was moved or replaced takes along what is written: nothing is said to be kept."""
        if self._place != place_of(self.path):
            raise StoreError(f"the store {self.path} {MOVED}")

    def _on(self, role: str, work: Callable[[], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._threads[role], work)

    @asynccontextmanager
    async def _session(
        self, role: str, start: Callable[[sqlite3.Connection], object]
    ) -> AsyncIterator[SqliteSession]:
        if role not in self._connections:
            raise StoreError(
                f"the store {self.path} can only be read here; make the file and its folder writable"
            )
        connection = self._connections[role]
        call = partial(self._on, role)
        turn = call if role == "write" else _at_once  # to begin and to end a read is no work for a thread
        at = failpoint if role == "write" else _nothing  # a read that ends early leaves no trace

        try:
            await turn(partial(start, connection))
            at("sql.begin")
            yield SqliteSession(connection, call, at, frozenset() if role == "write" else QUICK)
            at("sql.commit")
            if role == "write":
                self._check_place()
            await _until_done(turn(lambda: connection.execute("commit")))
            at("sql.done")
        except sqlite3.Error as error:
            await _until_done(call(connection.rollback))
            raise explain(error, self.path) from error
        except BaseException:
            if role != "write":
                connection.interrupt()  # what nobody waits for any more holds up nobody else
            await _until_done(call(connection.rollback))
            raise

    @asynccontextmanager
    async def write(self, source: int | None = None) -> AsyncIterator[Session]:
        """One transaction that is whole or absent; no other is under way."""
        start = partial(begin, seconds=self.wait_seconds)
        async with self._writing, self._session("write", start) as session:
            yield session

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Session]:
        """A consistent snapshot, by the reader that is free first."""
        async with self._reading:
            role = self._idle.pop()
            try:
                async with self._session(role, _begin_to_read) as session:
                    yield session
            finally:
                self._idle.append(role)

    async def size_bytes(self) -> int:
        """The file and its log on disk."""
        return size_of(self.path) + size_of(wal_of(self.path))

    async def reclaim_space(self) -> int | None:
        """Rewrite the file without its free pages; StoreBusy while another process reads or writes."""
        before = await self.size_bytes()
        async with self._writing:
            if "write" not in self._connections:
                raise StoreError(f"the store {self.path} can only be read here")
            connection = self._connections["write"]
            try:
                await _until_done(self._on("write", partial(_vacuum, connection)))
            except sqlite3.Error as error:
                raise explain(error, self.path) from error
        return max(0, before - await self.size_bytes())

    async def trouble(self) -> str | None:
        """What is broken in the file or its text index, or None."""
        return await trouble_in(self)

    async def _disconnect(self) -> None:
        while self._connections:
            role, connection = self._connections.popitem()
            await self._on(role, connection.close)

    async def close(self) -> None:
        """Close the file."""
        await self._disconnect()
        for thread in self._threads.values():
            thread.shutdown()
