"""Who leads a run when its leader is gone."""

import asyncio

import pytest

from afresh.crawl.worker_pool import WorkerPool, _Assignment
from afresh.model.records import Run, RunId, RunMode, RunState, SourceId
from afresh.testing import FrozenClock


@pytest.mark.parametrize(("alive", "leaves"), [({"me"}, True), ({"me", "leader"}, False)])
async def test_U4_a_helper_of_a_run_whose_leader_died_stops_helping_to_lead_it(alive: set[str], leaves: bool) -> None:
    pool = WorkerPool(None, asyncio.Event(), on_report=print, listener=print)  # type: ignore[arg-type]
    run = Run(
        id=RunId(7),
        source_id=SourceId(1),
        mode=RunMode.REFRESH,
        state=RunState.RUNNING,
        started_at=FrozenClock()(),
        worker="leader",
    )
    hand = pool._assignments[run.id] = _Assignment(run, None, leads=False)  # type: ignore[arg-type]
    pool._stop_leaderless([run], alive)
    assert hand.stopping.is_set() is leaves
