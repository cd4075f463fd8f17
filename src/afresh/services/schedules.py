"""Run, change and show schedules."""

import asyncio
from collections.abc import Callable, Sequence

from afresh.errors import NotFound, UsageError
from afresh.events import Listener, ignore
from afresh.model.filters import Sources
from afresh.model.records import Source
from afresh.model.reports import RunReport, ScheduleView
from afresh.schedule.plan import next_run
from afresh.schedule.rules import Cron, Schedule, ScheduledRun
from afresh.schedule.scheduler import Scheduler, scheduled
from afresh.services.context import Service, ServiceContext
from afresh.services.edit_source import checked_settings
from afresh.services.resolve import labelled_sources
from afresh.services.sinks import SinkService
from afresh.services.status import StatusService
from afresh.sync.reports import SyncReport


class ScheduleService(Service):
    def __init__(self, context: ServiceContext, sinks: SinkService, status: StatusService) -> None:
        super().__init__(context)
        self._sinks = sinks
        self._status = status

    async def keep(
        self,
        labels: Sequence[str] = (),
        *,
        once: bool = False,
        on_report: Callable[[RunReport], None] = ignore,
        on_sync: Callable[[SyncReport], None] = ignore,
        listener: Listener = ignore,
        queues: bool = False,
    ) -> bool:
        """Start the scheduled runs of sources until `stop`; return whether every run and sync succeeded.

        External stores are synced after runs, and records past their retention are removed once a day. With `once`,
        return as soon as nothing is due. With `queues`, leave runs and syncs to workers.
        """
        await labelled_sources(self._store, labels)  # raises an error for an unknown label
        scheduler = Scheduler(
            tools=self._tools,
            runner=self._runner,
            stopping=self._stopping,
            clock=self._clock,
            syncs=None if queues else self._sinks.after_runs(on_sync, listener, once=once),
            on_report=on_report,
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

    async def set_rule(self, sources: Sequence[Source], rule: str | None, **others: str | None) -> None:
        """Set schedule, `time_zone` and `budget` of sources; None removes the schedule, or resets to the default."""
        given = {"schedule": rule} | {key: value for key, value in others.items() if value is not None}
        reset = [key for key, value in others.items() if value is None]
        changed = {}
        for source in sources:
            if source.is_of_digest:
                raise UsageError(
                    f"{source.label} cannot have a schedule: section kb of the settings says when it is read"
                )
            changed[source.id] = checked_settings(self._tools, source, given, reset)
        for number, own in changed.items():
            if await self._store.sources.replace_rules(number, *own, self._clock()) is None:
                raise NotFound(f"there is no source {number}")

    async def records(self, sources: Sources = None, *, after: int = 0, limit: int | None = None) -> list[ScheduleView]:
        pairs = sorted(await scheduled(self._store, self._tools), key=lambda pair: pair[0].id)
        wanted = [pair for pair in pairs if pair[0].id > after and (sources is None or pair[0].id in sources)]
        planned = await self._planned_runs()
        alive = {worker.name for worker in await self._store.workers.all()}
        return [await self._view(*pair, planned.get(pair[0].id), alive) for pair in wanted[:limit]]

    async def of_source(self, source: Source) -> ScheduleView:
        self._tools.schedule(source)  # raises an error for invalid settings
        if not (found := await self.records([source.id], limit=1)):
            raise NotFound(f"{source.label} has no schedule: it is only checked on request")
        return found[0]

    async def _view(
        self, source: Source, schedule: Schedule, planned: ScheduledRun | None, alive: set[str]
    ) -> ScheduleView:
        now = self._clock()
        next_at = await next_run(self._store, source, schedule, now, planned)
        last = await self._store.runs.last(source.id, 1)
        age = self._tools.bounds(source)[1].max_age_seconds
        return ScheduleView(
            source=source.name,
            version=source.version,
            schedule=schedule.text,
            time_zone=str(schedule.rule.zone) if isinstance(schedule.rule, Cron) else None,
            next_time=next_at,
            overdue=next_at is not None and next_at <= now,
            running=planned is not None and planned.rule == schedule.key and planned.held_by in alive,
            last_time=last[0].started_at if last else None,
            last_run=last[0].id if last else None,
            last_state=str(last[0].state) if last else None,
            budget=f"{schedule.budget.looks}/{schedule.budget.unit}" if schedule.budget else None,
            due=(await self._store.stats.due_tally(source.id, now, age)).due,
            source_id=source.id,
        )
