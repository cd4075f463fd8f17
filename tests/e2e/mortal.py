"""The command line, and lives that are cut short: runs in processes that start in a moment and may be killed.

`python -m tests.e2e.mortal` is `afresh`, without processes of its own for reading pages if IN_PROCESS is set,
and with GRACE seconds for what is under way when it is told to stop.
As it is started often, nothing is imported here that the command line does not need.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.e2e.inprocess import parse_in_process
from tests.forking import forking

import afresh.crawl.worker
from afresh.cli import main
from afresh.ops.failpoints import VARIABLE

TIMEOUT = 60  # seconds until a life that should end is taken for hung


def start(
    store: Path, url: str, mode: str, failpoints: str = "", flags: Mapping[str, object] | None = None, *, at: int = 0
) -> BaseProcess:
    """Begin a crawl or refresh of the source `docs` in a process of its own, some minutes from now."""
    from tests.e2e.library import url_of

    given = {"store.url": url_of(store), **(flags or {})}
    process = forking().Process(target=_live, args=(store, url, mode, failpoints, given, at))
    process.start()
    return process


def live(
    store: Path, url: str, mode: str, failpoints: str = "", flags: Mapping[str, object] | None = None, *, at: int = 0
) -> int:
    """Crawl or refresh to the end, whatever that is: the exit code, negative for a signal."""
    return ended(start(store, url, mode, failpoints, flags, at=at))


def ended(process: BaseProcess) -> int:
    """The exit code of a life that is over."""
    process.join(TIMEOUT)
    if process.exitcode is None:
        process.kill()
        raise AssertionError(f"the process did not end in {TIMEOUT} s")
    return process.exitcode


def _live(store: Path, url: str, mode: str, failpoints: str, flags: dict[str, object], at: int) -> None:
    os.environ[VARIABLE] = failpoints
    parse_in_process()
    sys.exit(asyncio.run(_run(store, url, mode, flags, at)))


async def _run(store: Path, url: str, mode: str, flags: dict[str, object], at: int) -> int:
    from tests.e2e.library import opened

    async with opened(store, flags, clock=lambda: datetime.now(UTC) + timedelta(minutes=at)) as kb:
        if mode == "reindex":
            [made] = await kb.search.reindex()
            return 0 if made.state == "completed" else 1
        if mode == "confirm":
            report = await kb.runs.confirm(int(url))
        elif mode == "crawl":
            report = await kb.runs.crawl(url, name="docs")
        else:
            [report] = await kb.runs.refresh(["docs"], full=mode == "full")
        return 0 if report.state in ("completed", "needs_confirmation") else 1


def command() -> int:
    """Do what the command line says; the exit code."""
    if os.environ.get("IN_PROCESS"):
        parse_in_process()
    if grace := os.environ.get("GRACE"):
        vars(afresh.crawl.worker)["STOP_GRACE_SECONDS"] = float(grace)
    return main()


if __name__ == "__main__":
    raise SystemExit(command())
