"""Measure the server with a large source: 100,000 pages with 1,000,000 attempts.

Every page of the web interface, and every request that it makes, is requested a few times. A response that takes
longer than 300 ms is a failure. With --cold, no count is cached, as if nobody had used the server for ten minutes.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import aiohttp
from tests.postgres import mortal

from afresh.app import build
from afresh.config import load
from afresh.server.app import make_app
from afresh.server.uvicorn_server import Server
from afresh.store import stats
from soak.large import Size, fill

MOST_MS = 300.0
TIMES = 4
API = (
    "/status",
    "/sources",
    "/sources/{s}",
    "/pages?source={s}&limit=100",
    "/pages?source={s}&status=error&limit=100",
    "/pages?source={s}&doubtful=true&limit=100",
    "/links?source={s}&limit=50",
    "/changes?source={s}&limit=100",
    "/changes?source={s}&run=7&limit=100",
    "/changes?source={s}&kind=moved",
    "/changes?kind=deleted",
    "/runs/7/attempts",
    "/runs/7/attempts?outcome=timeout",
    "/runs?source={s}&limit=100",
    "/pages/1",
    "/pages/1/why",
    "/pages/1/text",
    "/pages/1/history",
    "/pages/777/why",
    "/links?page=1&limit=50",
    "/calendar",
    "/sources/{s}/calendar",
    "/sources/{s}/map",
    "/sources/{s}/hosts",
    "/sources/{s}/ahead",
    "/sources/{s}/receipt",
    "/hosts",
)
PAGES = (
    "/",
    "/changes",
    "/changes?kind=moved",
    "/search?q=page+777",
    "/sources/{s}",
    "/sources/{s}?status=error",
    "/sources/{s}?doubtful=1",
    "/sources/{s}?language=fr",
    "/sources/{s}?depth=5",
    "/sources/{s}?text=page-99999",
    "/sources/{s}?text=nothing-like-it",
    "/sources/{s}/changes",
    "/sources/{s}/changes?kind=deleted",
    "/sources/{s}/links",
    "/sources/{s}/links?least=0.9",
    "/sources/{s}/runs",
    "/sources/{s}/charts",
    "/sources/{s}/map",
    "/sources/{s}/copies",
    "/sources/{s}/copies?state=processing",
    "/sources/{s}?status=ready_for_indexing",
    "/sources/{s}?status=redirect",
    "/sources/{s}/settings",
    "/pages/1",
    "/pages/1/links",
    "/pages/1/attempts",
    "/pages/1/versions",
    "/pages/777",
    "/runs/7",
    "/runs/7?kind=moved",
    "/runs/7/attempts",
    "/runs/7/attempts?outcome=failed",
)


class Answer(NamedTuple):
    """The responses of one URL, with times in milliseconds."""

    place: str
    first: float
    quickest: float
    busy: float
    size: int


async def measured(url: str, places: Sequence[str]) -> list[Answer]:
    """Return for each URL the times of the first and the fastest response, its CPU time and its length.

    The CPU time of PostgreSQL is not included. The fastest response counts, since other programs cause delays.
    """
    mirror = {"sinks.mirror.kind": "folder", "sinks.mirror.path": "/nowhere"}  # copies are only read
    config = load(None, {}, {"store.url": url, **mirror}, Path.cwd())
    kb = await build(config)
    server = Server(make_app(kb, config, works=False), "127.0.0.1", 0)
    serving = asyncio.create_task(server.work())
    found = []
    try:
        async with aiohttp.ClientSession(server.url) as client:
            for place in places:
                found.append(await _asked(client, place))
                _report(found[-1])
    finally:
        server.leave()
        await serving
        await kb.close()
    return found


def _report(report: Answer) -> None:
    print(
        f"{report.place:50} first {report.first:6.0f} ms, then {report.quickest:6.0f} ms, "
        f"{report.busy:6.0f} ms of the processor, {report.size:9,} bytes",
        flush=True,
    )


def addresses(source: int, *, cold: bool) -> list[str]:
    """Return the URLs to request."""
    data = [] if cold else [f"/api/v1{each}" for each in API]
    return [place.format(s=source) for place in (*data, *PAGES)]


async def _asked(client: aiohttp.ClientSession, place: str) -> Answer:
    taken, used, size = [], [], 0
    for _ in range(TIMES):
        began, busy = time.perf_counter(), time.process_time()
        async with client.get(place) as answer:
            size = len(await answer.read())
            if answer.status != 200:
                raise AssertionError(f"{place} is answered with {answer.status}: {await answer.text()}")
        taken.append(1000 * (time.perf_counter() - began))
        used.append(1000 * (time.process_time() - busy))
    return Answer(place, taken[0], min(taken), min(used), size)


def main(arguments: Sequence[str]) -> int:
    """Create the source, measure, and print what is too slow."""
    parser = argparse.ArgumentParser("python -m soak web", description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=300_000)
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL instead of SQLite")
    parser.add_argument("--store", help="create the store here, or use it if it exists")
    parser.add_argument("--only", default="", help="only URLs that contain this")
    parser.add_argument("--cold", action="store_true", help="cache no counts")
    given = parser.parse_args(arguments)
    size = Size(pages=given.pages, attempts=given.attempts, changes=given.changes)
    with ExitStack() as stack:
        url = given.store
        if url is None and given.postgres:
            url = asyncio.run(stack.enter_context(mortal())[0].emptied())
        elif url is None:
            url = f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}/large.db"
        source = asyncio.run(_filled(url, size))
        if given.cold:
            stack.enter_context(patch.multiple(stats, FRESH_SECONDS=0, AGING_SECONDS=0, OLD_SECONDS=0))
        places = [each for each in addresses(source, cold=given.cold) if given.only in each]
        found = asyncio.run(measured(url, places))
    slow = [each.place for each in found if each.quickest >= MOST_MS]
    for place in slow:
        print(f"breach: {place} takes longer than {MOST_MS:.0f} ms")
    return 1 if slow else 0


async def _filled(url: str, size: Size) -> int:
    """Return the id of the large source; create it if the store does not have it."""
    kb = await build(load(None, {}, {"store.url": url}, Path.cwd()))
    there = await kb.sources.all()
    await kb.close()
    return int(there[0].id) if there else await fill(url, size)
