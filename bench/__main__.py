"""`python -m bench`: measures afresh and says whether what it measured was right."""

import json
import sys
from collections.abc import Sequence

from rich.console import Console

from bench import options, profiling
from bench.failure import BenchFailure
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
    return 0 if results.right else 1


if __name__ == "__main__":
    sys.exit(main())
