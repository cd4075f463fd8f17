"""What a store URL names: a SQLite file or a PostgreSQL database."""

from pathlib import Path

from afresh.errors import ConfigError
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
