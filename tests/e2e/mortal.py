"""The command line, killed right behind the SQL statement that KILL_AFTER names (`name:nth`)."""

import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from tests.e2e.inprocess import InProcess

import afresh.app
from afresh.faces.cli import main
from afresh.store.sqlite import SqliteSession


def deadly(method: Callable[..., Awaitable[Any]], name: str, nth: int) -> Callable[..., Awaitable[Any]]:
    """The method of a session, whose nth use for the named statement is the last thing the process does."""
    left = nth

    async def method_or_death(self: SqliteSession, statement: str, /, *rows: Any, **params: Any) -> Any:
        nonlocal left
        result = await method(self, statement, *rows, **params)
        if statement == name:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return result

    return method_or_death


if __name__ == "__main__":
    if os.environ.get("IN_PROCESS"):
        vars(afresh.app)["Offload"] = InProcess
    if os.environ.get("KILL_AFTER"):
        name, _, number = os.environ["KILL_AFTER"].partition(":")
        for method in ("all", "run", "many"):
            setattr(SqliteSession, method, deadly(getattr(SqliteSession, method), name, int(number or 1)))
    raise SystemExit(main())
