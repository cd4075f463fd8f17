"""Copying a store into another: table by table, in batches that are whole, and compared at the end."""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from afresh.config.store_url import is_postgres, sqlite_path
from afresh.errors import CopyStopped, StoreError
from afresh.events import Listener, Notice, Remaking
from afresh.model.store_reports import CopiedTable
from afresh.ops.failpoints import failpoint
from afresh.store.copy_ends import End, Origin, Record, Target, Unfinished
from afresh.store.copy_sqlite import SqliteEnd
from afresh.store.tables import Table, tables

BATCH = 500  # rows of one transaction
FEW = 50  # where a row may be as large as a page
LARGE = frozenset({"markdown", "diff"})
STOPPED = "the copy was stopped; add --resume to go on where it was"
NO_VECTORS = "the target has no pgvector 0.7 or newer: vectors are left out, and words alone answer there"


def end_of(url: str, *, reading: bool) -> AbstractAsyncContextManager[End]:
    """A store, to be read or to be filled."""
    if not is_postgres(url):
        return SqliteEnd(sqlite_path(url), reading=reading)
    from afresh.store.copy_postgres import PostgresEnd

    return PostgresEnd(url, reading=reading)


async def is_empty(target: Target) -> bool:
    """Whether a store holds nothing at all."""
    for table in tables():
        if await target.last(table) is not None:
            return False
    return True


async def copy(
    origin: Origin,
    target: Target,
    sources: Sequence[int] | None,
    listener: Listener,
    stopping: asyncio.Event,
) -> list[CopiedTable]:
    """Bring what the target lacks, compare all of it, and let the target be used; what there is in tables."""
    kept = [table for table in tables() if target.keeps(table)]
    if len(kept) < len(tables()):
        listener(Notice(text=NO_VECTORS))
    for table in kept:
        await _fill(origin, target, table, sources, listener, stopping)
    failpoint("copy.filled")
    copied = [await _compared(origin, target, table, sources, listener, stopping) for table in kept]
    await target.finish()
    return copied


async def _fill(
    origin: Origin,
    target: Target,
    table: Table,
    sources: Sequence[int] | None,
    listener: Listener,
    stopping: asyncio.Event,
) -> None:
    """Copy the rows after the last one that is there: they come in the order of their key."""
    after, done = await target.last(table), await target.count(table)
    total = await origin.count(table, sources)
    while rows := await origin.read(table, after, _batch(table), sources):
        if stopping.is_set():
            raise CopyStopped(STOPPED)
        await target.write(table, rows)
        failpoint("copy.batch")
        after, done = _key(table, rows[-1]), done + len(rows)
        listener(Remaking(task="copy", what=f"rows of {table.name}", done=done, of=max(done, total)))


async def _compared(
    origin: Origin,
    target: Target,
    table: Table,
    sources: Sequence[int] | None,
    listener: Listener,
    stopping: asyncio.Event,
) -> CopiedTable:
    number, digest = await _digest(origin, table, sources, stopping)
    held, found = await _digest(target, table, None, stopping)
    if (number, digest) != (held, found):
        raise StoreError(
            f"the copy is not the same: {table.name} has {number:,} rows here and {held:,} there, or others; "
            "if the store was written to meanwhile, empty the target and copy again"
        )
    listener(Remaking(task="copy", what=f"rows of {table.name} compared", done=held, of=number))
    return CopiedTable(table=table.name, rows=number, sha256=digest)


async def _digest(
    end: Origin, table: Table, sources: Sequence[int] | None, stopping: asyncio.Event
) -> tuple[int, str]:
    """How many rows there are, and a hash over all of them in the order of their key."""
    number, digest, after = 0, hashlib.sha256(), None
    while rows := await end.read(table, after, _batch(table), sources):
        if stopping.is_set():
            raise CopyStopped(STOPPED)
        for row in rows:
            digest.update(repr(_plain(row)).encode())
        number, after = number + len(rows), _key(table, rows[-1])
    return number, digest.hexdigest()


def _plain(row: Record) -> Record:
    """A row without what PostgreSQL cannot keep: the character NUL."""
    return tuple(value.replace("\0", "") if isinstance(value, str) else value for value in row)


def _key(table: Table, row: Record) -> Record:
    return tuple(row[place] for place in table.places)


def _batch(table: Table) -> int:
    return FEW if LARGE & table.columns.keys() else BATCH


async def prepare(target: Target, copy: Unfinished, *, resume: bool) -> None:
    """Begin a copy or go on with it; a store that holds anything else is refused."""
    begun = await target.unfinished()
    if begun is None:
        if not await is_empty(target):
            raise StoreError("the target holds something already; name an empty store")
        await target.begin(copy)
    elif not resume:
        raise StoreError("the target is half a copy: add --resume to go on with it, or name an empty store")
    elif begun != copy:
        raise StoreError(
            f"the target is half a copy of {begun.origin} ({begun.sources or 'all sources'}); "
            "go on with that one, or name an empty store"
        )
