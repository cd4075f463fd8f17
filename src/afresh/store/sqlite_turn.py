"""Taking turns at one file: how a writer waits for those of other processes."""

import sqlite3
import time
from collections.abc import Callable

CROWDED = 0.2  # seconds after which somebody who waits asks more often than those who came later
LONG = 3.0  # seconds after which the file is not crowded but held
FIRST, OFTEN, SELDOM = 0.012, 0.006, 0.025


def begin(
    connection: sqlite3.Connection,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Begin to write once nobody else does; after so many seconds SQLite's complaint is raised.

    SQLite's own waiting asks less often the longer it lasts, so that those who wait longest starve.
    """
    since = clock()
    while True:
        try:
            connection.execute("begin immediate")
        except sqlite3.OperationalError as error:
            waited = clock() - since
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or waited >= seconds:
                raise
            sleep(pause(waited))
        else:
            return


def pause(waited: float) -> float:
    """How long to wait until the next question."""
    if waited < CROWDED:
        return FIRST
    return OFTEN if waited < LONG else SELDOM
