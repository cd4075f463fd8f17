"""Letting a braked run delete."""

from collections.abc import Sequence
from datetime import datetime

from afresh.core.ending import Ending
from afresh.core.errors import RunOver
from afresh.core.model import Run, RunState, Source
from afresh.core.outbox import Target, letters
from afresh.core.sweep import count_moves, may_drop
from afresh.core.views import RunReport
from afresh.engine.report import report_of
from afresh.failpoints import failpoint
from afresh.store.store import Store


async def confirm_run(
    store: Store, run: Run, source: Source, now: datetime, targets: Sequence[Target] = ()
) -> RunReport:
    """Delete what a run found gone, as far as no later look has found it again."""
    if run.state is not RunState.NEEDS_CONFIRMATION:
        raise RunOver(f"run {run.id} does not wait for a confirmation: it is {run.state}")
    failpoint("confirm.begin")
    doomed = [page for page, target in await store.pages.doomed(source.id) if may_drop(page, target, run.id)]
    heirs = await store.pages.heirs(source.id, doomed)
    counts = {**run.counts, "held": 0, **count_moves(doomed, heirs, run)}
    state = RunState.PARTIAL if run.counts.get("failed") else RunState.COMPLETED
    told = letters(targets, source.label, state, counts, confirmed=True)
    ending = Ending(
        state=state,
        counts=counts,
        notes=run.notes,
        error=run.error,
        dropped=doomed,
        heirs=heirs,
        letters=told,
    )
    finished = await store.runs.finish(run, ending, now)
    failpoint("finish.done")
    return report_of(finished, source)
