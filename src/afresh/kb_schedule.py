"""The use cases of schedules: keeping them, changing them, and telling of them."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.cron import Cron
from afresh.core.events import Listener, ignore
from afresh.core.model import Listed, RunMode, Source
from afresh.core.schedule import due_at
from afresh.core.sync_views import SyncReport
from afresh.core.timing import Schedule
from afresh.core.views import RunReport, ScheduleView
from afresh.engine.following import Following
from afresh.engine.scheduler import AT_ONCE, Scheduler, mode_of, scheduled
from afresh.engine.timetable import next_time
from afresh.engine.which import exact_sources
from afresh.kb_work import Work


def _nobody(report: RunReport | SyncReport) -> None:
    """Nobody looks on."""


class Scheduling(Work):
    """Sources that are looked at by themselves."""

    @abstractmethod
    async def _run(
        self,
        source: Source,
        mode: RunMode,
        full: bool,
        trust: bool,
        redetect: bool,
        listener: Listener,
        slot: datetime | None = None,
        pages: Sequence[Listed] = (),
        budget: int | None = None,
    ) -> RunReport: ...

    def scheduler(
        self,
        labels: Sequence[str] = (),
        *,
        at_once: int = AT_ONCE,
        once: bool = False,
        tell: Callable[[RunReport], None] = _nobody,
        tell_sync: Callable[[SyncReport], None] = _nobody,
        listener: Listener = ignore,
    ) -> Scheduler:
        """What looks at sources when their time comes; `keep` works until `stop`."""

        async def look(source: Source, schedule: Schedule, slot: datetime) -> RunReport:
            return await self._run(source, mode_of(source, schedule), False, False, False, listener, slot)

        return Scheduler(
            self._tools,
            look,
            self._stopping,
            self._clock,
            self.following(tell=tell_sync, listener=listener, once=once),
            tell=tell,
            listener=listener,
            labels=labels,
            at_once=at_once,
            once=once,
        )

    def following(
        self, *, tell: Callable[[SyncReport], None], listener: Listener, once: bool = False
    ) -> Following:
        """What syncs external stores after runs, and is not waited for."""

        async def sync(name: str) -> list[SyncReport]:
            return await self.sync(to=[name], listener=listener)

        return Following(sync, self._stopping, tell=tell, listener=listener, once=once)

    async def keep_schedules(
        self,
        labels: Sequence[str] = (),
        *,
        once: bool = False,
        tell: Callable[[RunReport], None] = _nobody,
        tell_sync: Callable[[SyncReport], None] = _nobody,
        listener: Listener = ignore,
    ) -> bool:
        """Look at sources when their time comes, until `stop`; whether every run and sync could be made.

        External stores are synced after the runs of their sources. With `once` it is over as
        soon as nothing is due.
        """
        await self._meant(labels)  # refuses a wrong one
        scheduler = self.scheduler(labels, once=once, tell=tell, tell_sync=tell_sync, listener=listener)
        await scheduler.keep()
        return not scheduler.failed

    async def set_schedule(
        self, labels: Sequence[str], rule: str | None, time_zone: str | None = None
    ) -> list[ScheduleView]:
        """Give sources a schedule of their own; None: they are looked at only when somebody asks."""
        policy: dict[str, object] = {"schedule": rule}
        if time_zone is not None:
            policy["time_zone"] = time_zone
        for source in await self._meant(labels):
            self._tools.schedule(replace(source, policy={**source.policy, **policy}))  # refuses a wrong one
            await self._store.add_source(
                name=source.name,
                version=source.version,
                kind=source.kind,
                url=source.url,
                rules={},
                policy=policy,
                now=self._clock(),
            )
        return await self.schedules(labels)

    async def schedules(self, labels: Sequence[str] = ()) -> list[ScheduleView]:
        """The sources with a schedule, soonest first."""
        meant = {source.id for source in await self._meant(labels)}
        pairs = await scheduled(self._store, self._tools)
        views = [await self._view(*pair) for pair in pairs if pair[0].id in meant]
        return sorted(views, key=lambda view: (view.next_time is None, view.next_time, view.source))

    async def _meant(self, labels: Sequence[str]) -> list[Source]:
        """The sources that are named, or all."""
        if not labels:
            return list(await self._store.sources())
        return [source for label in labels for source in await exact_sources(self._store, label)]

    async def _view(self, source: Source, schedule: Schedule) -> ScheduleView:
        now = self._clock()
        planned = {each.source: each for each in await self._store.appointments()}.get(source.id)
        if planned is not None and planned.rule != schedule.key:
            planned = None
        next_at = planned.next_at if planned else await next_time(self._store, source, schedule, now)
        last = await self._store.last_runs(source.id, 1)
        alive = {worker.name for worker in await self._store.workers()}
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
            due=await self._due(source, now),
        )

    async def _due(self, source: Source, now: datetime) -> int:
        """How many pages of a source wait and are due."""
        max_age = self._tools.bounds(source)[1].max_age_seconds
        return sum(due_at(page, now, max_age) <= now for page in await self._store.waiting(source.id))
