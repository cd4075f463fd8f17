"""The store at a glance."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.crawl.factory import Tools
from afresh.crawl.heartbeat import LiveWorkers, live_workers
from afresh.crawl.report import report_of
from afresh.model.records import Run, RunMode, RunState, Source, SourceId, Worker
from afresh.model.reports import Freshness, RunReport, SourceView, StoreStatus, WorkerView
from afresh.schedule.due import DueTally
from afresh.search.vectors import Model
from afresh.services.valid_settings import max_age_of, trouble_with
from afresh.store.store import Store
from afresh.text.redact import mask_secrets

HOSTS = 10  # whose queues are told one by one
NAMED = 5  # pages of a source that back off and are told one by one


async def status_of(store: Store, tools: Tools, now: datetime, wanted_model: str | None) -> StoreStatus:
    """Numbers of the whole store, who works, and the runs that need attention."""
    serving = await store.vectors.serving_model()
    totals = await store.stats.totals()
    alive = await alive_workers(store, *tools.identity(), now)
    load = await store.stats.workload(alive.names)
    reports = []
    for run in await store.runs.live():
        source = await store.sources.get(run.source_id)
        if source is not None:
            reports.append(live_report(run, source, alive, now))
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
        pages_per_second=round(sum(_rate(each) for each in reports), 2),
        size_bytes=await store.stats.size_bytes(),
        model=serving.name if serving else None,
        unembedded=(await store.stats.lack(serving.name)).number if serving else totals["chunks"],
        wanted_model=wanted_model,
        freshness=await _freshness(store, tools, now),
    )


async def _workers(store: Store, alive: LiveWorkers) -> tuple[WorkerView, ...]:
    """The processes at work, the oldest first: each is known by a name for every run it works on."""
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


def _rate(report: RunReport) -> float:
    return report.checked / report.seconds if report.state == RunState.RUNNING and report.seconds else 0.0


async def _freshness(store: Store, tools: Tools, now: datetime) -> tuple[Freshness, ...]:
    """How old each source is, what is due in it, and what backs off."""
    sources, oldest = await store.sources.all(), await store.stats.oldest_checks()
    due = await due_of(store, tools, sources, now)
    views = [await _fresh(store, each, now, oldest.get(each.id), due[each.id]) for each in sources]
    return tuple(
        replace(view, trouble=trouble_with(tools, each)) for view, each in zip(views, sources, strict=True)
    )


async def due_of(
    store: Store, tools: Tools, sources: Sequence[Source], now: datetime
) -> dict[SourceId, DueTally]:
    """For each of some sources how many pages are due, and when the next one will be."""
    tallies = await store.stats.due_tallies(now)
    ages = {source.id: max_age_of(tools, source) for source in sources}
    return {
        source: tallies.get(source, DueTally())
        if age is None
        else await store.stats.due_tally(source, now, age)
        for source, age in ages.items()
    }


async def _fresh(
    store: Store,
    source: Source,
    now: datetime,
    oldest: datetime | None,
    tally: DueTally,
) -> Freshness:
    backing_off = await store.due.backing_off(source.id, now)
    return Freshness(
        source=source.name,
        version=source.version,
        kind=source.kind,
        oldest_check=oldest,
        due=tally.due,
        next_at=tally.next_at,
        backing_off=tuple(backing_off[:NAMED]),
        backing_off_count=len(backing_off),
    )


async def alive_workers(store: Store, me: Worker, lease_seconds: float, now: datetime) -> LiveWorkers:
    """Those who really work."""
    return live_workers(await store.workers.all(), me, lease_seconds, now)


async def view_of(store: Store, tools: Tools, source: Source, alive: LiveWorkers) -> SourceView:
    """A source with its numbers; a run whose process is gone is not shown as running."""
    view = replace(await store.stats.source_view(source), trouble=trouble_with(tools, source))
    if view.last_run is None or view.last_state != RunState.RUNNING:
        return view
    run = await store.runs.get(view.last_run)
    if run is not None and run.state is RunState.RUNNING and not alive.work_on(run):
        return replace(view, last_state=RunState.CANCELLED)
    return view


async def whole_view_of(
    store: Store, tools: Tools, source: Source, alive: LiveWorkers, serving: Model | None
) -> SourceView:
    """The same with what takes longer to count: chunks that lack vectors of the serving model."""
    view = await view_of(store, tools, source, alive)
    lacking = (await store.stats.lack(serving.name, source.id)).number if serving else view.chunks
    return replace(view, model=serving.name if serving else None, unembedded=lacking)


def awaited_report(run: Run, source: Source, alive: LiveWorkers, now: datetime) -> RunReport:
    """The same for who waits for its end: one whose process is gone is taken up by whoever works next."""
    report = live_report(run, source, alive, now)
    taken_up = run.mode not in (RunMode.CHECK, RunMode.SYNC)
    if run.state is RunState.RUNNING and not alive.work_on(run) and taken_up:
        return replace(report, state=RunState.QUEUED)
    return report


def live_report(run: Run, source: Source, alive: LiveWorkers, now: datetime) -> RunReport:
    """What a run has done so far; one whose process is gone is shown as interrupted."""
    if run.state is RunState.QUEUED:
        return replace(report_of(run, source), seconds=max(0.0, (now - run.started_at).total_seconds()))
    if run.state is not RunState.RUNNING:
        return report_of(run, source)
    if alive.work_on(run):
        return report_of(replace(run, finished_at=now), source)
    command = "sync" if run.mode is RunMode.SYNC else "refresh"
    goes_on = f"interrupted; `afresh {command} {source.label}` goes on where it was"
    signs = [at for at in (run.worked_at, alive.heartbeats.get(run.worker or "")) if at is not None]
    seen = replace(run, worked_at=max(signs, default=None))
    return replace(report_of(seen, source), state=RunState.CANCELLED, notes=(*run.notes, goes_on))
