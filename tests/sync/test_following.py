"""Syncs that follow runs do not keep those who fell from saying so."""

import asyncio
from datetime import datetime
from pathlib import Path

import pytest
from tests.e2e.library import opened

from afresh.errors import RunBusy, StoreDamaged
from afresh.kb import KnowledgeBase
from afresh.schedule.scheduler import Scheduler
from afresh.services.sinks import SinkService
from afresh.sync.after_runs import FinishedRuns, PostRunSync
from afresh.sync.reports import SyncReport

PATIENCE = 10


@pytest.mark.parametrize("keeps", ["sinks", "schedules"])
async def test_what_fell_is_told_although_an_external_store_is_busy_for_ever(
    keeps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    async def busy(kb: KnowledgeBase, **given: object) -> None:
        tried.set()
        raise RunBusy("another process syncs it")

    async def fell(*given: object) -> set[int] | datetime:
        if keeps == "sinks" and not tried.is_set():
            return set()
        await tried.wait()
        raise StoreDamaged("torn")

    async def caught_up(scheduler: Scheduler, store: object) -> None:
        assert scheduler._syncs is not None
        scheduler._syncs.want(["out"])

    monkeypatch.setattr(SinkService, "sync", busy)
    monkeypatch.setattr(FinishedRuns, "look", fell)
    monkeypatch.setattr(Scheduler, "_catch_up", caught_up)
    monkeypatch.setattr(Scheduler, "_look_around", fell)
    monkeypatch.setattr("afresh.services.sinks.LOOK", 0.01)
    async with opened(tmp_path / "kb.db", {"embedding.provider": "none"}) as kb:
        work = kb.sinks.keep(["out"]) if keeps == "sinks" else kb.schedules.keep()
        with pytest.raises(StoreDamaged):
            async with asyncio.timeout(PATIENCE):
                await work


async def test_what_is_left_before_its_first_step_is_drained() -> None:
    async def sync(name: str) -> list[SyncReport]:
        raise AssertionError("it was left")

    syncs = PostRunSync(sync, asyncio.Event(), tell=lambda report: None, listener=lambda event: None)
    syncs.want(["out"])
    syncs.leave()
    await syncs.drain()
