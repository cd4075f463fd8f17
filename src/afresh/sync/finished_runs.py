"""Runs that ended, in whatever process: what external stores are synced after."""

from collections.abc import Mapping

from afresh.model.records import Run, RunId, RunMode, RunState, SourceId
from afresh.store.store import Store

RECENT = 100  # runs that may begin and end between two looks
GOING = (RunState.QUEUED, RunState.RUNNING)


class Endings:
    """Tells, look by look, which sources had a run that ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: Mapping[RunId, Run] | None = None

    async def look(self) -> set[SourceId]:
        """The sources of runs that ended or were confirmed since the last look; of none at the first."""
        runs = [*await self._store.runs.records(None, limit=RECENT), *await self._store.runs.live()]
        before, now = self._seen, {run.id: run for run in runs if run.mode is not RunMode.SYNC}
        self._seen = now
        if before is None:
            return set()
        ended = {run.source_id for run in now.values() if _has_ended(before.get(run.id), run)}
        return ended | {run.source_id for run in before.values() if run.state in GOING and run.id not in now}


def _has_ended(before: Run | None, now: Run) -> bool:
    told = (now.state, now.finished_at)
    return now.state not in GOING and (before is None or (before.state, before.finished_at) != told)
