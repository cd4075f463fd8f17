"""SQLite databases: WAL, one writer thread, two reader threads; every write starts with BEGIN IMMEDIATE."""

import asyncio
import json
import os
import re
import sqlite3
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, cast

from afresh.aio import wait_done
from afresh.errors import StoreBusy, StoreError
from afresh.ops.failpoints import failpoint
from afresh.ports import StoreAccess
from afresh.store import sqlite_file
from afresh.store.dialect import HOLDS_TOKEN, LIST_TOKEN, ROWS_TOKEN, TEXT_TOKEN, Row, Transaction, Wakeups, queries
from afresh.store.sqlite_file import ways_in

BUSY_SECONDS = 30.0
OPEN_PAUSE_SECONDS = 0.05  # between attempts to open a file that another process is creating
READERS = ("read", "read too")  # two, so that a short read need not wait for a long one
QUICK = frozenset(("newest", "model_and_newest"))  # statements that take less time than a switch to another thread
MAX_WAITING_ROWS = 1_000  # of statements that wait in a transaction
READ_ONLY = re.compile(r"mode=ro$|immutable=1$")
PRAGMAS = (
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma temp_store = memory",
    "pragma cache_size = -32000",
    "pragma secure_delete = on",  # removed text does not remain in free pages
    "pragma wal_autocheckpoint = 4000",
    "pragma trusted_schema = on",  # triggers use our functions
)
LEVEL = 4  # saves nearly as much as the highest one, in two thirds of its time
GAIN = 0.9  # share of its size to which a text has to shrink
_LOCK = re.compile(r"\s*\{for update[\w ]*\}")
Step = tuple[str, Callable[[], object]]  # a failpoint, and what to do before it
CROWDED_SECONDS = 0.2  # after this wait, a process polls more often than processes that wait for a shorter time
LOCKED_SECONDS = 3.0  # after this wait, the file counts as locked for long, and a process polls less often
FIRST_PAUSE, SHORT_PAUSE, LONG_PAUSE = 0.012, 0.006, 0.025  # seconds


