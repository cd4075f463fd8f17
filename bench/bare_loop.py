"""The measure of all ratios: a bare aiohttp loop that fetches pages, 32 at once, and does nothing with them.

A process of its own (`python -m bench.bare_loop`): addresses as a JSON list on standard input, figures as
JSON on standard output. Only the fetching is timed, each pass with connections of its own.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import aiohttp
import psutil

AT_ONCE = 32
PASSES = 3
Job = tuple[str, Mapping[str, str]]


@dataclass
class Pass:
    """One pass over all pages."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)

    async def fetch(self, session: aiohttp.ClientSession, jobs: Iterator[Job]) -> None:
        """Fetch until no job is left; many of these share the jobs."""
        for url, headers in jobs:
            async with session.get(url, headers=headers) as response:
                await response.read()
                self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
                self.etags[url] = response.headers.get("ETag", "")


async def one_pass(jobs: Iterator[Job]) -> Pass:
    """Fetch everything once, with new connections."""
    done = Pass()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=AT_ONCE)) as session:
        began, began_cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(done.fetch(session, jobs) for _ in range(AT_ONCE)))
        done.wall_s = time.perf_counter() - began
        done.cpu_s = time.process_time() - began_cpu
    return done


async def measure(urls: list[str]) -> dict[str, object]:
    """Plain and conditional passes in turn, after one pass that warms up server and loop."""
    etags = (await one_pass((url, {}) for url in urls)).etags
    passes: dict[str, list[Pass]] = {"get": [], "conditional": []}
    for _ in range(PASSES):
        passes["get"].append(await one_pass((url, {}) for url in urls))
        passes["conditional"].append(await one_pass((url, {"If-None-Match": etags[url]}) for url in urls))
    report: dict[str, object] = {kind: [_figures(each) for each in some] for kind, some in passes.items()}
    return report | {"rss_mb": psutil.Process().memory_info().rss / 2**20}


def _figures(done: Pass) -> dict[str, object]:
    return {"wall_s": done.wall_s, "cpu_s": done.cpu_s, "statuses": done.statuses}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(json.load(sys.stdin)))))
