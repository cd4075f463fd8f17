"""Runs in the store, from their start to the one transaction that ends them."""

import json
from datetime import datetime, timedelta

from afresh.crawl.ending import Ending
from afresh.crawl.resume import RESUME_WITHIN, counts_so_far, looks_again
from afresh.errors import RunBusy
from afresh.model.filters import (
    Sources,
)
from afresh.model.records import (
    Run,
    RunId,
    RunMode,
    RunState,
    Source,
    SourceId,
)
from afresh.model.transitions import UNFINISHED
from afresh.ops.failpoints import failpoint
from afresh.sources.web.http_dates import LONGEST_WAIT_SECONDS
from afresh.store.dialect import Row, Session
from afresh.store.messages import post
from afresh.store.records import (
    run_from,
    source_from,
    unkept_source,
)
from afresh.store.removal import drop, record_missing
from afresh.store.repository import Repository
from afresh.store.sql import among_sources

LONGEST_REST = timedelta(seconds=LONGEST_WAIT_SECONDS)  # only a wrong clock makes a host rest for longer


class RunRepository(Repository):
    """Start, join, read, cancel and finish runs."""

    async def start(
        self,
        source: SourceId,
        mode: RunMode,
        *,
        full: bool,
        worker: str | None,
        now: datetime,
        slot: datetime | None = None,
        only: RunId | None = None,
    ) -> tuple[Run, bool]:
        """A run to work on, and whether it goes on; one for each `slot`, or none but `only`.

        Without a worker it waits for one.
        """
        self.caches.links.forget()  # it may be older than the clean-up of another process
        state = RunState.QUEUED if worker is None else RunState.RUNNING
        async with self.db.write(source) as tx:
            await tx.run("wake_hosts", latest=now + LONGEST_REST)
            row = await tx.one("open_run", source=source)
            if slot is not None and row is None and await tx.one("run_since", source=source, slot=slot):
                raise RunBusy(f"another process has looked at it for {slot:%Y-%m-%d %H:%M} UTC")
            if only is not None and (row is None or row["id"] != only):
                raise RunBusy(f"run {only} is over")
            resumed = row is not None and await self._may_resume(tx, run_from(row), mode, full, worker, now)
            taken_at = None if worker is None else now
            if row is not None and resumed:
                row = await _resume(tx, run_from(row), state, worker, now)
            else:
                await tx.run("close_stale_runs", source=source, now=now)
                await tx.run("free_rows_of_closed_runs", source=source, now=now)
                row = await tx.one(
                    "insert_run",
                    source=source,
                    mode=mode,
                    state=state,
                    full=int(full),
                    worker=worker,
                    now=now,
                    taken_at=taken_at,
                )
                if mode is not RunMode.CHECK:
                    await tx.run("stamp_source", source=source, now=now)
            assert row is not None  # noqa: S101 - `returning` gives the row
            self.caches.depths.pop(RunId(row["id"]), None)
            return run_from(row), resumed

    async def _may_resume(
        self, tx: Session, run: Run, mode: RunMode, full: bool, worker: str | None, now: datetime
    ) -> bool:
        alive = {row["name"] for row in await tx.all("workers")}
        if run.state is RunState.RUNNING and run.worker in alive and run.worker != worker:
            row = await tx.one("source_by_id", source=run.source_id)
            label = source_from(row).label if row else "its source"
            raise RunBusy(f"run {run.id} of {label} is already in progress; wait for it or cancel it", run.id)
        if run.mode is RunMode.CHECK:
            return False  # whoever wanted it is gone
        if mode is RunMode.CHECK:
            raise RunBusy(f"run {run.id} was interrupted; `afresh refresh` goes on with it")
        enough = run.mode is not RunMode.DUE or mode is RunMode.DUE  # what is due is less than everything
        return now - run.started_at < RESUME_WITHIN and (run.full or not full) and enough

    async def join(self, run: RunId, worker: str) -> Run | None:
        """A run to lend a hand in; what is remembered of links may be older than it."""
        self.caches.links.forget()
        async with self.db.write() as tx:
            await tx.run("help_run", run=run, worker=worker)
        return await self.get(run)

    async def get(self, run: RunId) -> Run | None:
        """One run."""
        async with self.db.read() as tx:
            row = await tx.one("run_by_id", run=run)
            return run_from(row) if row else None

    async def last(self, source: SourceId, limit: int = 1) -> list[Run]:
        """The newest runs of a source, newest first; a check before an answer is none."""
        async with self.db.read() as tx:
            return [run_from(row) for row in await tx.all("last_runs", source=source, limit=limit)]

    async def live(self) -> list[Run]:
        """Runs that work, wait to be resumed or wait for a confirmation, newest first."""
        async with self.db.read() as tx:
            return [run_from(row) for row in await tx.all("live_runs")]

    async def records(
        self, sources: Sources, *, state: RunState | None = None, below: int | None = None, limit: int
    ) -> list[Run]:
        """Runs with a number below, newest first."""
        async with self.db.read() as tx:
            rows = await tx.all("run_records", **among_sources(sources), state=state, top=below, limit=limit)
            return [run_from(row) for row in rows]

    async def unkept(self, run: RunId) -> tuple[Run, Source] | None:
        """A run of a source that was not kept, with what was known of the source."""
        async with self.db.read() as tx:
            row = await tx.one("unkept_run", run=run)
        return (run_from(row), unkept_source(row)) if row else None

    async def cancel(self, run: Run, now: datetime) -> Run | None:
        """Stop a run that is queued or under way; None if it is neither."""
        async with self.db.write(run.source_id) as tx:
            row = await tx.one("cancel_run", run=run.id, now=now)
            return run_from(row) if row else None

    async def finish(self, run: Run, ending: Ending, now: datetime) -> Run:
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
        self.caches.links.forget()
        return run_from(row)


async def _resume(tx: Session, run: Run, state: RunState, worker: str | None, now: datetime) -> Row | None:
    """Go on with a run: where it was if that was a moment ago, else with a new look at everything."""
    again, asked = looks_again(run, now), {"source": run.source_id, "run": run.id}
    if again:
        await tx.run("unqueue_pages", **asked)
        await tx.run("free_rows_of_run", run=run.id, now=now)
        if await tx.run("forgive_run", **asked):
            await tx.run("mark_graph", source=run.source_id, changed=1)
        await tx.run("restart_run", **asked, now=now)
        await tx.run("stamp_source", source=run.source_id, now=now)
    await tx.run("count_queued", run=run.id, number=-await tx.run("ask_root_again", **asked))
    counts, taken_at = counts_so_far(run, again=again), None if worker is None else now
    row = await tx.one(
        "resume_run", run=run.id, worker=worker, state=state, counts=json.dumps(counts), taken_at=taken_at
    )
    await tx.run("mend_times", run=run.id, now=now)
    return row


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
