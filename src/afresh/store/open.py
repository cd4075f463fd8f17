"""Open a store by its URL, or migrate its schema."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from afresh.config.forms import is_postgres, sqlite_path
from afresh.errors import ConfigError, IncompleteCopy, StoreMissing
from afresh.model.reports import MigrationReport
from afresh.ports import StoreAccess
from afresh.store.dialect import migrations
from afresh.store.sqlite import BUSY_SECONDS, SqliteDatabase
from afresh.store.sqlite_file import check_owner, explain, missing, schema_version
from afresh.store.store import Store
from afresh.text.redact import mask_secrets


async def open_store(
    url: str, access: StoreAccess = StoreAccess.CREATE, *, wait_seconds: float = BUSY_SECONDS
) -> Store:
    """Open a store; create the file or the tables only with StoreAccess.CREATE."""
    if is_postgres(url):
        return await _open_postgres(url, access, wait_seconds)
    database = SqliteDatabase(sqlite_path(url), access, wait_seconds=wait_seconds)
    await database.open()
    return Store(database, url)


async def is_unfinished(url: str) -> bool:
    """Return whether a store is an incomplete copy, which only `afresh copy` may open."""
    try:
        await (await open_store(url, StoreAccess.READ)).close()
    except (IncompleteCopy, StoreMissing) as error:
        return isinstance(error, IncompleteCopy)
    return False


async def _open_postgres(url: str, access: StoreAccess, wait_seconds: float) -> Store:
    try:
        from afresh.store.postgres import PostgresDatabase
        from afresh.store.postgres_search import PostgresSearchRepository, PostgresVectorRepository
    except ModuleNotFoundError as missing:
        if missing.name != "asyncpg":
            raise
        raise ConfigError("a store on PostgreSQL needs asyncpg: run `pip install 'afresh[postgres]'`") from missing
    database = PostgresDatabase(url, access, wait_seconds=wait_seconds)
    await database.open()
    return Store(database, url, search=PostgresSearchRepository, vectors=PostgresVectorRepository)


async def migrate_store(url: str, *, dry_run: bool = False) -> MigrationReport:
    """Migrate a store unless `dry_run`; return its versions; raise StoreError for a newer or foreign schema."""
    if is_postgres(url):
        before, newest = await _postgres_version(url), migrations("postgres")[-1][0]
    else:
        before = await asyncio.to_thread(_sqlite_version, sqlite_path(url))
        newest = migrations("sqlite")[-1][0]
    if before < newest and not dry_run:
        store = await open_store(url, StoreAccess.CHANGE)
        try:
            await store.vectors.encode()
        finally:
            await store.close()
    after = before if dry_run else newest
    return MigrationReport(store=mask_secrets(url), before=before, after=after, newest=newest)


def _sqlite_version(path: Path) -> int:
    if not path.exists():
        raise missing(path)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            check_owner(connection, path)
            return schema_version(connection)
    except sqlite3.Error as error:
        raise explain(error, path) from error


async def _postgres_version(url: str) -> int:
    import asyncpg

    from afresh.store.postgres import SERVER_ERRORS, URL_ERRORS, check
    from afresh.store.postgres import explain as explain_postgres

    name = mask_secrets(url)
    try:
        connection = await asyncpg.connect(url)
        try:
            return await check(connection, name, StoreAccess.READ)
        finally:
            await connection.close()
    except (*SERVER_ERRORS, *URL_ERRORS) as error:
        raise explain_postgres(error, name) from error
