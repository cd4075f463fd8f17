"""PostgreSQL: a pool of connections; what is written of one source is written by one at a time."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import asyncpg

from afresh.errors import StoreDown, StoreError
from afresh.ops.failpoints import failpoint
from afresh.ports import Access
from afresh.store.dialect import Row, Session
from afresh.store.news import WORK
from afresh.store.postgres_certainty import NUMBER, was_committed
from afresh.store.postgres_news import PostgresNews
from afresh.store.postgres_schema import check, migrate, newest, use_pgvector
from afresh.store.postgres_sql import statement
from afresh.store.postgres_trouble import TROUBLES, UNREAD, explain
from afresh.store.postgres_vectors import as_halfvec
from afresh.store.postgres_words import with_title_words, with_words
from afresh.text.redact import mask_secrets

CONNECTIONS = 4  # of one process at most
STATEMENTS = 400  # that a connection remembers: all there are
OPEN_SECONDS = 10.0  # that a server which starts, or has no connection to spare, is waited for
OPEN_PAUSE = 0.2
ASLEEP_SECONDS = 30.0  # after which who fell asleep in a transaction keeps others waiting no longer
SOURCES = 0x616672  # the first half of the advisory lock on a source
INDEXING = 0x616678  # the first half of the advisory lock of who makes an index of vectors
SETTINGS = """
select set_config('lock_timeout', $1, false), set_config('idle_in_transaction_session_timeout', $2, false),
    set_config('jit', 'off', false), -- it costs more than it saves on short statements
    set_config('max_parallel_workers_per_gather', '0', false), -- several questions at once are faster without
    case when current_setting('synchronous_commit') = 'off'
        then set_config('synchronous_commit', 'local', false) end
