"""Compare search times over REST with many clients and in this process.

`alone` sends one question after another, `together` as many at a time as there are clients. The clients of the
server run in their own process. The server is measured once without other work, and once during a crawl.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import aiohttp

from afresh.app import build
from afresh.config import load
from afresh.model.records import RunMode
from afresh.server.app import make_app
from afresh.server.uvicorn_server import Server
from afresh.testing import TinySite

WORDS = ("retry", "harbor install", "how to configure", "timeout", "release notes", "webhook", "queue")
MOST = 5.0  # times the p95 in process
PAGES = 300
SLOW = {"delay_seconds": 0.01}


def main(arguments: Sequence[str]) -> int:
    """Measure; return 1 if the server is more than five times as slow."""
    parser = argparse.ArgumentParser("python -m soak serve", description=__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--requests", type=int, default=2_000)
    given = parser.parse_args(arguments)
    report = asyncio.run(measured(given.clients, given.requests))
    print(json.dumps(report, indent=2))
    return 0 if report["times"] < MOST and report["failed"] == 0 else 1


async def measured(clients: int, requests: int) -> dict[str, float]:
    """Return the p95 of a question in milliseconds: in process, over REST, and over REST during a crawl."""
    with tempfile.TemporaryDirectory() as folder, TinySite.docs() as site, TinySite() as large:
        for number in range(PAGES):
            links = "".join(f'<a href="/p{each}">{each}</a>' for each in range(PAGES))
            large.put(f"/p{number}", f"<html><body><h1>Page {number}</h1><p>Words.</p>{links}</body></html>")
        flags = {"store.url": f"sqlite:///{folder}/serve.db", "network.allow": ["127.0.0.1/32"]}
        config = load(None, {}, flags, Path(folder))
        kb = await build(config)
        await kb.runs.crawl(site.url, name="harbor")
        asks = [WORDS[number % len(WORDS)] for number in range(requests)]
        alone = await _together(kb.search.search, asks[:200], 1)
        together = await _together(kb.search.search, asks, clients)
        server = Server(make_app(kb, config), "127.0.0.1", 0)
        serving = asyncio.create_task(server.work())
        rest, failed = await _by_clients(server.url, asks, clients)
        source, _ = await kb.sources.add(large.url + "p0", name="large", version=None, settings=SLOW)
        await kb.runs.start(source, RunMode.CRAWL)
        busy, failed_too = await _by_clients(server.url, asks, clients)
        crawl = (await kb.sources.view("large")).last_state
        server.leave()
        await serving
        await kb.close()
    displayed = {"alone": alone, "together": together, "rest": rest, "rest_beside_crawl": busy}
    p95 = {f"{name}_p95_ms": round(_p95(times) * 1000, 2) for name, times in displayed.items()}
    print(f"the crawl beside it: {crawl}")
    return {**p95, "times": round(_p95(rest) / _p95(together), 2), "failed": failed + failed_too}


async def _together(ask: Callable[[str], Awaitable[object]], asks: Sequence[str], clients: int) -> list[float]:
    times: list[float] = []
    left = iter(asks)

    async def client() -> None:
        for words in left:
            began = time.perf_counter()
            await ask(words)
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(client() for _ in range(clients)))
    return times


async def _by_clients(url: str, asks: Sequence[str], clients: int) -> tuple[list[float], int]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        result = pool.apply_async(_ask_all, (url, list(asks), clients))
        found: tuple[list[float], int] = await asyncio.to_thread(result.get)
        return found


def _ask_all(url: str, asks: list[str], clients: int) -> tuple[list[float], int]:
    failed = 0

    async def work() -> list[float]:
        async with aiohttp.ClientSession(url) as session:

            async def ask(words: str) -> None:
                nonlocal failed
                async with session.get("/api/v1/search", params={"q": words}) as answer:
                    await answer.read()
                    failed += answer.status != 200

            return await _together(ask, asks, clients)

    return asyncio.run(work()), failed


def _p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]
