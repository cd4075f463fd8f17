"""The base class of the services."""

import asyncio
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from afresh.access.permissions import EVERYTHING, Permissions
from afresh.crawl.factory import RunToolFactory
from afresh.crawl.heartbeat import LiveWorkers, live_workers
from afresh.dataclass import dataclass, field
from afresh.model.records import Source, SourceId
from afresh.ports import Clock
from afresh.schedule.plan import next_run, next_time
from afresh.schedule.rules import ScheduledRun
from afresh.search.model_provider import ModelProvider
from afresh.services.resolve import exact_source
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.services.runs import SourceRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    store: Store
    tools: RunToolFactory
    models: ModelProvider
    clock: Clock
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    allowed: Permissions = EVERYTHING


class Service:
    def __init__(self, context: ServiceContext) -> None:
        self._store = context.store
        self._tools = context.tools
        self._models = context.models
        self._clock = context.clock
        self._stopping = context.stopping

    @cached_property
    def _runner(self) -> "SourceRunner":
        from afresh.services.runs import SourceRunner

        return SourceRunner(self._tools, self._stopping)

    async def _source(self, label: str) -> Source:
        return await exact_source(self._store, label)

    async def _alive(self) -> LiveWorkers:
        return live_workers(await self._store.workers.all(), *self._tools.identity(), self._clock())

    async def _next_time(self, source: Source) -> datetime | None:
        return await next_time(self._store, source, self._tools.schedule(source), self._clock())

    async def _planned_runs(self) -> dict[SourceId, ScheduledRun]:
        return {each.source: each for each in await self._store.schedules.appointments()}

    async def _next_run(self, source: Source, planned: dict[SourceId, ScheduledRun]) -> datetime | None:
        schedule = self._tools.schedule(source)
        return await next_run(self._store, source, schedule, self._clock(), planned.get(source.id))
