"""Brings a store file up to date again and again, each time killed some statements later.

`python -m tests.store.dying FOLDER` starts from FOLDER/old.db, or from nothing, and goes to a schema of an
afresh to come; the files it leaves are named by the statement at which it was killed: 1.db, 2.db and so on.
"""

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from unittest.mock import patch

from afresh.store import sqlite_file
from afresh.store.dialect import migrations
from afresh.store.sqlite import add_functions

FIRST = migrations("sqlite")
NEXT = """
create table laters (id {pk}, at {time} not null);
alter table sources add column later {real} not null default 0.5;
create index sources_later on sources (later);
insert into laters (at) select created_at from sources;
update sources set later = 1;
drop index pages_language;
create view later_sources as select id, later from sources;
"""  # of an afresh to come
STEPS = [*FIRST, (FIRST[-1][0] + 1, NEXT)]


def deadly(nth: int) -> Callable[[str], None]:
    """Something to be told of every statement, and that is the end at the nth."""
    left = nth

    def count_statement(statement: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return count_statement


def migrate_until(file: Path, nth: int) -> None:
    """Bring the file up to date, if the process lives that long."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = off")  # a kill takes nothing from the disk
    connection.set_trace_callback(deadly(nth))
    add_functions(connection)
    sqlite_file.migrate(connection)
    connection.set_trace_callback(None)


def survived(file: Path, nth: int) -> bool:
    """Whether a process of its own came to the end of its work."""
    child = os.fork()
    if child == 0:
        migrate_until(file, nth)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with patch.object(sqlite_file, "migrations", lambda dialect: STEPS):
        for nth in count(1):
            if (folder / "old.db").exists():
                shutil.copy(folder / "old.db", folder / f"{nth}.db")
            if survived(folder / f"{nth}.db", nth):
                break
