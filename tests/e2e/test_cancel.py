"""Runs that are cancelled by whoever wants, and looks at addresses that are no runs."""

import asyncio
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, opened
from tests.e2e.sites import lay, star

from afresh.errors import RunBusy, SourceError, UsageError
from afresh.events import Event, Progress
from afresh.testing import TinySite


async def test_a_run_under_way_is_cancelled_from_elsewhere_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    store, moving = tmp_path / "kb.db", asyncio.Event()

    def receive(event: Event) -> None:
        if isinstance(event, Progress):
            moving.set()

    with TinySite() as site:
        lay(site, star(60))
        async with opened(store, {"crawl.delay_seconds": 0.02}) as kb, opened(store) as other:
            crawl = asyncio.create_task(kb.runs.crawl(site.url, name="docs", listener=receive))
            await moving.wait()
            assert (await other.runs.get(1)).state == "running"
            assert (await other.runs.cancel(1)).state == "cancelled"
            with pytest.raises(RunBusy, match="run 1 was cancelled"):
                await crawl
            read = len(site.requests)
            assert read < 61
            with pytest.raises(UsageError, match="has already ended"):
                await other.runs.cancel(1)
            with pytest.raises(UsageError, match="there is no run 9"):
                await other.runs.cancel(9)
            [report] = await kb.runs.refresh(["docs"])  # this process was not told to stop
            assert (report.run, report.state, report.new) == (1, "completed", 61)
            assert [(each.run, each.state) for each in await other.runs.records()] == [(1, "completed")]
    assert_sound(store)


async def test_a_single_fetch_reads_any_web_page_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    with TinySite() as site:
        lay(site, star(1))
        async with opened(tmp_path / "kb.db") as kb:
            seen = await kb.pages.fetch_once(site.at("/p0"))
            assert seen.url == site.at("/p0")
            assert seen.markdown
            assert await kb.sources.views() == []
            with pytest.raises(SourceError, match="nothing at"):
                await kb.pages.fetch_once(site.at("/nowhere"))
            for typed in ("/etc/passwd", "file:///etc/passwd", "ftp://example.org/", ""):
                with pytest.raises(UsageError, match="web URL"):
                    await kb.pages.fetch_once(typed)
            site.put("/robots.txt", "User-agent: *\nCrawl-delay: 30")
            assert (await kb.pages.fetch_once(site.at("/p0"))).markdown
            with pytest.raises(SourceError, match="accepts one request every 30 s: try again in 30 s"):
                await kb.pages.fetch_once(site.at("/p0"))
        async with opened(tmp_path / "kb.db", {"network.allow": []}) as kb:
            with pytest.raises(SourceError, match="not allowed"):
                await kb.pages.fetch_once(site.at("/p0"))


async def test_an_address_that_moved_is_looked_at_after_the_pause_of_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    monkeypatch.setattr("afresh.crawl.fetch_once._MAX_TURN_SECONDS", 0.01)
    with TinySite() as site:
        lay(site, star(1))
        site.move("/old", "/p0")
        site.put("/robots.txt", "User-agent: *\nCrawl-delay: 0.2")
        async with opened(tmp_path / "kb.db") as kb:
            assert (await kb.pages.fetch_once(site.at("/old"))).url == site.at("/p0")
        old, new = (each.at for each in site.requests if each.path in ("/old", "/p0"))
        assert new - old >= 0.2

        site.put("/robots.txt", "User-agent: *\nCrawl-delay: 60")
        site.requests.clear()
        async with opened(tmp_path / "kb.db") as kb:
            with pytest.raises(SourceError, match=f"accepts one request every 60 s: try {site.at('/p0')} in 60 s"):
                await kb.pages.fetch_once(site.at("/old"))
        assert [each.path for each in site.requests if each.path != "/robots.txt"] == ["/old"]


async def test_many_single_fetches_at_once_take_few_processes_or_those_that_are_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive, most = set[int](), 0

    class Counted(InProcess):
        def __init__(self, processes: int | None = None) -> None:
            nonlocal most
            super().__init__(processes)
            alive.add(id(self))
            most = max(most, len(alive))

        async def close(self) -> None:
            alive.discard(id(self))

    monkeypatch.setattr("afresh.crawl.factory.ParserPool", Counted)
    with TinySite() as site:
        lay(site, star(1))
        async with opened(tmp_path / "kb.db") as kb:
            await asyncio.gather(*(kb.pages.fetch_once(site.at("/p0")) for _ in range(12)))
            assert (most, alive) == (4, set())
            most = 0
            async with kb._context.tools.keep_warm():
                single_fetches = [asyncio.create_task(kb.pages.fetch_once(site.at("/p0"))) for _ in range(4)]
                await asyncio.sleep(0)
            assert len(alive) == 1, "what is borrowed stays"
            await asyncio.gather(*single_fetches)
            assert most == 1
            assert not alive
