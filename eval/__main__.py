"""`python -m eval`: scores search and link scores on labelled sets; exit code 1 when a floor is broken."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from eval.floors import misses, raised, read, record
from eval.links import LINKS, link_misses, links_as_json, measure_links
from eval.measure import FAST, Measured, measure
from eval.sets import HERE, NAMES, load
from eval.show import as_json, show, show_links

SHARED = Path(os.environ.get("AFRESH_SHARED") or HERE.parents[1] / "shared")
WIDTH = 110


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and compare with the floors."""
    given = _parser().parse_args(arguments)
    names = NAMES if given.set == "all" else tuple(name for name in NAMES if name == given.set)
    measured = [_measured(name, given.model, given.store) for name in names]
    links = asyncio.run(measure_links()) if given.set in (LINKS, "all") else []
    if given.json:
        sets = [as_json(each) for each in measured] + ([links_as_json(links)] if links else [])
        print(json.dumps(sets, indent=2))
    else:
        console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
        show(measured, console, given.worst)
        show_links(links, console)
    floors = read()
    if given.why:
        for each in measured:
            floors = raised(floors, each)
        record(floors, given.why, datetime.now(UTC).date())
    broken = [miss for each in measured for miss in misses(each, floors)] + list(link_misses(links))
    print(*broken, sep="\n", file=sys.stderr, end="\n" if broken else "")
    return 1 if broken else 0


def _measured(name: str, model: str, store: str) -> Measured:
    print(f"· {name}", file=sys.stderr, flush=True)
    with TemporaryDirectory(prefix="afresh-eval-") as folder:
        if store == "sqlite":
            return asyncio.run(measure(load(name, SHARED), Path(folder), model))
        from tests.postgres import running

        with running() as server:
            url = asyncio.run(server.emptied())
            return asyncio.run(measure(load(name, SHARED), Path(folder), model, {"store.url": url}))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m eval",
        description="Scores search on questions with known answers and link scores on labelled links.",
        epilog="Exit code 1: a score is below its floor, or its floor should be raised.",
    )
    add = parser.add_argument
    add("--set", choices=(*NAMES, LINKS, "all"), default="all", help="which set (default: all)")
    add("--model", default=FAST, metavar="NAME", help="the local model: fast or quality (default: fast)")
    add("--store", choices=("sqlite", "postgres"), default="sqlite", help="where (default: sqlite)")
    add("--json", action="store_true", help="one JSON document instead of tables")
    add("--worst", type=int, default=0, metavar="N", help="also show the N questions that are answered worst")
    add("--raise", dest="why", metavar="WHY", help="move the floors up to what is measured, for this reason")
    return parser


if __name__ == "__main__":
    sys.exit(main())
