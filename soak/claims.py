"""Measure how many unchanged pages per second workers process, and how a long queue affects a claim."""

import argparse
import asyncio
import multiprocessing
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

import asyncpg
from tests.postgres import Postgres, running
from tests.store.crawler import LIMITS, POLICY

from afresh.crawl.decide import decide
from afresh.crawl.worker import FIRST_TURN_SECONDS, MAX_BATCH_VISITS
from afresh.model.fetch import NotModified
from afresh.model.records import Claim, Run, RunMode, Visit, VisitContent, WorkerRecord
from afresh.store.open import open_store
from afresh.store.repository import RetryPolicy

ROOT = "https://h0.example.org/"
NUMBERS = "with recursive n (i) as (select 1 union all select i + 1 from n where i < {count})"
PAGES = """
insert into pages (
    id, source_id, url, status, depth, etag, content_hash, recipe, queued_run, created_at, updated_at
)
{numbers}
select {after} + i, {source}, 'https://h' || (i % {hosts}) || '.example.org/' || ({after} + i), 'active', 1,
    '"1"', 'hash', 'r1', {run}, '{now}', '{now}'
from n
"""
ROWS = """
insert into page_crawls (page_id, run_id, url, domain, priority, scheduled_for, created_at, updated_at)
select id, {run}, url, substr(url, 9, instr_(substr(url, 9), '/') - 1), -1, '{now}', '{now}', '{now}'
from pages where id > {after} and source_id = {source}
"""
SHARES = (10_000, 1_000_000)  # rows that wait while a claim is timed
TIMES = 30  # that it is


@dataclass(frozen=True, slots=True)
class Site:
    """A queue of unchanged pages on many hosts."""

    url: str
    run: Run

    async def fill(self, count: int, hosts: int, after: int = 0) -> None:
        """Add this many pages to the queue."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        given = {"count": count, "hosts": hosts, "after": after, "now": now}
        named = {**given, "run": self.run.id, "source": self.run.source_id}
        numbers = NUMBERS.format(count=count)
        pages, rows = PAGES.format(**named, numbers=numbers), ROWS.format(**named)
        if self.url.startswith("sqlite"):
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as file, file:
                file.execute(pages)
                file.execute(rows.replace("instr_", "instr"))
                file.execute("analyze")
            return
        server = await asyncpg.connect(self.url)
        await server.execute(pages)
        await server.execute(rows.replace("instr_", "strpos"))
        await server.execute("vacuum analyze")
        await server.close()


async def site_at(url: str, pages: int, hosts: int) -> Site:
    """Create a store with a run of which all pages are queued."""
    store = await open_store(url)
    now = datetime.now(UTC)
    source = await store.sources.add(name="docs", version=None, kind="web", url=ROOT, rules={}, policy={}, now=now)
    run, _ = await store.runs.start(source.id, RunMode.REFRESH, full=False, worker="lead", now=now)
    await store.close()
    site = Site(url, run)
    await site.fill(pages, hosts)
    return site


def unchanged(claim: Claim) -> Visit:
    """Return the result of a page that answered 304."""
    decision = decide(claim.page, NotModified(), POLICY, datetime.now(UTC))
    return Visit(claim=claim, decision=decision, content=VisitContent())


async def work(site: Site, name: str, barrier: Barrier) -> tuple[int, float]:
    """Claim and commit until the queue is empty; return the number of pages and the CPU time."""
    store, done = (await open_store(site.url)).with_retries(RetryPolicy()), 0
    me = WorkerRecord(name=name, host="here", pid=1, heartbeat_at=datetime.now(UTC))
    await store.workers.join(me)
    await asyncio.to_thread(barrier.wait)
    began = time.process_time()
    while True:
        claims = await store.queue.claim(site.run.id, name, datetime.now(UTC), limit=MAX_BATCH_VISITS)
        visits = [unchanged(claim) for claim in claims]
        if visits:
            now = datetime.now(UTC)
            await store.visits.commit(site.run, visits, name, now, limits=LIMITS, keep_body=True)
            done += len(visits)
        elif (await store.queue.backlog(site.run.id)).open == 0:
            break
        else:
            await asyncio.sleep(FIRST_TURN_SECONDS)
    used = time.process_time() - began
    await store.close()
    return done, used


def _process(site: Site, number: int, barrier: Barrier, results: "SimpleQueue[tuple[int, float]]") -> None:
    results.put(asyncio.run(work(site, f"w{number}", barrier)))


def side_by_side(site: Site, workers: int) -> tuple[float, list[int], float]:
    """Run workers in parallel; return the seconds until the last one ended, the pages of each, and the CPU time."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(workers + 1), context.SimpleQueue()
    processes = [context.Process(target=_process, args=(site, n, barrier, results)) for n in range(workers)]
    for process in processes:
        process.start()
    barrier.wait()
    began = time.monotonic()
    report = [results.get() for _ in processes]
    seconds = time.monotonic() - began
    for process in processes:
        process.join()
    return seconds, [done for done, _ in report], sum(used for _, used in report)


