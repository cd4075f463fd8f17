"""Syncs that follow runs do not keep errors from being raised."""

import asyncio
from datetime import datetime
from pathlib import Path
from unittest.mock import create_autospec

import pytest
from tests.e2e.library import opened

from afresh.errors import RunBusy, StoreDamaged
from afresh.schedule.scheduler import Scheduler
from afresh.sync.after_runs import FinishedRuns, PostRunSync
from afresh.sync.sync import SinkSync

MAX_WAIT_SECONDS = 10


@pytest.mark.parametrize("keeps", ["sinks", "schedules"])
async def test_an_error_is_raised_although_an_external_store_is_always_busy(
    keeps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    async def busy(*given: object, **options: object) -> None:
        tried.set()
        raise RunBusy("another process syncs it")

    async def fell(*given: object) -> set[int] | datetime:
        if keeps == "sinks" and not tried.is_set():
            return set()
        await tried.wait()
        raise StoreDamaged("torn")

    async def caught_up(scheduler: Scheduler, store: object) -> None:
        assert scheduler.syncs is not None
        scheduler.syncs.want(["out"])

    monkeypatch.setattr(SinkSync, "sync", busy)
    monkeypatch.setattr(FinishedRuns, "poll", fell)
    monkeypatch.setattr(Scheduler, "_catch_up", caught_up)
    monkeypatch.setattr(Scheduler, "_start_due_runs", fell)
    monkeypatch.setattr("afresh.services.sinks.POLL_SECONDS", 0.01)
    async with opened(tmp_path / "kb.db", {"embedding.provider": "none"}) as kb:
        work = kb.sinks.keep(["out"]) if keeps == "sinks" else kb.schedules.keep()
        with pytest.raises(StoreDamaged):
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                await work


async def test_what_is_left_before_its_first_step_is_drained() -> None:
    sinks = create_autospec(SinkSync, instance=True)
    syncs = PostRunSync(sinks, asyncio.Event(), on_report=lambda report: None, listener=lambda event: None)
    syncs.want(["out"])
    syncs.leave()
    await syncs.drain()
    sinks.sync.assert_not_called()
