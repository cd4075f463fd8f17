"""Letting a braked run delete."""

from collections.abc import Sequence
from datetime import datetime

from afresh.crawl.ending import Ending
from afresh.crawl.judge import count_moves, may_drop
from afresh.crawl.report import report_of
from afresh.errors import RunOver
from afresh.model.records import Run, RunState, Source
from afresh.model.reports import RunReport
from afresh.notify.outbox import Target, letters
from afresh.ops.failpoints import failpoint
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
