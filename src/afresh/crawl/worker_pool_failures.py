"""Ends a run that cannot begin."""

from collections.abc import Sequence
from datetime import datetime

from afresh.crawl import run_log
from afresh.crawl.ending import Ending
from afresh.crawl.report import report_of
from afresh.model.records import Run, RunState, Source
from afresh.model.reports import RunReport
from afresh.notify.outbox import Target, letters
from afresh.store.store import Store


async def fail_run(
    store: Store,
    worker: str,
    run: Run,
    source: Source,
    reason: str,
    now: datetime,
    targets: Sequence[Target] = (),
) -> RunReport:
    """Take a run over and end it as failed, with the reason; RunBusy if another worker has it."""
    mine, _ = await store.runs.start(source.id, run.mode, full=run.full, worker=worker, now=now, only=run.id)
    told = letters(targets, source.label, RunState.FAILED, mine.counts)
    ending = Ending(state=RunState.FAILED, counts=mine.counts, notes=mine.notes, error=reason, letters=told)
    report = report_of(await store.runs.finish(mine, ending, now), source)
    run_log.run_ended(report, source.label)
    return report
