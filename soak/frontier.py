"""P11: check that memory stays small with very many URLs in the queue."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from soak.gauge import MB, Gauge, crawl
from soak.site import generated

HUBS = 100
LOOKS = 2_000  # pages that are read while all the others wait


def main(arguments: Sequence[str]) -> int:
    """Queue generated URLs, crawl some of them, and print the memory; return 1 if it is above the limit."""
    parser = argparse.ArgumentParser(prog="python -m soak frontier", description=__doc__)
    parser.add_argument("--urls", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=8, help="concurrent checks")
    parser.add_argument("--megabytes", type=float, default=300.0, help="memory limit of the process")
    given = parser.parse_args(arguments)
    looks = min(LOOKS, given.urls // 10)
    gauge = Gauge(every=max(1, looks // 10), enough=lambda sample: sample.done > HUBS + looks)
    with tempfile.TemporaryDirectory() as folder, generated(0, given.urls // HUBS, HUBS) as url:
        crawl(Path(folder) / "soak.db", url, gauge, given.workers, 2 * given.urls)
    queued = max(sample.queued for sample in gauge.samples)
    largest = max(sample.rss for sample in gauge.samples) / MB
    readers = max(sample.children for sample in gauge.samples) / MB
    print(f"{queued} addresses queued, {largest:.0f} MB (and {readers:.0f} MB in processes that read pages)")
    if queued < given.urls * 0.9 or largest >= given.megabytes:
        print(f"breach: {given.urls} addresses were to wait in less than {given.megabytes:.0f} MB")
        return 1
    return 0
