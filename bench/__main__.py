"""`python -m bench`: measures afresh and says whether what it measured was right."""

import json
import sys
from collections.abc import Sequence

from rich.console import Console

from bench import options, profiling
from bench.failure import BenchFailure
from bench.published import RESULTS
from bench.results import Results
from bench.session import Bench
from bench.show import show

WIDTH = 140


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when every result was right, 1 when one was wrong or could not be had."""
    given = options.read(arguments)
    bench = Bench(given, say=lambda text: print(f"· {text}", file=sys.stderr, flush=True))
    try:
        if given.profile:
            with bench.sites() as (server, corpora):
                print(profiling.profile(given.profile, corpora[0], server, given.work))
            return 0
        results = bench.measure()
    except BenchFailure as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if given.json:
        print(json.dumps(results.as_json(), indent=2))
    else:
        show(results, Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False))
    if given.is_full and results.right:
        print(publish(results), file=sys.stderr)
    return 0 if results.right else 1


def publish(results: Results) -> str:
    """Write the figures that the documentation shows, and say what to do next."""
    if results.commit is None:
        return f"bench/{RESULTS.name} stays: src differs from the last commit, so nobody could repeat the figures"
    if results.server != "nginx":
        return f"bench/{RESULTS.name} stays: these are not the real sites"
    RESULTS.write_text(json.dumps(results.summary(), indent=2) + "\n", "utf-8")
    return f"wrote bench/{RESULTS.name}; now run: python scripts/reference.py"


if __name__ == "__main__":
    sys.exit(main())
