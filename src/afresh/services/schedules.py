"""Run, change and show schedules."""

import asyncio
from collections.abc import Callable, Sequence

from afresh.errors import NotFound, UsageError
from afresh.events import Listener, ignore
from afresh.model.filters import Sources
from afresh.model.records import Source
from afresh.model.reports import RunReport, ScheduleView
from afresh.schedule.cron import Cron
from afresh.schedule.plan import next_time
from afresh.schedule.rules import Schedule, ScheduledRun
from afresh.schedule.scheduler import Scheduler, scheduled
from afresh.services.context import Service, ServiceContext, ignore_report
from afresh.services.edit_source import change_settings
from afresh.services.resolve import labelled_sources
from afresh.services.sinks import SinkService
from afresh.services.status import StatusService
from afresh.sync.reports import SyncReport


class ScheduleService(Service):
    """Runs, changes and shows schedules."""

    def __init__(self, context: ServiceContext, sinks: SinkService, status: StatusService) -> None:
        super().__init__(context)
        self._sinks = sinks
        self._status = status

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
        """Run sources at their scheduled times until `stop`; return whether every run and sync succeeded.

        External stores are synced after the runs of their sources, and records past their retention are
        removed once a day. With `once`, return as soon as nothing is due. With `queues`, runs and syncs are
        left to workers.
        """
        await self._meant(labels)  # raises an error for an unknown label
        scheduler = Scheduler(
            self._tools,
            self._runner,
            self._stopping,
            self._clock,
            None if queues else self._sinks.following(tell=tell_sync, listener=listener, once=once),
            tell=tell,
            listener=listener,
            labels=labels,
            once=once,
            queues=queues,
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
        """Set the schedule of sources; None: they run only on request."""
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
        """Return the schedules of sources, soonest first."""
        meant = [source.id for source in await self._meant(labels)] if labels else None
        views = await self.records(meant)
        return sorted(views, key=lambda view: (view.next_time is None, view.next_time, view.source))

    async def records(
        self, sources: Sources, *, after: int = 0, limit: int | None = None
    ) -> list[ScheduleView]:
        """Return the schedules of sources in the order of their ids."""
        pairs = sorted(await scheduled(self._store, self._tools), key=lambda pair: pair[0].id)
        wanted = [pair for pair in pairs if pair[0].id > after and (sources is None or pair[0].id in sources)]
        planned = {each.source: each for each in await self._store.schedules.appointments()}
        alive = {worker.name for worker in await self._store.workers.all()}
        return [await self._view(*pair, planned.get(pair[0].id), alive) for pair in wanted[:limit]]

    async def of_source(self, source: Source) -> ScheduleView:
        """Return the schedule of a source; raise NotFound if it has none."""
        self._tools.schedule(source)  # raises an error for invalid settings
        found = await self.records([source.id], limit=1)
        if not found:
            raise NotFound(f"{source.label} has no schedule: it is looked at when somebody asks")
        return found[0]

    async def put(
        self, source: Source, rule: str | None, *, time_zone: str | None = None, budget: str | None = None
    ) -> None:
        """Replace the schedule of a source; omitted values get their defaults."""
        if source.is_of_digest:
            raise UsageError(f"{source.label} has no schedule: the settings of the section kb say when")
        named = {"time_zone": time_zone, "budget": budget}
        given = {"schedule": rule} | {key: value for key, value in named.items() if value is not None}
        reset = [key for key, value in named.items() if value is None]
        await change_settings(self._store, self._tools, source, given, reset)

    async def _meant(self, labels: Sequence[str]) -> list[Source]:
        """Return the sources with these labels, or all."""
        return await (labelled_sources(self._store, labels) if labels else self._store.sources.all())

    async def _view(
        self, source: Source, schedule: Schedule, planned: ScheduledRun | None, alive: set[str]
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
