"""`python -m bench.guard`: fails when a fixed crawl takes more work than pinned; `--pin` pins what it takes now.

It counts function calls, SQL statements, processes, modules and bytes, which a busy machine does not change.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import measure, synthetic
from bench.corpus import Corpus, Origin, prepare
from bench.counting import ROOT, counted, counting
from bench.failure import BenchFailure
from bench.servers import serving
from bench.subject import AT_ONCE, environment

PINNED = Path(__file__).with_name("ceilings.json")
ROOM = 1.05  # threads and batches vary a little
ROOM_OF_FEW = 0.2  # for figures near zero
PINNED_RUNS = 3
ROOM_ON_OTHER_PYTHONS = 1.25
SMALL, LARGE = 10, 100  # pages of the sites
PYTHON = "{}.{}".format(*sys.version_info)
Figures = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare with the ceilings, or write them; 1 if a ceiling is passed twice in a row."""
    parser = argparse.ArgumentParser(prog="python -m bench.guard", description=__doc__)
    parser.add_argument("--pin", action="store_true", help=f"write bench/{PINNED.name}")
    given = parser.parse_args(arguments)
    try:
        if given.pin:
            pin()
            return 0
        pinned = json.loads(PINNED.read_text("utf-8"))
        found = work()
        if passed(found, pinned):
            again = work()
            found = {name: min(number, again[name]) for name, number in found.items()}
    except BenchFailure as failure:
        print(f"guard: {failure}", file=sys.stderr)
        return 1
    print(*table(found, pinned), sep="\n")
    return 1 if passed(found, pinned) else 0


def pin() -> None:
    """Write the most of a few measurements."""
    every = [work() for _ in range(PINNED_RUNS)]
    most = {name: max(each[name] for each in every) for name in every[0]}
    PINNED.write_text(json.dumps({"python": PYTHON, "pinned": most}, indent=2) + "\n", "utf-8")


def ceilings(pinned: Mapping[str, object]) -> Figures:
    """Return the most that each figure may be."""
    room = ROOM if pinned["python"] == PYTHON else ROOM_ON_OTHER_PYTHONS
    figures: Figures = pinned["pinned"]  # type: ignore[assignment]
    return {name: n if name.endswith("processes") else n * room + ROOM_OF_FEW for name, n in figures.items()}


def passed(found: Figures, pinned: Mapping[str, object]) -> list[str]:
    """Return the figures above their ceiling, and those that have none."""
    allowed = ceilings(pinned)
    return [name for name, number in found.items() if number > allowed.get(name, -1)]


def table(found: Figures, pinned: Mapping[str, object]) -> list[str]:
    """Return one line for each figure, and what to do if one is too high."""
    allowed, above = ceilings(pinned), passed(found, pinned)
    lines = [
        f"{name:40} {number:>10,.1f}  at most {allowed.get(name, 0):>10,.1f}{'  TOO MUCH' * (name in above)}"
        for name, number in found.items()
    ]
    if above:
        lines.append("The work has grown. Make it less; if it has to be, run `make guard ARGS=--pin` and say why.")
    return lines


def work() -> Figures:
    """Return what start-up, a first crawl, a refresh of unchanged pages and a search take."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = (_Site(Path(folder) / str(pages), pages) for pages in (SMALL, LARGE))
        small.play()
        large.play()
        figures = {"version: modules": modules("--version"), "version: calls": float(large.run("version")["calls"])}
        figures["search: modules"] = modules("search", "lease", "--store", large.store, env=large.environment)
        found = large.run("search", "expired lease", "--store", large.store)
        figures |= {"search: calls": float(found["calls"]), "search: statements": float(found["statements"])}
        for name in ("crawl", "refresh"):
            for kind in ("calls", "statements"):
                figures[f"{name}: {kind} a page"] = _each(large.counts[name][kind] - small.counts[name][kind])
            figures[f"{name}: processes"] = float(large.counts[name]["processes"])
        figures["store: bytes a page"] = _each(large.size - small.size)
    return figures


def _each(more: int) -> float:
    """Return the share of each page that the large site has more."""
    return round(more / (LARGE - SMALL), 2)


class _Site:
    """A made-up site, and afresh with a store of its own."""

    def __init__(self, work: Path, pages: int) -> None:
        self.work = work
        self.pages = pages
        work.mkdir(parents=True)
        self.file = work / "store.db"
        self.store = f"sqlite:///{self.file}"
        self.environment = environment(work)
        self.counts: dict[str, dict[str, int]] = {}
        self.size = 0

    def play(self) -> None:
        """Crawl and refresh."""
        corpus = prepare(Origin("made-up", synthetic.fill_with(self.pages), "lease", self.pages), self.work)
        corpus.reset()
        with serving(self.work, None) as server:
            self._crawl(corpus, server.base)

    def _crawl(self, corpus: Corpus, base: str) -> None:
        options = ("--name", corpus.name, "--concurrency", str(AT_ONCE), "--store", self.store)
        self.run("crawl", corpus.start(base), *options)
        self.size = self.file.stat().st_size
        self.run("refresh", "--store", self.store)

    def run(self, command: str, *arguments: str) -> dict[str, int]:
        """Run a command and return its counts."""
        folder = self.work / "counts" / command
        program = [str(Path(sys.executable).parent / "afresh"), command if command != "version" else "--version"]
        env = {**self.environment, **counting(folder)}
        cost = measure.run([*program, *arguments], env=env, cwd=self.work, log=self.work / "logs" / command)
        if cost.exit_code:
            raise BenchFailure(f"afresh {command} ended with {cost.exit_code}: {cost.errors or cost.output}")
        self.counts[command] = counted(folder)
        return self.counts[command]


def modules(*arguments: str, env: Mapping[str, str] | None = None) -> float:
    """Return how many modules a command imports, without those of every Python program."""
    code = "import sys; from afresh.cli import main; sys.exit(main(sys.argv[1:]))"
    return float(_imported(code, *arguments, env=env) - _imported("import sys", env=env))


def _imported(code: str, *arguments: str, env: Mapping[str, str] | None) -> int:
    command = [sys.executable, "-X", "importtime", "-c", code, *arguments]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    return sum(line.startswith("import time:") for line in done.stderr.splitlines())


if __name__ == "__main__":
    sys.exit(main())
