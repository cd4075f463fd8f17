"""afresh as its users run it: the installed command, a store in a file, answers as JSON."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import measure
from bench.baseline import plain_environment
from bench.failure import BenchFailure

AT_ONCE = 32
PROFILED = Path(__file__).with_name("profiled.py")


@dataclass(frozen=True)
class Answer:
    """What a command said and what it cost."""

    cost: measure.Cost
    value: Any

    def count(self, key: str) -> int:
        """A number of a report."""
        return int(self.value.get(key) or 0)


class Afresh:
    """The command line, with a store and a home of its own."""

    def __init__(self, work: Path, store: Path, profile: Path | None = None) -> None:
        self._work = work
        self._store = store
        program = [str(Path(sys.executable).parent / "afresh")]
        self._program = [sys.executable, str(PROFILED), str(profile)] if profile else program
        self._env = environment(work)

    def forget(self) -> None:
        """Start with an empty store."""
        for path in self._store.parent.glob(f"{self._store.name}*"):
            path.unlink()

    def crawl(self, url: str, name: str) -> Answer:
        """First crawl, or look again, as the store has it."""
        # More than any corpus has, so that the limit of pages plays no part.
        limits = ["--concurrency", str(AT_ONCE), "--max-pages", "100000"]
        return self.ask("crawl", url, "--name", name, *limits)

    def refresh(self) -> Answer:
        """Look again at everything in the store."""
        return self.ask("refresh")

    def search(self, query: str, limit: int = 10, mode: str = "hybrid") -> Answer:
        """Search, once."""
        return self.ask("search", query, "--limit", str(limit), "--mode", mode)

    def pages(self, name: str) -> Answer:
        """The pages in the index."""
        return self.ask("pages", name)

    def version(self) -> measure.Cost:
        """The command that does least."""
        return self._run("version", "--version")

    def ask(self, command: str, *arguments: str) -> Answer:
        """Run a command and read its JSON."""
        self._store.parent.mkdir(parents=True, exist_ok=True)
        cost = self._run(command, command, *arguments, "--store", f"sqlite:///{self._store}", "--json")
        try:
            value = json.loads(cost.output)
        except ValueError:
            value = None
        # A run that failed still reports; any other command that failed has nothing to tell.
        if value is None or (cost.exit_code and "state" not in value):
            message = (cost.errors or cost.output).strip()[-2000:]
            raise BenchFailure(f"afresh {command} ended with {cost.exit_code} and said: {message}")
        return Answer(cost, value)

    def _run(self, log: str, *arguments: str) -> measure.Cost:
        command = [*self._program, *arguments]
        return measure.run(command, env=self._env, cwd=self._work, log=self._work / "logs" / log)


def environment(work: Path) -> Mapping[str, str]:
    """Loopback allowed, an empty home, and nothing else of ours."""
    home = work / "home"
    home.mkdir(parents=True, exist_ok=True)
    own = {"AFRESH_NETWORK__ALLOW": "127.0.0.1/32", "HOME": str(home), "NO_COLOR": "1"}
    folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
    return plain_environment() | own | folders
