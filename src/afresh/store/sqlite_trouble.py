"""What SQLite complains about, as a sentence that says what to do."""

import sqlite3
from pathlib import Path

from afresh.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreMissing

AGAIN = "then run the command again: it goes on where it was"
RESTORE = "restore it from a backup, or move it away and crawl again"
MOVED = "was moved, replaced or deleted while it was in use; put it right, then run the command again"
TROUBLE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "is kept locked by another process; wait until that has ended or stop it, then run the command again",
    ),
    sqlite3.SQLITE_PROTOCOL: (
        StoreBusy,
        "cannot be locked; is it on a network drive? keep it on a disk of this machine",
    ),
    sqlite3.SQLITE_FULL: (StoreFull, f"has no room to grow: disk full; make room, {AGAIN}"),
    sqlite3.SQLITE_IOERR_WRITE: (
        StoreFull,
        f"cannot be written to: disk full, or a quota is used up; make room, {AGAIN}",
    ),
    sqlite3.SQLITE_IOERR_SHMSIZE: (
        StoreFull,
        f"cannot be opened for writing: disk full; make room, {AGAIN}",
    ),
    sqlite3.SQLITE_CORRUPT: (StoreDamaged, f"is damaged; {RESTORE}"),
    sqlite3.SQLITE_NOTADB: (
        StoreDamaged,
        "is not a database, or its beginning is damaged; restore it from a backup, "
        "or name another file with --store",
    ),
    sqlite3.SQLITE_READONLY_DBMOVED: (StoreError, MOVED),
    sqlite3.SQLITE_READONLY: (
        StoreError,
        "cannot be written to; make the file and its folder writable, or name another with --store",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreError,
        "cannot be opened; make sure that the file and its folder can be read and written",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreError,
        "cannot be read or written: the disk reports an error; check the disk, "
        "and keep the store on a disk of this machine",
    ),
}


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """The error that people see: the store, what is wrong and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0)
    kind, words = TROUBLE.get(code) or TROUBLE.get(code & 0xFF) or (StoreError, f"cannot be used: {error}")
    return kind(f"the store {path} {words}")


def missing(path: Path) -> StoreMissing:
    """What to say where a store should be and is not."""
    return StoreMissing(f"there is no store at {path} yet; `afresh crawl URL` makes one")
