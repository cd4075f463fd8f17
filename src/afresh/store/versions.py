"""How old a store is, told without changing it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from afresh.config.store_url import is_postgres, sqlite_path
from afresh.errors import StoreMissing
from afresh.ports import Access
from afresh.store.sql import migrations
from afresh.store.sqlite_schema import check_owner
from afresh.store.sqlite_trouble import explain
from afresh.text.redact import mask_secrets


async def schema_of(url: str) -> int:
    """The version of a store's schema; a newer or foreign one is refused, a missing one told."""
    if is_postgres(url):
        return await _postgres_version(url)
    return await asyncio.to_thread(_sqlite_version, sqlite_path(url))


def newest_schema(url: str) -> int:
    """The version that this afresh writes."""
    return migrations("postgres" if is_postgres(url) else "sqlite")[-1][0]


def _sqlite_version(path: Path) -> int:
    if not path.exists():
        raise StoreMissing(f"there is no store at {path} yet; `afresh crawl URL` makes one")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            check_owner(connection, path)
            return int(connection.execute("pragma user_version").fetchone()[0])
    except sqlite3.Error as error:
        raise explain(error, path) from error


async def _postgres_version(url: str) -> int:
    import asyncpg

    from afresh.store.postgres_schema import check
    from afresh.store.postgres_trouble import TROUBLES, UNREAD
    from afresh.store.postgres_trouble import explain as explain_postgres

    shown = mask_secrets(url)
    try:
        connection = await asyncpg.connect(url)
        try:
            return await check(connection, shown, Access.READ)
        finally:
            await connection.close()
    except (*TROUBLES, *UNREAD) as error:
        raise explain_postgres(error, shown) from error
