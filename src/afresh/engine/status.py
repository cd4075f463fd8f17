"""The store at a glance."""

from afresh.core.views import StoreStatus
from afresh.engine.report import report_of
from afresh.ports import Library


async def status_of(store: Library) -> StoreStatus:
    """Numbers of the whole store, and the runs that need attention."""
    totals = await store.totals()
    reports = []
    for run in await store.live_runs():
        source = await store.source_by_id(run.source_id)
        if source is not None:
            reports.append(report_of(run, source))
    return StoreStatus(
        store=store.url,
        sources=totals["sources"],
        pages=totals["pages"],
        chunks=totals["chunks"],
        attempts=totals["attempts"],
        pending=totals["pending"],
        in_flight=totals["in_flight"],
        oldest_pending=totals["oldest_pending"],
        runs=tuple(reports),
        workers=tuple(worker.name for worker in await store.workers()),
        size_bytes=await store.size_bytes(),
    )
