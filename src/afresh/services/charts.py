"""Compute charts of sources: changes by day, site map, host politeness, next checks and savings of a run."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from afresh.crawl.report import report_of
from afresh.dataclass import asdict, replace
from afresh.model import charts
from afresh.model.charts import Calendar, HostView, Politeness, RunSavings, SiteMap, UpcomingChecks
from afresh.model.filters import Sources
from afresh.model.records import Run, RunMode, RunState, Source, SourceId
from afresh.model.reports import HostQueue, SourceView
from afresh.services.context import Service
from afresh.services.status import OUTCOMES
from afresh.store.store import Store
from afresh.urls.canonical import domain_of

YEAR = 53 * 7
MONTH = 30
NODES = 2_000
ENDED = (RunState.COMPLETED, RunState.PARTIAL, RunState.NEEDS_CONFIRMATION)
LAST = 20  # runs that are searched for one that ended, and for one that read everything
HOSTS = 100
HOURS = 48
LINKS = 4_000  # of a map, besides those of its tree


class ChartService(Service):
    async def calendar(self, sources: Sources, *, days: int = YEAR) -> Calendar:
        through, since = self._span(days)
        ids = [each.id for each in await self._store.sources.all()] if sources is None else sources
        return charts.calendar_of(await self._store.stats.changes_by_day(ids, since), since, through)

    async def recent_changes(self, sources: Sequence[SourceId]) -> dict[SourceId, tuple[int, ...]]:
        """Return for each source the number of changes on each of the last 30 days, today last."""
        since = self._span(MONTH)[1]
        return charts.by_source(await self._store.stats.changes_by_day(sources, since), sources, since, MONTH)

    def _span(self, days: int) -> tuple[date, date]:
        through = self._clock().astimezone(UTC).date()
        return through, through - timedelta(days=days - 1)

    async def site_map(self, source: Source, *, limit: int = NODES) -> SiteMap:
        return await site_map(self._store, source.id, limit)

    async def politeness(self, source: Source | None = None) -> Politeness:
        hosts = await hosts_of(self._store, source, self._clock())
        crawl = (self._tools.settings_of(source) if source else self._tools.config).crawl
        return Politeness(crawl.delay_seconds, crawl.respect_robots, crawl.concurrency, hosts)

    async def checks_ahead(self, source: Source) -> UpcomingChecks:
        return await upcoming_checks(self._store, source.id, self._clock())


async def site_map(store: Store, source: SourceId, limit: int) -> SiteMap:
    """Return the pages nearest to the root and the links between them."""
    pages, links, total = await store.stats.site_map(source, limit)
    return charts.map_of(pages, links, total, LINKS)


async def hosts_of(store: Store, source: Source | None, now: datetime) -> tuple[HostView, ...]:
    """Return the hosts for which open runs (of `source` or of all) wait, and hosts that must not be requested yet."""
    runs = [run for run in await store.runs.live() if source is None or run.source_id == source.id]
    queues = list(await store.stats.host_queues([run.id for run in runs], HOSTS))
    named = {queue.domain for queue in queues}
    if source is not None and source.kind == "web":
        named.add(domain_of(source.url))
    states = {state.domain: state for state in await store.stats.host_states(sorted(named))}
    if source is None:
        states |= {state.domain: state for state in await store.stats.resting_hosts(now, HOSTS)}
    idle = {name: HostQueue(domain=name, waiting=0, held=0, oldest=None) for name in {*named, *states} if name}
    by_name = idle | {queue.domain: queue for queue in queues if queue.domain}
    views = [_host(queue, states.get(name), now) for name, queue in by_name.items()]
    return tuple(sorted(views, key=lambda host: (-host.waiting, not host.resting, host.domain))[:HOSTS])


def _host(queue: HostQueue, state: charts.HostState | None, now: datetime) -> HostView:
    until = state.next_allowed_at if state else None
    resting = until is not None and until > now
    return HostView(
        **asdict(queue),
        worked_on=state is not None and state.locked_by is not None,
        resting=resting,
        next_allowed_at=until if resting else None,
    )


async def upcoming_checks(store: Store, source: SourceId, now: datetime) -> UpcomingChecks:
    """Return how many pages of a source are due now, and how many become due in each of the next hours."""
    return charts.upcoming_by_hour(*await store.stats.checks_by_hour(source, now), now.astimezone(UTC), HOURS)


def receipt_of(source: Source, view: SourceView, stale: int, last: Sequence[Run]) -> RunSavings:
    """Return how fresh a source with `stale` due pages is, and what the last ended run of `last` cost and saved."""
    runs = [run for run in last if run.state in ENDED]
    bare = RunSavings(pages=view.pages, fresh=max(0, view.pages - stale), oldest_check=view.oldest_check, run=None)
    if not runs:
        return bare
    report = report_of(runs[0], source)
    processed, skipped = report.new + report.changed, report.unchanged + report.not_modified
    whole = _estimate_bytes(runs, processed + skipped)
    saved = None if whole is None else max(0, whole - report.bytes)
    chunks = round(view.chunks * min(1.0, skipped / view.pages)) if view.pages else 0
    return replace(
        bare,
        run=report,
        processed=processed,
        skipped=skipped,
        bytes_saved=saved,
        bytes_saved_percent=100 * saved // whole if whole and saved is not None else None,
        embeddings_saved=chunks + report.chunks_reused if view.model else 0,
        counted={name: number for name in (*OUTCOMES, "doubtful") if (number := int(getattr(report, name)))},
    )


def _estimate_bytes(runs: Sequence[Run], looks: int) -> int | None:
    """Estimate the bytes that `looks` checks would transfer without conditional requests; None if this is unknown."""
    for run in runs:
        counts = run.counts
        read = counts.get("new", 0) + counts.get("changed", 0) + counts.get("unchanged", 0)
        if (run.full or run.mode is RunMode.CRAWL) and counts.get("bytes") and read:
            return round(counts["bytes"] / read * looks)
    return None
