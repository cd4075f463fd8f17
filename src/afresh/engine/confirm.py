"""Letting a braked run delete."""

from datetime import datetime

from afresh.core.errors import UsageError
from afresh.core.model import Run, RunState, Source
from afresh.core.sweep import may_drop
from afresh.core.views import RunReport
from afresh.engine.report import report_of
from afresh.ports import Store


async def confirm_run(store: Store, run: Run, source: Source, now: datetime) -> RunReport:
    """Delete what a run found gone, as far as no later look has found it again."""
    if run.state is not RunState.NEEDS_CONFIRMATION:
        raise UsageError(f"run {run.id} does not wait for a confirmation: it is {run.state}")
    doomed = [page for page, target in await store.doomed(source.id) if may_drop(page, target, run.id)]
    if doomed:
        await store.drop(run, doomed, now)
    moved = sum(1 for page in doomed if page.moved_to is not None)
    counts = {**run.counts, "held": 0, "deleted": len(doomed) - moved, "moved": moved}
    state = RunState.PARTIAL if run.counts.get("failed") else RunState.COMPLETED
    finished = await store.finish_run(run.id, state, now, counts=counts, notes=run.notes, error=run.error)
    return report_of(finished, source)
