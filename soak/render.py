"""Render many pages in one crawl: the memory of the browser must not grow, and no process may be left."""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from tests.fakes.script_site import ScriptSite

from afresh.app import build
from afresh.config import load
from afresh.events import Event, Progress
from afresh.model.reports import RunReport
from soak.gauge import MB


class BrowserGauge:
    """Records the memory of the browser processes during a crawl."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []  # pages done, bytes

    def on_event(self, event: Event) -> None:
        """Record a sample."""
        if isinstance(event, Progress) and (size := sum(each for each in _sizes())):
            self.sizes.append((event.done, size))

    def median(self, first: int, last: int) -> float:
        """Return the memory of the browser in MB while a range of pages was processed."""
        return statistics.median(size for done, size in self.sizes if first <= done <= last) / MB


def _sizes() -> list[int]:
    sizes = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "chrom" in process.name():
                sizes.append(process.memory_info().rss)
    return sizes


def main(arguments: Sequence[str]) -> int:
    """Crawl a site that needs JavaScript; compare the browser late in the crawl with an early sample."""
    parser = argparse.ArgumentParser(prog="python -m soak render", description=__doc__)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--growth", type=float, default=15.0, help="percent that memory may grow")
    given = parser.parse_args(arguments)
    gauge, began, cpu = BrowserGauge(), time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as folder, ScriptSite.guide(given.pages) as site:
        report = asyncio.run(_crawl(Path(folder) / "soak.db", site.url, gauge))
    seconds = time.monotonic() - began
    early = gauge.median(given.pages // 10, given.pages // 2)
    late = gauge.median(given.pages // 2 + 1, given.pages)
    grown = 100 * (late - early) / early
    own = time.process_time() - cpu
    print(f"{report.rendered} pages shown in {seconds:.0f} s ({own:.0f} s of CPU in afresh itself)")
    print(f"browser: {early:.0f} MB in the first half, {late:.0f} MB in the second: {grown:+.1f} %")
    breaches = [f"memory grew by {grown:.1f} %"] if grown >= given.growth else []
    if report.rendered != given.pages:
        breaches.append(f"{report.rendered} pages were shown instead of {given.pages}")
    if left := _sizes():
        breaches.append(f"{len(left)} processes are left")
    print("\n".join(f"breach: {breach}" for breach in breaches) or "flat, and nothing is left")
    return 1 if breaches else 0


async def _crawl(store: Path, url: str, gauge: BrowserGauge) -> RunReport:
    flags = {
        "store.url": f"sqlite:///{store}",
        "network.allow": ["127.0.0.1/32"],
        "crawl.render": "auto",
        "crawl.probe": False,
        "crawl.max_per_pattern": None,
    }
    kb = await build(load(None, {}, flags, store.parent))
    try:
        return await kb.runs.crawl(url, name="soak", listener=gauge.on_event)
    finally:
        await kb.close()
