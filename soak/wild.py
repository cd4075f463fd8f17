"""P6: change sites at random, with outages and kills; each index must equal that of a new crawl."""

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.inprocess import parse_in_process
from tests.e2e.wild import wild_life

from afresh.testing import TinySite


def main(arguments: Sequence[str]) -> int:
    """Run one random history per seed; print the seeds for which the index differs."""
    parser = argparse.ArgumentParser(prog="python -m soak wild", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="number of histories")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first")
    given = parser.parse_args(arguments)
    parse_in_process()
    wrong = [seed for seed in range(given.first, given.first + given.seeds) if not _holds(seed)]
    print(f"{given.seeds} lives, {len(wrong)} of them wrong{f', seeds {wrong}' if wrong else ''}")
    return 1 if wrong else 0


def _holds(seed: int) -> bool:
    try:
        with tempfile.TemporaryDirectory() as folder, TinySite() as site:
            asyncio.run(wild_life(Path(folder), site, seed, kills=True))
    except AssertionError as error:
        print(f"seed {seed}: {error}", flush=True)
        return False
    return True
