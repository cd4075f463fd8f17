"""Peers that can be run now, each in an environment of its own below the work folder."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import measure as measuring
from bench.baseline import plain_environment
from bench.corpus import Corpus
from bench.figures import PHASES, Row
from bench.rounds import Round
from bench.servers import Server

SCRAPY = Path(__file__).with_name("peer_scrapy.py")
PACKAGES = ("scrapy", "markdownify")
LOOK_S = 600


class NoPeer(RuntimeError):
    """A peer could not be installed or did not work."""


def measure(
    corpora: Sequence[Corpus],
    server: Server,
    work: Path,
    played: Mapping[str, Sequence[Round]],
    say: Callable[[str], None],
) -> list[Row]:
    """The figures of the hand-written Scrapy crawler, one round on each corpus."""
    python = _installed(work, say)
    return [
        row for corpus in corpora for row in _rows(corpus, server, work, python, played[corpus.name][-1], say)
    ]


def _rows(
    corpus: Corpus, server: Server, work: Path, python: Path, beside: Round, say: Callable[[str], None]
) -> list[Row]:
    database = work / "stores" / f"{corpus.name}-scrapy.db"
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink()
    corpus.reset()
    rows = []
    for phase in PHASES:
        if phase == "mix":
            corpus.update()
        rows.append(_row(corpus, server, work, [str(python), str(SCRAPY)], database, phase, beside))
        say(f"{corpus.name}, Scrapy: {PHASES[phase]} {rows[-1].wall_s:.2f} s")
    return rows


def _row(
    corpus: Corpus,
    server: Server,
    work: Path,
    program: list[str],
    database: Path,
    phase: str,
    beside: Round,
) -> Row:
    command = [*program, corpus.start(server.base), str(database)]
    cost = measuring.run(command, env=plain_environment(), cwd=work, log=work / "logs" / f"scrapy-{phase}")
    first = min((each.began_at for each in server.log.step(f"{corpus.name}-scrapy-{phase}")), default=0.0)
    if cost.exit_code or not first:
        raise NoPeer(f"the Scrapy crawler failed: {cost.errors[-1000:]}")
    pages, expected = (
        json.loads(cost.output)["pages"],
        len(corpus.mix.after if phase == "mix" else corpus.pages),
    )
    if pages != expected:
        raise NoPeer(f"the Scrapy crawler has {pages} pages where there are {expected}")
    working = cost.wall_s - (first - cost.started_at)
    number = len(corpus.pages)
    per_page = beside.loop.per_page(conditional=phase != "crawl")
    return Row(
        system="Scrapy + markdownify + FTS5, by ETag",
        phase=PHASES[phase],
        corpus=corpus.name,
        pages=number,
        pages_per_s=number / working,
        wall_s=cost.wall_s,
        ratio=working / number / per_page,
        cpu_s=cost.cpu_s,
        rss_mb=cost.rss_mb,
        pss_mb=cost.pss_mb,
    )


def _installed(work: Path, say: Callable[[str], None]) -> Path:
    """The Python of the peers' environment, made when first needed."""
    python = work / "peers" / "bin" / "python"
    if _works([str(python), "-c", "import scrapy, markdownify"]):
        return python
    say(f"installing {' and '.join(PACKAGES)} into {python.parents[1]}")
    made = _works([sys.executable, "-m", "venv", "--clear", str(python.parents[1])])
    if not made or not _works([str(python), "-m", "pip", "install", "-q", *PACKAGES]):
        raise NoPeer(f"{' and '.join(PACKAGES)} could not be installed into {python.parents[1]}")
    return python


def _works(command: list[str]) -> bool:
    try:
        return not subprocess.run(
            command, capture_output=True, check=False, timeout=LOOK_S, env=plain_environment()
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False
