"""A SQLite file before and while it is opened: is it there, may it be written, is it sound?

The file is never opened here by anything but SQLite: closing a second handle of a file drops the locks that
this process holds on it.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from afresh.errors import StoreDamaged, StoreError
from afresh.files.private import make_private_file, make_private_folder, narrow_file
from afresh.ports import Access
from afresh.store.sqlite_trouble import RESTORE, missing

SMALL_BYTES = 16 * 2**20  # read whole in a dozen milliseconds
IDLE_SECONDS = 86_400


def wal_of(path: Path) -> Path:
    """The log beside a file."""
    return path.with_name(path.name + "-wal")


def size_of(path: Path) -> int:
    """Bytes on disk, 0 where nothing is."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def ways_in(path: Path, access: Access) -> tuple[str, ...]:
    """How the file may be opened, the best way first; a file that must not be opened is refused."""
    try:
        return _ways(path, access)
    except OSError as error:
        raise StoreError(f"the store {path} cannot be reached: {error.strerror}") from error


def _ways(path: Path, access: Access) -> tuple[str, ...]:
    if path.is_dir():
        raise StoreError(f"the store {path} is a folder; name a file with --store sqlite:///…")
    if size_of(path) == 0 and size_of(wal_of(path)):
        raise StoreDamaged(f"the store {path} is empty although its log is not; {RESTORE}")
    if size_of(path) == 0 and access is not Access.CREATE:
        raise missing(path)
    if not path.exists():
        _make_folder(path)
        make_private_file(path.resolve())  # SQLite gives its log the mode of the file
        return (_uri(path, "mode=rwc"),)
    _narrow(path.resolve())
    if _writable(path):
        return (_uri(path, "mode=rw"),)
    if access is Access.READ:
        return _ways_to_read(path)
    raise StoreError(
        f"the store {path} cannot be written to; make the file and its folder writable, "
        "or name another with --store"
    )


def _narrow(path: Path) -> None:
    """Close a store of an older afresh, or one restored from a backup, to other users."""
    for each in (path, wal_of(path), path.with_name(path.name + "-shm")):
        narrow_file(each)


def _make_folder(path: Path) -> None:
    try:
        make_private_folder(path.parent)
    except OSError as error:
        raise StoreError(f"the folder of the store {path} cannot be made: {error.strerror}") from error
    if not _may_write(path.parent):
        raise StoreError(
            f"the store {path} cannot be made: its folder cannot be written to; name another with --store"
        )


def _ways_to_read(path: Path) -> tuple[str, ...]:
    """SQLite wants its log even to read; without one, the file alone is everything there is."""
    ways: tuple[str, ...] = (_uri(path, "mode=ro"),)
    return ways if size_of(wal_of(path)) else (*ways, _uri(path, "immutable=1"))


def _writable(path: Path) -> bool:
    return _may_write(path) and _may_write(path.parent)


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _uri(path: Path, how: str) -> str:
    return f"file:{quote(str(path.absolute()))}?{how}"


def wants_check(path: Path, clock: Callable[[], float] = time.time) -> bool:
    """Whether a file is read whole before it is written to.

    Always where that takes no time; else where the last writer did not close it, or where it lay idle for so
    long that a disk may have changed it.
    """
    if size_of(path) <= SMALL_BYTES or size_of(wal_of(path)):
        return True
    return clock() - path.stat().st_mtime > IDLE_SECONDS


def check_sound(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that SQLite finds broken."""
    [(verdict,)] = connection.execute("pragma quick_check(1)").fetchall()
    if verdict != "ok":
        raise StoreDamaged(f"the store {path} is damaged ({str(verdict).strip()}); {RESTORE}")


def place_of(path: Path) -> tuple[int, int] | None:
    """Which file a path names, by device and number; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
