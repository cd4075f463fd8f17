"""After a scheduled run the external stores of its source are synced, and no run waits for that."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import create_autospec

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import index_of
from tests.e2e.sites import lay, word
from tests.e2e.stores import attached, texts
from tests.fakes.faults import HttpFault
from tests.fakes.gemini_server import GeminiServer

from afresh.errors import RunBusy
from afresh.events import Event, Notice
from afresh.model.reports import RunReport
from afresh.sync import after_runs
from afresh.sync.after_runs import PostRunSync
from afresh.sync.reports import SyncReport
from afresh.sync.sync import SinkSync
from afresh.testing import FrozenClock, TinySite


async def test_D12_D22_F89_a_scheduled_run_triggers_the_sync_of_its_store_and_is_reported_before_it_ends(
    tiny: TinySite, store: Path, work: type[InProcess]
) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    clock, reported = FrozenClock(), list[RunReport | SyncReport]()
    with GeminiServer(clock) as server:
        async with attached(store, server, clock) as kb:
            await kb.runs.crawl(tiny.url, name="docs")
            await kb.schedules.set_rule(await kb.sources.labelled(["docs"]), "every 6h")
            assert await kb.schedules.keep(once=True, on_report=reported.append, on_sync=reported.append)
            assert (reported, len(server.requests)) == ([], 0)  # not due
            tiny.edit("/a", add_paragraph=word("/b"))
            clock.advance(hours=6)
            assert await kb.schedules.keep(once=True, on_report=reported.append, on_sync=reported.append)
            run, sync = reported
            assert isinstance(run, RunReport)
            assert isinstance(sync, SyncReport)
            assert (run.changed, sync.sink, sync.uploaded, sync.state) == (1, "team", 2, "completed")
            assert texts(server) == {url: each.markdown for url, each in index_of(store).items()}
            assert any(word("/b") in text for text in texts(server).values())

            server.script.outage = HttpFault(status=503, retry_after="7200")
            tiny.edit("/a", add_paragraph=word("/c"))
            clock.advance(hours=6)
            assert not await kb.schedules.keep(once=True, on_report=reported.append, on_sync=reported.append)
            assert [each.state for each in reported[2:]] == ["completed", "failed"]  # the run does not mind
            server.script.clear()
            clock.advance(hours=3)

            def say(report: SyncReport) -> None:
                reported.append(report)
                kb.stop()

            await kb.schedules.keep(on_report=reported.append, on_sync=say)  # a start does what was left
            assert isinstance(reported[4], SyncReport)
            assert (reported[4].replaced, reported[4].state) == (1, "completed")
            assert any(word("/c") in text for text in texts(server).values())


async def test_D12_D15_one_sync_of_a_store_at_a_time_and_what_is_left_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(after_runs, "FIRST_RETRY_SECONDS", 0.0)
    began, most, stopping, reported = list[str](), 0, asyncio.Event(), list[SyncReport]()
    message: list[str] = []
    gate = asyncio.Event()
    report = SyncReport(sink="one", kind="folder", state="completed", uploaded=1)
    answers: list[SyncReport | Exception] = [
        replace(report, waiting=1),
        RunBusy("by another"),
        replace(report, uploaded=0, error="away"),
        replace(report, uploaded=0, error="away"),
        report,
        ValueError("broken"),
    ]
    under_way = 0

    async def sync(names: list[str], **options: object) -> list[SyncReport]:
        nonlocal under_way, most
        began.extend(names)
        under_way += 1
        most = max(most, under_way)
        await gate.wait()
        under_way -= 1
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [answer]

    def receive(event: Event) -> None:
        assert isinstance(event, Notice)
        message.append(event.text)

    sinks = create_autospec(SinkSync, instance=True)
    sinks.sync.side_effect = sync
    syncs = PostRunSync(sinks, stopping, on_report=reported.append, listener=receive)
    for _ in range(3):
        syncs.want(["one"])
    await asyncio.sleep(0)
    assert began == ["one"]
    gate.set()
    await asyncio.wait_for(syncs.drain(), timedelta(minutes=1).total_seconds())
    assert (len(began), most, message) == (5, 1, [])
    assert [(each.uploaded, each.waiting, each.error) for each in reported] == [
        (1, 1, None),
        (0, 0, "away"),  # told once
        (1, 0, None),
    ]
    syncs.want(["one"])
    await syncs.drain()
    assert message == ["one was not synced: broken; the next attempt is after the next run"]
    stopping.set()
    syncs.want(["one"])
    await syncs.drain()
    assert len(began) == 6
