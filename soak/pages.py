"""F112: check that memory, file descriptors and threads do not grow in a crawl of many pages."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from soak.gauge import MB, Gauge, Sample, crawl
from soak.site import generated

CONNECTIONS = 4  # that may be open or not when a sample is taken


def main(arguments: Sequence[str]) -> int:
    """Crawl generated pages; compare the process late in the crawl with an early sample."""
    parser = argparse.ArgumentParser(prog="python -m soak pages", description=__doc__)
    parser.add_argument("--pages", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=8, help="concurrent checks")
    parser.add_argument("--growth", type=float, default=5.0, help="percent that memory may grow")
    given = parser.parse_args(arguments)
    gauge = Gauge(every=max(1, given.pages // 25))
    with tempfile.TemporaryDirectory() as folder, generated(given.pages, 10) as url:
        report, seconds = crawl(Path(folder) / "soak.db", url, gauge, given.workers, given.pages)
    early, late = gauge.at(given.pages // 5), gauge.samples[-1]
    print(f"{report.new} pages in {seconds:.0f} s: {report.new / seconds:.0f} pages/s, {report.state}")
    breaches = breaches_of(early, late, given.growth)
    if report.new != given.pages:
        breaches.append(f"{report.new} pages were read instead of {given.pages}")
    print("\n".join(f"breach: {breach}" for breach in breaches) or "flat")
    return 1 if breaches else 0


def breaches_of(early: Sample, late: Sample, growth: float) -> list[str]:
    """Return what grew more than allowed between two samples."""
    grown = 100 * (late.rss - early.rss) / early.rss
    before, after = early.rss / MB, late.rss / MB
    print(f"{before:.1f} MB at {early.done} pages, {after:.1f} MB at {late.done}: {grown:+.1f} %")
    breaches = [f"memory grew by {grown:.1f} %"] if grown >= growth else []
    if late.fds > early.fds + CONNECTIONS:
        breaches.append(f"file descriptors: {early.fds}, then {late.fds}")
    if late.threads > early.threads:
        breaches.append(f"threads: {early.threads}, then {late.threads}")
    return breaches