"""  # commits are on disk when they are answered: whose host it is must outlive the server
SILENCE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
READ = "begin isolation level repeatable read read only"
WRITE = "begin isolation level read committed"  # whatever the database is set to

Shape = Callable[[Mapping[str, object]], dict[str, object]]
OWN: Mapping[str, Shape] = {  # what this dialect adds to rows
    "insert_chunk": with_words,
    "retitle_chunk": with_title_words,
    "keep_vector": as_halfvec,
}


class PostgresSession:
    """One transaction on one connection."""

    def __init__(self, connection: asyncpg.Connection, at: Callable[[str], None]) -> None:
        self._connection = connection
        self._at = at
        self.made_work = False  # for who waits

    async def all(self, name: str, /, **params: object) -> Sequence[Row]:
        asked = statement(name)
        rows = await self._connection.fetch(asked.text, *asked.values(params))
        self.made_work |= name in WORK and bool(rows)
        self._at("sql")
        return cast("list[Row]", rows)

    async def each(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> Sequence[Sequence[Row]]:
        return [await self.all(name, **row) for row in rows]

    async def one(self, name: str, /, **params: object) -> Row | None:
        rows = await self.all(name, **params)
        return rows[0] if rows else None

    async def run(self, name: str, /, **params: object) -> int:
        asked = statement(name)
        told: str = await self._connection.execute(asked.text, *asked.values(params))
        touched = int(number) if (number := told.rpartition(" ")[2]).isdecimal() else 0
        self.made_work |= name in WORK and touched > 0
        self._at("sql")
        return touched

    async def many(self, name: str, /, rows: Sequence[Mapping[str, object]]) -> None:
        if not rows:
            return
        shape, asked = OWN.get(name), statement(name)
        shaped = [shape(row) for row in rows] if shape else rows
        if asked.columns:
            await self._connection.execute(asked.text, *asked.table(shaped))
        else:
            await self._connection.executemany(asked.text, [asked.values(row) for row in shaped])
        self.made_work |= name in WORK
        self._at("sql")

    async def turn(self, source: int) -> None:
        await self._connection.execute(_turn_at(source))
        self._at("sql")


class PostgresDatabase:
    """One PostgreSQL database."""

    def __init__(self, url: str, access: Access = Access.CREATE, *, wait_seconds: float = 30.0) -> None:
        self.shown = mask_secrets(url)
        self.access = access
        self.wait_seconds = wait_seconds  # how long a transaction waits for others
        self.has_vectors = False
        self.read_only = False
        self.news = PostgresNews(url)
        self._url = url
        self._pool: asyncpg.Pool | None = None

    async def open(self) -> None:
        """Connect, making or migrating the schema; an older server, a newer or foreign schema is refused."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + OPEN_SECONDS
        while True:
            try:
                self._pool = await self._connected()
            except StoreDown as trouble:
                if isinstance(trouble.__cause__, OSError) or loop.time() >= deadline:
                    raise
                await asyncio.sleep(OPEN_PAUSE)
            else:
                return

    async def _connected(self) -> asyncpg.Pool:
        pool = None
        try:
            pool = asyncpg.create_pool(
                self._url,
                min_size=0,  # a server that is away is asked when there is something to ask
                max_size=CONNECTIONS,
                init=self._settle,
                reset=_nothing_to_reset,
                statement_cache_size=STATEMENTS,
                server_settings={"application_name": "afresh"},
            )
            await pool
            async with pool.acquire() as connection:
                await self._prepare(connection)
        except BaseException as error:
            if pool is not None:
                pool.terminate()
            if isinstance(error, (*TROUBLES, *UNREAD)):
                raise explain(error, self.shown) from error
            raise
        return pool

    async def _settle(self, connection: Any) -> None:
        """What holds for a connection; said on it, as a pooler in between refuses to be told at its start."""
        _notice_silence(connection)
        waits = (f"{int(seconds * 1000)}" for seconds in (self.wait_seconds, ASLEEP_SECONDS))
        await connection.fetchrow(SETTINGS, *waits)

    async def _prepare(self, connection: asyncpg.Connection) -> None:
        version = await check(connection, self.shown, self.access)
        self.read_only = await connection.fetchval("show transaction_read_only") == "on"
        if self.read_only and version < newest():
            raise StoreError(
                f"the store {self.shown} was written by an older afresh and can only be read here; "
                "name the server that can be written to"
            )
        if version < newest():
            await migrate(connection)
        self.has_vectors = await use_pgvector(connection)

    @asynccontextmanager
    async def _session(self, begin: str, at: Callable[[str], None]) -> AsyncIterator[Session]:
        pool = self._pool
        if pool is None:
            raise StoreError(f"the store {self.shown} is closed")
        try:
            async with pool.acquire() as connection:
                session = PostgresSession(connection, at)
                try:
                    await connection.execute(begin)
                    at("sql.begin")
                    yield session
                    at("sql.commit")
                    await self._commit(connection, writes=begin is not READ)
                except BaseException as error:
                    await _undo(connection, error)
                    raise
            if session.made_work:
                self.news.tell(pool)
            at("sql.done")
        except TROUBLES as error:
            raise explain(error, self.shown) from error

    async def _commit(self, connection: asyncpg.Connection, *, writes: bool) -> None:
        number = await connection.fetchval(NUMBER) if writes else None
        try:
            told = await self._end(connection)
        except TROUBLES:
            if number is None or not _is_lost(connection) or not await was_committed(self._url, number):
                raise
        else:
            if told != "COMMIT":
                raise StoreError(f"the store {self.shown} took nothing of a transaction that had failed")

    async def _end(self, connection: asyncpg.Connection) -> str:
        told: str = await connection.execute("commit")
        return told

    def write(self, source: int | None = None) -> AbstractAsyncContextManager[Session]:
        """One transaction that is whole or absent; of those on one source, one at a time."""
        return self._session(WRITE if source is None else f"{WRITE}; {_turn_at(source)}", failpoint)

    def read(self) -> AbstractAsyncContextManager[Session]:
        """A consistent snapshot."""
        return self._session(READ, _nothing)

    async def index_vectors(self, model: int, dimensions: int) -> None:
        """Make the index of a model's vectors, while others go on reading and writing; one process does."""
        if self._pool is None or self.read_only:
            return
        name = f"vectors_near_{int(model)}"
        try:
            async with self._pool.acquire() as connection:
                if not await connection.fetchval("select pg_try_advisory_lock($1, $2)", INDEXING, model):
                    return
                try:
                    await connection.execute("set lock_timeout = 0")
                    await connection.execute(f"drop index if exists {name}")  # half made by who was stopped
                    await connection.execute(
                        f"create index concurrently {name} on vectors using hnsw "
                        f"((vector::halfvec({int(dimensions)})) halfvec_ip_ops) where model_id = {int(model)}"
                    )
                finally:
                    await self._settle(connection)
                    await connection.execute("select pg_advisory_unlock($1, $2)", INDEXING, model)
        except TROUBLES as error:
            raise explain(error, self.shown) from error

    async def size_bytes(self) -> int:
        """All tables with their indexes."""
        async with self.read() as tx:
            row = await tx.one("size")
            return int(row["bytes"]) if row else 0

    async def reclaim_space(self) -> int | None:
        """Leave it to the server: autovacuum makes room by itself."""
        return None

    async def trouble(self) -> str | None:
        """What is broken, as far as the server tells; or None."""
        async with self.read() as tx:
            broken = [str(row["name"]) for row in await tx.all("broken_indexes")]
        return f"run `reindex index` on {', '.join(broken)}" if broken else None

    async def close(self) -> None:
        """Give back every connection."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await self.news.close(pool)
            await pool.close()


def _notice_silence(connection: Any) -> None:
    """Let a server that vanished without a word be told by the operating system, and not waited for."""
    wire: socket.socket | None = connection._transport.get_extra_info("socket")  # asyncpg has no other way
    if wire is None or wire.family not in (socket.AF_INET, socket.AF_INET6):
        return
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in SILENCE.items():
        if hasattr(socket, name):  # not on every system
            wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _turn_at(source: int) -> str:
    return f"select pg_advisory_xact_lock({SOURCES}, {int(source)})"


def _nothing(point: str) -> None:
    del point


async def _nothing_to_reset(connection: Any) -> None:
    """Our transactions leave nothing behind in a connection."""


async def _undo(connection: Any, error: BaseException) -> None:
    """Leave a transaction that failed; a connection that is lost has done so."""
    if _is_lost(connection) or not connection.is_in_transaction():
        return
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        connection.terminate()  # the next one may lead to the server that can be written to
        return
    try:
        await connection.execute("rollback")
    except TROUBLES:
        connection.terminate()


def _is_lost(connection: Any) -> bool:
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:  # the pool has already let go of it
        return True
