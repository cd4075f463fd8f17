"""Copy a store into another one, table by table in atomic batches, and compare the two.

Rows are exchanged as SQLite stores them (times as text of fixed width, vectors as bytes), with uncompressed texts.
"""

import asyncio
import hashlib
import sqlite3
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from afresh.config.forms import is_postgres, sqlite_path
from afresh.dataclass import dataclass
from afresh.errors import CopyStopped, StoreError
from afresh.events import Listener, MaintenanceProgress, Notice
from afresh.model.reports import CopiedTable
from afresh.ops.failpoints import failpoint
from afresh.store.dialect import migrations, without_nul
from afresh.store.sqlite import BUSY_SECONDS, add_functions
from afresh.store.sqlite_file import DDL, explain, split

T = TypeVar("T")
Record = tuple[Any, ...]
Key = tuple[Any, ...]
BATCH = 500  # rows per transaction
PAGE_BATCH = 50  # rows per transaction if a row may be as large as a page
LARGE = frozenset({"markdown", "diff"})
COMPRESSED = {"chunks": ("content",), "documents": ("markdown", "former")}  # columns of texts in SQLite
MARKER = "afresh_copying"  # a table that exists until the copy is complete
NO_VECTORS = (
    "the target has no pgvector 0.7 or newer: vectors are not copied, and the target answers by keyword search only"
)
# These tables describe the current users of a store, so they are not copied.
PASSING = frozenset({"workers", "answers", "logins", "unkept_runs", "notices"})
TIME = "time"
_PAGES = "select id from pages where source_id in ({sources})"
_RUNS = "run_id in (select id from runs where source_id in ({sources}))"
# The condition that selects the rows of some sources, by column; the first column that a table has is used.
_BELONGS = {
    "source_id": "source_id in ({sources})",
    "page_id": f"page_id in ({_PAGES})",
    "link_id": "link_id in (select id from links where source_id in ({sources}))",
    "text_hash": f"text_hash in (select text_hash from chunks where page_id in ({_PAGES}))",
    "domain": f"domain in (select domain from page_crawls where page_id in ({_PAGES}))",
}
_BY_NAME = {
    "sources": "id in ({sources})",
    "page_crawls": f"(page_id in ({_PAGES}) or page_id is null and {_RUNS})",
    "outbox": _RUNS,
    "sync_documents": _RUNS,
    **dict.fromkeys(("models", "sinks", "store_ids", "page_numbers"), "true"),
}


@dataclass(frozen=True, slots=True)
class CopyTable:
    name: str
    columns: dict[str, str]  # name to type: integer, real, text, blob or time
    key: tuple[str, ...]

    @property
    def listed(self) -> str:
        return ", ".join(f'"{name}"' for name in self.columns)

    def of_sources(self, sources: Sequence[int] | None) -> str:
        if sources is None:
            return "true"
        by_column = next((text for name, text in _BELONGS.items() if name in self.columns), "false")
        numbers = ", ".join(str(int(source)) for source in sources) or "null"
        return _BY_NAME.get(self.name, by_column).format(sources=numbers)


