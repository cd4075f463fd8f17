"""B16: the distance between two requests to a host holds for everything that is asked of it."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened
from tests.e2e.sites import lay, page

from afresh.sources.web.http import HttpFetcher
from afresh.testing import TinySite

if TYPE_CHECKING:
    from aiohttp import web

DELAY = 0.02  # seconds


class Time:
    """A clock that moves when somebody sleeps."""

    now = 100.0

    async def sleep(self, seconds: float) -> None:
        """Move on at once."""
        self.now += seconds

    def ticks(self) -> float:
        """What time it is."""
        return self.now


class TimedSite(TinySite):
    """A site that notes when it was asked for what."""

    def __init__(self, clock: Time) -> None:
        super().__init__()
        self.clock = clock
        self.asked: list[tuple[float, str]] = []

    async def _respond(self, request: "web.BaseRequest") -> "web.StreamResponse":
        self.asked.append((self.clock.now, request.path_qs))
        return await super()._respond(request)


@pytest.mark.parametrize("by", ["--delay", "Crawl-delay"])
async def test_R4_B16_F134_robots_sitemaps_llms_hops_and_the_root_keep_the_distance(
    tmp_path: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    clock = Time()
    timed = partial(HttpFetcher, sleep=clock.sleep, ticks=clock.ticks)
    monkeypatch.setattr("afresh.sources.web.lister.HttpFetcher", timed)
    with TimedSite(clock) as site:
        lay(site, {"/": ["/old"], "/new": []})
        site.move("/old", "/new")
        asks = f"Crawl-delay: {DELAY}\n" if by == "Crawl-delay" else ""
        site.robots(f"User-agent: *\n{asks}Sitemap: {site.at('/moved.xml')}\n")
        site.put("/new", page("/new", ["/"]))
        flags = {} if asks else {"crawl.delay_seconds": DELAY}
        async with opened(tmp_path / "kb.db", flags) as kb:
            report = await kb.runs.crawl(site.url, name="docs")
    assert report.state in ("completed", "partial"), report.error
    paths = [path for _, path in site.asked]
    assert {"/robots.txt", "/llms.txt", "/moved.xml", "/", "/old", "/new"} <= set(paths)
    near = [(first, second) for first, second in pairwise(site.asked) if second[0] - first[0] < DELAY - 1e-9]
    assert near == []
