"""Run sources at their scheduled times, each time only once even if several schedulers share a store."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from afresh.aio import wait_first
from afresh.crawl.factory import RunToolFactory
from afresh.crawl.heartbeat import Heartbeat, registered_worker
from afresh.crawl.run import Runner
from afresh.crawl.tools import RunOptions
from afresh.dataclass import dataclass, field, replace
from afresh.errors import AfreshError, ConfigError, RunBusy, StoreUnavailable
from afresh.events import Listener, Notice
from afresh.model.labels import is_among
from afresh.model.records import RunMode, RunState, Source, SourceId
from afresh.model.reports import RunReport
from afresh.ports import Clock
from afresh.schedule.plan import next_time
from afresh.schedule.rules import Schedule, ScheduledRun
from afresh.sources.linklist.parse import LINKS
from afresh.store.store import Store
from afresh.sync.after_runs import PostRunSync

log = logging.getLogger(__name__)

AT_ONCE = 4  # sources that one process runs concurrently
POLL_SECONDS = 10.0  # seconds until new sources and settings are noticed
BUSY_POLL = timedelta(seconds=1)  # until a source that is due but busy is checked again
FAILED = "failed"  # the outcome if a run could not be started or raised an error
NEVER = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class _Planned:
    source: Source
    schedule: Schedule
    appointment: ScheduledRun


@dataclass(slots=True, kw_only=True)
class Scheduler:
    tools: RunToolFactory
    runner: Runner
    stopping: asyncio.Event
    clock: Clock
    syncs: PostRunSync | None  # None: other processes sync
    on_report: Callable[[RunReport], None]
    listener: Listener
    labels: Sequence[str] = ()
    once: bool = False  # end when nothing is due
    queues: bool = False  # leave runs to the workers of the store
    _going: dict[SourceId, asyncio.Task[None]] = field(default_factory=dict)
    _waits_for: dict[SourceId, datetime] = field(default_factory=dict)  # slots already reported as waiting
    _wrong: dict[SourceId, str] = field(default_factory=dict)  # settings already reported as wrong
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _failed: bool = False

    @property
    def failed(self) -> bool:
        return self._failed or (self.syncs is not None and self.syncs.failed)

    async def keep(self) -> None:
        store, heartbeat = self.tools.standing(self.listener, self.stopping)
        with suppress(StoreUnavailable):  # stop requested while the database was down
            async with self.tools.keep_warm(), registered_worker(heartbeat, self.stopping):
                try:
                    await self._catch_up(store)
                    while not self.stopping.is_set():
                        next_at = await self._start_due_runs(store, heartbeat)
                        if self.once and not self._going:
                            break
                        await self._until(next_at)
                except BaseException:
                    if self.syncs is not None:
                        self.syncs.leave()
                    raise
                finally:
                    if self._going:
                        await asyncio.wait(self._going.values())
                    if self.syncs is not None:
                        await self.syncs.drain()

    async def _catch_up(self, store: Store) -> None:
        """Sync the sinks of all scheduled sources, because a previous process may have left syncs unfinished."""
        if not self.once:
            for source, _ in await scheduled(store, self.tools):
                if is_among(source.label, self.labels):
                    self._sync(source)

    def _sync(self, source: Source) -> None:
        if self.syncs is not None:
            self.syncs.want(self.tools.sinks_of(source))

    async def _start_due_runs(self, store: Store, heartbeat: Heartbeat) -> datetime | None:
        """Start the due runs; return the time of the next one."""
        await heartbeat.reclaim()
        planned = await plan(store, self.tools, self.clock(), self._report_wrong)
        mine = [each for each in planned if is_among(each.source.label, self.labels)]
        busy = await self._busy(store)
        for each in mine:
            if each.appointment.next_at > self.clock() or each.source.id in self._going:
                continue
            if each.source.id in busy:
                if self._waits_for.get(each.source.id) != each.appointment.slot:  # report once
                    self._waits_for[each.source.id] = each.appointment.slot
                    self.listener(Notice(text=f"{each.source.label} is due, but a run of it is still open"))
            elif len(self._going) < AT_ONCE and await store.schedules.hold(
                each.source.id, each.appointment.next_at, heartbeat.me.name
            ):
                self._going[each.source.id] = asyncio.create_task(self._use(store, heartbeat.me.name, each))
        later = [each.appointment.next_at for each in mine if each.appointment.next_at > self.clock()]
        if any(each.source.id in busy and each.appointment.next_at <= self.clock() for each in mine):
            later.append(self.clock() + BUSY_POLL)  # until its run or its process ends
        return min(later, default=None)

    async def _busy(self, store: Store) -> set[SourceId]:
        alive = {worker.name for worker in await store.workers.all()}
        return {
            run.source_id
            for run in await store.runs.live()
            if run.state is RunState.QUEUED or (run.state is RunState.RUNNING and run.worker in alive)
        }

    def _report_wrong(self, source: Source, why: str) -> None:
        if is_among(source.label, self.labels) and self._wrong.get(source.id) != why:
            self._wrong[source.id] = why
            self.listener(Notice(text=f"{source.label} is not checked: {why}"))

    async def _use(self, store: Store, worker: str, each: _Planned) -> None:
        """Run a due source; afterwards, also after an error, it may be started again."""
        try:
            await self._run(store, worker, each)
        except StoreUnavailable as error:  # stop requested while the database was down
            log.info("the scheduled run of %s did not start and stays due: %s", each.source.label, error)
        finally:
            self._going.pop(each.source.id, None)
            self._moved.set()

    async def _run(self, store: Store, worker: str, each: _Planned) -> None:
        """Run a source and plan its next run; if the run is cancelled, the source stays due."""
        used = replace(each.appointment, fired_at=self.clock(), outcome=FAILED)
        try:
            report = await self._report(each.source, each.schedule, each.appointment.slot)
            if report.state is RunState.CANCELLED:
                await store.schedules.let_go(each.source.id, worker)
                return
            used = replace(used, run=report.run, outcome=str(report.state))
            self.on_report(report)
            self._sync(each.source)
        except RunBusy as busy:
            log.info("%s is skipped: %s", each.source.label, busy)
            last = await store.runs.last(each.source.id, 1)
            if not last or last[0].started_at < each.appointment.slot:
                await store.schedules.let_go(each.source.id, worker)
                return
            used = replace(used, run=last[0].id, outcome=str(last[0].state))
        except StoreUnavailable:
            raise
        except Exception as error:  # an error of one source must not stop the others
            if not isinstance(error, AfreshError):
                log.exception("the scheduled run of %s failed", each.source.label)
            self._failed = True
            self.listener(
                Notice(text=f"{each.source.label}: {error}; it will be tried again at its next scheduled time")
            )
        now = self.clock()
        slot = each.schedule.following(used.slot, now) or now + NEVER  # rules without a next time are never scheduled
        next_at = each.schedule.delayed(slot, each.source.label)
        await store.schedules.settle(replace(used, slot=slot, next_at=next_at, planned_at=now), worker)

    async def _report(self, source: Source, schedule: Schedule, slot: datetime) -> RunReport:
        by_page = schedule.budget is not None or source.kind == LINKS  # pages have times of their own
        mode = RunMode.DUE if by_page else RunMode.REFRESH
        if self.queues:
            return await self.runner.queue(source, mode, slot=slot)
        return await self.runner.run(source, RunOptions(mode=mode, slot=slot), self.listener)

    async def _until(self, next_at: datetime | None) -> None:
        """Wait until the next scheduled time, the end of a run, a stop or the next poll."""
        seconds = POLL_SECONDS
        if next_at is not None:
            seconds = min(POLL_SECONDS, max(0.05, (next_at - self.clock()).total_seconds()))
        await wait_first(self._moved, self.stopping, seconds=seconds)
        self._moved.clear()


async def plan(
    store: Store, tools: RunToolFactory, now: datetime, wrong: Callable[[Source, str], None]
) -> list[_Planned]:
    """Return the next runs of sources with a schedule, soonest first; plan missing ones. `wrong`: see `scheduled`."""
    chosen = await scheduled(store, tools, wrong)
    known = {each.source: each for each in await store.schedules.appointments()}
    stale = [source for source in known if source not in {each.id for each, _ in chosen}]
    if stale:
        await store.schedules.drop(stale)
    # Times from a wrong clock are dropped.
    valid = {each.source: each.rule for each in known.values() if each.planned_at <= now}
    unplanned = [each for each in chosen if valid.get(each[0].id) != each[1].key]
    for source, schedule in unplanned:
        if (slot := await next_time(store, source, schedule, now)) is not None:
            rule, next_at = schedule.key, schedule.delayed(slot, source.label)
            first = ScheduledRun(source=source.id, rule=rule, slot=slot, next_at=next_at, planned_at=now)
            await store.schedules.plan(first)
    if unplanned:
        known = {each.source: each for each in await store.schedules.appointments()}
    found = [_Planned(source, schedule, known[source.id]) for source, schedule in chosen if source.id in known]
    return sorted(found, key=lambda each: (each.appointment.next_at, each.source.id))


async def scheduled(
    store: Store, tools: RunToolFactory, wrong: Callable[[Source, str], None] = lambda *_: None
) -> list[tuple[Source, Schedule]]:
    """Return the sources with a schedule; call `wrong` with each source that has invalid settings, and the reason."""
    found = []
    for source in await store.sources.all():
        try:
            schedule = None if source.is_of_digest else tools.schedule(source)
        except ConfigError as error:
            wrong(source, str(error))
            continue
        if schedule is not None:
            found.append((source, schedule))
    return found
