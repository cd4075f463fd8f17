"""SQLite in the tests: new files are copies of an empty store, and nothing waits for the disk.

Both hold in the process of the tests alone; commands that tests start, and may kill, make files of their own.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from afresh.ports import StoreAccess
from afresh.store import sqlite
from afresh.store.sqlite_file import migrate, ways_in

DURABLE = sqlite.PRAGMAS
IDLE = ("pragma synchronous = off", *DURABLE[1:])  # a process that is killed loses nothing by it


@contextmanager
def quick() -> Iterator[None]:
    """While stores are made in a moment."""
    with tempfile.TemporaryDirectory(prefix="afresh-quick-") as folder, pytest.MonkeyPatch.context() as patch:
        empty, numbers = Path(folder) / "empty.db", count()
        with closing(sqlite3.connect(empty, isolation_level=None)) as connection:
            connection.execute("pragma journal_mode = wal")
            sqlite.add_functions(connection)
            migrate(connection)
        empty.chmod(0o600)

        def ways(path: Path, access: StoreAccess) -> tuple[str, ...]:
            if path.exists():
                return ways_in(path, access)
            copy = empty.with_name(f"{os.getpid()}-{next(numbers)}.db")
            shutil.copy(empty, copy)
            try:
                found = ways_in(path, access)
                if found[0].endswith("mode=rwc"):  # it has just made an empty file
                    with suppress(OSError):  # on another disk it is filled by migrations
                        copy.replace(path.resolve())
            finally:
                copy.unlink(missing_ok=True)
            return found

        patch.setattr(sqlite, "ways_in", ways)
        patch.setattr(sqlite, "PRAGMAS", IDLE)
        yield
