"""One end of a copy that is a SQLite file."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from afresh.ops.failpoints import failpoint
from afresh.store.copy_ends import MARKER, Key, Record, Unfinished
from afresh.store.sqlite import BUSY_SECONDS
from afresh.store.sqlite_trouble import explain
from afresh.store.tables import Table

T = TypeVar("T")
SOURCES = "json_each(:sources)"


class SqliteEnd:
    """A SQLite file, read as it was when it was opened, or filled."""

    def __init__(self, path: Path, *, reading: bool) -> None:
        self._path = path
        self._reading = reading
        self._connection: sqlite3.Connection | None = None

    async def __aenter__(self) -> Self:
        """Open the file; what is read is one state of it."""
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._connection is not None:
            await asyncio.to_thread(self._connection.close)

    def _open(self) -> None:
        try:
            connection = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            connection.execute("pragma synchronous = full")
            connection.execute("pragma foreign_keys = on")
            if self._reading:
                connection.execute("begin")
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        self._connection = connection

    async def _on(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with the file, off the event loop; what is begun ends before anybody goes on."""
        connection = self._connection
        assert connection is not None  # noqa: S101 - opened above

        def attempt() -> T:
            try:
                return work(connection)
            except sqlite3.Error as error:
                if not self._reading and connection.in_transaction:
                    connection.rollback()
                raise explain(error, self._path) from error

        return await asyncio.shield(asyncio.to_thread(attempt))

    async def count(self, table: Table, sources: Sequence[int] | None = None) -> int:
        """How many rows there are."""
        sql = f"select count(*) from {table.name} where {_where(table, sources)}"
        rows = await self._on(lambda db: db.execute(sql, {"sources": json.dumps(sources)}).fetchone())
        return int(rows[0])

    async def read(
        self, table: Table, after: Key | None, limit: int, sources: Sequence[int] | None = None
    ) -> Sequence[Record]:
        """The next rows after a key."""
        key = ", ".join(table.key)
        marks = ", ".join(f":k{place}" for place in range(len(table.key)))
        beyond = f"({key}) > ({marks})" if after is not None else "true"
        sql = (
            f"select {table.listed} from {table.name} where {_where(table, sources)} and {beyond} "
            f"order by {key} limit :limit"
        )
        values = {f"k{place}": value for place, value in enumerate(after or ())}
        params = {**values, "sources": json.dumps(sources), "limit": limit}
        return await self._on(lambda db: db.execute(sql, params).fetchall())

    async def unfinished(self) -> Unfinished | None:
        """The copy that was begun here."""

        def work(db: sqlite3.Connection) -> Unfinished | None:
            if not db.execute("select 1 from sqlite_master where name = ?", (MARKER,)).fetchone():
                return None
            return Unfinished(*db.execute(f"select origin, sources from {MARKER}").fetchone())

        return await self._on(work)

    async def begin(self, copy: Unfinished) -> None:
        """Mark the file as half a copy."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("begin immediate")
            db.execute(f"create table {MARKER} (origin text not null, sources text not null)")
            db.execute(f"insert into {MARKER} values (?, ?)", copy)
            db.execute("commit")

        await self._on(work)

    async def last(self, table: Table) -> Key | None:
        """The key of the last row."""
        key, order = ", ".join(table.key), ", ".join(f"{column} desc" for column in table.key)
        sql = f"select {key} from {table.name} order by {order} limit 1"
        found: Key | None = await self._on(lambda db: db.execute(sql).fetchone())
        return found

    def keeps(self, table: Table) -> bool:
        """Whether rows of a table can be kept: all can."""
        return True

    async def write(self, table: Table, rows: Sequence[Record]) -> None:
        """Add rows in one transaction."""
        marks = ", ".join("?" for _ in table.columns)
        sql = f"insert into {table.name} ({table.listed}) values ({marks})"

        def work(db: sqlite3.Connection) -> None:
            db.execute("begin immediate")
            db.executemany(sql, rows)
            failpoint("copy.commit")
            db.execute("commit")

        await self._on(work)

    async def finish(self) -> None:
        """Forget that it was half a copy."""
        await self._on(lambda db: db.execute(f"drop table {MARKER}"))


def _where(table: Table, sources: Sequence[int] | None) -> str:
    return "true" if sources is None else table.of_sources(SOURCES)
