"""Build the status of the store, its sources and its runs."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from afresh.crawl.factory import RunToolFactory, max_age_of, settings_problem
from afresh.crawl.heartbeat import LiveWorkers
from afresh.crawl.report import report_of
from afresh.dataclass import replace
from afresh.model.records import Run, RunMode, RunState, Source, SourceId
from afresh.model.reports import Freshness, RunReport, SourceView, StoreStatus, WorkerView
from afresh.schedule.due import DueCounts
from afresh.store.store import Store
from afresh.text.redact import mask_secrets

HOSTS = 10  # hosts whose queues are listed individually
NAMED = 5  # failed pages of a source that are listed individually


async def status_of(
    store: Store, tools: RunToolFactory, alive: LiveWorkers, now: datetime, wanted_model: str | None
) -> StoreStatus:
    """Return the status of a store: its counts, its active workers and its open runs."""
    serving = await store.vectors.serving_model()
    totals = await store.stats.totals()
    load = await store.stats.workload(alive.names)
    reports = []
    for run in await store.runs.live():
        source = await store.sources.get(run.source_id)
        if source is not None:
            reports.append(live_report(run, source, alive, now))
    running = [each for each in reports if each.state == RunState.RUNNING and each.seconds]
    rates = [each.checked / each.seconds for each in running]
    return StoreStatus(
        store=mask_secrets(store.url),
        sources=totals["sources"],
        pages=totals["pages"],
        doubtful=totals["doubtful"],
        chunks=totals["chunks"],
        attempts=totals["attempts"],
        pending=load.waiting,
        in_flight=load.held,
        oldest_pending=load.oldest,
        runs=tuple(reports),
        workers=await _workers(store, alive),
        hosts=tuple(await store.stats.busiest_hosts(HOSTS, alive.names)),
        pages_per_second=round(sum(rates), 2),
        size_bytes=await store.stats.size_bytes(),
        model=serving.name if serving else None,
        unembedded=(await store.stats.missing_vectors(serving.name)).number if serving else totals["chunks"],
        wanted_model=wanted_model,
        freshness=await _freshness(store, tools, now),
    )


async def _workers(store: Store, alive: LiveWorkers) -> tuple[WorkerView, ...]:
    """Return the active processes, oldest first; each process registers one worker per run."""
    held, led = await store.workers.held_by(), defaultdict(list)
    for run in await store.runs.live():
        if run.state is RunState.RUNNING and run.worker is not None:
            led[run.worker].append(int(run.id))
    processes = defaultdict(list)
    for worker in await store.workers.all():
        if worker.name in alive.names:
            processes[worker.host, worker.pid].append(worker)
    views = [
        WorkerView(
            host=host,
            pid=pid,
            since=min(each.started_at or each.heartbeat_at for each in names),
            heartbeat_at=max(each.heartbeat_at for each in names),
            runs=tuple(sorted(run for each in names for run in led[each.name])),
            held=sum(held.get(each.name, 0) for each in names),
        )
        for (host, pid), names in processes.items()
    ]
    return tuple(sorted(views, key=lambda view: (view.since, view.host, view.pid)))


async def _freshness(store: Store, tools: RunToolFactory, now: datetime) -> tuple[Freshness, ...]:
    """Return for each source its oldest check, its number of due pages and the failed pages that will be retried."""
    sources, oldest = await store.sources.all(), await store.stats.oldest_checks()
    due, views = await due_of(store, tools, sources, now), []
    for source in sources:
        backing_off = await store.due.backing_off(source.id, now)
        views.append(
            Freshness(
                source=source.name,
                version=source.version,
                kind=source.kind,
                oldest_check=oldest.get(source.id),
                due=due[source.id].due,
                next_at=due[source.id].next_at,
                backing_off=tuple(backing_off[:NAMED]),
                backing_off_count=len(backing_off),
                trouble=settings_problem(tools, source),
            )
        )
    return tuple(views)


async def due_of(
    store: Store, tools: RunToolFactory, sources: Sequence[Source], now: datetime
) -> dict[SourceId, DueCounts]:
    """Return for each source how many pages are due, and when the next one will be due."""
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
