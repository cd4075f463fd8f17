"""Start, queue, process, list, confirm and cancel runs."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypedDict, Unpack

from afresh.aio import gather_limited, wait_event
from afresh.crawl.factory import settings_or_none
from afresh.crawl.report import report_of
from afresh.crawl.run import Runner
from afresh.crawl.run_verdict import RunEnding, count_moves, may_drop
from afresh.crawl.tools import RunOptions
from afresh.crawl.worker_pool import MAX_RUNS, WorkerPool
from afresh.dataclass import replace
from afresh.errors import ConfigError, NotFound, RunBusy, RunFinished, UsageError
from afresh.events import Listener, Notice, ignore
from afresh.model.fetch import Outcome
from afresh.model.filters import AttemptCursor, Sources
from afresh.model.overview import BlockedDeletions, BlockedPage
from afresh.model.records import Attempt, Page, Policy, Run, RunId, RunMode, RunState, Source
from afresh.model.reports import RunReport
from afresh.notify.outbox import messages_to_send
from afresh.ops.failpoints import failpoint
from afresh.services.context import Service
from afresh.services.edit_source import add_source
from afresh.services.resolve import check_idle, exact_sources, labelled_sources
from afresh.services.status_views import awaited_report, live_report, live_reports
from afresh.store.store import Store
from afresh.sync.reports import DocumentCounts, DocumentOutcome, SyncedDocument
from afresh.watch.watcher import DEFAULT_TIMES, Watcher, WatchListener, WatchTimes, select_watched

MAX_RUNS_LISTED = 1_000
MAX_PAGES_LISTED = 200  # pages of blocked deletions that are listed individually
OPEN_STATES = (RunState.QUEUED, RunState.RUNNING, RunState.NEEDS_CONFIRMATION)


class SourceRunner(Runner):
    """Runs any source; for the sources of `init-kb`, stores summaries and refuses to queue runs."""

    async def run(self, source: Source, options: RunOptions, listener: Listener = ignore) -> RunReport:
        return await super().run(source, replace(options, for_digest=source.is_of_digest), listener)

    async def queue(
        self, source: Source, mode: RunMode, *, full: bool = False, slot: datetime | None = None
    ) -> RunReport:
        if source.is_of_digest:
            raise UsageError(f"{source.label} cannot be queued: only `afresh init-kb` reads it (settings: section kb)")
        return await super().queue(source, mode, full=full, slot=slot)


async def run_and_source(store: Store, number: int) -> tuple[Run, Source]:
    run = await store.runs.get(RunId(number))
    source = await store.sources.get(run.source_id) if run else None
    if run is None and (unkept := await store.runs.unkept(RunId(number))) is not None:
        return unkept
    if run is None or source is None:
        raise NotFound(f"there is no run {number}; `afresh runs` lists the latest runs")
    return run, source


class RunFlags(TypedDict, total=False):
    """Options of a run that users set; `RunOptions` explains them."""

    full: bool
    trust: bool
    redetect: bool
    follow_move: bool


class RunService(Service):
    async def stops_within(self, seconds: float) -> bool:
        """Wait for `stop`; return True if it is called within `seconds`."""
        return await wait_event(self._stopping, seconds)

    async def crawl(
        self,
        target: str,
        *,
        name: str | None = None,
        version: str | None = None,
        rules: Mapping[str, object] | None = None,
        policy: Mapping[str, object] | None = None,
        on_the_web: bool = False,
        keep: bool = True,
        again: bool = True,
        queue: bool = False,
        listener: Listener = ignore,
        **flags: Unpack[RunFlags],
    ) -> RunReport:
        """Add the source if it is new, and crawl it now or, with `queue`, leave the crawl to workers.

        `on_the_web` accepts no local files. Without `keep`, a new source is removed again if its first run reads
        nothing. Without `again`, raise AlreadyExists for a URL that is a source already. `RunOptions` explains the
        flags; a queued crawl supports only `full`.
        """
        found = self._tools.recognise(target, on_the_web=on_the_web)
        how = {"by_operator": not on_the_web, "keep": keep, "again": again}
        source = await add_source(self._store, self._tools, found, name, version, rules, policy, **how)
        options = RunOptions(mode=RunMode.CRAWL, **flags)
        if queue:
            return await self._runner.queue(source, RunMode.CRAWL, full=options.full)
        return await self._runner.run(source, options, listener)

    async def refresh(
        self,
        labels: Sequence[str] = (),
        *,
        due: bool = False,
        budget: int | None = None,
        queue: bool = False,
        listener: Listener = ignore,
        **flags: Unpack[RunFlags],
    ) -> list[RunReport]:
        """Refresh some sources or all, with `due` only their due pages; with `queue`, leave this to workers.

        `budget` limits the due pages that are checked in each source. `RunOptions` explains the flags; a queued refresh
        supports only `full`.
        """
        named = await labelled_sources(self._store, labels)
        chosen = named or [each for each in await self._store.sources.all() if not (queue and each.is_of_digest)]
        options = RunOptions(mode=RunMode.DUE if due else RunMode.REFRESH, budget=budget, **flags)

        async def refresh_one(source: Source) -> RunReport | None:
            why: RunBusy | ConfigError
            try:
                slot = await self._next_time(source) if due else None
                if self._stopping.is_set() or (slot is not None and slot > self._clock()):
                    return None
                if queue:
                    return await self._runner.queue(source, options.mode, full=options.full, slot=slot)
                return await self._runner.run(source, replace(options, slot=slot), listener)
            except RunBusy as busy:  # another process works on this source: continue with the others
                if len(chosen) == 1 and not due:
                    raise
                why = busy
            except ConfigError as wrong:
                if len(chosen) == 1:
                    raise
                if not queue:  # raised after the other sources are done
                    raise ConfigError(f"{source.label}: {wrong}") from None
                why = wrong
            listener(Notice(text=f"{source.label} is left out: {why}"))
            return None

        if queue:
            reports = [await refresh_one(source) for source in chosen]
        else:
            reports = await gather_limited([partial(refresh_one, source) for source in chosen])
        return [report for report in reports if report is not None]

    async def watch(
        self,
        labels: Sequence[str] = (),
        *,
        times: WatchTimes = DEFAULT_TIMES,
        on_report: WatchListener = ignore,
        listener: Listener = ignore,
    ) -> None:
        """Refresh local files as soon as they change, until `stop`."""
        named = {label: await exact_sources(self._store, label) for label in labels}
        sources = select_watched(named, await self._store.sources.all())
        async with self._tools.keep_warm():
            feed, run = self._tools.change_feed, self._runner.run
            await Watcher(self._store, feed, run, self._stopping, times, on_report, listener).keep(sources)

    async def start(self, source: Source, mode: RunMode | None = None, *, full: bool = False) -> RunReport:
        """Queue a run for workers, by default a refresh or the first crawl; raise RunBusy if a run is open."""
        await check_idle(self._store, source, await self._alive())
        usual = RunMode.REFRESH if source.crawl_time else RunMode.CRAWL
        return await self._runner.queue(source, mode or usual, full=full)

    async def work(
        self,
        labels: Sequence[str] = (),
        *,
        at_once: int = MAX_RUNS,
        once: bool = False,
        on_report: Callable[[RunReport], None] = ignore,
        listener: Listener = ignore,
    ) -> bool:
        """Process open runs until `stop` or, with `once`, until none is left; return whether all of them succeeded."""
        pool = WorkerPool(self._tools, self._stopping, on_report, listener, labels, at_once, once)
        await pool.work()
        return not pool.failed

    async def has_work(self) -> bool:
        """Return whether there is an open run that no process works on."""
        alive = await self._alive()
        return any(
            run.state is RunState.QUEUED or (run.state is RunState.RUNNING and not alive.is_working_on(run))
            for run in await self._store.runs.live()
        )

    async def records(
        self,
        sources: Sources = None,
        *,
        state: RunState | None = None,
        below: int | None = None,
        limit: int = MAX_RUNS_LISTED,
    ) -> list[RunReport]:
        """Return the runs of some sources or all, newest first; open runs show their current progress."""
        by_id = {source.id: source for source in await self._store.sources.all()}
        runs = await self._store.runs.records(sources, state=state, below=below, limit=limit)
        alive, now = await self._alive(), self._clock()
        owned = [(run, by_id.get(run.source_id)) for run in runs]
        return [live_report(run, source, alive, now) for run, source in owned if source is not None]

    async def get(self, number: int) -> RunReport:
        run, source = await run_and_source(self._store, number)
        report = awaited_report(run, source, await self._alive(), self._clock())
        if report.documents is None or run.state is not RunState.RUNNING:
            return report
        return replace(report, documents=DocumentCounts(**await self._store.copies.count_documents(run.id)))

    async def source_of(self, number: int) -> Source:
        return (await run_and_source(self._store, number))[1]

    async def live(self, sees: Callable[[str], bool]) -> list[tuple[Source, RunReport]]:
        """Return queued, running and unconfirmed runs of the visible sources, newest first."""
        found = await live_reports(self._store, await self._alive(), self._clock())
        return [pair for pair in found if sees(pair[0].label) and pair[1].state in OPEN_STATES]

    async def attempts(
        self, number: int, *, outcome: Outcome | None = None, after: AttemptCursor | None = None, limit: int
    ) -> list[Attempt]:
        """Return the attempts of a run ordered by outcome, failures first."""
        await self.source_of(number)
        if after is not None and outcome not in (None, after.outcome):
            raise UsageError(
                f"cursor: this cursor belongs to outcome={after.outcome}; pass this outcome, "
                "or start again without a cursor"
            )
        return await self._store.history.attempts_of_run(RunId(number), outcome=outcome, after=after, limit=limit)

    async def documents(
        self, number: int, *, outcome: DocumentOutcome | None = None, after: int = 0, limit: int
    ) -> list[SyncedDocument]:
        """Return the documents of a sync run, each with its outcome in that run and its state now."""
        await self.source_of(number)
        return await self._store.copies.documents_of_run(RunId(number), outcome=outcome, after=after, limit=limit)

    async def blocked_deletions(self, number: int) -> BlockedDeletions:
        run, source = await run_and_source(self._store, number)
        bounds = settings_or_none(self._tools.bounds, source)
        limits = bounds[1] if bounds else Policy()
        pages = await self._doomed(run) if run.state is RunState.NEEDS_CONFIRMATION else []
        views = tuple(
            BlockedPage(id=page.id, url=page.url, title=page.title, moved_to=page.moved_to)
            for page in pages[:MAX_PAGES_LISTED]
        )
        return BlockedDeletions(pages=views, count=len(pages), percent=limits.brake_percent, allowed=limits.brake_pages)

    async def _doomed(self, run: Run) -> list[Page]:
        """Return the pages that a run would delete, except those that a later run found again."""
        doomed = await self._store.pages.doomed(run.source_id)
        return [page for page, target in doomed if may_drop(page, target, run.id)]

    async def cancel(self, number: int) -> RunReport:
        """Cancel a run, also one in another process; its results stay, and the next refresh continues it."""
        run, source = await run_and_source(self._store, number)
        if run.mode is RunMode.SYNC:
            raise UsageError(f"run {number} is a sync and cannot be cancelled: wait for its end or stop its process")
        if (cancelled := await self._store.runs.cancel(run, self._clock())) is None:
            raise RunFinished(f"run {number} has already ended: it is {run.state}")
        return report_of(cancelled, source)

    async def confirm(self, run: int) -> RunReport:
        """Delete the pages whose deletion awaits confirmation, except those that a later run found again."""
        store, (held, source) = self._store, await run_and_source(self._store, run)
        if held.state is not RunState.NEEDS_CONFIRMATION:
            raise RunFinished(f"run {run} does not need confirmation: it is {held.state}")
        failpoint("confirm.begin")
        doomed = await self._doomed(held)
        heirs = await store.pages.heirs(source.id, doomed)
        counts = {**held.counts, "held": 0, **count_moves(doomed, heirs, held)}
        state = RunState.PARTIAL if held.counts.get("failed") else RunState.COMPLETED
        ending = RunEnding(
            state=state,
            counts=counts,
            notes=held.notes,
            error=held.error,
            dropped=doomed,
            heirs=heirs,
            messages=messages_to_send(self._tools.targets(), source.label, state, counts, confirmed=True),
        )
        finished = await store.runs.finish(held, ending, self._clock())
        failpoint("finish.done")
        return report_of(finished, source)
