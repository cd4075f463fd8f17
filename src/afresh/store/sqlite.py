"""SQLite databases: one writer thread, two reader threads, WAL; every write starts with BEGIN IMMEDIATE."""

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TypeVar, cast

from afresh.aio import finished
from afresh.errors import StoreBusy, StoreError
from afresh.ops.failpoints import failpoint
from afresh.ports import StoreAccess
from afresh.store.dialect import Row, Transaction, Wakeups, ignore_point, queries
from afresh.store.sqlite_file import (
    MOVED,
    check_age,
    check_owner,
    check_sound,
    explain,
    migrate,
    place_of,
    size_of,
    wal_of,
    wants_check,
    ways_in,
)

T = TypeVar("T")
BUSY_SECONDS = 30.0
OPEN_PAUSE = 0.05  # seconds between attempts to open a file that another process is creating
READERS = ("read", "read too")  # two, so that a short read need not wait for a long one
QUICK = frozenset(
    ("newest", "model_and_newest")
)  # they read the end of an index, which is faster than a thread switch
READ_ONLY = re.compile(r"mode=ro$|immutable=1$")
PRAGMAS = (
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma temp_store = memory",
    "pragma cache_size = -32000",
    "pragma secure_delete = on",  # removed text does not remain in free pages
    "pragma wal_autocheckpoint = 4000",
)
_LIST = re.compile(r"\{list (\w+)\}")
_ROWS = re.compile(r"\{rows ([\w ]+)\}")
_HOLDS = re.compile(r"\{holds ([\w.]+)\}")
_LOCK = re.compile(r"\s*\{for update[\w ]*\}")


