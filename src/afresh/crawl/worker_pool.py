"""Process open runs: lead runs that have no leader, and assist in others."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from afresh.backoff import next_wait
from afresh.crawl import run_log
from afresh.crawl.factory import RunToolFactory
from afresh.crawl.heartbeat import Heartbeat, registered_worker
from afresh.crawl.report import report_of
from afresh.crawl.run import run_source
from afresh.crawl.run_verdict import RunEnding
from afresh.crawl.tools import RunOptions, RunTools
from afresh.crawl.worker import WakeupListener, Worker
from afresh.dataclass import dataclass, field, replace
from afresh.errors import AfreshError, ConfigError, RunBusy, SourceError, StoreUnavailable
from afresh.events import Listener, Notice
from afresh.model.records import Run, RunId, RunMode, RunState, Source
from afresh.model.reports import RunReport
from afresh.notify.outbox import messages_to_send
from afresh.store.store import Store
from afresh.urls.files import is_file_url, path_of

log = logging.getLogger(__name__)

MAX_RUNS = 4  # in one process
POLL_SECONDS = 1.0  # between checks for open runs
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 5.0, 300.0  # before a failed run is tried again


@dataclass(slots=True)
class _Assignment:
    run: Run
    source: Source
    leads: bool
    begun: bool = False  # whether the run was seen in progress
    leader_died: bool = False  # while this process assisted
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def stop(self, *, leader_died: bool = False) -> None:
        """Stop working on the run; after `leader_died`, this process may lead the run instead of assisting."""
        self.leader_died = leader_died
        self.stopping.set()


@dataclass(slots=True)
class WorkerPool:
    tools: RunToolFactory
    stopping: asyncio.Event
    on_report: Callable[[RunReport], None]
    listener: Listener
    labels: Sequence[str] = ()
    at_once: int = MAX_RUNS
    once: bool = False  # end when there is nothing to do
    failed: bool = False  # whether a run could not be completed
    _assignments: dict[RunId, _Assignment] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _postponed: dict[RunId, tuple[float, float]] = field(default_factory=dict)  # when to try again, and the pause

    async def work(self) -> None:
        """Process runs until stopped; then finish active pages and return the others to the queue."""
        store, heartbeat = self.tools.standing(self.listener, self.stopping)
        wakeups = WakeupListener(store)
        with suppress(StoreUnavailable):  # stopped while the database was unreachable: nothing to write
            async with self.tools.keep_warm(), registered_worker(heartbeat, self.stopping):
                try:
                    while not self.stopping.is_set() and await self._assign_work(store, heartbeat, wakeups):
                        await wakeups.wait(POLL_SECONDS, self._changed, self.stopping)
                        self._changed.clear()
                finally:
                    await self._stop_all()

    async def _assign_work(self, store: Store, heartbeat: Heartbeat, wakeups: WakeupListener) -> bool:
        """Start work on open runs; return False if there are none and `once` forbids to wait for new ones."""
        wakeups.mark()
        before = len(self._assignments)
        await heartbeat.reclaim()
        alive = {worker.name for worker in await store.workers.all()}
        led: list[tuple[Run, Source]] = []
        for run, source in await self._open_runs(store, alive):
            if run.state is RunState.RUNNING and run.worker in alive:
                led.append((run, source))
            elif len(self._assignments) >= self.at_once:  # stop assisting: that run continues with its leader
                assisting = next((each for each in self._assignments.values() if not each.leads), None)
                if assisting is not None:
                    assisting.stop()
            else:
                self._take(store, heartbeat, run, source, leads=True)
        for run, source in led:
            if len(self._assignments) < self.at_once and await self._needs_help(store, heartbeat, run, source):
                self._take(store, heartbeat, run, source, leads=False)
        if len(self._assignments) > before:
            wakeups.mute_seconds = 0.0
        return bool(self._assignments) or not self.once

    async def _open_runs(self, store: Store, alive: set[str]) -> list[tuple[Run, Source]]:
        sources = {source.id: source for source in await store.sources.all()}
        found, live = [], await store.runs.for_workers()
        await self._stop_cancelled(store, live)
        self._stop_leaderless(live, alive)
        time = asyncio.get_running_loop().time()
        for run in live:
            source, (until, _) = sources.get(run.source_id), self._postponed.get(run.id, (0.0, 0.0))
            if source is None or run.state is RunState.CANCELLED or run.id in self._assignments or time < until:
                continue
            ours = not self.labels or source.label in self.labels or source.name in self.labels
            if ours and (
                not is_file_url(source.url)  # reachable from any machine
                or await asyncio.to_thread(os.path.exists, path_of(source.url))
            ):
                found.append((run, source))
        return found

    async def _stop_cancelled(self, store: Store, live: Sequence[Run]) -> None:
        for run in live:
            if (assignment := self._assignments.get(run.id)) is None:
                continue
            queued_again = run.state is RunState.QUEUED and assignment.leads and assignment.begun
            if run.state is RunState.CANCELLED or queued_again:
                assignment.stop()
            assignment.begun = assignment.begun or run.state is RunState.RUNNING
        for number in self._assignments.keys() - {run.id for run in live}:
            if await store.runs.get(number) is None and number in self._assignments:
                self._assignments[number].stop()

    def _stop_leaderless(self, live: Sequence[Run], alive: set[str]) -> None:
        """Stop helping in runs whose leader died, so that a helper can lead them."""
        for run in live:
            assignment = self._assignments.get(run.id)
            if assignment is None or assignment.leads or assignment.stopping.is_set():
                continue
            if run.state is RunState.RUNNING and run.worker not in alive:
                assignment.stop(leader_died=True)

    async def _needs_help(self, store: Store, heartbeat: Heartbeat, run: Run, source: Source) -> bool:
        if source.kind != "web":  # runs of other kinds need the listing that only their leader has
            return False
        backlog = await store.queue.backlog(run.id)
        due = backlog.next_at is not None and backlog.next_at <= heartbeat.clock()
        return due and backlog.open > backlog.held

    def _take(self, store: Store, heartbeat: Heartbeat, run: Run, source: Source, *, leads: bool) -> None:
        assignment = self._assignments[run.id] = _Assignment(run, source, leads)
        assignment.task = asyncio.create_task(self._run_assignment(store, heartbeat, assignment))

    async def _run_assignment(self, store: Store, heartbeat: Heartbeat, assignment: _Assignment) -> None:
        run, source = assignment.run, assignment.source
        try:
            try:
                await self._work_on(store, heartbeat, assignment)
            except ConfigError as wrong:  # a retry would fail, too
                if assignment.leads:
                    await self._fail_run(store, heartbeat, run, source, str(wrong))
        except RunBusy as busy:  # another worker was faster
            log.info("run %s is skipped: %s", run.id, busy)
        except StoreUnavailable as error:  # stopped while the database was unreachable
            log.info("run %s is left unfinished: %s", run.id, error)
        except Exception as error:
            self._postpone_run(run, source, error)
        finally:
            self._assignments.pop(run.id, None)
            self._changed.set()

    async def _work_on(self, store: Store, heartbeat: Heartbeat, assignment: _Assignment) -> None:
        run, source, stopping = assignment.run, assignment.source, assignment.stopping
        options = RunOptions(mode=run.mode, full=run.full)
        async with self.tools.open(source, options, self.listener, stopping) as (tools, rules):
            if not assignment.leads:
                await assist_run(tools, source, run, stopping)
                if not stopping.is_set():
                    assignment.leader_died = await _has_lost_leader(store, heartbeat, run.id)
                if assignment.leader_died:  # a registered assistant keeps others from taking the run over
                    await store.runs.join(run.id, heartbeat.me.name)
            else:
                with run_log.run_span(source, run.mode) as ended:
                    report = ended(await run_source(tools, source, rules, options, stopping, only=run.id))
        if not assignment.leads:
            if assignment.leader_died:
                assignment.leads, assignment.leader_died, assignment.stopping = True, False, asyncio.Event()
                await self._work_on(store, heartbeat, assignment)
            return
        if report.state is not RunState.QUEUED:
            self._postponed.pop(run.id, None)
            self.on_report(report)

    async def _fail_run(self, store: Store, heartbeat: Heartbeat, run: Run, source: Source, reason: str) -> None:
        """End a run as failed; raise RunBusy if another worker has taken it over."""
        self.failed, now, state = True, heartbeat.clock(), RunState.FAILED
        mine, _ = await store.runs.start(
            source.id, run.mode, full=run.full, worker=heartbeat.me.name, now=now, only=run.id
        )
        messages = messages_to_send(self.tools.targets(), source.label, state, mine.counts)
        ending = RunEnding(state=state, counts=mine.counts, notes=mine.notes, error=reason, messages=messages)
        report = report_of(await store.runs.finish(mine, ending, now), source)
        run_log.run_ended(report, source.label)
        self.on_report(report)

    def _postpone_run(self, run: Run, source: Source, error: Exception) -> None:
        if not isinstance(error, AfreshError):
            log.error("work on run %s failed", run.id, exc_info=error)
        self.failed = True
        _, before = self._postponed.get(run.id, (0.0, 0.0))
        pause = next_wait(before, FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
        self._postponed[run.id] = (asyncio.get_running_loop().time() + pause, pause)
        again = "" if self.once else f"; tried again in {pause:.0f} s"
        self.listener(Notice(text=f"run {run.id} of {source.label}: {error}{again}"))

    async def _stop_all(self) -> None:
        assignments = list(self._assignments.values())
        for assignment in assignments:
            assignment.stop()
        tasks = [assignment.task for assignment in assignments if assignment.task is not None]
        if tasks:
            await asyncio.wait(tasks)


async def _has_lost_leader(store: Store, heartbeat: Heartbeat, number: RunId) -> bool:
    await heartbeat.reclaim()
    run, alive = await store.runs.get(number), {worker.name for worker in await store.workers.all()}
    return run is not None and run.state is RunState.RUNNING and run.worker not in alive


async def assist_run(tools: RunTools, source: Source, run: Run, stopping: asyncio.Event) -> None:
    """Process pages of a run until none is left or its leader ends it."""
    joined = await tools.store.runs.join(run.id, tools.worker)
    if joined is None:
        return
    tools = replace(tools, full=joined.full)
    if joined.mode is not RunMode.DUE or tools.has_change_dates:
        with suppress(SourceError):  # the lister then knows Markdown versions and change dates of pages
            async for _ in tools.lister.list():
                pass
    await Worker(tools, joined, source.label, stopping, leads=False).work()
