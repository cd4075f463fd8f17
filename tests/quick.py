"""SQLite in the tests: new files are copies of an empty store, and nothing waits for the disk.

Both hold in the process of the tests alone; commands that tests start, and may kill, make files of their own.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from afresh.ports import Access
from afresh.store import sqlite
from afresh.store.sqlite_file import ways_in
from afresh.store.sqlite_schema import migrate

DURABLE = sqlite.PRAGMAS
IDLE = ("pragma synchronous = off", *DURABLE[1:])  # a process that is killed loses nothing by it


@contextmanager
def quick() -> Iterator[None]:
    """While stores are made in a moment."""
    with tempfile.TemporaryDirectory(prefix="afresh-quick-") as folder, pytest.MonkeyPatch.context() as patch:
        empty = Path(folder) / "empty.db"
        with closing(sqlite3.connect(empty, isolation_level=None)) as connection:
            connection.execute("pragma journal_mode = wal")
            migrate(connection)

        def ways(path: Path, access: Access) -> tuple[str, ...]:
            found = ways_in(path, access)
            if found[0].endswith("mode=rwc"):
                _place(empty, path)
            return found

        patch.setattr(sqlite, "ways_in", ways)
        patch.setattr(sqlite, "PRAGMAS", IDLE)
        yield


def _place(empty: Path, path: Path) -> None:
    """A copy under the name of the new store, at once whole; who was faster has made it."""
    copy = path.with_name(f"{path.name}.{os.getpid()}.new")
    with suppress(OSError):
        shutil.copy(empty, copy)
        with suppress(FileExistsError):
            os.link(copy, path)
    copy.unlink(missing_ok=True)
