"""SQLite stores for tests that need a store and are about something else."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeVar

from afresh.config.forms import sqlite_path
from afresh.store.sqlite import SqliteDatabase, add_functions
from afresh.store.store import Store

S = TypeVar("S", bound=Store)


@asynccontextmanager
async def new_store(folder: Path, kind: type[S]) -> AsyncIterator[S]:
    """Open a new store of this class in a folder."""
    file = folder / "afresh.db"
    database = SqliteDatabase(file)
    await database.open()
    store = kind(database, f"sqlite:///{file}")
    try:
        yield store
    finally:
        await store.close()


def execute(store: Store, sql: str, *values: object) -> list[sqlite3.Row]:
    """Run one statement in the file of a store, past its methods."""
    with closing(sqlite3.connect(sqlite_path(store.url))) as connection:
        connection.row_factory = sqlite3.Row
        add_functions(connection)
        connection.execute("pragma synchronous = off")
        with connection:
            return connection.execute(sql, values).fetchall()
