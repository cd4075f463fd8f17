"""Sources, runs and workers in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from afresh.core.errors import RunBusy
from afresh.core.looks import Outcome
from afresh.core.model import PageId, Run, RunId, RunMode, RunState, Source, SourceId, Worker
from afresh.testing.memory.tables import SourceRow, Tables

RESUME_WITHIN = timedelta(hours=24)
UNFINISHED = (RunState.RUNNING, RunState.CANCELLED)


class MemoryRuns:
    """Who is looked at, by whom, and how it went."""

    tables: Tables

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
    ) -> Source:
        """The source of that name, made if it was not there; new rules and policy are merged over the old."""
        old = await self.find_source(name, version) or Source(
            id=SourceId(next(self.tables.numbers)),
            name=name,
            version=version,
            kind=kind,
            url=url,
            created_at=now,
            updated_at=now,
        )
        rules, policy = {**old.rules, **rules}, {**old.policy, **policy}
        source = replace(old, rules=rules, policy=policy, updated_at=now)
        row = self.tables.sources.get(source.id, SourceRow(source=source))
        self.tables.sources[source.id] = replace(row, source=source)
        return source

    async def find_source(self, name: str, version: str | None) -> Source | None:
        """The source with exactly this name and version."""
        return next((each for each in await self.sources(name) if each.version == version), None)

    async def find_source_by_url(self, url: str, version: str | None) -> Source | None:
        """The source that has this root."""
        rows = self.tables.sources.values()
        return next((r.source for r in rows if (r.source.url, r.source.version) == (url, version)), None)

    async def source_by_id(self, source: SourceId) -> Source | None:
        """The source with this id."""
        row = self.tables.sources.get(source)
        return row.source if row else None

    async def sources(self, name: str | None = None) -> list[Source]:
        """All sources, or all versions of one name."""
        found = [row.source for row in self.tables.sources.values() if name in (None, row.source.name)]
        return sorted(found, key=lambda each: (each.name, each.version or ""))

    async def remove_source(self, source: SourceId, now: datetime) -> None:
        """Delete a source with its pages; the attempts stay in the history, none of them open."""
        with self.tables.transaction():
            for row in self.tables.pages_of(source):
                self._remove_page(row.page.id, now)
            self.tables.sources.pop(source, None)
            self.tables.runs = {k: run for k, run in self.tables.runs.items() if run.source_id != source}
            self.tables.links = {k: link for k, link in self.tables.links.items() if k[0] != source}
            self.tables.changes = {k: each for k, each in self.tables.changes.items() if each[0] != source}

    def _remove_page(self, page: PageId, now: datetime) -> None:
        tables, row = self.tables, self.tables.pages[page]
        for attempt in [each for each in tables.crawls.values() if each.page_id == page]:
            if attempt.outcome is None:
                reason = "the source was removed"
                tables.close_attempt(attempt.id, Outcome.CANCELLED, now, reason=reason)
            tables.crawls[attempt.id] = replace(tables.crawls[attempt.id], page_id=None)
        del tables.pages[page], tables.addresses[row.page.source_id, row.page.url]
        tables.documents.pop(page, None)
        tables.pieces.pop(page, None)
        tables.edges.pop(page, None)

    async def start_run(
        self, source: SourceId, mode: RunMode, *, full: bool, worker: str, now: datetime
    ) -> tuple[Run, bool]:
        """A run to work on, and whether it is one that was interrupted and goes on."""
        last = next((run for run in await self.last_runs(source, 1000) if run.state in UNFINISHED), None)
        if last is not None and self._may_resume(last, mode, full, worker, now):
            going_on = replace(last, state=RunState.RUNNING, worker=worker, finished_at=None, error=None)
            self.tables.runs[last.id] = going_on
            root = self.tables.page_at(source, self.tables.sources[source].source.url)
            if root is not None:
                self.tables.pages[root.page.id] = replace(root, queued_run=None)
            return going_on, True
        with self.tables.transaction():
            self._give_up_runs(source, now)
            run = Run(
                id=RunId(next(self.tables.numbers)),
                source_id=source,
                mode=mode,
                state=RunState.RUNNING,
                full=full,
                worker=worker,
                known=sum(row.page.content_hash is not None for row in self.tables.pages_of(source)),
                started_at=now,
            )
            self.tables.runs[run.id] = run
            row = self.tables.sources[source]
            stamped = replace(row.source, crawl_time=now, updated_at=now)
            self.tables.sources[source] = replace(row, source=stamped)
            return run, False

    def _may_resume(self, run: Run, mode: RunMode, full: bool, worker: str, now: datetime) -> bool:
        if run.state is RunState.RUNNING and run.worker in self.tables.workers and run.worker != worker:
            raise RunBusy(f"run {run.id} is under way in another process ({run.worker}); wait or stop it")
        enough = run.mode is not RunMode.DUE or mode is RunMode.DUE
        return now - run.started_at < RESUME_WITHIN and (run.full or not full) and enough

    def _give_up_runs(self, source: SourceId, now: datetime) -> None:
        for run in list(self.tables.runs.values()):
            if run.source_id == source and run.state in UNFINISHED:
                given_up = replace(
                    run, state=RunState.FAILED, finished_at=now, error="given up for a newer run"
                )
                self.tables.runs[run.id] = given_up
                self._free_rows(run.id, now)

    def _free_rows(self, run: RunId, now: datetime) -> None:
        """What a closed run did not get to is a next look like any other."""
        for row in self.tables.waiting():
            if row.run_id == run and row.locked_at is None:
                self.tables.change_attempt(row.id, now, run_id=None)

    async def run_by_id(self, run: RunId) -> Run | None:
        """One run."""
        return self.tables.runs.get(run)

    async def last_runs(self, source: SourceId, limit: int = 1) -> list[Run]:
        """The newest runs of a source, newest first."""
        return [run for run in reversed(self.tables.runs.values()) if run.source_id == source][:limit]

    async def live_runs(self) -> list[Run]:
        """Runs that work, wait to be resumed or wait for a confirmation, newest first."""
        live = (*UNFINISHED, RunState.NEEDS_CONFIRMATION)
        return [run for run in reversed(self.tables.runs.values()) if run.state in live]

    async def finish_run(
        self,
        run: RunId,
        state: RunState,
        now: datetime,
        *,
        counts: Mapping[str, int],
        notes: Sequence[str],
        error: str | None,
    ) -> Run:
        """Close a run with its final counts; one that was cancelled keeps its place in the queue."""
        finished = replace(
            self.tables.runs[run],
            state=state,
            finished_at=now,
            counts=dict(counts),
            notes=tuple(notes),
            error=error,
        )
        self.tables.runs[run] = finished
        if state is not RunState.CANCELLED:
            self._free_rows(run, now)
        self._settle_marks(finished)
        return finished

    def _settle_marks(self, run: Run) -> None:
        if run.state is RunState.CANCELLED:
            return
        for row in self.tables.pages_of(run.source_id):
            own = row.page.doomed_by == run.id
            if row.page.doomed_by is not None and own == (run.state is RunState.FAILED):
                self.tables.change_page(row.page.id, doomed_by=None)
        if run.state is not RunState.FAILED:
            self._supersede_waiting(run)

    def _supersede_waiting(self, later: Run) -> None:
        for run in list(self.tables.runs.values()):
            same = run.source_id == later.source_id and run.id != later.id
            if same and run.state is RunState.NEEDS_CONFIRMATION:
                over = replace(run, state=RunState.PARTIAL, error="a later run looked again")
                self.tables.runs[run.id] = over

    async def join(self, worker: Worker) -> None:
        """Make a worker known; its heart beats from now on."""
        self.tables.workers[worker.name] = worker

    async def beat(self, worker: str, now: datetime, until: datetime) -> None:
        """Renew every lease of a worker at once."""
        if worker in self.tables.workers:
            self.tables.workers[worker] = replace(self.tables.workers[worker], heartbeat_at=now)
        for domain, host in self.tables.hosts.items():
            if host.locked_by == worker:
                self.tables.hosts[domain] = replace(host, locked_until=until)

    async def workers(self) -> list[Worker]:
        """All workers that are known, the dead among them."""
        return list(self.tables.workers.values())
