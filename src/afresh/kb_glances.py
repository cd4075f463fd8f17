"""The use cases of those who look on: sources at a glance, and what runs now."""

from collections.abc import Callable, Sequence
from datetime import datetime

from afresh.core.model import RunState, Source
from afresh.core.overview import SourceGlance
from afresh.core.views import RunReport
from afresh.engine.status import due_of, live_report, view_of
from afresh.kb_work import Work

SHOWN = (RunState.QUEUED, RunState.RUNNING, RunState.NEEDS_CONFIRMATION)


class Glances(Work):
    """Sources and runs, told briefly."""

    async def glances(self, sources: Sequence[Source]) -> list[SourceGlance]:
        """Each of some sources at a glance."""
        alive, now = await self._alive(), self._clock()
        due = await due_of(
            self._store, sources, now, lambda source: self._tools.bounds(source)[1].max_age_seconds
        )
        return [await self._glance(source, alive, now, *due[source.id]) for source in sources]

    async def live_runs(self, sees: Callable[[str], bool]) -> list[tuple[Source, RunReport]]:
        """What runs, waits for a worker or for a word, of the sources that somebody sees; newest first."""
        alive, now = await self._alive(), self._clock()
        found = []
        for run in await self._store.live_runs():
            source = await self._store.source_by_id(run.source_id)
            if source is not None and sees(source.label):
                report = live_report(run, source, alive, now)
                found += [(source, report)] if report.state in SHOWN else []
        return found

    async def _glance(
        self, source: Source, alive: set[str], now: datetime, due: int, next_at: datetime | None
    ) -> SourceGlance:
        last = await self._store.last_runs(source.id, 1)
        return SourceGlance(
            label=source.label,
            view=await view_of(self._store, source, alive),
            due=due,
            next_at=next_at,
            run=live_report(last[0], source, alive, now) if last else None,
        )
