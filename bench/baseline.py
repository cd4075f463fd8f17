"""Runs the bare loop in a process of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.failure import BenchFailure

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Pass:
    """One pass over all pages."""

    wall_s: float
    cpu_s: float
    statuses: dict[str, int]


@dataclass(frozen=True)
class Loop:
    """What the bare loop needed, pass by pass."""

    pages: int
    get: tuple[Pass, ...]
    conditional: tuple[Pass, ...]
    rss_mb: float

    def __add__(self, other: "Loop") -> "Loop":
        passes = (self.get + other.get, self.conditional + other.conditional)
        return Loop(self.pages, *passes, max(self.rss_mb, other.rss_mb))

    def passes(self, *, conditional: bool) -> tuple[Pass, ...]:
        """The passes of one kind."""
        return self.conditional if conditional else self.get

    def per_page(self, *, conditional: bool) -> float:
        """Seconds per page of the median pass."""
        return median(each.wall_s for each in self.passes(conditional=conditional)) / self.pages


def measure(urls: list[str]) -> Loop:
    """Fetch the pages with the bare loop."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.bare_loop"],
        input=json.dumps(urls),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=plain_environment(),
        check=False,
    )
    if done.returncode:
        raise BenchFailure(f"the bare loop failed: {done.stderr[-1000:]}")
    report = json.loads(done.stdout)
    get, conditional = (tuple(Pass(**each) for each in report[kind]) for kind in ("get", "conditional"))
    return Loop(len(urls), get, conditional, report["rss_mb"])


def plain_environment() -> dict[str, str]:
    """Our environment without what would change the programs that are measured."""
    skipped = ("AFRESH_", "PYTHON", "COLUMNS", "FORCE_COLOR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(skipped)}
