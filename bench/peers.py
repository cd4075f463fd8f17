"""Peers that can be run now, each in an environment of its own below the work folder."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import baseline
from bench import measure as measuring
from bench.baseline import plain_environment
from bench.corpus import Corpus
from bench.failure import BenchFailure
from bench.figures import PHASES, Row
from bench.measure import Cost
from bench.rounds import Setting

SCRAPY = Path(__file__).with_name("peer_scrapy.py")
PACKAGES = ("scrapy", "markdownify")
INSTALL_S = 600


def measure(corpora: Sequence[Corpus], setting: Setting) -> list[Row]:
    """The figures of the hand-written Scrapy crawler, one round on each corpus."""
    python = _installed(setting.work, setting.say)
    return [row for corpus in corpora for row in _Play(corpus, setting, python).all()]


class _Play:
    def __init__(self, corpus: Corpus, setting: Setting, python: Path) -> None:
        self.corpus = corpus
        self.setting = setting
        self.base = setting.server.base
        self.database = setting.work / "stores" / f"{corpus.name}-scrapy.db"
        self.command = [str(python), str(SCRAPY), corpus.start(self.base), str(self.database)]

    def all(self) -> list[Row]:
        for path in self.database.parent.glob(f"{self.database.name}*"):
            path.unlink()
        self.corpus.reset()
        loop = baseline.measure([self.corpus.url(self.base, page) for page in self.corpus.pages])
        self._first_request("scrapy-loop")
        return [self._row(phase, loop) for phase in PHASES]

    def _row(self, phase: str, loop: baseline.Loop) -> Row:
        if phase == "mix":
            self.corpus.update()
        cost = self._run(phase)
        pages = len(self.corpus.pages)
        working = cost.wall_s - (self._first_request(f"scrapy-{phase}") - cost.started_at)
        self.setting.say(f"{self.corpus.name}, Scrapy: {PHASES[phase]} {cost.wall_s:.2f} s")
        return Row(
            system="Scrapy + markdownify + FTS5, by ETag",
            phase=PHASES[phase],
            corpus=self.corpus.name,
            pages=pages,
            pages_per_s=pages / working,
            wall_s=cost.wall_s,
            ratio=working / pages / loop.per_page(conditional=phase != "crawl"),
            cpu_s=cost.cpu_s,
            rss_mb=cost.rss_mb,
            pss_mb=cost.pss_mb,
        )

    def _run(self, phase: str) -> Cost:
        work = self.setting.work
        log = work / "logs" / f"scrapy-{phase}"
        cost = measuring.run(self.command, env=plain_environment(), cwd=work, log=log)
        if cost.exit_code:
            raise BenchFailure(f"the Scrapy crawler failed: {cost.errors[-1000:]}")
        pages = json.loads(cost.output)["pages"]
        expected = len(self.corpus.mix.after if phase == "mix" else self.corpus.pages)
        if pages != expected:
            raise BenchFailure(f"the Scrapy crawler has {pages} pages where there are {expected}")
        return cost

    def _first_request(self, step: str) -> float:
        requests = self.setting.server.log.step(f"{self.corpus.name}-{step}")
        return min(each.began_at for each in requests)


def _installed(work: Path, say: Callable[[str], None]) -> Path:
    """The Python of the peers' environment, made when first needed."""
    python = work / "peers" / "bin" / "python"
    if _works([str(python), "-c", "import scrapy, markdownify"]):
        return python
    say(f"installing {' and '.join(PACKAGES)} into {python.parents[1]}")
    made = _works([sys.executable, "-m", "venv", "--clear", str(python.parents[1])])
    if not made or not _works([str(python), "-m", "pip", "install", "-q", *PACKAGES]):
        raise BenchFailure(f"{' and '.join(PACKAGES)} could not be installed into {python.parents[1]}")
    return python


def _works(command: list[str]) -> bool:
    try:
        return not subprocess.run(command, capture_output=True, check=False, timeout=INSTALL_S).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False
