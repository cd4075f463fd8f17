"""R0: little is fetched that is not written yet, so a kill costs few requests."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import index_of, opened
from tests.e2e.mortal import live
from tests.e2e.sites import lay, looks, star

from afresh.events import Event, PageStep
from afresh.model.records import Visit
from afresh.store.content import VisitRepository
from afresh.testing import TinySite

PAGES = 120
AHEAD = 20  # pages that may be fetched and not written: those under way, and some that wait to be written
TURNS = 3_000  # of the loop that a commit takes here, so that fetching could run ahead of it


async def test_R0_F133_fetching_runs_no_more_than_twenty_pages_ahead_of_the_commits(
    tmp_path: Path, work: type[InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: set[str] = set()
    most = 0

    def listener(event: Event) -> None:
        nonlocal most
        if isinstance(event, PageStep) and event.name == "fetch":
            fetched.add(event.url)
            most = max(most, len(fetched))
        elif isinstance(event, PageStep) and event.name == "commit":
            fetched.discard(event.url)

    commit = VisitRepository.commit

    async def slow(self: VisitRepository, run: Any, visits: Sequence[Visit], *args: Any, **more: Any) -> list[Visit]:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return await commit(self, run, visits, *args, **more)

    monkeypatch.setattr(VisitRepository, "commit", slow)
    with TinySite() as site:
        lay(site, star(PAGES))
        async with opened(tmp_path / "kb.db") as kb:
            report = await kb.runs.crawl(site.url, name="docs", listener=listener)
    assert (report.state, report.new) == ("completed", PAGES + 1)
    assert 3 < most <= AHEAD


def test_R0_F133_five_kills_cost_a_hundred_requests_at_most(tmp_path: Path) -> None:
    store = tmp_path / "kb.db"
    with TinySite() as site:
        lay(site, star(199))
        for hit in (2, 3, 2, 3, 2):
            assert live(store, site.url, "crawl", f"commit.begin=kill@{hit}") == -9
        assert live(store, site.url, "crawl") == 0
        asked = sum(looks(site).values())
    assert len(index_of(store)) == 200
    assert asked <= 300
