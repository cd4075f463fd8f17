"""Runs in the store: start, resume, read, cancel and end them."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from afresh.crawl.run_verdict import RunEnding
from afresh.digest.records import KINDS
from afresh.errors import RunBusy
from afresh.model.filters import Sources
from afresh.model.records import UNFINISHED, Run, RunId, RunMode, RunState, Source, SourceId
from afresh.ops.failpoints import failpoint
from afresh.sources.web.http_dates import MAX_WAIT_SECONDS
from afresh.store.dialect import Row, Transaction, among_sources
from afresh.store.messages import post
from afresh.store.records import run_from, source_from, unkept_source
from afresh.store.removal import drop, record_missing
from afresh.store.repository import Repository

MAX_HOST_PAUSE = timedelta(seconds=MAX_WAIT_SECONDS)  # a longer pause comes from a wrong clock and is shortened

RESUME_WITHIN = timedelta(hours=24)  # an older run is replaced by a new one
CONTINUE_WITHIN = timedelta(minutes=3)  # since its last work; later, every page is checked again
KEPT = frozenset(  # counts that a run keeps when it checks every page again: of written content and of its cost
    (
        *("new", "changed", "bytes", "rendered", "retried", "chunks_embedded", "chunks_reused", "summaries"),
        *("links_scored", "links_saved", "link_calls", "link_calls_saved"),
        *("ai_calls", "ai_tokens", "worked_ms"),
    )
)


class RunRepository(Repository):
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
        """Start or resume a run of a source; return the run and whether it was resumed.

        Without a worker, the run is queued. Raise RunBusy if the scheduled time `slot` was already used, if another
        process works on the source, or if the open run is not the run `only`.
        """
        self.caches.links.forget()  # the cache may predate a clean-up by another process
        async with self.db.write(source) as tx:
            await tx.run("wake_hosts", latest=now + MAX_HOST_PAUSE)
            row = await tx.one("open_run", source=source)
            if slot is not None and row is None and await tx.one("run_since", source=source, slot=slot):
                raise RunBusy(f"another process has already run the source for {slot:%Y-%m-%d %H:%M} UTC")
            if only is not None and (row is None or row["id"] != only):
                raise RunBusy(f"run {only} has already ended")
            resumed = row is not None and await self._may_resume(tx, run_from(row), mode, full, worker, now)
            if row is not None and resumed:
                row = await _resume(tx, run_from(row), worker, now)
            else:
                await tx.run("close_stale_runs", source=source, now=now)
                await tx.run("free_rows_of_closed_runs", source=source, now=now)
                row = await insert_run(tx, source, mode, worker, now, full=full)
                if mode is not RunMode.CHECK:
                    await tx.run("stamp_source", source=source, now=now)
            self.caches.depths.pop(RunId(row["id"]), None)
            return run_from(row), resumed

    async def _may_resume(
        self, tx: Transaction, run: Run, mode: RunMode, full: bool, worker: str | None, now: datetime
    ) -> bool:
        alive = {row["name"] for row in await tx.all("workers")}
        if run.state is RunState.RUNNING and run.worker in alive and run.worker != worker:
            row = await tx.one("source_by_id", source=run.source_id)
            label = source_from(row).label if row else "its source"
            raise RunBusy(f"run {run.id} of {label} is already in progress; wait for it or cancel it", run.id)
        if run.mode is RunMode.CHECK:
            return False  # its caller is gone
        if mode is RunMode.CHECK:
            raise RunBusy(f"run {run.id} was interrupted; `afresh refresh` continues it")
        enough = run.mode is not RunMode.DUE or mode is RunMode.DUE  # due pages are fewer than all pages
        return now - run.started_at < RESUME_WITHIN and (run.full or not full) and enough

    async def join(self, run: RunId, worker: str) -> Run | None:
        """Register a worker as a helper of a run; return the run, or None if the run is no longer stored."""
        self.caches.links.forget()
        await self._run("help_run", run=run, worker=worker)
        return await self.get(run)

    async def get(self, run: RunId) -> Run | None:
        return await self._find(run_from, "run_by_id", run=run)

    async def last(self, source: SourceId, limit: int = 1) -> list[Run]:
        """Return the last runs of a source, newest first, except for syncs and checks of single pages."""
        return await self._list(run_from, "last_runs", source=source, limit=limit)

    async def live(self) -> list[Run]:
        """Return the runs that are queued, in progress, interrupted or waiting for confirmation, newest first."""
        return await self._list(run_from, "live_runs")

    async def for_workers(self) -> list[Run]:
        """Return queued, running or cancelled runs for workers, oldest first; no runs of mode CHECK or `init-kb`."""
        return await self._list(run_from, "runs_for_workers", kinds=list(KINDS))

    async def records(
        self, sources: Sources, *, state: RunState | None = None, below: int | None = None, limit: int
    ) -> list[Run]:
        """Return runs with an id below `below`, newest first."""
        asked = {"state": state, "top": below, "limit": limit}
        return await self._list(run_from, "run_records", **among_sources(sources), **asked)

    async def unkept(self, run: RunId) -> tuple[Run, Source] | None:
        """Return a first run that read nothing, and its source, which was removed; None if there is no such run."""
        return await self._find(lambda row: (run_from(row), unkept_source(row)), "unkept_run", run=run)

    async def cancel(self, run: Run, now: datetime) -> Run | None:
        """Cancel a queued or running run and return it; return None if it is neither."""
        async with self.db.write(run.source_id) as tx:
            row = await tx.one("cancel_run", run=run.id, now=now)
            return run_from(row) if row else None

    async def finish(self, run: Run, ending: RunEnding, now: datetime) -> Run:
        """End a run in one transaction; raise RunBusy if another process has taken over or ended it."""
        async with self.db.write(run.source_id) as tx:
            row = await close_run(tx, run, ending, now)
            if row is None:
                raise RunBusy(f"run {run.id} was taken over or ended by another process in the meantime")
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
            await post(tx, run, ending.messages, now)
        self.caches.links.forget()
        return run_from(row)


async def insert_run(
    tx: Transaction, source: SourceId, mode: RunMode, worker: str | None, now: datetime, *, full: bool = False
) -> Row:
    return await tx.only("insert_run", source=source, mode=mode, full=int(full), now=now, **_taken_by(worker, now))


def _taken_by(worker: str | None, now: datetime) -> dict[str, object]:
    """Return the columns of a run that a worker takes now; None: the run is queued."""
    if worker is None:
        return {"worker": None, "state": RunState.QUEUED, "taken_at": None}
    return {"worker": worker, "state": RunState.RUNNING, "taken_at": now}


async def close_run(tx: Transaction, run: Run, ending: RunEnding, now: datetime) -> Row | None:
    """End a run and return its row; None if another process has taken over or ended it."""
    counts, notes = json.dumps(dict(ending.counts)), json.dumps(list(ending.notes))
    result = {"state": ending.state, "counts": counts, "notes": notes, "error": ending.error}
    return await tx.one("finish_run", run=run.id, worker=run.worker, was=run.state, **result, now=now)


async def _resume(tx: Transaction, run: Run, worker: str | None, now: datetime) -> Row:
    """Resume a run where it stopped; after a long interruption, check all pages again."""
    again, asked = checks_all_again(run, now), {"source": run.source_id, "run": run.id}
    if again:
        await tx.run("unqueue_pages", **asked)
        await tx.run("free_rows_of_run", run=run.id, now=now)
        if await tx.run("forgive_run", **asked):
            await tx.run("mark_graph", source=run.source_id, changed=1)
        await tx.run("restart_run", **asked, now=now)
        await tx.run("stamp_source", source=run.source_id, now=now)
    await tx.run("count_queued", run=run.id, number=-await tx.run("ask_root_again", **asked))
    counts = json.dumps(counts_so_far(run, again=again))
    row = await tx.only("resume_run", run=run.id, counts=counts, **_taken_by(worker, now))
    await tx.run("mend_times", run=run.id, now=now)
    return row


async def _settle_marks(tx: Transaction, run: Run, ending: RunEnding) -> None:
    """Cancel planned deletions: those of this run if it failed, else those of earlier runs, which it replaces."""
    source, state = run.source_id, ending.state
    if state is RunState.FAILED or ending.forgives:
        if await tx.run("forgive_run", source=source, run=run.id):
            await tx.run("mark_graph", source=source, changed=1)
    elif state not in UNFINISHED and run.mode is not RunMode.CHECK:
        await tx.run("supersede_waiting", source=source, run=run.id)
        if await tx.run("forgive_earlier", source=source, run=run.id):
            await tx.run("mark_graph", source=source, changed=1)


def checks_all_again(run: Run, now: datetime) -> bool:
    """Return whether the run was interrupted for so long that it checks every page again."""
    last = run.worked_at or run.taken_at
    if last is None:
        return bool(run.queued or run.counts)
    return abs(now - last) > CONTINUE_WITHIN


def counts_so_far(run: Run, *, again: bool) -> Mapping[str, int]:
    """Return the counts of a resumed run, with the time of a dead worker; `again`: only of cost and written content."""
    counts = {name: number for name, number in run.counts.items() if not again or name in KEPT}
    if run.state is RunState.RUNNING and run.taken_at is not None and run.worked_at is not None:
        spent = max(timedelta(0), run.worked_at - run.taken_at)
        counts["worked_ms"] = counts.get("worked_ms", 0) + round(spent.total_seconds() * 1000)
    return counts
