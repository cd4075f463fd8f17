"""One end of a copy that is a PostgreSQL database."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import asyncpg
import numpy as np

from afresh.errors import StoreBusy
from afresh.ops.failpoints import failpoint
from afresh.store.copy_ends import MARKER, Key, Record, Unfinished
from afresh.store.postgres_schema import KIND_OF_VECTORS
from afresh.store.postgres_trouble import TROUBLES, explain
from afresh.store.postgres_vectors import as_halfvec
from afresh.store.postgres_words import with_words
from afresh.store.sqlite import write_time
from afresh.store.tables import TIME, Table
from afresh.text.redact import mask_secrets

COPYING = 0x61667279  # the advisory lock of who fills a database
VECTORS, CHUNKS = "vectors", "chunks"
OLD_INDEXES = """
select string_agg(format('drop index %I', relname), '; ') from pg_class
where relkind = 'i' and relname like 'vectors\\_near\\_%' and relnamespace = current_schema()::regnamespace
"""  # of models that are gone: those of the copy may have their numbers, and longer vectors
CASTS = {"vector": "halfvec", "words": "tsvector"}
TYPES = {"integer": "bigint", "real": "float8", "blob": "bytea", TIME: "timestamptz"}


class PostgresEnd:
    """A PostgreSQL database, read as it was when it was opened, or filled."""

    def __init__(self, url: str, *, reading: bool) -> None:
        self._url = url
        self._shown = mask_secrets(url)
        self._reading = reading
        self._db: Any = None
        self._has_vectors = False

    async def __aenter__(self) -> Self:
        """Connect; what is read is one state of the database."""
        async with self._explained():
            self._db = await asyncpg.connect(self._url, server_settings={"application_name": "afresh"})
            self._has_vectors = await self._db.fetchval(KIND_OF_VECTORS) == "halfvec"
            if self._reading:
                await self._db.execute("begin isolation level repeatable read read only")
            elif not await self._db.fetchval("select pg_try_advisory_lock($1)", COPYING):
                raise StoreBusy(f"the store {self._shown} is being filled by another copy")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        self._db.terminate()

    @asynccontextmanager
    async def _explained(self) -> AsyncIterator[None]:
        try:
            yield
        except (*TROUBLES, ValueError) as error:
            if isinstance(error, asyncio.CancelledError):
                raise
            raise explain(error, self._shown) from error

    async def count(self, table: Table, sources: Sequence[int] | None = None) -> int:
        """How many rows there are."""
        where, values = _where(table, sources)
        async with self._explained():
            return int(await self._db.fetchval(f"select count(*) from {table.name} where {where}", *values))

    async def read(
        self, table: Table, after: Key | None, limit: int, sources: Sequence[int] | None = None
    ) -> Sequence[Record]:
        """The next rows after a key."""
        where, values = _where(table, sources)
        if after is not None:
            marks = ", ".join(
                _mark(table, column, len(values) + at) for at, column in enumerate(table.key, 1)
            )
            where += f" and ({', '.join(table.key)}) > ({marks})"
            values += after
        sql = (
            f"select {self._shaped(table)} from {table.name} where {where} "
            f"order by {', '.join(table.key)} limit {int(limit)}"
        )
        async with self._explained():
            return [_as_kept(row) for row in await self._db.fetch(sql, *values)]

    def _shaped(self, table: Table) -> str:
        if table.name != VECTORS or not self._has_vectors:
            return table.listed
        return table.listed.replace('"vector"', '"vector"::real[]')

    async def unfinished(self) -> Unfinished | None:
        """The copy that was begun here."""
        async with self._explained():
            if await self._db.fetchval("select to_regclass($1)", MARKER) is None:
                return None
            row = await self._db.fetchrow(f"select origin, sources from {MARKER}")
            return Unfinished(*row)

    async def begin(self, copy: Unfinished) -> None:
        """Mark the database as half a copy."""
        async with self._explained(), self._db.transaction():
            if old := await self._db.fetchval(OLD_INDEXES):
                await self._db.execute(old)
            await self._db.execute(f"create table {MARKER} (origin text not null, sources text not null)")
            await self._db.execute(f"insert into {MARKER} values ($1, $2)", *copy)

    async def last(self, table: Table) -> Key | None:
        """The key of the last row."""
        key, order = ", ".join(table.key), ", ".join(f"{column} desc" for column in table.key)
        async with self._explained():
            row = await self._db.fetchrow(f"select {key} from {table.name} order by {order} limit 1")
        return None if row is None else tuple(row)

    def keeps(self, table: Table) -> bool:
        """Whether rows of a table can be kept: vectors only where pgvector is."""
        return table.name != VECTORS or self._has_vectors

    async def write(self, table: Table, rows: Sequence[Record]) -> None:
        """Add rows in one transaction."""
        records = [_as_wanted(table, row) for row in rows]
        async with self._explained(), self._db.transaction():
            if table.name in (VECTORS, CHUNKS):
                await self._insert(table, records)
            else:
                columns = list(table.columns)
                await self._db.copy_records_to_table(table.name, records=records, columns=columns)
            failpoint("copy.commit")

    async def _insert(self, table: Table, records: Sequence[Record]) -> None:
        """Add rows with what the server makes of a text."""
        shape = as_halfvec if table.name == VECTORS else with_words
        shaped = [shape(dict(zip(table.columns, row, strict=True))) for row in records]
        names = list(shaped[0])
        marks = ", ".join(
            f"${at}::text::{CASTS[name]}" if name in CASTS else _mark(table, name, at)
            for at, name in enumerate(names, 1)
        )
        columns = ", ".join(f'"{name}"' for name in names)
        await self._db.executemany(
            f"insert into {table.name} ({columns}) values ({marks})",
            [tuple(row[name] for name in names) for row in shaped],
        )

    async def finish(self) -> None:
        """Go on counting where the copy ended, and forget that it was half a one."""
        async with self._explained(), self._db.transaction():
            await self._db.execute(COUNT_ON)
            await self._db.execute(f"drop table {MARKER}")
        async with self._explained():
            await self._db.execute("analyze")


def _where(table: Table, sources: Sequence[int] | None) -> tuple[str, Key]:
    if sources is None:
        return "true", ()
    return table.of_sources("unnest($1::bigint[]) as given (value)"), (list(sources),)


def _mark(table: Table, column: str, at: int) -> str:
    return f"${at}::{TYPES.get(table.columns[column], 'text')}"


def _as_kept(row: Sequence[Any]) -> Record:
    """A row as SQLite keeps it."""
    return tuple(_value(value) for value in row)


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return write_time(value)
    if isinstance(value, list):
        return np.asarray(value, dtype="<f2").tobytes()
    return value


def _as_wanted(table: Table, row: Record) -> Record:
    """A row as PostgreSQL takes it."""
    return tuple(
        datetime.fromisoformat(value)
        if kind == TIME and value is not None
        else value.replace("\0", "")
        if isinstance(value, str) and "\0" in value
        else value
        for kind, value in zip(table.columns.values(), row, strict=True)
    )


COUNT_ON = """
do $$
declare found record;
declare newest bigint;
begin
    for found in
        select c.relname as name, a.attname as key from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
        where c.relkind = 'r'
            and c.relnamespace = (select relnamespace from pg_class where oid = to_regclass('afresh_schema'))
    loop
        execute format('select max(%I) from %I', found.key, found.name) into newest;
        if newest is not null then
            perform setval(pg_get_serial_sequence(quote_ident(found.name), found.key), newest);
        end if;
    end loop;
end
$$
"""
