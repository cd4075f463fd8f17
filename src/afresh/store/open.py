"""From a store URL to an open store."""

from pathlib import Path

from afresh.core.errors import ConfigError
from afresh.ports import Access
from afresh.store.sqlite import BUSY_SECONDS, SqliteDatabase
from afresh.store.store import SqlStore

PREFIX = "sqlite:///"


def sqlite_path(url: str) -> Path:
    """The file behind `sqlite:///path`; three slashes are relative, four absolute."""
    if not url.startswith(PREFIX) or len(url) == len(PREFIX):
        raise ConfigError(f"store.url must look like sqlite:///path/to/afresh.db, not {url!r}")
    return Path(url.removeprefix(PREFIX)).expanduser()


async def open_store(
    url: str, access: Access = Access.CREATE, *, wait_seconds: float = BUSY_SECONDS
) -> SqlStore:
    """Open the store; only to create may make the file and its folder."""
    database = SqliteDatabase(sqlite_path(url), access, wait_seconds=wait_seconds)
    await database.open()
    return SqlStore(database, url)
