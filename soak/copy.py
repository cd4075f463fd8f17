"""Copy a store to PostgreSQL and back, with kills: both copies must have the same rows and the same answers.

Reads the documentation of PostgreSQL (the corpus `pg` of the benchmark) or any other folder.
"""

import argparse
import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.packages import ORIGINS
from tests.postgres import running

from afresh.app import build
from afresh.config import load
from afresh.store.copy import tables

QUESTIONS = ("create index concurrently", "vacuum freeze", "logical replication slot", "jsonb operators")
MAX_TRY_SECONDS = 900  # seconds of one try


def main(arguments: Sequence[str]) -> int:
    """Fill a store, copy it both ways with kills, and compare."""
    parser = argparse.ArgumentParser("python -m soak copy", description=__doc__)
    parser.add_argument("--folder", type=Path, help="read this folder instead of the corpus")
    parser.add_argument("--kills", type=int, default=4, help="kill -9 in each direction (default: 4)")
    parser.add_argument("--seed", type=int, default=8)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="afresh-copy-") as folder, running() as postgres:
        work = Path(folder)
        store, back = work / "first.db", work / "back.db"
        _afresh("crawl", str(given.folder or _corpus(work)), "--name", "docs", "--store", f"sqlite:///{store}")
        url = asyncio.run(postgres.emptied())
        chance = random.Random(given.seed)
        for origin, target in ((f"sqlite:///{store}", url), (url, f"sqlite:///{back}")):
            _copy(origin, target, given.kills, chance)
        wrong = _differences(store, back)
        answers = [asyncio.run(_answers(each)) for each in (f"sqlite:///{store}", f"sqlite:///{back}", url)]
    wrong += ["answers of the file that came back"] if answers[0] != answers[1] else []
    wrong += ["answers of PostgreSQL"] if answers[0] != answers[2] else []
    print("the same" if not wrong else f"DIFFERENT: {', '.join(wrong)}")
    return int(bool(wrong))


def _corpus(work: Path) -> Path:
    folder = work / "pages"
    folder.mkdir()
    ORIGINS["pg"].fill(folder)
    return folder


def _start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "afresh", *words, "--quiet"], text=True, env={**os.environ, "TZ": "UTC"}
    )


def _afresh(*words: str) -> None:
    began = time.monotonic()
    code = _start(*words).wait(MAX_TRY_SECONDS)
    print(f"{words[0]}: exit code {code} after {time.monotonic() - began:.1f} s", flush=True)
    if code != 0:
        raise SystemExit(code)


def _copy(origin: str, target: str, kills: int, chance: random.Random) -> None:
    """Kill the copy several times, resume it, and let it end."""
    words = ["copy", origin, target, "--resume"]
    for _ in range(kills):
        process = _start(*words)
        try:
            process.wait(chance.uniform(0.5, 5.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            continue
        if process.returncode != 0:
            raise SystemExit(process.returncode)
        return
    _afresh(*words)


def _differences(one: Path, two: Path) -> list[str]:
    wrong = []
    with closing(sqlite3.connect(one)) as first, closing(sqlite3.connect(two)) as second:
        for table in tables():
            sql = f"select {table.listed} from {table.name} order by {', '.join(table.key)}"
            here, there = (each.execute(sql).fetchall() for each in (first, second))
            print(f"{table.name:12} {len(here):9,} rows")
            if _without_nul(here) != there:
                wrong.append(table.name)
    return wrong


def _without_nul(rows: Sequence[Sequence[object]]) -> list[tuple[object, ...]]:
    return [tuple(v.replace("\0", "") if isinstance(v, str) else v for v in row) for row in rows]


async def _answers(url: str) -> list[object]:
    """Return the results of a semantic search, which do not depend on the database."""
    kb = await build(load(None, {}, {"store.url": url}, Path.cwd()))
    try:
        found = [await kb.search.search(question, mode="vector", limit=5) for question in QUESTIONS]
        return [[hit.url for hit in answer.hits] for answer in found]
    finally:
        await kb.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