@lru_cache(256)  # a batch writes the same few times repeatedly
def write_time(at: datetime) -> str:
    """Return a time as stored: UTC, fixed width, so that text order is time order."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


sqlite3.register_adapter(datetime, write_time)
sqlite3.register_adapter(list, json.dumps)
sqlite3.register_adapter(tuple, json.dumps)


@cache
def statement(name: str) -> str:
    """Return a named statement in the SQL of SQLite, without row locks, as there is only one writer.

    A table of rows is passed as one JSON parameter, so that a batch is a single step.
    """
    sql = _LIST.sub(r"(select value from json_each(:\1))", _LOCK.sub("", queries("sqlite")[name]))
    return _HOLDS.sub(r"lower(\1) glob :glob", _ROWS.sub(_table, sql))


def _table(match: re.Match[str]) -> str:
    columns = ", ".join(f"json_extract(value, '$.{name}') as {name}" for name in match[1].split())
    return f"(select {columns} from json_each(:rows))"


class SqliteSession(Transaction):
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
        self._quick = quick  # statements that run without a thread

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

            def work() -> None:  # serialises in the thread as well
                self._connection.execute(statement(name), {"rows": json.dumps(rows, default=write_time)})

            await self._call(work)
        else:
            await self._call(lambda: self._connection.executemany(statement(name), rows))
        self._at("sql")

    async def turn(self, source: int) -> None:
        del source  # a write transaction is always the only one


def _at_once(work: Callable[[], object]) -> "asyncio.Future[object]":
    done = asyncio.get_running_loop().create_future()
    done.set_result(work())
    return done


class SqliteDatabase:
    """One SQLite file."""

    has_vectors = True

    def __init__(
        self,
        path: Path,
        access: StoreAccess = StoreAccess.CREATE,
        *,
        wait_seconds: float = BUSY_SECONDS,
        open_seconds: float = BUSY_SECONDS,
    ) -> None:
        self.path = path
        self.access = access
        self.wait_seconds = wait_seconds  # how long a transaction waits for other processes
        self.open_seconds = open_seconds
        self._threads = {role: ThreadPoolExecutor(1, f"sqlite-{role}") for role in ("write", *READERS)}
        self._connections: dict[str, sqlite3.Connection] = {}
        self._writing = asyncio.Lock()
        self._reading = asyncio.Semaphore(len(READERS))
        self._idle = list(READERS)  # free readers
        self.news = Wakeups()  # other processes cannot notify: waiters poll
        self._place: tuple[int, int] | None = None  # device and inode of the open file

    @property
    def read_only(self) -> bool:
        return "write" not in self._connections

    async def open(self) -> None:
        """Open, create or migrate the file; refuse a damaged, newer or foreign one without changing it."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.open_seconds
        while True:
            last = loop.time() >= deadline
            try:
                await self._open_once()
            except BaseException as error:
                if not isinstance(error, StoreBusy) or last:  # busy: another process holds the lock
                    await self.close()
                    raise
                await self._disconnect()
                await asyncio.sleep(OPEN_PAUSE)
            else:
                return

    async def _open_once(self) -> None:
        ways = ways_in(self.path, self.access)
        for role in READERS if READ_ONLY.search(ways[0]) else ("write", *READERS):
            self._connections[role] = await self._on(role, partial(self._connect, role, ways))
        self._place = place_of(self.path)

    def _connect(self, role: str, ways: Sequence[str]) -> sqlite3.Connection:
        """Return a connection made with the first URI that works."""
        try:
            return self._connect_by(role, ways[0])
        except sqlite3.Error as error:
            if ways[1:]:
                return self._connect(role, ways[1:])
            raise explain(error, self.path) from error

    def _connect_by(self, role: str, way: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            way, timeout=self.wait_seconds, isolation_level=None, uri=True, check_same_thread=role == "write"
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
        """Check, migrate and configure a file for writing."""
        if self.access is not StoreAccess.READ and wants_check(self.path):
            check_sound(connection, self.path)
        [mode] = connection.execute("pragma journal_mode = wal").fetchone()
        if mode != "wal":
            raise StoreError(
                f"the store {self.path} cannot be shared between processes on this kind of drive; "
                "keep it on a disk of this machine"
            )
        migrate(connection)
        connection.execute("pragma busy_timeout = 0")  # `begin` waits by its own rules

    def _check_place(self) -> None:
        """Raise if the file was moved or replaced, because writes would be lost."""
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
        turn = call if role == "write" else _at_once  # beginning and ending a read needs no thread
        at = failpoint if role == "write" else ignore_point

        try:
            await turn(partial(start, connection))
            at("sql.begin")
            yield SqliteSession(connection, call, at, frozenset() if role == "write" else QUICK)
            at("sql.commit")
            if role == "write":
                self._check_place()
            await finished(turn(lambda: connection.execute("commit")))
            at("sql.done")
        except sqlite3.Error as error:
            await finished(call(connection.rollback))
            raise explain(error, self.path) from error
        except BaseException:
            if role != "write":
                connection.interrupt()  # so that an abandoned query does not block the reader
            await finished(call(connection.rollback))
            raise

    @asynccontextmanager
    async def write(self, source: int | None = None) -> AsyncIterator[Transaction]:
        """Open a write transaction; it is atomic, and the only one at a time."""
        start = partial(begin, seconds=self.wait_seconds)
        async with self._writing, self._session("write", start) as session:
            yield session

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """Open a consistent snapshot on the first free reader."""
        async with self._reading:
            role = self._idle.pop()
            try:
                async with self._session(role, lambda connection: connection.execute("begin")) as session:
                    yield session
            finally:
                self._idle.append(role)

    async def size_bytes(self) -> int:
        """Return the size of the file and its write-ahead log."""
        return size_of(self.path) + size_of(wal_of(self.path))

    async def reclaim_space(self) -> int | None:
        """Rewrite the file without free pages and return the bytes saved; raise StoreBusy if it is in use."""
        before = await self.size_bytes()
        async with self._writing:
            if "write" not in self._connections:
                raise StoreError(f"the store {self.path} can only be read here")
            connection = self._connections["write"]
            try:
                for sql in ("vacuum", "pragma wal_checkpoint(truncate)"):
                    await finished(self._on("write", partial(connection.execute, sql)))
            except sqlite3.Error as error:
                raise explain(error, self.path) from error
        return max(0, before - await self.size_bytes())

    async def trouble(self) -> str | None:
        async with self.read() as tx:
            row = await tx.only("integrity")
            if row["quick_check"] != "ok":
                return str(row["quick_check"])
            row = await tx.only("not_indexed")
            if row["english"] or row["simple"]:
                return f"the text index does not hold what it should ({row['english']}, {row['simple']})"
        if self.read_only:  # checking the text index needs write access
            return None
        async with self.write() as tx:
            for config in ("english", "simple"):
                try:
                    await tx.run(f"check_{config}")
                except Exception as error:
                    return f"the text index ({config}) does not match its text: {error}"
        return None

    async def _disconnect(self) -> None:
        while self._connections:
            role, connection = self._connections.popitem()
            await self._on(role, connection.close)

    async def close(self) -> None:
        await self._disconnect()
        for thread in self._threads.values():
            thread.shutdown()


CROWDED = 0.2  # seconds after which a waiter polls more often than newer ones
LONG = 3.0  # seconds after which the file counts as locked, not just busy
FIRST, OFTEN, SELDOM = 0.012, 0.006, 0.025


def begin(
    connection: sqlite3.Connection,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Begin a write transaction as soon as no other is open; raise the SQLite error after some seconds.

    SQLite's own busy handler polls less often the longer it waits, so that the oldest waiters starve.
    """
    since = clock()
    while True:
        try:
            connection.execute("begin immediate")
        except sqlite3.OperationalError as error:
            waited = clock() - since
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or waited >= seconds:
                raise
            sleep(pause(waited))
        else:
            return


def pause(waited: float) -> float:
    """Return the seconds until the next attempt."""
    return FIRST if waited < CROWDED else OFTEN if waited < LONG else SELDOM
