"""F15, P9: run sixteen writers and eight readers on one SQLite file; no lock errors, p99 below 1 s."""

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.store.crawler import ManualCrawler, read

from afresh.app import TRY_SECONDS
from afresh.errors import StoreError
from afresh.model.records import RunLimits
from afresh.search.records import SearchFilter
from afresh.store.open import open_store
from afresh.store.repository import RetryPolicy
from afresh.store.store import Store
from afresh.testing import FrozenClock

T = TypeVar("T")
PAGES = 5  # that a writer queues, claims and commits at a time
READER_PAUSE = 0.05  # seconds: readers that never rest would measure the processor, not the locks
Work = Callable[[str, int, float], Coroutine[None, None, "Tally"]]


@dataclass(slots=True)
class Tally:
    """What one process did: number and time of its steps, and errors."""

    written: int = 0
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    async def time(self, call: Coroutine[None, None, T]) -> T | None:
        """Call the store and record the time; return its answer, or None after an error."""
        began = time.monotonic()
        try:
            return await call
        except StoreError as error:
            self.errors.append(str(error))
            return None
        finally:
            self.seconds.append(time.monotonic() - began)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.written + other.written, self.seconds + other.seconds, [*self.errors, *other.errors])


async def write(url: str, number: int, seconds: float) -> Tally:
    """Queue, claim and commit pages of one source after another until the time is up."""
    tally = Tally()
    store = await _open(url)
    crawler = await ManualCrawler.at(store, FrozenClock(), name=f"writer-{number}")
    crawler.worker, crawler.limits = f"w{number}", RunLimits(max_pages=10**9, max_depth=20)
    await crawler.begin()
    deadline = time.monotonic() + seconds
    while not tally.seconds or time.monotonic() < deadline:
        await _batch(crawler, tally, f"https://h{number}.example.org/{tally.written}/")
    await store.close()
    return tally


async def _batch(crawler: ManualCrawler, tally: Tally, root: str) -> None:
    """Run three transactions and record the time of each."""
    await tally.time(crawler.enqueue(*(f"{root}{page}" for page in range(PAGES))))
    claims = await tally.time(crawler.claim()) or []
    visits = [
        crawler.visit(claim, read(f"Word{index} of {claim.page.url}"))
        for index, claim in enumerate(claims, tally.written)
    ]
    done = await tally.time(crawler.commit(*visits)) or []
    tally.written += len(done)
    if len(done) != PAGES:
        tally.errors.append(f"{len(done)} of {PAGES} pages were written")


async def search(url: str, number: int, seconds: float) -> Tally:
    """Search and count until the time is up; results must not disappear."""
    tally, before = Tally(), 0
    store = await _open(url)
    deadline = time.monotonic() + seconds
    while not tally.seconds or time.monotonic() < deadline:
        await tally.time(store.search.matches(f"word{number}", SearchFilter(), 5))
        pages = (await store.stats.totals())["pages"]
        if pages < before:
            tally.errors.append(f"{before} pages became {pages}")
        before = pages
        await asyncio.sleep(READER_PAUSE)
    await store.close()
    return tally


async def _open(url: str) -> Store:
    store = await open_store(url, wait_seconds=TRY_SECONDS)
    return store.with_retries(RetryPolicy())


def percentile(seconds: Sequence[float], share: float) -> float:
    """Return the percentile of the times."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _process(job: tuple[Work, str, int, float]) -> Tally:
    work, url, number, seconds = job
    return asyncio.run(work(url, number, seconds))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all processes for a time and print the results; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m soak locks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--readers", type=int, default=8)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="afresh-soak-") as folder:
        url = f"sqlite:///{Path(folder) / 'afresh.db'}"
        asyncio.run(_make(url))
        jobs: list[tuple[Work, str, int, float]] = [
            *((write, url, number, given.seconds) for number in range(given.writers)),
            *((search, url, number, given.seconds) for number in range(given.readers)),
        ]
        with multiprocessing.get_context("spawn").Pool(len(jobs)) as pool:
            tallies = pool.map(_process, jobs, chunksize=1)
    return _report(sum(tallies[: given.writers], Tally()), sum(tallies[given.writers :], Tally()))


async def _make(url: str) -> None:
    await (await open_store(url)).close()


def _report(writers: Tally, readers: Tally) -> int:
    for name, tally in (("writers", writers), ("readers", readers)):
        print(
            f"{name}: {len(tally.seconds)} calls, p50 {percentile(tally.seconds, 0.5):.3f} s, "
            f"p99 {percentile(tally.seconds, 0.99):.3f} s, longest {max(tally.seconds, default=0):.3f} s, "
            f"errors {len(tally.errors)}"
        )
    print(f"pages written: {writers.written}")
    for error in [*writers.errors, *readers.errors][:5]:
        print(f"error: {error}")
    return 1 if writers.errors or readers.errors else 0
