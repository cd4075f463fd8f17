"""From a store URL to an open store."""

from pathlib import Path

from afresh.errors import ConfigError, StoreMissing, StoreUnfinished
from afresh.ports import Access
from afresh.store.sqlite import BUSY_SECONDS, SqliteDatabase
from afresh.store.store import Store
from afresh.text.redact import mask_secrets

PREFIX = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")


def is_postgres(url: str) -> bool:
    """Whether a store is a PostgreSQL database."""
    return url.startswith(POSTGRES)


def sqlite_path(url: str) -> Path:
    """The file behind `sqlite:///path`; three slashes are relative, four absolute."""
    if not url.startswith(PREFIX) or len(url) == len(PREFIX):
        raise ConfigError(
            "store.url must look like sqlite:///path/to/afresh.db or postgresql://host/database, "
            f"not {mask_secrets(url)!r}"
        )
    return Path(url.removeprefix(PREFIX)).expanduser()


def file_of(url: str) -> Path | None:
    """The file that a store is, or None where it is a database elsewhere."""
    return None if is_postgres(url) else sqlite_path(url)


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