async def claim_times(sites: Sequence[Site]) -> list[float]:
    """Return the milliseconds of a claim at each site, measured in turns, so that other load affects all of them."""
    stores = [await open_store(site.url) for site in sites]
    taken: list[list[float]] = [[] for _ in sites]
    for _ in range(TIMES):
        for site, store, times in zip(sites, stores, taken, strict=True):
            began = time.perf_counter()
            claims = await store.queue.claim(site.run.id, "w", datetime.now(UTC), limit=MAX_BATCH_VISITS)
            times.append(1000 * (time.perf_counter() - began))
            assert len(claims) == MAX_BATCH_VISITS, "the queue is long enough"
            visits = [unchanged(claim) for claim in claims]
            await store.visits.commit(site.run, visits, "w", datetime.now(UTC), limits=LIMITS, keep_body=True)
    for store in stores:
        await store.close()
    return [median(times) for times in taken]


@asynccontextmanager
async def empty(kind: str, server: Postgres, folder: Path) -> AsyncIterator[str]:
    """Yield the URL of a new store."""
    if kind == "postgres":
        async with server.bare() as url:
            yield url
    else:
        with tempfile.TemporaryDirectory(dir=folder) as inner:
            yield f"sqlite:///{Path(inner) / 'afresh.db'}"


async def throughput(kind: str, server: Postgres, folder: Path, given: argparse.Namespace) -> bool:
    """Print pages per second for each number of workers; return whether every page was written once."""
    right = True
    for workers in given.workers:
        async with empty(kind, server, folder) as url:
            site = await site_at(url, given.pages, given.hosts)
            seconds, done, used = await asyncio.to_thread(side_by_side, site, workers)
            right &= sum(done) == given.pages
            print(
                f"{kind:8} {workers:>2} workers {given.hosts:>3} hosts: "
                f"{given.pages / seconds:5.0f} pages/s, "
                f"{1e6 * used / given.pages:5.0f} µs of processor a page, shares {sorted(done)}",
                flush=True,
            )
    return right


async def long_queue(kind: str, server: Postgres, folder: Path, given: argparse.Namespace) -> bool:
    """Print the time of a claim with few and with many rows; return whether many take at most twice as long."""
    async with empty(kind, server, folder) as first, empty(kind, server, folder) as second:
        sites = [await site_at(url, rows, given.hosts) for url, rows in zip((first, second), given.rows, strict=True)]
        small, large = await claim_times(sites)
    for rows, milliseconds in zip(given.rows, (small, large), strict=True):
        print(
            f"{kind:8} a claim of {MAX_BATCH_VISITS} with {rows:>9,} rows waiting: {milliseconds:6.1f} ms", flush=True
        )
    return large <= 2 * small


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both databases; return 1 if a page was lost or a long queue slows down claims."""
    parser = argparse.ArgumentParser(prog="python -m soak claims", description=__doc__)
    parser.add_argument("--stores", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--rows", nargs="*", type=int, default=list(SHARES))
    given = parser.parse_args(arguments)
    right = True
    with tempfile.TemporaryDirectory(prefix="afresh-soak-") as folder, running() as server:
        for kind in given.stores:
            right &= asyncio.run(throughput(kind, server, Path(folder), given))
            if given.rows:
                right &= asyncio.run(long_queue(kind, server, Path(folder), given))
    return 0 if right else 1