@lru_cache(256)  # a batch contains few distinct times
def write_time(at: datetime) -> str:
    """Return a time as text in UTC with fixed width, so that text order is time order."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"  # `strftime` takes longer


sqlite3.register_adapter(datetime, write_time)
sqlite3.register_adapter(list, json.dumps)
sqlite3.register_adapter(tuple, json.dumps)


@cache
def statements() -> dict[str, str]:
    """Return all statements in the SQL of SQLite, without row locks, because there is only one writer.

    A table of rows is passed as one JSON parameter, so that a batch is a single statement. The rows are arrays, because
    SQLite finds a value by position faster than by name.
    """
    found = {}
    for name, text in queries("sqlite").items():
        sql = TEXT_TOKEN.sub(r"inflated(\1)", _LOCK.sub("", text))
        sql = LIST_TOKEN.sub(r"(select value from json_each(:\1))", sql)
        found[name] = HOLDS_TOKEN.sub(r"lower(\1) glob :glob", ROWS_TOKEN.sub(_table, sql))
    return found


def _table(match: re.Match[str]) -> str:
    columns = ", ".join(f"json_extract(value, '$[{at}]') as {name}" for at, name in enumerate(match[1].split()))
    return f"(select {columns} from json_each(:rows))"


@cache
def _columns(name: str) -> tuple[str, ...]:
    """Return the columns of the rows that a statement takes; none if it takes no rows."""
    found = ROWS_TOKEN.search(queries("sqlite")[name])
    return tuple(found[1].split()) if found else ()


class SqliteSession(Transaction):
    """One transaction on one connection; `call` runs a function in the thread of the connection.

    Steps without a result wait for the next statement that has one, or for the commit, because a switch to another
    thread takes as long as a short statement.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        call: Callable[..., "asyncio.Future[Any]"],
        begin: Callable[[], object] | None = None,
    ) -> None:
        self.connection = connection
        self.call = call
        self.writes = begin is not None  # only writes have failpoints, because reads leave nothing behind
        self._waiting: list[Step] = [("sql.begin", begin)] if begin else []
        self._waiting_rows = 0

    async def all(self, name: str, /, **params: object) -> Sequence[Row]:
        sql, execute = statements()[name], self.connection.execute
        if not self.writes and name in QUICK:
            return cast("list[Row]", execute(sql, params).fetchall())
        rows: list[Row] = await self.do(("sql", lambda: execute(sql, params).fetchall()))
        return rows

    async def each(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> Sequence[Sequence[Row]]:
        if not rows:
            return []
        sql, execute = statements()[name], self.connection.execute
        found: list[list[Row]] = await self.do(("sql", lambda: [execute(sql, row).fetchall() for row in rows]))
        return found

    async def run(self, name: str, /, **params: object) -> int:
        sql, execute = statements()[name], self.connection.execute
        changed: int = await self.do(("sql", lambda: execute(sql, params).rowcount))
        return changed

    async def many(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> None:
        if not rows:
            return
        sql, columns, execute = statements()[name], _columns(name), self.connection.execute
        if columns:
            values = ([row[column] for column in columns] for row in rows)
            self._waiting.append(("sql", lambda: execute(sql, {"rows": json.dumps([*values], default=write_time)})))
        else:
            self._waiting.append(("sql", partial(self.connection.executemany, sql, rows)))
        self._waiting_rows += len(rows)
        if self._waiting_rows > MAX_WAITING_ROWS:
            await self.do()

    async def do(self, *steps: Step) -> Any:
        """Carry out the waiting steps, then these, and return the result of the last one."""
        work, self._waiting, self._waiting_rows = [*self._waiting, *steps], [], 0
        return await self.call(_in_order, work, self.writes)


def _in_order(steps: Sequence[Step], writes: bool) -> object:
    result = None
    for point, step in steps:
        result = step()
        if writes:
            failpoint(point)
    return result


def add_functions(connection: sqlite3.Connection) -> None:
    """Add the SQL functions that triggers and migrations call; every connection that changes chunks needs them."""
    for function in (deflated, inflated, packed):
        connection.create_function(function.__name__, 1, function, deterministic=True)


def deflated(text: str | None) -> str | bytes | None:
    """Return a text compressed if that saves space; `inflated` returns the text of both forms."""
    if text is None:
        return None
    whole = text.encode()
    short = zlib.compress(whole, LEVEL)
    return short if len(short) < GAIN * len(whole) else text


def inflated(stored: str | bytes | None) -> str | None:
    return zlib.decompress(stored).decode() if isinstance(stored, bytes) else stored


def packed(halves: bytes) -> bytes:
    """Return a vector of 16-bit floats (`halves`) as 8-bit integers, which keep its direction but not its norm."""
    import numpy as np

    from afresh.store.vectors import pack_rows  # only migrations need it

    return pack_rows(np.frombuffer(halves, "<f2")[None, :])[0]


class SqliteDatabase:
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
        self._calls: dict[str, Callable[..., asyncio.Future[Any]]] = {}  # run a function in a thread, by role
        self._connections: dict[str, sqlite3.Connection] = {}
        self._writing = asyncio.Lock()
        self._reading = asyncio.Semaphore(len(READERS))
        self._idle = list(READERS)  # free readers
        self.news = Wakeups()  # other processes cannot notify: waiters poll
        self._opened: os.stat_result | None = None

    @property
    def read_only(self) -> bool:
        return "write" not in self._connections

    async def open(self) -> None:
        """Open, create or migrate the file; leave a damaged, newer or foreign file unchanged and raise StoreError."""
        loop = asyncio.get_running_loop()
        self._calls = {role: partial(loop.run_in_executor, thread) for role, thread in self._threads.items()}
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
                await asyncio.sleep(OPEN_PAUSE_SECONDS)
            else:
                return

    async def _open_once(self) -> None:
        ways = ways_in(self.path, self.access)
        for role in READERS if READ_ONLY.search(ways[0]) else ("write", *READERS):
            self._connections[role] = await self._calls[role](self._connect, role, ways)
        with suppress(OSError):
            self._opened = self.path.stat()

    def _connect(self, role: str, ways: Sequence[str]) -> sqlite3.Connection:
        """Return a connection by the first URI in `ways` that works."""
        try:
            return self._connect_by(role, ways[0])
        except sqlite3.Error as error:
            if ways[1:]:
                return self._connect(role, ways[1:])
            raise sqlite_file.explain(error, self.path) from error

    def _connect_by(self, role: str, way: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            way, timeout=self.wait_seconds, isolation_level=None, uri=True, check_same_thread=role == "write"
        )
        connection.row_factory = sqlite3.Row
        add_functions(connection)
        try:
            sqlite_file.check_owner(connection, self.path)
            if READ_ONLY.search(way):
                sqlite_file.check_age(connection, self.path)
            elif role == "write":
                self._prepare(connection)
            for pragma in PRAGMAS:
                connection.execute(pragma)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if self.access is not StoreAccess.READ and sqlite_file.needs_check(self.path):
            sqlite_file.check_sound(connection, self.path)
        [mode] = connection.execute("pragma journal_mode = wal").fetchone()
        if mode != "wal":
            raise StoreError(
                f"the store {self.path} cannot be shared between processes on this kind of drive; "
                "keep it on a disk of this machine"
            )
        sqlite_file.migrate(connection)
        connection.execute("pragma busy_timeout = 0")  # `begin` waits by its own rules

    def _check_place(self) -> None:
        """Raise StoreError if the file was moved or replaced, because writes would be lost."""
        with suppress(OSError):
            if self._opened is not None and os.path.samestat(self._opened, self.path.stat()):
                return
        raise StoreError(f"the store {self.path} {sqlite_file.MOVED}")

    @asynccontextmanager
    async def write(self, source: int | None = None) -> AsyncIterator[Transaction]:
        """Open an atomic write transaction; only one is open at a time."""
        if "write" not in self._connections:
            raise StoreError(f"the store {self.path} {sqlite_file.UNWRITABLE}")
        connection, call = self._connections["write"], self._calls["write"]
        async with self._writing:
            session = SqliteSession(connection, call, partial(begin, connection, self.wait_seconds))
            try:
                yield session
                commit = partial(connection.execute, "commit")
                await wait_done(
                    asyncio.ensure_future(session.do(("sql.commit", self._check_place), ("sql.done", commit)))
                )
            except BaseException as error:
                await wait_done(call(connection.rollback))
                if isinstance(error, sqlite3.Error):
                    raise sqlite_file.explain(error, self.path) from error
                raise

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """Open a consistent snapshot on the first free reader; begin and commit run without a thread switch."""
        if not self._connections:
            raise StoreError(f"the store {self.path} is closed")
        async with self._reading:
            role = self._idle.pop()
            connection, call = self._connections[role], self._calls[role]
            try:
                connection.execute("begin")
                yield SqliteSession(connection, call)
                connection.execute("commit")
            except BaseException as error:
                if not isinstance(error, sqlite3.Error):
                    connection.interrupt()  # so that an abandoned query does not block the reader
                await wait_done(call(connection.rollback))
                if isinstance(error, sqlite3.Error):
                    raise sqlite_file.explain(error, self.path) from error
                raise
            finally:
                self._idle.append(role)

    async def size_bytes(self) -> int:
        return sqlite_file.size_of(self.path) + sqlite_file.size_of(sqlite_file.wal_of(self.path))

    async def reclaim_space(self) -> int | None:
        """Rewrite the file without free pages, and return the bytes saved; raise StoreBusy if the file is in use."""
        before = await self.size_bytes()
        async with self._writing:
            if self.read_only:
                raise StoreError(f"the store {self.path} {sqlite_file.UNWRITABLE}")
            try:
                for sql in ("vacuum", "pragma wal_checkpoint(truncate)"):
                    await wait_done(self._calls["write"](self._connections["write"].execute, sql))
            except sqlite3.Error as error:
                raise sqlite_file.explain(error, self.path) from error
        return max(0, before - await self.size_bytes())

    async def find_problem(self) -> str | None:
        async with self.read() as tx:
            row = await tx.only("integrity")
            if row["quick_check"] != "ok":
                return str(row["quick_check"])
            row = await tx.only("not_indexed")
            if row["english"] or row["simple"]:
                return f"the text index has missing or extra passages (English {row['english']}, other {row['simple']})"
            if row["vectors"]:
                return f"the compact codes of vectors have missing or extra vectors ({row['vectors']})"
        if self.read_only:  # checking the text index needs write access
            return None
        async with self.write() as tx:
            await tx.number("newest")  # the first statement waits for the lock and may fail
            for config in ("english", "simple"):
                try:
                    await tx.run(f"check_{config}")
                except Exception as error:
                    return f"the text index ({config}) does not match its text: {error}"
        return None

    async def _disconnect(self) -> None:
        while self._connections:
            role, connection = self._connections.popitem()
            await self._calls[role](connection.close)

    async def close(self) -> None:
        await self._disconnect()
        for thread in self._threads.values():
            thread.shutdown()


def begin(
    connection: sqlite3.Connection,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Begin a write transaction within `seconds`; SQLite's busy handler would starve the process that waits longest."""
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
    """Return the seconds until the next attempt to begin, given the seconds waited so far."""
    return FIRST_PAUSE if waited < CROWDED_SECONDS else SHORT_PAUSE if waited < LOCKED_SECONDS else LONG_PAUSE
