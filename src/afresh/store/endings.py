"""The end of a run: one transaction counts what is missing, drops what is gone and closes the run."""

import json
from datetime import datetime

from afresh.core.ending import Ending
from afresh.core.errors import RunBusy
from afresh.core.model import Run, RunMode, RunState
from afresh.core.states import UNFINISHED
from afresh.failpoints import failpoint
from afresh.store.dialect import Database, Row, Session
from afresh.store.links import LinkBook
from afresh.store.outbox import post
from afresh.store.records import run_from
from afresh.store.sweep import drop, record_missing


class Endings:
    """Closing runs, for those who still own them."""

    db: Database
    _links: LinkBook

    async def finish_run(self, run: Run, ending: Ending, now: datetime) -> Run:
        """End a run as decided, all or nothing; RunBusy if it is no longer the caller's or no longer so."""
        async with self.db.write(run.source_id) as tx:
            row = await _close(tx, run, ending, now)
            failpoint("finish.closed")
            if ending.missing is not None:
                await record_missing(tx, run.source_id, ending.missing, now)
                failpoint("finish.missing")
            if ending.dropped:
                doomed = {page["id"] for page in await tx.all("doomed", source=run.source_id)}
                gone = [page for page in ending.dropped if page.id in doomed]
                await drop(tx, run.source_id, run.id, gone, now, ending.heirs)
                failpoint("finish.drop")
            if ending.state not in UNFINISHED:
                await tx.run("free_rows_of_closed_runs", source=run.source_id, now=now)
            if ending.root is not None:
                await tx.run("move_source", source=run.source_id, url=ending.root, now=now)
            if ending.mark is not None:
                await tx.run("set_mark", source=run.source_id, mark=ending.mark)
            await _settle_marks(tx, run, ending)
            await post(tx, run, ending.letters, now)
        self._links.forget()
        return run_from(row)


async def _close(tx: Session, run: Run, ending: Ending, now: datetime) -> Row:
    row = await tx.one(
        "finish_run",
        run=run.id,
        worker=run.worker,
        was=run.state,
        state=ending.state,
        now=now,
        counts=json.dumps(dict(ending.counts)),
        notes=json.dumps(list(ending.notes)),
        error=ending.error,
    )
    if row is None:
        raise RunBusy(f"run {run.id} was taken over or ended by another process in the meantime")
    return row


async def _settle_marks(tx: Session, run: Run, ending: Ending) -> None:
    """The marks of a run in an outage are forgiven; one that saw clearly replaces what earlier ones saw."""
    source, state = run.source_id, ending.state
    if state is RunState.FAILED or ending.forgives:
        if await tx.run("forgive_run", source=source, run=run.id):
            await tx.run("mark_graph", source=source, changed=1)
    elif state not in UNFINISHED and run.mode is not RunMode.CHECK:
        await tx.run("supersede_waiting", source=source, run=run.id)
        if await tx.run("forgive_earlier", source=source, run=run.id):
            await tx.run("mark_graph", source=source, changed=1)
