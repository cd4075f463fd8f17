"""Runs as they are on record: listed, told, and cancelled."""

from collections.abc import Sequence
from datetime import datetime

from afresh.crawl.heartbeat import LiveWorkers
from afresh.crawl.report import report_of
from afresh.errors import RunOver, Unknown, UsageError
from afresh.model.records import Run, RunId, RunMode, RunState, Source
from afresh.model.reports import RunReport
from afresh.services.status_views import live_report
from afresh.store.store import Store

LISTED = 200  # runs of one source that are looked through


async def runs_of(
    store: Store, sources: Sequence[Source], alive: LiveWorkers, now: datetime
) -> list[RunReport]:
    """The runs of some sources, newest first."""
    found = [
        (run.id, live_report(run, source, alive, now))
        for source in sources
        for run in await store.runs.records([source.id], limit=LISTED)
    ]
    return [report for _, report in sorted(found, key=lambda each: each[0], reverse=True)]


async def run_and_source(store: Store, number: int) -> tuple[Run, Source]:
    """One run with its source."""
    run = await store.runs.get(RunId(number))
    source = await store.sources.get(run.source_id) if run else None
    if run is None and (unkept := await store.runs.unkept(RunId(number))) is not None:
        return unkept
    if run is None or source is None:
        raise Unknown(f"there is no run {number}; `afresh status` lists those that are open")
    return run, source


async def cancel_run(store: Store, number: int, now: datetime) -> RunReport:
    """Stop a run that waits or is under way, in whatever process; what it has read stays."""
    run, source = await run_and_source(store, number)
    if run.mode is RunMode.SYNC:
        raise UsageError(f"run {number} is a sync: it ends by itself, or when its process is stopped")
    cancelled = await store.runs.cancel(run, now)
    if cancelled is None:
        raise RunOver(f"run {number} is not under way: it is {run.state}")
    return report_of(cancelled, source)


async def waits_for_work(store: Store, alive: LiveWorkers) -> bool:
    """Whether a run is open that no process works on."""
    return any(
        run.state is RunState.QUEUED or (run.state is RunState.RUNNING and not alive.work_on(run))
        for run in await store.runs.live()
    )
