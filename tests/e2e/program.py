"""The command line in processes of its own, and a site that kills them at a given moment."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.forked import Forked
from tests.e2e.library import rows, url_of
from tests.e2e.sites import SERVICE, BusySite

from afresh.ops.failpoints import VARIABLE

if TYPE_CHECKING:
    from aiohttp import web

SETTINGS = """\
store: {{url: "{url}"}}
network: {{allow: ["127.0.0.1/32"]}}
crawl: {{probe: false}}
policy: {{backoff_base_seconds: 0.01, backoff_max_seconds: 0.02}}
"""
ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 30  # seconds until a process that should end is taken for hung


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> Any:
        """What it answered with --json."""
        return json.loads(self.out)


class Program:
    """Runs `afresh` on one store; `in_process` spares it the start of processes that read pages.

    `grace` are the seconds that pages under way have after a stop, if not the usual ones.
    """

    def __init__(
        self, store: Path, *, in_process: bool = False, url: str | None = None, grace: float | None = None
    ) -> None:
        self.store = store
        self.grace = "" if grace is None else str(grace)
        self.in_process = "1" if in_process else ""
        self.file = store.with_suffix(".yaml")
        self.file.write_text(SETTINGS.format(url=url or url_of(store)))

    def start(self, *words: str, failpoints: str = "") -> subprocess.Popen[str]:
        """Start a command."""
        environment = {**os.environ, **self.environment(), VARIABLE: failpoints}
        return Forked([*words, "--config", str(self.file)], environment, ROOT)

    def environment(self) -> dict[str, str]:
        """What a process of this program needs to know."""
        path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
        return {"IN_PROCESS": self.in_process, "GRACE": self.grace, "PYTHONPATH": path}

    def run(self, *words: str, failpoints: str = "") -> Ended:
        """Run a command to its end."""
        return ended(self.start(*words, failpoints=failpoints))


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for the end of a command."""
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"the command did not end in {TIMEOUT} s:\n{out}\n{err}") from None
    return Ended(process.returncode, out, err)


class DeadlySite(BusySite):
    """A site that kills the process it is read by, at a moment that pages asked for and written define."""

    victim: subprocess.Popen[str] | None = None
    store: Path | None = None
    free = 0  # pages it still answers
    wanted = 0  # pages that have to be written before the end
    last_words: Callable[[], object] = staticmethod(lambda: None)

    def aim(
        self,
        victim: subprocess.Popen[str],
        store: Path,
        free: int,
        written: int = 0,
        last_words: Callable[[], object] = lambda: None,
    ) -> None:
        """Answer some pages, let the others wait until so many are written, then kill."""
        self.free, self.wanted, self.last_words = free, committed(store) + written, last_words
        self.store, self.victim = store, victim

    async def _respond(self, request: "web.BaseRequest") -> "web.StreamResponse":
        again = request.path_qs == "/" and bool(self.store and committed(self.store))  # a resumed run's root
        if self.victim is not None and request.path_qs not in SERVICE and not again:
            self.free -= 1
            if self.free < 0:
                await self._kill()
        return await super()._respond(request)

    async def _kill(self) -> None:
        while self.store and committed(self.store) < self.wanted:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.005)
        victim, self.victim = self.victim, None
        if victim is not None:
            self.last_words()
            victim.send_signal(signal.SIGKILL)


def committed(store: Path) -> int:
    """How many pages have been written so far."""
    if url_of(store).startswith("sqlite") and not (
        store.exists() and rows(store, "select 1 from sqlite_master where name = 'pages'")
    ):
        return 0
    return int(rows(store, "select count(*) from pages where content_hash is not null")[0][0])
