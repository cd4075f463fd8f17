"""Sources, runs and workers in the store."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from afresh.core.errors import RunBusy
from afresh.core.httpdate import LONGEST_WAIT_SECONDS
from afresh.core.model import Run, RunId, RunMode, RunState, Source, SourceId, Worker
from afresh.core.resume import RESUME_WITHIN, counts_so_far, looks_again
from afresh.store.dialect import Database, Row, Session
from afresh.store.records import run_from, source_from, unkept_source, worker_from

UNKEPT_RUNS_STAY = timedelta(days=30)
LONGEST_REST = timedelta(seconds=LONGEST_WAIT_SECONDS)  # only a wrong clock makes a host rest for longer


class Runs:
    """Who is looked at, by whom, and how it went."""

    db: Database

    async def add_source(
        self,
        *,
        name: str,
        version: str | None,
        kind: str,
        url: str,
        rules: Mapping[str, object],
        policy: Mapping[str, object],
        now: datetime,
        by_operator: bool = False,
        trial: bool = False,
    ) -> Source:
        """The source of that name, made if it was not there; new rules and policy are merged over the old.

        Who made it stays on record; where that is unknown, it is the operator as soon as `by_operator`.
        """
        async with self.db.write() as tx:
            key = {"name": name, "version": version or ""}
            made = {"kind": kind, "url": url, "rules": "{}", "policy": "{}"}
            named = url if by_operator else ""
            await tx.run("insert_source", **key, **made, operator_url=named, trial=int(trial), now=now)
            row = await tx.one("source_by_label", **key)
            assert row is not None  # noqa: S101 - inserted above
            source = source_from(row)
            merged = {**source.rules, **rules}, {**source.policy, **policy}
            if by_operator:
                await tx.run("adopt_source", source=source.id)
            await tx.run(
                "update_source",
                source=source.id,
                rules=json.dumps(merged[0]),
                policy=json.dumps(merged[1]),
                now=now,
            )
            row = await tx.one("source_by_id", source=source.id)
            assert row is not None  # noqa: S101
            return source_from(row)

    async def find_source(self, name: str, version: str | None) -> Source | None:
        """The source with exactly this name and version."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_label", name=name, version=version or "")
            return source_from(row) if row else None

    async def find_source_by_url(self, url: str, version: str | None) -> Source | None:
        """The source that has this root."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_url", url=url, version=version or "")
            return source_from(row) if row else None

    async def source_by_id(self, source: SourceId) -> Source | None:
        """The source with this id."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_id", source=source)
            return source_from(row) if row else None

    async def sources(self, name: str | None = None) -> list[Source]:
        """All sources, or all versions of one name."""
        async with self.db.read() as tx:
            rows = await (tx.all("sources") if name is None else tx.all("sources_named", name=name))
            return [source_from(row) for row in rows]

    async def remove_source(self, source: SourceId, now: datetime) -> None:
        """Delete a source with its pages; the attempts stay in the history, the open ones as cancelled."""
        async with self.db.write(source) as tx:
            await tx.run("cancel_source", source=source, now=now)
            await tx.run("remember_page_numbers_of", source=source)
            await tx.run("delete_source", source=source)

    async def was_read(self, source: SourceId) -> bool:
        """Tell whether any page of a source was ever read."""
        async with self.db.read() as tx:
            return await tx.one("page_that_was_read", source=source) is not None

    async def end_trial(self, run: Run, now: datetime) -> bool:
        """Delete a source of which nothing was ever read, and keep its run; False if it is to stay."""
        async with self.db.write(run.source_id) as tx:
            if not await tx.run("keep_run_of_trial", run=run.id):
                return False
            await tx.run("forget_unkept_runs", before=now - UNKEPT_RUNS_STAY)
            await tx.run("cancel_source", source=run.source_id, now=now)
            await tx.run("delete_source", source=run.source_id)
            return True

    async def unkept_run(self, run: RunId) -> tuple[Run, Source] | None:
        """A run of a source that was not kept, with what was known of the source."""
        async with self.db.read() as tx:
            row = await tx.one("unkept_run", run=run)
        return (run_from(row), unkept_source(row)) if row else None

    async def start_run(
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

    async def cancel_run(self, run: Run, now: datetime) -> Run | None:
        """Stop a run that is queued or under way; None if it is neither."""
        async with self.db.write(run.source_id) as tx:
            row = await tx.one("cancel_run", run=run.id, now=now)
            return run_from(row) if row else None

    async def run_by_id(self, run: RunId) -> Run | None:
        """One run."""
        async with self.db.read() as tx:
            row = await tx.one("run_by_id", run=run)
            return run_from(row) if row else None

    async def last_runs(self, source: SourceId, limit: int = 1) -> list[Run]:
        """The newest runs of a source, newest first; a check before an answer is none."""
        async with self.db.read() as tx:
            return [run_from(row) for row in await tx.all("last_runs", source=source, limit=limit)]

    async def live_runs(self) -> list[Run]:
        """Runs that work, wait to be resumed or wait for a confirmation, newest first."""
        async with self.db.read() as tx:
            return [run_from(row) for row in await tx.all("live_runs")]

    async def join(self, worker: Worker) -> None:
        """Make a worker known; its heart beats from now on."""
        async with self.db.write() as tx:
            await tx.run(
                "upsert_worker", name=worker.name, host=worker.host, pid=worker.pid, now=worker.heartbeat_at
            )

    async def beat(self, worker: Worker) -> bool:
        """Renew every lease of a worker at once; False if others took it for dead."""
        now = worker.heartbeat_at
        async with self.db.write() as tx:
            known = await tx.run("beat", worker=worker.name, now=now)
            if not known:
                await tx.run("upsert_worker", name=worker.name, host=worker.host, pid=worker.pid, now=now)
            return bool(known)

    async def workers(self) -> list[Worker]:
        """All workers that are known, the dead among them."""
        async with self.db.read() as tx:
            return [worker_from(row) for row in await tx.all("workers")]


async def _resume(tx: Session, run: Run, state: RunState, worker: str | None, now: datetime) -> Row | None:
    """Go on with a run: where it was if that was a moment ago, else with a new look at everything."""
    again = looks_again(run, now)
    if again:
        asked = {"source": run.source_id, "run": run.id}
        await tx.run("unqueue_pages", **asked)
        await tx.run("free_rows_of_run", run=run.id, now=now)
        if await tx.run("forgive_run", **asked):
            await tx.run("mark_graph", source=run.source_id, changed=1)
        await tx.run("restart_run", **asked, now=now)
        await tx.run("stamp_source", source=run.source_id, now=now)
    counts, taken_at = counts_so_far(run, again=again), None if worker is None else now
    row = await tx.one(
        "resume_run", run=run.id, worker=worker, state=state, counts=json.dumps(counts), taken_at=taken_at
    )
    await tx.run("ask_root_again", source=run.source_id)
    await tx.run("mend_times", run=run.id, now=now)
    return row
