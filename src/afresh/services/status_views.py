"""Build the views of sources and of runs."""

from collections.abc import Sequence
from datetime import datetime

from afresh.crawl.factory import RunToolFactory, max_age_of, settings_problem
from afresh.crawl.heartbeat import LiveWorkers
from afresh.crawl.report import report_of
from afresh.dataclass import replace
from afresh.model.records import Run, RunMode, RunState, Source, SourceId
from afresh.model.reports import RunReport, SourceView
from afresh.schedule.due import DueCounts
from afresh.store.store import Store


async def due_of(
    store: Store, tools: RunToolFactory, sources: Sequence[Source], now: datetime
) -> dict[SourceId, DueCounts]:
    tallies = await store.stats.due_tallies(now)
    ages = {source.id: max_age_of(tools, source) for source in sources}
    return {
        source: tallies.get(source, DueCounts()) if age is None else await store.stats.due_tally(source, now, age)
        for source, age in ages.items()
    }


async def view_of(store: Store, tools: RunToolFactory, source: Source, alive: LiveWorkers) -> SourceView:
    """Return a source with its counts and its last run, which counts as cancelled if its process died."""
    view = replace(await store.stats.source_view(source), trouble=settings_problem(tools, source))
    if view.last_run is None or view.last_state != RunState.RUNNING:
        return view
    run = await store.runs.get(view.last_run)
    if run is not None and run.state is RunState.RUNNING and not alive.is_working_on(run):
        return replace(view, last_state=RunState.CANCELLED)
    return view


def awaited_report(run: Run, source: Source, alive: LiveWorkers, now: datetime) -> RunReport:
    """Return the report of a run to a caller that waits for its end; the run counts as queued if its process died."""
    report = live_report(run, source, alive, now)
    taken_up = run.mode not in (RunMode.CHECK, RunMode.SYNC)
    if run.state is RunState.RUNNING and not alive.is_working_on(run) and taken_up:
        return replace(report, state=RunState.QUEUED)
    return report


async def live_reports(store: Store, alive: LiveWorkers, now: datetime) -> list[tuple[Source, RunReport]]:
    """Return the runs that are open or need confirmation, each with its source, newest first."""
    owned = [(await store.sources.get(run.source_id), run) for run in await store.runs.live()]
    return [(source, live_report(run, source, alive, now)) for source, run in owned if source is not None]


def live_report(run: Run, source: Source, alive: LiveWorkers, now: datetime) -> RunReport:
    """Return the report of a run with its progress; the run counts as cancelled if its process died."""
    if run.state is RunState.QUEUED:
        return replace(report_of(run, source), seconds=max(0.0, (now - run.started_at).total_seconds()))
    if run.state is not RunState.RUNNING:
        return report_of(run, source)
    if alive.is_working_on(run):
        return report_of(replace(run, finished_at=now), source)
    command = "sync" if run.mode is RunMode.SYNC else "refresh"
    note = f"interrupted; `afresh {command} {source.label}` continues it"
    signs = [at for at in (run.worked_at, alive.heartbeats.get(run.worker or "")) if at is not None]
    seen = replace(run, worked_at=max(signs, default=None))
    return replace(report_of(seen, source), state=RunState.CANCELLED, notes=(*run.notes, note))
