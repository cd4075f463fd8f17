"""Sources, runs and workers in memory."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from afresh.config.overlay import own_settings
from afresh.core.errors import RunBusy
from afresh.core.httpdate import LONGEST_WAIT_SECONDS
from afresh.core.looks import Outcome
from afresh.core.model import Page, PageId, Run, RunId, RunMode, RunState, Source, SourceId, Worker
from afresh.core.resume import RESUME_WITHIN, counts_so_far, looks_again
from afresh.core.states import UNFINISHED
from afresh.testing.memory.endings import MemoryEndings
from afresh.testing.memory.tables import SourceRow

LONGEST_REST = timedelta(seconds=LONGEST_WAIT_SECONDS)


LIVE = (RunState.QUEUED, RunState.RUNNING)


class MemoryRuns(MemoryEndings):
    """Who is looked at, by whom, and how it went."""

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
        old = await self.find_source(name, version) or Source(
            id=SourceId(next(self.tables.numbers)),
            name=name,
            version=version,
            kind=kind,
            url=url,
            operator_url=url if by_operator else "",
            trial=trial,
            created_at=now,
            updated_at=now,
        )
        if by_operator and old.operator_url is None:
            old = replace(old, operator_url=old.url)
        rules, policy = own_settings({**old.rules, **rules}), own_settings({**old.policy, **policy})
        source = replace(old, rules=rules, policy=policy, updated_at=now)
        row = self.tables.sources.get(source.id, SourceRow(source=source))
        self.tables.sources[source.id] = replace(row, source=source)
        return source

    async def was_read(self, source: SourceId) -> bool:
        """Tell whether any page of a source was ever read."""
        return any(row.page.last_scraped is not None for row in self.tables.pages_of(source))

    async def end_trial(self, run: Run, now: datetime) -> bool:
        """Delete a source of which nothing was ever read, and keep its run; False if it is to stay."""
        source = await self.source_by_id(run.source_id)
        others = [each for each in self.tables.runs.values() if each.source_id == run.source_id]
        busy = any(each.id != run.id and each.state in LIVE for each in others)
        if source is None or not source.trial or busy or await self.was_read(source.id):
            return False
        self.tables.unkept[run.id] = (self.tables.runs[run.id], source)
        await self.remove_source(source.id, now)
        return True

    async def unkept_run(self, run: RunId) -> tuple[Run, Source] | None:
        """A run of a source that was not kept, with what was known of the source."""
        return self.tables.unkept.get(run)

    async def find_source(self, name: str, version: str | None) -> Source | None:
        """The source with exactly this name and version."""
        return next((each for each in await self.sources(name) if each.version == version), None)

    async def find_source_by_url(self, url: str, version: str | None) -> Source | None:
        """The source that has this root."""
        sources = [row.source for row in self.tables.sources.values() if row.source.version == version]
        known = {row.page.source_id for row in self.tables.pages.values() if _was_root(row.page, url)}
        named = [source for source in sources if source.url == url]
        return next(iter([*named, *(source for source in sources if source.id in known)]), None)

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
            self.tables.answers = {k: each for k, each in self.tables.answers.items() if k[0] != source}
            self.tables.worths = {k: each for k, each in self.tables.worths.items() if k[0] != source}
            self.tables.seals.pop(source, None)
            self.tables.schedules.pop(source, None)
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
        """A run to work on, and whether it goes on; one for each `slot`, or none but `only`."""
        self._wake_hosts(now + LONGEST_REST)
        runs = [
            run
            for run in reversed(self.tables.runs.values())
            if run.source_id == source and run.mode is not RunMode.SYNC
        ]
        last = next((run for run in runs if run.state in UNFINISHED), None)
        looks = [run for run in runs if run.mode is not RunMode.CHECK]
        if slot is not None and last is None and any(run.started_at >= slot for run in looks):
            raise RunBusy(f"another process has looked at it for {slot:%Y-%m-%d %H:%M} UTC")
        if only is not None and (last is None or last.id != only):
            raise RunBusy(f"run {only} is over")
        state = RunState.QUEUED if worker is None else RunState.RUNNING
        if last is not None and self._may_resume(last, mode, full, worker, now):
            return self._resume(last, state, worker, now), True
        with self.tables.transaction():
            self._give_up_runs(source, now)
            run = Run(
                id=RunId(next(self.tables.numbers)),
                source_id=source,
                mode=mode,
                state=state,
                full=full,
                worker=worker,
                known=sum(row.page.content_hash is not None for row in self.tables.pages_of(source)),
                started_at=now,
                taken_at=None if worker is None else now,
            )
            self.tables.runs[run.id] = run
            if mode is not RunMode.CHECK:
                self._stamp_source(source, now)
            return run, False

    def _stamp_source(self, source: SourceId, now: datetime) -> None:
        row = self.tables.sources[source]
        stamped = replace(row.source, crawl_time=now, updated_at=now)
        self.tables.sources[source] = replace(row, source=stamped)

    def _resume(self, run: Run, state: RunState, worker: str | None, now: datetime) -> Run:
        """Go on with a run: where it was if that was a moment ago, else with a new look at everything."""
        again, source = looks_again(run, now), run.source_id
        counts = counts_so_far(run, again=again)
        if again:
            self._look_again(run, now)
        taken_at = None if worker is None else now
        going_on = replace(self.tables.runs[run.id], state=state, worker=worker, taken_at=taken_at)
        self.tables.runs[run.id] = replace(going_on, counts=counts, finished_at=None, error=None)
        root = self.tables.page_at(source, self.tables.sources[source].source.url)
        if root is not None:
            self.tables.pages[root.page.id] = replace(root, queued_run=None)
        self._mend_times(run.id, now)
        return self.tables.runs[run.id]

    def _look_again(self, run: Run, now: datetime) -> None:
        """Forget what a run has looked at, and what it took for gone."""
        tables, rows = self.tables, self.tables.pages_of(run.source_id)
        held = {row.page_id for row in tables.waiting() if row.run_id == run.id and row.locked_at is not None}
        for row in rows:
            stays = row.page.id in held or row.queued_run != run.id
            doomed_by = None if row.page.doomed_by == run.id else row.page.doomed_by
            page = replace(row.page, doomed_by=doomed_by)
            tables.pages[page.id] = replace(row, page=page, queued_run=row.queued_run if stays else None)
        self._free_rows(run.id, now)
        known = sum(row.page.content_hash is not None for row in rows)
        again = replace(run, started_at=now, notes=(), worked_at=None, queued=len(held), known=known)
        tables.runs[run.id] = again
        self._stamp_source(run.source_id, now)

    def _wake_hosts(self, latest: datetime) -> None:
        """No host rests for longer than one can ask to: a wrong clock said so."""
        for domain, host in self.tables.hosts.items():
            if host.next_allowed_at is not None and host.next_allowed_at > latest:
                self.tables.hosts[domain] = replace(host, next_allowed_at=None)

    def _mend_times(self, run: RunId, now: datetime) -> None:
        """Rows of the future were written before the clock was set back; they are due."""
        for row in self.tables.waiting():
            if row.run_id == run and row.locked_at is None and row.updated_at > now:
                self.tables.change_attempt(row.id, now, scheduled_for=now)

    def _may_resume(self, run: Run, mode: RunMode, full: bool, worker: str | None, now: datetime) -> bool:
        if run.state is RunState.RUNNING and run.worker in self.tables.workers and run.worker != worker:
            label = self.tables.sources[run.source_id].source.label
            raise RunBusy(f"run {run.id} of {label} is already in progress; wait for it or cancel it", run.id)
        if run.mode is RunMode.CHECK:
            return False
        if mode is RunMode.CHECK:
            raise RunBusy(f"run {run.id} was interrupted; `afresh refresh` goes on with it")
        enough = run.mode is not RunMode.DUE or mode is RunMode.DUE
        return now - run.started_at < RESUME_WITHIN and (run.full or not full) and enough

    def _give_up_runs(self, source: SourceId, now: datetime) -> None:
        for run in list(self.tables.runs.values()):
            if run.source_id == source and run.mode is not RunMode.SYNC and run.state in UNFINISHED:
                given_up = replace(
                    run, state=RunState.FAILED, finished_at=now, error="given up for a newer run"
                )
                self.tables.runs[run.id] = given_up
                self._free_rows(run.id, now)

    async def cancel_run(self, run: Run, now: datetime) -> Run | None:
        """Stop a run that is queued or under way; None if it is neither."""
        found = self.tables.runs.get(run.id)
        if found is None or found.state not in (RunState.QUEUED, RunState.RUNNING):
            return None
        self.tables.runs[run.id] = replace(found, state=RunState.CANCELLED, finished_at=now)
        return self.tables.runs[run.id]

    async def run_by_id(self, run: RunId) -> Run | None:
        """One run."""
        return self.tables.runs.get(run)

    async def join_run(self, run: RunId, worker: str) -> Run | None:
        """A run to lend a hand in."""
        if worker in self.tables.workers:
            self.tables.workers[worker] = replace(self.tables.workers[worker], helps=run)
        return await self.run_by_id(run)

    async def last_runs(self, source: SourceId, limit: int = 1) -> list[Run]:
        """The newest runs of a source, newest first; a check before an answer is none."""
        runs = [run for run in reversed(self.tables.runs.values()) if run.source_id == source]
        return [run for run in runs if run.mode not in (RunMode.CHECK, RunMode.SYNC)][:limit]

    async def live_runs(self) -> list[Run]:
        """Runs that work, wait to be resumed or wait for a confirmation, newest first."""
        live = (*UNFINISHED, RunState.NEEDS_CONFIRMATION)
        runs = [run for run in reversed(self.tables.runs.values()) if run.state in live]
        runs = [run for run in runs if run.mode is not RunMode.SYNC]
        return [run for run in runs if (run.mode, run.state) != (RunMode.CHECK, RunState.RUNNING)]

    async def join(self, worker: Worker) -> None:
        """Make a worker known; its heart beats from now on."""
        self.tables.workers[worker.name] = replace(worker, started_at=worker.heartbeat_at)

    async def beat(self, worker: Worker) -> bool:
        """Renew every lease of a worker at once; False if others took it for dead."""
        known = self.tables.workers.get(worker.name)
        since, helps = (known.started_at, known.helps) if known else (worker.heartbeat_at, None)
        self.tables.workers[worker.name] = replace(worker, started_at=since, helps=helps)
        return known is not None

    async def workers(self) -> list[Worker]:
        """All workers that are known, the dead among them."""
        return list(self.tables.workers.values())


def _was_root(page: Page, url: str) -> bool:
    """Whether a page is the root of a source that moved since."""
    return page.url == url and page.depth == 0 and page.moved_to is not None
