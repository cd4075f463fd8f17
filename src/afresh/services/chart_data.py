"""Pictures of sources: what they are drawn from, put together from what is on record."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from afresh.crawl.report import report_of
from afresh.model.charts import (
    Calendar,
    HostState,
    HostView,
    LooksAhead,
    Receipt,
    SiteMap,
    ahead_of,
    by_source,
    calendar_of,
    map_of,
)
from afresh.model.records import Run, RunMode, RunState, Source, SourceId
from afresh.model.reports import HostQueue, RunReport, SourceView
from afresh.store.store import Store
from afresh.urls.canonical import domain_of

ENDED = (RunState.COMPLETED, RunState.PARTIAL, RunState.NEEDS_CONFIRMATION)
LAST = 20  # runs among which one that ended is looked for, and one that read everything
HOSTS = 100
HOURS = 48
LINKS = 4_000  # of a map, beside those of its tree
OUTCOMES = (
    "new",
    "changed",
    "unchanged",
    "not_modified",
    "deleted",
    "moved",
    "failed",
    "refused",
    "doubtful",
)


async def calendar(store: Store, sources: Sequence[SourceId], days: int, now: datetime) -> Calendar:
    """The changes of the last days, day by day."""
    through = now.astimezone(UTC).date()
    since = through - timedelta(days=days - 1)
    return calendar_of(await store.stats.changes_by_day(sources, since), since, through)


async def recent_changes(
    store: Store, sources: Sequence[SourceId], days: int, now: datetime
) -> dict[SourceId, tuple[int, ...]]:
    """For each source the number of changes on each of the last days."""
    since = now.astimezone(UTC).date() - timedelta(days=days - 1)
    return by_source(await store.stats.changes_by_day(sources, since), sources, since, days)


async def site_map(store: Store, source: SourceId, limit: int) -> SiteMap:
    """The pages nearest to the root, and the links between them."""
    pages, there = await store.stats.map_pages(source, limit)
    links = await store.stats.map_links(source, [page.id for page in pages])
    return map_of(pages, links, there, LINKS)


async def hosts_of(store: Store, source: Source | None, now: datetime) -> tuple[HostView, ...]:
    """The hosts that open runs wait for, of one source or all, and those that rest."""
    runs = [run for run in await store.runs.live() if source is None or run.source_id == source.id]
    queues = list(await store.stats.host_queues([run.id for run in runs], HOSTS))
    named = {queue.domain for queue in queues}
    if source is not None and source.kind == "web":
        named.add(domain_of(source.url))
    states = {state.domain: state for state in await store.stats.host_states(sorted(named))}
    if source is None:
        states |= {state.domain: state for state in await store.stats.resting_hosts(now, HOSTS)}
    by_name = {queue.domain: queue for queue in queues}
    views = [
        _host(name, by_name.get(name), states.get(name), now) for name in sorted(named | set(states)) if name
    ]
    return tuple(sorted(views, key=lambda host: (-host.waiting, not host.resting, host.domain))[:HOSTS])


def _host(name: str, queue: HostQueue | None, state: HostState | None, now: datetime) -> HostView:
    until = state.next_allowed_at if state else None
    resting = until is not None and until > now
    return HostView(
        domain=name,
        waiting=queue.waiting if queue else 0,
        held=queue.held if queue else 0,
        oldest=queue.oldest if queue else None,
        worked_on=state is not None and state.locked_by is not None,
        resting=resting,
        next_allowed_at=until if resting else None,
    )


async def looks_ahead(store: Store, source: SourceId, now: datetime) -> LooksAhead:
    """How many pages are looked at in each of the next hours."""
    return ahead_of(*await store.stats.checks_by_hour(source, now), now.astimezone(UTC), HOURS)


def receipt_of(source: Source, view: SourceView, stale: int, last: Sequence[Run]) -> Receipt:
    """How fresh a source is, and what the last of its runs that ended cost and saved; newest come first."""
    runs = [run for run in last if run.state in ENDED]
    bare = Receipt(
        pages=view.pages, fresh=max(0, view.pages - stale), oldest_check=view.oldest_check, run=None
    )
    return _with_run(bare, report_of(runs[0], source), runs, view) if runs else bare


def _with_run(bare: Receipt, report: RunReport, runs: Sequence[Run], view: SourceView) -> Receipt:
    processed, skipped = report.new + report.changed, report.unchanged + report.not_modified
    whole = _bytes_of_all(runs, processed + skipped)
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
        counted={name: number for name in OUTCOMES if (number := int(getattr(report, name)))},
    )


def _bytes_of_all(runs: Sequence[Run], looks: int) -> int | None:
    """What so many looks cost where every page was read, as far as such a run is on record."""
    for run in runs:
        counts = run.counts
        read = counts.get("new", 0) + counts.get("changed", 0) + counts.get("unchanged", 0)
        if (run.full or run.mode is RunMode.CRAWL) and counts.get("bytes") and read:
            return round(counts["bytes"] / read * looks)
    return None
