"""From a store URL to an open store."""

from afresh.config.store_url import is_postgres, sqlite_path
from afresh.errors import ConfigError, StoreMissing, StoreUnfinished
from afresh.ports import Access
from afresh.store.sqlite import BUSY_SECONDS, SqliteDatabase
from afresh.store.store import Store


async def open_store(
    url: str, access: Access = Access.CREATE, *, wait_seconds: float = BUSY_SECONDS
) -> Store:
    """Open the store; only to create may make the file and its folder, or the tables."""
    if is_postgres(url):
        return await _open_postgres(url, access, wait_seconds)
    database = SqliteDatabase(sqlite_path(url), access, wait_seconds=wait_seconds)
    await database.open()
    return Store(database, url)


async def is_unfinished(url: str) -> bool:
    """Whether a store is half a copy, which nothing but the copy may use."""
    try:
        store = await open_store(url, Access.READ)
    except StoreUnfinished:
        return True
    except StoreMissing:
        return False
    await store.close()
    return False


async def _open_postgres(url: str, access: Access, wait_seconds: float) -> Store:
    try:
        from afresh.store.postgres import PostgresDatabase
        from afresh.store.postgres_search import PostgresSearchRepository
        from afresh.store.postgres_vectors import PostgresVectorRepository
    except ModuleNotFoundError as missing:
        if missing.name != "asyncpg":
            raise
        raise ConfigError(
            "a store on PostgreSQL needs asyncpg: run `pip install 'afresh[postgres]'`"
        ) from missing
    database = PostgresDatabase(url, access, wait_seconds=wait_seconds)
    await database.open()
    return Store(database, url, search=PostgresSearchRepository, vectors=PostgresVectorRepository)
