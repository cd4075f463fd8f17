"""Record memory, file descriptors and threads during a crawl in this process."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from afresh.app import build
from afresh.config import load
from afresh.events import Event, Progress
from afresh.model.reports import RunReport

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process used when a number of pages was done."""

    done: int
    queued: int
    rss: int  # bytes of this process
    children: int  # bytes of the processes that read pages
    fds: int
    threads: int


@dataclass
class Gauge:
    """Listens to a crawl and records a sample every few pages."""

    every: int
    write_line: Callable[[str], None] = print
    enough: Callable[[Sample], bool] = lambda sample: False
    stop: Callable[[], None] = lambda: None
    samples: list[Sample] = field(default_factory=list)

    def on_event(self, event: Event) -> None:
        """Record a sample if enough pages were done since the last one."""
        if not isinstance(event, Progress) or event.done < self._next:
            return
        me = psutil.Process()
        children = sum(child.memory_info().rss for child in me.children() if child.is_running())
        usage = me.memory_info().rss, children, me.num_fds(), me.num_threads()
        sample = Sample(event.done, event.queued, *usage)
        self.samples.append(sample)
        self.write_line(
            f"{sample.done:>7} done {sample.queued:>7} queued  {sample.rss / MB:6.1f} MB"
            f" + {children / MB:6.1f} MB  {sample.fds} fds  {sample.threads} threads"
        )
        if self.enough(sample):
            self.stop()

    @property
    def _next(self) -> int:
        return self.samples[-1].done + self.every if self.samples else 1

    def at(self, done: int) -> Sample:
        """Return the first sample with at least this many pages done, or the last one."""
        return next((sample for sample in self.samples if sample.done >= done), self.samples[-1])


def crawl(store: Path, url: str, gauge: Gauge, workers: int, pages: int) -> tuple[RunReport, float]:
    """Crawl a site in this process; return the report and the seconds."""
    return asyncio.run(_crawl(store, url, gauge, workers, pages))


async def _crawl(store: Path, url: str, gauge: Gauge, workers: int, pages: int) -> tuple[RunReport, float]:
    flags = {
        "store.url": f"sqlite:///{store}",
        "network.allow": ["127.0.0.1/32"],
        "crawl.concurrency": workers,
        "crawl.max_pages": pages,
    }
    kb = await build(load(None, {}, flags, store.parent))
    gauge.stop = kb.stop
    began = time.monotonic()
    try:
        return await kb.runs.crawl(url, name="soak", listener=gauge.on_event), time.monotonic() - began
    finally:
        await kb.close()