@cache
def tables() -> tuple[CopyTable, ...]:
    """Return all tables to copy, referenced tables first."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for _, script in migrations(""):
            for sql in split(script.format(**{**DDL, "time": TIME})):
                connection.execute(sql)
        rows = connection.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
        found = {name: _table(connection, name) for (name,) in rows if name not in PASSING}
        parents = {
            name: {row[2] for row in connection.execute(f"pragma foreign_key_list({name})")} & found.keys() - {name}
            for name in found
        }
    order: list[str] = []
    while len(order) < len(found):
        order += [name for name in found if name not in order and parents[name] <= set(order)]
    return tuple(found[name] for name in order)


def _table(connection: sqlite3.Connection, name: str) -> CopyTable:
    rows = connection.execute(f"pragma table_info({name})").fetchall()
    key = sorted((row[5], row[1]) for row in rows if row[5])
    return CopyTable(name, {row[1]: row[2].lower() for row in rows}, tuple(column for _, column in key))


class UnfinishedCopy(NamedTuple):
    origin: str  # the file or URL of the origin, without secrets
    sources: str  # labels, separated by commas; empty: all sources


class CopyEndpoint(AbstractAsyncContextManager["CopyEndpoint"]):
    """A store opened to be copied (one snapshot) or filled; it is incomplete if `marker_query` returns a row."""

    marker_query: str
    has_vectors = True  # whether it can hold vectors

    @abstractmethod
    async def fetch(self, sql: str, values: Key = ()) -> Sequence[Record]:
        """Return the rows of a query whose parameters are written as `?`."""

    @abstractmethod
    async def apply(self, statements: Sequence[str], insert: str = "", rows: Sequence[Record] = ()) -> None:
        """Run statements and then insert rows, all in one transaction."""

    def columns(self, table: CopyTable) -> str:
        return table.listed

    def placeholder(self, table: CopyTable, column: str) -> str:
        """Return the placeholder for the value of a column in an insert statement, with a conversion if needed."""
        return "?"

    async def count(self, table: CopyTable, sources: Sequence[int] | None = None) -> int:
        rows = await self.fetch(f"select count(*) from {table.name} where {table.of_sources(sources)}")
        return int(rows[0][0])

    async def read(self, table: CopyTable, after: Key | None, sources: Sequence[int] | None = None) -> Sequence[Record]:
        key, marks = ", ".join(table.key), ", ".join("?" for _ in table.key)
        beyond = f"({key}) > ({marks})" if after is not None else "true"
        limit = PAGE_BATCH if LARGE & table.columns.keys() else BATCH
        return await self.fetch(
            f"select {self.columns(table)} from {table.name} where {table.of_sources(sources)} and {beyond} "
            f"order by {key} limit {limit}",
            after or (),
        )

    async def last(self, table: CopyTable) -> Key | None:
        key, order = ", ".join(table.key), ", ".join(f"{column} desc" for column in table.key)
        rows = await self.fetch(f"select {key} from {table.name} order by {order} limit 1")
        return tuple(rows[0]) if rows else None

    async def unfinished(self) -> UnfinishedCopy | None:
        marked = await self.fetch(self.marker_query)
        return UnfinishedCopy(*(await self.fetch(f"select origin, sources from {MARKER}"))[0]) if marked else None

    async def begin(self, copy: UnfinishedCopy) -> None:
        """Mark the store as an incomplete copy, which only `afresh copy` may open."""
        made = f"create table {MARKER} (origin text not null, sources text not null)"
        await self.apply([made], f"insert into {MARKER} values (?, ?)", [copy])

    async def write(self, table: CopyTable, rows: Sequence[Record]) -> None:
        values = ", ".join(self.placeholder(table, name) for name in table.columns)
        await self.apply((), f"insert into {table.name} ({table.listed}) values ({values})", rows)

    async def finish(self) -> None:
        """Remove the marker, so that all commands may open the store."""
        await self.apply([f"drop table {MARKER}"])


class SqliteEndpoint(CopyEndpoint):
    marker_query = f"select 1 from sqlite_master where name = '{MARKER}'"

    def __init__(self, path: Path, *, reading: bool) -> None:
        self._path = path
        self._reading = reading
        self._connection: Any = None  # set inside `async with`

    async def __aenter__(self) -> Self:
        """Open the file; in the origin of a copy, all reads see one snapshot."""

        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            add_functions(connection)
            connection.executescript("pragma synchronous = full; pragma foreign_keys = on")
            if self._reading:
                connection.execute("begin")
            return connection

        self._connection = await self._off_loop(connect)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._connection is not None:
            await asyncio.to_thread(self._connection.close)

    async def _off_loop(self, work: Callable[[], T]) -> T:
        """Run a blocking call in a thread, and wait for its end even if the caller is cancelled."""

        def attempt() -> T:
            try:
                return work()
            except sqlite3.Error as error:
                if not self._reading and self._connection is not None:
                    self._connection.rollback()
                raise explain(error, self._path) from error

        return await asyncio.shield(asyncio.to_thread(attempt))

    def columns(self, table: CopyTable) -> str:
        short = COMPRESSED.get(table.name, ())
        return ", ".join(f'inflated("{name}")' if name in short else f'"{name}"' for name in table.columns)

    def placeholder(self, table: CopyTable, column: str) -> str:
        return "deflated(?)" if column in COMPRESSED.get(table.name, ()) else "?"

    async def fetch(self, sql: str, values: Key = ()) -> Sequence[Record]:
        return await self._off_loop(lambda: self._connection.execute(sql, values).fetchall())

    async def apply(self, statements: Sequence[str], insert: str = "", rows: Sequence[Record] = ()) -> None:
        connection = self._connection

        def work() -> None:
            connection.execute("begin immediate")
            for statement in statements:
                connection.execute(statement)
            if insert:
                connection.executemany(insert, rows)
                failpoint("copy.commit")
            connection.execute("commit")

        await self._off_loop(work)


def end_of(url: str, *, reading: bool) -> CopyEndpoint:
    if not is_postgres(url):
        return SqliteEndpoint(sqlite_path(url), reading=reading)
    from afresh.store.copy_postgres import PostgresEndpoint

    return PostgresEndpoint(url, reading=reading)


@dataclass(frozen=True, slots=True)
class StoreCopy:
    origin: CopyEndpoint
    target: CopyEndpoint
    sources: Sequence[int] | None
    listener: Listener
    stopping: asyncio.Event

    async def prepare(self, copy: UnfinishedCopy, *, resume: bool) -> None:
        """Start or resume a copy; raise StoreError if the target contains other data."""
        begun = await self.target.unfinished()
        if begun is None:
            if any([await self.target.last(table) is not None for table in tables()]):
                raise StoreError("the target is not empty; name an empty store")
            await self.target.begin(copy)
        elif not resume:
            raise StoreError("the target is an incomplete copy: add --resume to continue it, or name an empty store")
        elif begun != copy:
            raise StoreError(
                f"the target is an incomplete copy of {begun.origin} ({begun.sources or 'all sources'}): "
                "to continue it, name this origin and these sources, or name an empty store as the target"
            )

    async def run(self) -> list[CopiedTable]:
        """Copy the missing rows, compare the tables of both stores, and remove the marker; return the tables."""
        kept = [table for table in tables() if table.name != "vectors" or self.target.has_vectors]
        if not self.target.has_vectors:
            self.listener(Notice(text=NO_VECTORS))
        for table in kept:
            await self._fill(table)
        failpoint("copy.filled")
        copied = [await self._compare(table) for table in kept]
        await self.target.finish()
        return copied

    async def _fill(self, table: CopyTable) -> None:
        """Copy rows in the order of their keys, beginning after the last row in the target."""
        after, done = await self.target.last(table), await self.target.count(table)
        total = await self.origin.count(table, self.sources)
        async for rows in self._rows(self.origin, table, after, self.sources):
            await self.target.write(table, rows)
            failpoint("copy.batch")
            done += len(rows)
            what = f"rows of {table.name}"
            self.listener(MaintenanceProgress(task="copy", what=what, done=done, of=max(done, total)))

    async def _compare(self, table: CopyTable) -> CopiedTable:
        number, digest = await self._digest(self.origin, table, self.sources)
        held, found = await self._digest(self.target, table, None)
        if (number, digest) != (held, found):
            raise StoreError(
                f"the copy differs in {table.name}: the origin has {number:,} rows and the target {held:,}, or their "
                "contents differ; if the origin was changed during the copy, empty the target and copy again"
            )
        what = f"rows of {table.name} compared"
        self.listener(MaintenanceProgress(task="copy", what=what, done=held, of=number))
        return CopiedTable(table=table.name, rows=number, sha256=digest)

    async def _digest(self, end: CopyEndpoint, table: CopyTable, sources: Sequence[int] | None) -> tuple[int, str]:
        number, digest = 0, hashlib.sha256()
        async for rows in self._rows(end, table, None, sources):
            for row in rows:
                digest.update(repr(tuple(map(without_nul, row))).encode())
            number += len(rows)
        return number, digest.hexdigest()

    async def _rows(
        self, end: CopyEndpoint, table: CopyTable, after: Key | None, sources: Sequence[int] | None
    ) -> AsyncIterator[Sequence[Record]]:
        """Yield the rows after a key in batches; raise CopyStopped if the copy is to stop."""
        key = [list(table.columns).index(column) for column in table.key]
        while rows := await end.read(table, after, sources):
            if self.stopping.is_set():
                raise CopyStopped("the copy was stopped; add --resume to continue it")
            yield rows
            after = tuple(rows[-1][place] for place in key)
