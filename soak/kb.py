"""Measure an update of a large knowledge base in which nothing has changed."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from afresh.testing import TinySite

PER_FOLDER = 100
MOST_SECONDS = 2.0  # of CPU
MOST_BYTES = 200 * 2**20
SETTINGS = """\
store: {{url: "sqlite:///{place}/kb.db"}}
network: {{allow: ["127.0.0.1/32"]}}
crawl: {{concurrency: 8}}
embedding: {{provider: none}}
kb: {{sources_dir: notes, links_file_path: links.txt, url_refresh_budget_per_init: 100000}}
"""


def main(arguments: Sequence[str]) -> int:
    """Create files and links, update once, and update again without changes."""
    parser = argparse.ArgumentParser(prog="python -m soak kb", description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--links", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made, TinySite() as site:
        place = Path(made)
        _grow(place, site, given.files, given.links)
        print("first: {:.1f} s of CPU, {:.0f} MB, {:.1f} s".format(*_updated(place)))
        rounds = [_updated(place) for _ in range(given.rounds)]
        asked = len(site.requests)
    cpu, room, _ = (min(each) for each in zip(*rounds, strict=True))
    print(f"unchanged: {cpu:.2f} s of CPU, {room:.0f} MB, {min(each[2] for each in rounds):.2f} s")
    fine = cpu <= MOST_SECONDS and room * 2**20 <= MOST_BYTES
    print(f"{asked} requests in all; {'as expected' if fine else 'breach'}")
    return int(not fine)


def _grow(place: Path, site: TinySite, files: int, links: int) -> None:
    (place / "settings.yaml").write_text(SETTINGS.format(place=place))
    for number in range(files):
        folder = place / "notes" / f"folder{number // PER_FOLDER}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"note{number}.md").write_text(f"# Note {number}\n\nWhat there is to say of {number}.\n")
    for number in range(links):
        site.put(f"/{number}", f"<title>{number}</title><body><p>What there is to say of {number}.</p>")
    (place / "links.txt").write_text("".join(f"{site.at(f'/{number}')}\n" for number in range(links)))


def _updated(place: Path) -> tuple[float, float, float]:
    """Run one update in a new process; return CPU seconds, megabytes and seconds, with its child processes."""
    program = [sys.executable, "-m", "afresh", "init-kb", "--quiet", "--config", str(place / "settings.yaml")]
    begun = time.perf_counter()
    compiled = {"PYTHONPYCACHEPREFIX": str(place / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}  # as installed
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, env={**os.environ, **compiled})
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the update ended with {process.returncode}")
    scale = 1 if sys.platform == "darwin" else 1024
    return used.ru_utime + used.ru_stime, used.ru_maxrss * scale / 2**20, time.perf_counter() - begun
