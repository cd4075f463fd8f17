"""From a store URL to an open store."""

from pathlib import Path

from afresh.core.errors import ConfigError, StoreError
from afresh.store.sqlite import SqliteDatabase
from afresh.store.store import SqlStore

PREFIX = "sqlite:///"


def sqlite_path(url: str) -> Path:
    """The file behind `sqlite:///path`; three slashes are relative, four absolute."""
    if not url.startswith(PREFIX) or len(url) == len(PREFIX):
        raise ConfigError(f"store.url must look like sqlite:///path/to/afresh.db, not {url!r}")
    return Path(url.removeprefix(PREFIX)).expanduser()


async def open_store(url: str) -> SqlStore:
    """Open the store, creating the file and its folder if they are not there."""
    path = sqlite_path(url)
    if path.is_dir():
        raise StoreError(f"the store {path} is a folder; name a file with --store sqlite:///…")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder of the store {path} cannot be made: {error.strerror}") from error
    database = SqliteDatabase(path)
    await database.open()
    return SqlStore(database, url)
