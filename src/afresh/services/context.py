"""The base class of the services and what they share."""

import asyncio
from datetime import datetime

from afresh.access.permissions import EVERYTHING, Permissions
from afresh.crawl.factory import RunToolFactory
from afresh.crawl.heartbeat import LiveWorkers, live_workers
from afresh.crawl.run import Runner
from afresh.crawl.tools import RunOptions
from afresh.dataclass import dataclass, field, replace
from afresh.errors import UsageError
from afresh.events import Listener, ignore
from afresh.model.records import RunMode, Source
from afresh.model.reports import RunReport
from afresh.ports import Clock
from afresh.schedule.plan import next_time
from afresh.search.model_provider import ModelProvider
from afresh.services.resolve import exact_source
from afresh.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    store: Store
    tools: RunToolFactory
    models: ModelProvider
    clock: Clock
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    allowed: Permissions = EVERYTHING


class SourceRunner(Runner):
    """Runs any source; keeps summaries for sources of the digest, and refuses to queue these for workers."""

    async def run(self, source: Source, options: RunOptions, listener: Listener = ignore) -> RunReport:
        return await super().run(source, replace(options, for_digest=source.is_of_digest), listener)

    async def queue(
        self, source: Source, mode: RunMode, *, full: bool = False, slot: datetime | None = None
    ) -> RunReport:
        if source.is_of_digest:
            raise UsageError(f"{source.label} cannot be queued: only `afresh init-kb` reads it (settings: section kb)")
        return await super().queue(source, mode, full=full, slot=slot)


class Service:
    def __init__(self, context: ServiceContext) -> None:
        self._store = context.store
        self._tools = context.tools
        self._models = context.models
        self._clock = context.clock
        self._stopping = context.stopping
        self._runner = SourceRunner(context.tools, context.stopping)

    async def _source(self, label: str) -> Source:
        return await exact_source(self._store, label)

    async def _alive(self) -> LiveWorkers:
        return live_workers(await self._store.workers.all(), *self._tools.identity(), self._clock())

    async def _next_time(self, source: Source) -> datetime | None:
        return await next_time(self._store, source, self._tools.schedule(source), self._clock())


def ignore_report(report: object) -> None:
    """Do nothing: the default of callers that need no reports."""
