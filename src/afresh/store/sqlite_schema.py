"""The schema of a SQLite file: whose it is, how old it is, and how it comes up to date."""

import sqlite3
from pathlib import Path

from afresh.errors import SchemaTooNew, StoreError, StoreUnfinished
from afresh.store.sql import migrations

DDL = {
    "pk": "integer primary key",
    "kept_pk": "integer primary key autoincrement",  # a number once given is never given again
    "time": "text",
    "blob": "blob",
    "real": "real",
    "without_rowid": "without rowid",
}

UNFINISHED = "is a copy that is not finished; `afresh copy … --resume` goes on with it"


def check_owner(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a newer or foreign file before anything about it is changed."""
    newest = migrations("sqlite")[-1][0]
    tables, version, half = connection.execute(
        "select (select count(*) from sqlite_master), user_version, "
        "(select count(*) from sqlite_master where name = 'afresh_copying') from pragma_user_version"
    ).fetchone()
    if version > newest:
        raise SchemaTooNew(
            f"the store {path} was written by a newer afresh (schema {version}, this one knows {newest}); "
            "upgrade afresh or name another store with --store"
        )
    if half:
        raise StoreUnfinished(f"the store {path} {UNFINISHED}")
    if version == 0 and tables:
        raise StoreError(f"{path} is a database, but not one of afresh; name another store with --store")


def check_age(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse an older file that cannot be brought up to date because it can only be read."""
    if _version(connection) < migrations("sqlite")[-1][0]:
        raise StoreError(
            f"the store {path} was written by an older afresh and cannot be brought up to date, because it "
            "can only be read here; make the file and its folder writable"
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date in one transaction: whatever happens, the file is as before or new."""
    steps = migrations("sqlite")
    if _version(connection) == steps[-1][0]:
        return
    connection.execute("begin immediate")
    try:
        version = _version(connection)  # another process may have been faster
        for number, text in steps:
            if number > version:
                _apply(connection, number, text.format(**DDL))
        connection.execute("commit")
    except BaseException:
        connection.rollback()
        raise


def _apply(connection: sqlite3.Connection, number: int, script: str) -> None:
    for sql in split(script):
        connection.execute(sql)
    connection.execute(f"pragma user_version = {number}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


def split(script: str) -> list[str]:
    """The statements of a script; a trigger's body stays in one piece."""
    found, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current.strip())
            current = ""
    return found
