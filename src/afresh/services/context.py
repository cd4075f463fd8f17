"""What services have in common."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from afresh.access.permissions import EVERYTHING, Allowed
from afresh.crawl.factory import Models, Tools
from afresh.crawl.heartbeat import LiveWorkers
from afresh.model.records import Source
from afresh.ports import Clock
from afresh.schedule.next_time import next_time
from afresh.services.resolve import exact_source
from afresh.services.status_views import alive_workers
from afresh.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the services of one knowledge base are given."""

    store: Store
    tools: Tools
    models: Models
    clock: Clock
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    allowed: Allowed = EVERYTHING


class Service:
    """The use cases of one noun."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._tools = context.tools
        self._models = context.models
        self._clock = context.clock
        self._stopping = context.stopping

    async def _source(self, label: str) -> Source:
        return await exact_source(self._store, label)

    async def _alive(self) -> LiveWorkers:
        return await alive_workers(self._store, *self._tools.identity(), self._clock())

    async def _next_time(self, source: Source) -> datetime | None:
        """Return when the schedule of a source wants its next run, if it has one."""
        return await next_time(self._store, source, self._tools.schedule(source), self._clock())


def ignore_report(report: object) -> None:
    """Do nothing with a report."""
