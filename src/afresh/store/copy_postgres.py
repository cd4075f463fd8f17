"""A PostgreSQL database as origin or target of a copy."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import count
from typing import Any, Self, cast

import asyncpg
import numpy as np

from afresh.errors import StoreBusy
from afresh.ops.failpoints import failpoint
from afresh.store.copy import MARKER, TIME, CopyEndpoint, CopyTable, Key, Record, UnfinishedCopy
from afresh.store.dialect import without_nul
from afresh.store.postgres import KIND_OF_VECTORS, SERVER_ERRORS, explain
from afresh.store.postgres_search import as_text, with_words
from afresh.store.sqlite import write_time
from afresh.store.vectors import pack_rows, unpack_rows
from afresh.text.redact import mask_secrets

COPYING = 0x61667279  # the advisory lock for filling a database
OLD_INDEXES = """
select format('drop index %I', relname) from pg_class
where relkind = 'i' and relname like 'vectors\\_near\\_%' and relnamespace = current_schema()::regnamespace
"""  # of deleted models, whose ids the copy may reuse with longer vectors


def _unpacked(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of `vectors` in the text format of pgvector."""
    vector = cast("bytes", row["vector"])
    return {**row, "vector": as_text(unpack_rows([vector], len(vector))[0].astype("<f2"))}


SHAPES = {"vectors": _unpacked, "chunks": with_words}  # conversions of rows that the server needs
CASTS = {"vector": "?::text::halfvec", "words": "?::text::tsvector"}


class PostgresEndpoint(CopyEndpoint):
    marker_query = f"select 1 where to_regclass('{MARKER}') is not null"

    def __init__(self, url: str, *, reading: bool) -> None:
        self._url = url
        self._name = mask_secrets(url)
        self._reading = reading
        self._db: Any = None

    async def __aenter__(self) -> Self:
        """Connect; in the origin of a copy, all reads see one snapshot."""
        async with self._explained():
            self._db = await asyncpg.connect(self._url, server_settings={"application_name": "afresh"})
            self.has_vectors = await self._db.fetchval(KIND_OF_VECTORS) == "halfvec"
            if self._reading:
                await self._db.execute("begin isolation level repeatable read read only")
            elif not await self._db.fetchval("select pg_try_advisory_lock($1)", COPYING):
                raise StoreBusy(f"the store {self._name} is being filled by another copy")
        return self

    async def __aexit__(self, *error: object) -> None:
        self._db.terminate()

    @asynccontextmanager
    async def _explained(self) -> AsyncIterator[None]:
        try:
            yield
        except (*SERVER_ERRORS, ValueError) as error:
            raise explain(error, self._name) from error

    async def fetch(self, sql: str, values: Key = ()) -> Sequence[Record]:
        async with self._explained():
            return [tuple(map(_kept, row)) for row in await self._db.fetch(_numbered(sql), *values)]

    async def apply(self, statements: Sequence[str], insert: str = "", rows: Sequence[Record] = ()) -> None:
        async with self._explained(), self._db.transaction():
            for statement in statements:
                await self._db.execute(statement)
            if insert:
                await self._db.executemany(_numbered(insert), rows)
                failpoint("copy.commit")

    def columns(self, table: CopyTable) -> str:
        """Return the SQL expressions that select the columns; vectors are selected as arrays of numbers."""
        is_halfvec = table.name == "vectors" and self.has_vectors
        return table.listed.replace('"vector"', '"vector"::real[]') if is_halfvec else table.listed

    async def begin(self, copy: UnfinishedCopy) -> None:
        await self.apply([sql for (sql,) in await self.fetch(OLD_INDEXES)])
        await super().begin(copy)

    async def write(self, table: CopyTable, rows: Sequence[Record]) -> None:
        records = [_wanted(table, row) for row in rows]
        if (shape := SHAPES.get(table.name)) is not None:
            shaped = [shape(dict(zip(table.columns, row, strict=True))) for row in records]
            columns = ", ".join(f'"{name}"' for name in shaped[0])
            marks = ", ".join(CASTS.get(name, "?") for name in shaped[0])
            insert = f"insert into {table.name} ({columns}) values ({marks})"
            await self.apply((), insert, [tuple(row.values()) for row in shaped])
            return
        async with self._explained(), self._db.transaction():
            await self._db.copy_records_to_table(table.name, records=records, columns=list(table.columns))
            failpoint("copy.commit")

    async def finish(self) -> None:
        """Set the sequences to the copied ids and remove the marker."""
        await self.apply([COUNT_ON, f"drop table {MARKER}"])
        async with self._explained():
            await self._db.execute("analyze")


def _numbered(sql: str) -> str:
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)


def _kept(value: Any) -> Any:
    """Return a value as SQLite stores it: a time as text, a vector as bytes."""
    if isinstance(value, datetime):
        return write_time(value)
    return pack_rows(np.array([value], np.float32))[0] if isinstance(value, list) else value


def _wanted(table: CopyTable, row: Record) -> Record:
    values = zip(map(without_nul, row), table.columns.values(), strict=True)
    return tuple(datetime.fromisoformat(str(each)) if each and kind == TIME else each for each, kind in values)


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
