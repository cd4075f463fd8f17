"""Open and check the SQLite file and its schema, with error messages that say what to do."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from afresh.errors import IncompleteCopy, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreMissing
from afresh.files import make_private_file, make_private_folder, narrow_file
from afresh.ports import StoreAccess
from afresh.store.dialect import check_version, migrations

AGAIN = "then run the command again: it continues where it stopped"
RESTORE = "restore it from a backup, or move it away and crawl again"
MOVED = "was moved, replaced or deleted while it was in use; restore it, then run the command again"
UNWRITABLE = "can only be read; make the file and its folder writable"
EXPLANATIONS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "is locked by another process; wait until that process has ended or stop it, then run the command again",
    ),
    sqlite3.SQLITE_PROTOCOL: (
        StoreBusy,
        "cannot be locked, perhaps because it is on a network drive; keep it on a disk of this machine",
    ),
    sqlite3.SQLITE_FULL: (StoreFull, f"has no room to grow: disk full; make room, {AGAIN}"),
    sqlite3.SQLITE_IOERR_WRITE: (
        StoreFull,
        f"cannot be written to: disk full, or a quota is used up; make room, {AGAIN}",
    ),
    sqlite3.SQLITE_IOERR_SHMSIZE: (StoreFull, f"cannot be opened for writing: disk full; make room, {AGAIN}"),
    sqlite3.SQLITE_CORRUPT: (StoreDamaged, f"is damaged; {RESTORE}"),
    sqlite3.SQLITE_NOTADB: (
        StoreDamaged,
        "is not a database, or its beginning is damaged; restore it from a backup, or name another file with --store",
    ),
    sqlite3.SQLITE_READONLY_DBMOVED: (StoreError, MOVED),
    sqlite3.SQLITE_READONLY: (
        StoreError,
        "cannot be written to; make the file and its folder writable, or name another file with --store",
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
SMALL_BYTES = 16 * 2**20  # a file of this size is checked within milliseconds
IDLE_SECONDS = 86_400


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0)
    kind, words = EXPLANATIONS.get(code) or EXPLANATIONS.get(code & 0xFF) or (StoreError, f"cannot be used: {error}")
    return kind(f"the store {path} {words}")


def missing(path: Path) -> StoreMissing:
    return StoreMissing(f"there is no store at {path} yet; `afresh crawl URL` creates one")


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def ways_in(path: Path, access: StoreAccess) -> tuple[str, ...]:
    """Return the URIs by which to open the file, the best one first; raise StoreError if it must not be opened."""
    try:
        return _ways(path, access)
    except OSError as error:
        raise StoreError(f"the store {path} cannot be reached: {error.strerror}") from error


def _ways(path: Path, access: StoreAccess) -> tuple[str, ...]:
    if path.is_dir():
        raise StoreError(f"the store {path} is a folder; name a file with --store sqlite:///…")
    if size_of(path) == 0 and size_of(wal_of(path)):
        raise StoreDamaged(f"the store {path} is empty although its log is not; {RESTORE}")
    if size_of(path) == 0 and access is not StoreAccess.CREATE:
        raise missing(path)
    uri = f"file:{quote(str(path.absolute()))}?"
    if not path.exists():
        _make_folder(path)
        make_private_file(path.resolve())  # SQLite gives its log the mode of the file
        return (uri + "mode=rwc",)
    for end in ("", "-wal", "-shm"):  # an older afresh or a backup may have created files that others can read
        narrow_file(path.resolve().with_name(path.resolve().name + end))
    if _may_write(path) and _may_write(path.parent):
        return (uri + "mode=rw",)
    if access is not StoreAccess.READ:
        raise StoreError(f"the store {path} {EXPLANATIONS[sqlite3.SQLITE_READONLY][1]}")
    # If there is a log, SQLite has to read it, too; without a log, the file alone is complete.
    return (uri + "mode=ro",) if size_of(wal_of(path)) else (uri + "mode=ro", uri + "immutable=1")


def _make_folder(path: Path) -> None:
    try:
        make_private_folder(path.parent)
    except OSError as error:
        raise StoreError(f"the folder of the store {path} cannot be created: {error.strerror}") from error
    if not _may_write(path.parent):
        raise StoreError(
            f"the store {path} cannot be created, because its folder cannot be written to: make the folder writable, "
            "or name another file with --store"
        )


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def needs_check(path: Path, clock: Callable[[], float] = time.time) -> bool:
    """Return whether to check the whole file before writing to it.

    True if the file is small, was not closed properly, or was unused for so long that the disk may have damaged it.
    """
    if size_of(path) <= SMALL_BYTES or size_of(wal_of(path)):
        return True
    return clock() - path.stat().st_mtime > IDLE_SECONDS


def check_sound(connection: sqlite3.Connection, path: Path) -> None:
    [(verdict,)] = connection.execute("pragma quick_check(1)").fetchall()
    if verdict != "ok":
        raise StoreDamaged(f"the store {path} is damaged ({str(verdict).strip()}); {RESTORE}")


DDL = {
    "pk": "integer primary key",
    "kept_pk": "integer primary key autoincrement",  # ids are never reused
    "time": "text",
    "blob": "blob",
    "real": "real",
    "without_rowid": "without rowid",
}

UNFINISHED = "is an incomplete copy; `afresh copy … --resume` continues it"


def check_owner(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StoreError for a newer, much older or foreign file, or an incomplete copy; change nothing."""
    tables, version, half = connection.execute(
        "select (select count(*) from sqlite_master), user_version, "
        "(select count(*) from sqlite_master where name = 'afresh_copying') from pragma_user_version"
    ).fetchone()
    check_version(str(path), version, migrations("sqlite"))
    if half:
        raise IncompleteCopy(f"the store {path} {UNFINISHED}")
    if version == 0 and tables:
        raise StoreError(f"{path} is a database of another program; name another store with --store")


def check_age(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StoreError for a file of an older version, which cannot be migrated because it is read-only."""
    if schema_version(connection) < migrations("sqlite")[-1][0]:
        raise StoreError(
            f"the store {path} was written by an older afresh and cannot be migrated, because it {UNWRITABLE}"
        )


def migrate(connection: sqlite3.Connection) -> None:
    steps = migrations("sqlite")
    if schema_version(connection) == steps[-1][0]:
        return
    connection.execute("begin immediate")
    try:
        version = schema_version(connection)  # another process may have been faster
        for number, text in steps:
            if number > version:
                for sql in (*split(text.format(**DDL)), f"pragma user_version = {number}"):
                    connection.execute(sql)
        connection.execute("commit")
    except BaseException:
        connection.rollback()
        raise


def schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


def split(script: str) -> list[str]:
    """Return the statements of a script; a trigger with its inner statements is one."""
    found, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current.strip())
            current = ""
    return found
