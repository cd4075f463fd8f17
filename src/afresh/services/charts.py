"""The use cases of charts: what changed when, what a site is like, how hosts are asked."""

from dataclasses import replace

from afresh.model.charts import Calendar, LooksAhead, Politeness, SiteMap
from afresh.model.filters import Sources
from afresh.model.records import Source, SourceId
from afresh.services import chart_data
from afresh.services.context import Service

YEAR = 53 * 7
MONTH = 30
NODES = 2_000


class ChartService(Service):
    """Charts."""

    async def calendar(self, sources: Sources, *, days: int = YEAR) -> Calendar:
        """The changes of the last days, day by day, of some sources or all."""
        return await chart_data.calendar(self._store, await self._numbers_of(sources), days, self._clock())

    async def recent_changes(self, sources: Sources, *, days: int = MONTH) -> dict[SourceId, tuple[int, ...]]:
        """For each source how many changes each of the last days brought, today last."""
        meant = await self._numbers_of(sources)
        return await chart_data.recent_changes(self._store, meant, days, self._clock())

    async def _numbers_of(self, sources: Sources) -> list[SourceId]:
        return [each.id for each in await self._store.sources.all()] if sources is None else list(sources)

    async def site_map(self, source: Source, *, limit: int = NODES) -> SiteMap:
        """The pages of a source and the links between them, those nearest to the root first."""
        return await chart_data.site_map(self._store, source.id, limit)

    async def politeness(self, source: Source | None = None) -> Politeness:
        """How hosts are asked, and how they stand; of one source, or of all."""
        hosts = await chart_data.hosts_of(self._store, source, self._clock())
        return replace(self._tools.manners(source), hosts=hosts)

    async def checks_ahead(self, source: Source) -> LooksAhead:
        """How many pages are looked at in each of the next hours."""
        return await chart_data.looks_ahead(self._store, source.id, self._clock())
