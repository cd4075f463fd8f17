"""Runs that are cancelled by whoever wants, and looks at addresses that are no runs."""

import asyncio
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, opened
from tests.e2e.sites import lay, star

from afresh.core.errors import RunBusy, SourceError, UsageError
from afresh.core.events import Event, Progress
from afresh.testing import TinySite


async def test_a_run_under_way_is_cancelled_from_elsewhere_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.app.Offload", InProcess)
    store, moving = tmp_path / "kb.db", asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, Progress):
            moving.set()

    with TinySite() as site:
        lay(site, star(60))
        async with opened(store, {"crawl.delay_seconds": 0.02}) as kb, opened(store) as other:
            crawl = asyncio.create_task(kb.crawl(site.url, name="docs", listener=hear))
            await moving.wait()
            assert (await other.run(1)).state == "running"
            assert (await other.cancel(1)).state == "cancelled"
            with pytest.raises(RunBusy, match="run 1 was cancelled"):
                await crawl
            read = len(site.requests)
            assert read < 61
            with pytest.raises(UsageError, match="not under way"):
                await other.cancel(1)
            with pytest.raises(UsageError, match="there is no run 9"):
                await other.cancel(9)
            [report] = await kb.refresh(["docs"])  # this process was not told to stop
            assert (report.run, report.state, report.new) == (1, "completed", 61)
            assert [(each.run, each.state) for each in await other.runs()] == [(1, "completed")]
    assert_sound(store)


async def test_a_glance_reads_any_web_page_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.app.Offload", InProcess)
    with TinySite() as site:
        lay(site, star(1))
        async with opened(tmp_path / "kb.db") as kb:
            seen = await kb.glance(site.at("/p0"))
            assert seen.url == site.at("/p0")
            assert seen.markdown
            assert await kb.sources() == []
            with pytest.raises(SourceError, match="nothing at"):
                await kb.glance(site.at("/nowhere"))
            for typed in ("/etc/passwd", "file:///etc/passwd", "ftp://example.org/", ""):
                with pytest.raises(UsageError, match="web address"):
                    await kb.glance(typed)
        async with opened(tmp_path / "kb.db", {"network.allow": []}) as kb:
            with pytest.raises(SourceError, match="not allowed"):
                await kb.glance(site.at("/p0"))
