"""The use cases of schedules: keep, change and show them."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from afresh.crawl.tools import RunOptions
from afresh.digest.update import KINDS
from afresh.errors import Unknown, UsageError
from afresh.events import Listener, ignore
from afresh.model.filters import Sources
from afresh.model.records import Source
from afresh.model.reports import RunReport, ScheduleView
from afresh.schedule.cron import Cron
from afresh.schedule.next_time import next_time
from afresh.schedule.rules import Appointment, Schedule
from afresh.schedule.scheduler import AT_ONCE, Scheduler, mode_of, scheduled
from afresh.services.context import Context, Service, ignore_report
from afresh.services.records import change_settings
from afresh.services.resolve import exact_sources
from afresh.services.runs import RunService
from afresh.services.sinks import SinkService
from afresh.services.status import StatusService
from afresh.sync.reports import SyncReport


class ScheduleService(Service):
    """Schedules."""

    def __init__(self, context: Context, runs: RunService, sinks: SinkService, status: StatusService) -> None:
        super().__init__(context)
        self._runs = runs
        self._sinks = sinks
        self._status = status

    def scheduler(
        self,
        labels: Sequence[str] = (),
        *,
        at_once: int = AT_ONCE,
        once: bool = False,
        tell: Callable[[RunReport], None] = ignore_report,
        tell_sync: Callable[[SyncReport], None] = ignore_report,
        listener: Listener = ignore,
        queues: bool = False,
    ) -> Scheduler:
        """What looks at sources when their time comes; `keep` works until `stop`.

        One that `queues` leaves runs to whoever works on the store, and syncs to `keep_sinks`.
        """

        async def look(source: Source, schedule: Schedule, slot: datetime) -> RunReport:
            mode = mode_of(source, schedule)
            if queues:
                return await self._runs.queue(source, mode, False, slot)
            return await self._runs.run_now(source, RunOptions(mode=mode, slot=slot), listener)

        return Scheduler(
            self._tools,
            look,
            self._stopping,
            self._clock,
            None if queues else self._sinks.following(tell=tell_sync, listener=listener, once=once),
            tell=tell,
            listener=listener,
            labels=labels,
            at_once=at_once,
            once=once,
        )

    async def keep(
        self,
        labels: Sequence[str] = (),
        *,
        once: bool = False,
        tell: Callable[[RunReport], None] = ignore_report,
        tell_sync: Callable[[SyncReport], None] = ignore_report,
        listener: Listener = ignore,
        queues: bool = False,
    ) -> bool:
        """Look at sources when their time comes, until `stop`; whether every run and sync could be made.

        External stores are synced after the runs of their sources, and records past their retention are
        removed once a day. With `once` it is over as
        soon as nothing is due. Where it `queues`, runs and syncs are left to others.
        """
        await self._meant(labels)  # refuses a wrong one
        scheduler = self.scheduler(
            labels, once=once, tell=tell, tell_sync=tell_sync, listener=listener, queues=queues
        )
        pruning = None if once or queues else asyncio.create_task(self._status.keep_pruned(listener))
        try:
            await scheduler.keep()
        finally:
            if pruning is not None:
                pruning.cancel()
                await asyncio.wait({pruning})
        return not scheduler.failed

    async def set_rule(
        self, labels: Sequence[str], rule: str | None, time_zone: str | None = None
    ) -> list[ScheduleView]:
        """Give sources a schedule of their own; None: they are looked at only when somebody asks."""
        policy: dict[str, object] = {"schedule": rule}
        if time_zone is not None:
            policy["time_zone"] = time_zone
        meant = await self._meant(labels)
        for source in meant:
            self._tools.check_settings(source.rules, {**source.policy, **policy})
        for source in meant:
            await self._store.sources.add(
                name=source.name,
                version=source.version,
                kind=source.kind,
                url=source.url,
                rules={},
                policy=policy,
                now=self._clock(),
            )
        return await self.views(labels)

    async def views(self, labels: Sequence[str] = ()) -> list[ScheduleView]:
        """The sources with a schedule, soonest first."""
        meant = {source.id for source in await self._meant(labels)}
        pairs = await scheduled(self._store, self._tools)
        views = await self._views([pair for pair in pairs if pair[0].id in meant])
        return sorted(views, key=lambda view: (view.next_time is None, view.next_time, view.source))

    async def records(self, sources: Sources, *, after: int = 0, limit: int) -> list[ScheduleView]:
        """The sources with a schedule, in the order they were added."""
        pairs = [
            pair
            for pair in await scheduled(self._store, self._tools)
            if pair[0].id > after and (sources is None or pair[0].id in sources)
        ]
        return await self._views(sorted(pairs, key=lambda pair: pair[0].id)[:limit])

    async def of_source(self, source: Source) -> ScheduleView:
        """The schedule of one source; Unknown if it has none."""
        self._tools.schedule(source)  # refuses one whose settings are wrong
        found = await self.records([source.id], limit=1)
        if not found:
            raise Unknown(f"{source.label} has no schedule: it is looked at when somebody asks")
        return found[0]

    async def put(
        self, source: Source, rule: str | None, *, time_zone: str | None = None, budget: str | None = None
    ) -> None:
        """Give a source this schedule instead of its own; what is not named is as everywhere."""
        if source.name in KINDS:
            raise UsageError(f"{source.label} has no schedule: the settings of the section kb say when")
        named = {"time_zone": time_zone, "budget": budget}
        given = {"schedule": rule} | {key: value for key, value in named.items() if value is not None}
        reset = [key for key, value in named.items() if value is None]
        check, now = self._tools.check_settings, self._clock()
        await change_settings(self._store, source, given, reset, check, now)

    async def _meant(self, labels: Sequence[str]) -> list[Source]:
        """The sources that are named, or all."""
        if not labels:
            return list(await self._store.sources.all())
        return [source for label in labels for source in await exact_sources(self._store, label)]

    async def _views(self, pairs: Sequence[tuple[Source, Schedule]]) -> list[ScheduleView]:
        planned = {each.source: each for each in await self._store.schedules.appointments()}
        alive = {worker.name for worker in await self._store.workers.all()}
        return [await self._view(*pair, planned.get(pair[0].id), alive) for pair in pairs]

    async def _view(
        self, source: Source, schedule: Schedule, planned: Appointment | None, alive: set[str]
    ) -> ScheduleView:
        now = self._clock()
        if planned is not None and planned.rule != schedule.key:
            planned = None
        next_at = planned.next_at if planned else await next_time(self._store, source, schedule, now)
        last = await self._store.runs.last(source.id, 1)
        age = self._tools.bounds(source)[1].max_age_seconds
        return ScheduleView(
            source=source.name,
            version=source.version,
            schedule=schedule.text,
            time_zone=str(schedule.rule.zone) if isinstance(schedule.rule, Cron) else None,
            next_time=next_at,
            overdue=next_at is not None and next_at <= now,
            running=planned is not None and planned.held_by in alive,
            last_time=last[0].started_at if last else None,
            last_run=last[0].id if last else None,
            last_state=str(last[0].state) if last else None,
            budget=f"{schedule.budget.looks}/{schedule.budget.unit}" if schedule.budget else None,
            due=(await self._store.stats.due_tally(source.id, now, age)).due,
            source_id=source.id,
        )
