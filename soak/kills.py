"""F09: kill crawls at random moments; the index must equal that of a crawl without kills."""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.fakes.killer import Killer
from tests.fakes.state import faults_in, index_of

from afresh.ops.failpoints import VARIABLE
from soak.site import folder, generated

PAGES = 1_200
SETTINGS = 'store: {{url: "sqlite:///{store}"}}\nnetwork: {{allow: ["127.0.0.1/32"]}}\n'
AFRESH = [sys.executable, "-c", "from afresh.cli import main; raise SystemExit(main())"]


class Life:
    """One run of the command line."""

    def __init__(self, store: Path, words: Sequence[str], failpoints: str = "") -> None:
        settings = store.with_suffix(".yaml")
        settings.write_text(SETTINGS.format(store=store))
        command = [*AFRESH, *words, "--quiet", "--config", str(settings)]
        environment = {**os.environ, VARIABLE: failpoints}
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the process, for a limited time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    @property
    def exitcode(self) -> int | None:
        """Return the exit code; None while the process runs."""
        return self._process.poll()


def main(arguments: Sequence[str]) -> int:
    """Crawl with kills, then compare the index with that of a crawl without kills."""
    parser = argparse.ArgumentParser(prog="python -m soak kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--site", help="a URL or a folder of HTML files (default: generated pages)")
    parser.add_argument("--pages", type=int, default=PAGES, help="number of generated pages")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    given = parser.parse_args(arguments)
    killer = Killer(seed=given.seed, seconds=3.0, hits=120)
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as work, _site(given.site, given.pages) as url:
        clean, killed = Path(work) / "clean.db", Path(work) / "killed.db"
        began = time.monotonic()
        _whole(clean, ["crawl", url, "--name", "docs"])
        print(f"clean crawl: {len(index_of(clean))} pages in {time.monotonic() - began:.0f} s", flush=True)
        wrong = _strike(killer, killed, clean, url, given.kills)
        _whole(killed, ["crawl", url, "--name", "docs"])
        wrong += _differences(killed, clean)
    print(f"{killer.kills} kills in {killer.survived + 1} crawls")
    print("\n".join(f"breach: {each}" for each in wrong) or "each ended like the clean one")
    return 1 if wrong else 0


def _strike(killer: Killer, killed: Path, clean: Path, url: str, kills: int) -> list[str]:
    """Start crawls and kill them; compare each crawl that ends, and start the next one."""
    wrong: list[str] = []
    while killer.kills < kills and not wrong:
        if not killer.strike(partial(Life, killed, ["crawl", url, "--name", "docs"])):
            wrong = _differences(killed, clean)
            for file in killed.parent.glob("killed.db*"):
                file.unlink()
        elif killer.kills % 20 == 0:
            wrong = faults_in(killed, stable=False)
            print(f"{killer.kills:>5} kills, {len(index_of(killed))} pages of this crawl", flush=True)
    return wrong


def _differences(killed: Path, clean: Path) -> list[str]:
    one, other = index_of(killed), index_of(clean)
    wrong = [f"{url} differs" for url in sorted({*one, *other}) if one.get(url) != other.get(url)]
    return [*wrong[:20], *faults_in(killed)]


def _whole(store: Path, words: Sequence[str]) -> None:
    life = Life(store, words)
    life.join()
    if life.exitcode != 0:
        raise SystemExit(f"soak: `afresh {' '.join(words)}` ended with {life.exitcode}")


@contextmanager
def _site(named: str | None, pages: int) -> Iterator[str]:
    if named and "://" in named:
        yield named
        return
    with folder(Path(named)) if named else generated(pages, 10) as url:
        yield url
