"""The scheduler: sources are looked at when their time comes, once however many schedulers there are."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from afresh.crawl.factory import Tools
from afresh.crawl.heartbeat import Vigil, at_work
from afresh.digest.update import KINDS
from afresh.errors import AfreshError, ConfigError, RunBusy, StoreWaits
from afresh.events import Listener, Notice
from afresh.model.records import RunMode, RunState, Source, SourceId
from afresh.model.reports import RunReport
from afresh.ports import Clock
from afresh.schedule.next_time import next_time
from afresh.schedule.rules import Appointment, Schedule
from afresh.sources.linklist.parse import LINKS
from afresh.store.store import Store
from afresh.sync.after_runs import Following

log = logging.getLogger(__name__)

AT_ONCE = 4  # sources that one process looks at side by side
POLL = 10.0  # seconds after which new sources and other settings are noticed
BUSY_POLL = timedelta(seconds=1)  # after which a source that is due and busy is looked after
FAILED = "failed"  # the outcome of a run that could not be made
NEVER = timedelta(days=36_500)

Look: TypeAlias = Callable[[Source, Schedule, datetime], Awaitable[RunReport]]


@dataclass(frozen=True, slots=True)
class _Planned:
    source: Source
    schedule: Schedule
    appointment: Appointment


class Scheduler:
    """Starts runs at their times and plans the next ones; any number may work on one store."""

    def __init__(
        self,
        tools: Tools,
        look: Look,
        stopping: asyncio.Event,
        clock: Clock,
        syncs: Following | None,
        *,
        tell: Callable[[RunReport], None],
        listener: Listener,
        labels: Sequence[str] = (),
        at_once: int = AT_ONCE,
        once: bool = False,
    ) -> None:
        self._tools = tools
        self._look = look
        self._stopping = stopping
        self._clock = clock
        self._tell = tell
        self._listener = listener
        self._labels = frozenset(labels)
        self._at_once = at_once
        self._once = once  # end when nothing is due
        self._syncs = syncs  # None: others see to it
        self._going: dict[SourceId, asyncio.Task[None]] = {}
        self._waits_for: dict[SourceId, datetime] = {}  # slots of which it was told that they have to wait
        self._wrong: dict[SourceId, str] = {}  # sources of which it was told that their settings are wrong
        self._moved = asyncio.Event()
        self._failed = False

    @property
    def failed(self) -> bool:
        """Whether a run or a sync could not be made."""
        return self._failed or (self._syncs is not None and self._syncs.failed)

    async def keep(self) -> None:
        """Work until told to stop; runs under way then end soon and go on with the next start."""
        store, vigil = self._tools.standing(self._listener, self._stopping)
        with suppress(StoreWaits):  # told to stop while the database was away: nothing is left to write
            async with self._tools.kept_warm(), at_work(vigil, self._stopping):
                try:
                    await self._catch_up(store)
                    while not self._stopping.is_set():
                        next_at = await self._look_around(store, vigil)
                        if self._once and not self._going:
                            break
                        await self._until(next_at)
                except BaseException:
                    if self._syncs is not None:
                        self._syncs.leave()
                    raise
                finally:
                    if self._going:
                        await asyncio.wait(self._going.values())
                    if self._syncs is not None:
                        await self._syncs.drain()

    async def _catch_up(self, store: Store) -> None:
        """Have the external stores of our sources synced, as the last scheduler may have left some undone."""
        if not self._once:
            for source, _ in await scheduled(store, self._tools):
                if self._is_ours(source):
                    self._sync(source)

    def _sync(self, source: Source) -> None:
        """Have the external stores of a source synced."""
        if self._syncs is not None:
            self._syncs.want(self._tools.sinks_of(source))

    async def _look_around(self, store: Store, vigil: Vigil) -> datetime | None:
        """Start what is due; when the next time comes."""
        await vigil.reclaim()
        planned = await plan(store, self._tools, self._clock(), self._tell_wrong)
        mine = [each for each in planned if self._is_ours(each.source)]
        busy = await self._busy(store)
        for each in mine:
            if each.appointment.next_at > self._clock() or each.source.id in self._going:
                continue
            if each.source.id in busy:
                self._tell_busy(each)
            elif len(self._going) < self._at_once:
                await self._start(store, vigil, each)
        later = [each.appointment.next_at for each in mine if each.appointment.next_at > self._clock()]
        if any(each.source.id in busy and each.appointment.next_at <= self._clock() for each in mine):
            later.append(self._clock() + BUSY_POLL)  # until its run ends, or its process does
        return min(later, default=None)

    def _is_ours(self, source: Source) -> bool:
        return not self._labels or not self._labels.isdisjoint((source.label, source.name))

    async def _busy(self, store: Store) -> set[SourceId]:
        """Sources with a run that somebody works on, or that was left to workers."""
        alive = {worker.name for worker in await store.workers.all()}
        return {
            run.source_id
            for run in await store.runs.live()
            if run.state is RunState.QUEUED or (run.state is RunState.RUNNING and run.worker in alive)
        }

    def _tell_wrong(self, source: Source, why: str) -> None:
        """Say once that the settings of a source cannot be used."""
        if self._is_ours(source) and self._wrong.get(source.id) != why:
            self._wrong[source.id] = why
            self._listener(Notice(text=f"{source.label} is not looked at: {why}"))

    def _tell_busy(self, each: _Planned) -> None:
        """Say once that a time has to wait."""
        if self._waits_for.get(each.source.id) != each.appointment.slot:
            self._waits_for[each.source.id] = each.appointment.slot
            self._listener(Notice(text=f"{each.source.label} is due, but a run of it is still open"))

    async def _start(self, store: Store, vigil: Vigil, each: _Planned) -> None:
        held = await store.schedules.hold(each.source.id, each.appointment.next_at, vigil.me.name)
        if held:
            task = asyncio.create_task(self._use(store, vigil.me.name, each))
            self._going[each.source.id] = task

    async def _use(self, store: Store, worker: str, each: _Planned) -> None:
        """Use the time of a source, whatever comes of it."""
        try:
            await self._run(store, worker, each)
        except StoreWaits as trouble:  # told to stop while the database was away
            log.info("the time of %s is left as it is: %s", each.source.label, trouble)
        finally:
            self._going.pop(each.source.id, None)
            self._moved.set()

    async def _run(self, store: Store, worker: str, each: _Planned) -> None:
        """Look at a source for its time, and plan the next one; a run that was stopped keeps its time."""
        used = replace(each.appointment, fired_at=self._clock(), outcome=FAILED)
        try:
            report = await self._look(each.source, each.schedule, each.appointment.slot)
            if report.state is RunState.CANCELLED:
                await store.schedules.let_go(each.source.id, worker)
                return
            used = replace(used, run=report.run, outcome=str(report.state))
            self._tell(report)
            self._sync(each.source)
        except RunBusy as busy:
            log.info("%s is left alone: %s", each.source.label, busy)
            last = await store.runs.last(each.source.id, 1)
            if not last or last[0].started_at < each.appointment.slot:
                await store.schedules.let_go(each.source.id, worker)
                return
            used = replace(used, run=last[0].id, outcome=str(last[0].state))
        except StoreWaits:
            raise
        except Exception as error:
            self._note(each.source, error)
        await store.schedules.settle(self._following(each, used), worker)

    def _following(self, each: _Planned, used: Appointment) -> Appointment:
        """The time after one that was used."""
        now = self._clock()
        slot = each.schedule.following(used.slot, now)
        if slot is None:  # a rule without a next time is never planned in the first place
            slot = now + NEVER
        next_at = each.schedule.delayed(slot, each.source.label)
        return replace(used, slot=slot, next_at=next_at, planned_at=now)

    def _note(self, source: Source, error: Exception) -> None:
        """Trouble with one source is no reason to leave the others alone."""
        if not isinstance(error, AfreshError):
            log.error("the scheduled run of %s failed", source.label, exc_info=error)
        self._failed = True
        self._listener(Notice(text=f"{source.label}: {error}; tried again at its next time"))

    async def _until(self, next_at: datetime | None) -> None:
        """Wait until a time comes, a run is over, we are told to stop, or it is time to look around."""
        seconds = POLL
        if next_at is not None:
            seconds = min(POLL, max(0.05, (next_at - self._clock()).total_seconds()))
        waits = {asyncio.create_task(self._moved.wait()), asyncio.create_task(self._stopping.wait())}
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()
        self._moved.clear()


async def plan(
    store: Store, tools: Tools, now: datetime, wrong: Callable[[Source, str], None]
) -> list[_Planned]:
    """The sources with a schedule, each with its next time, soonest first; what is not planned yet is."""
    chosen = await scheduled(store, tools, wrong)
    known = {each.source: each for each in await store.schedules.appointments()}
    stale = [source for source in known if source not in {each.id for each, _ in chosen}]
    if stale:
        await store.schedules.drop(stale)
    unplanned = [
        (source, schedule)
        for source, schedule in chosen
        if _is_unplanned(known.get(source.id), schedule, now)
    ]
    for source, schedule in unplanned:
        slot = await next_time(store, source, schedule, now)
        if slot is not None:
            await store.schedules.plan(
                Appointment(
                    source=source.id,
                    rule=schedule.key,
                    slot=slot,
                    next_at=schedule.delayed(slot, source.label),
                    planned_at=now,
                )
            )
    if unplanned:
        known = {each.source: each for each in await store.schedules.appointments()}
    found = [
        _Planned(source, schedule, known[source.id]) for source, schedule in chosen if source.id in known
    ]
    return sorted(found, key=lambda each: (each.appointment.next_at, each.source.id))


def _untold(source: Source, why: str) -> None:
    """Whoever lists sources tells which settings are wrong."""


async def scheduled(
    store: Store, tools: Tools, wrong: Callable[[Source, str], None] = _untold
) -> list[tuple[Source, Schedule]]:
    """The sources that are looked at by themselves, by label; those with `wrong` settings wait."""
    found = []
    for source in await store.sources.all():
        try:
            schedule = None if source.name in KINDS else tools.schedule(source)
        except ConfigError as error:
            wrong(source, str(error))
            continue
        if schedule is not None:
            found.append((source, schedule))
    return found


def mode_of(source: Source, schedule: Schedule) -> RunMode:
    """What a scheduled run looks at: everything, or what is due where each page has a time of its own."""
    return RunMode.DUE if schedule.budget is not None or source.kind == LINKS else RunMode.REFRESH


def _is_unplanned(known: Appointment | None, schedule: Schedule, now: datetime) -> bool:
    """Whether a time is to be planned: there is none, by another rule, or by a clock that ran ahead."""
    return known is None or known.rule != schedule.key or known.planned_at > now
