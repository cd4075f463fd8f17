"""Counts of large sources for a server: the last count is served while the next one is made."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, NamedTuple, TypeVar, cast

from afresh.model.charts import DayCount
from afresh.model.records import Source, SourceId
from afresh.model.reports import SourceView
from afresh.schedule.due import DueTally
from afresh.search.vectors import Lack
from afresh.store.stats import StatsRepository
from afresh.store.store import Store

T = TypeVar("T")
LARGE_PAGES = 10_000  # from which on counting takes longer than people wait
FRESH_SECONDS = 10.0  # after which a count is renewed while the old one is served
AGING_SECONDS = 60.0  # after which the new one is waited for, though not long
OLD_SECONDS = 600.0  # after which it is waited for as long as it takes
SHORT_WAIT_SECONDS = 0.1
MAX_COUNTS = 200


class _Count(NamedTuple):
    value: Any
    at: float


class CachedStats(StatsRepository):
    """Statistics whose numbers may be some seconds old where a source is large."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(store.stats.db, store.stats.caches, None)  # the inner one retries
        self._inner = store.stats
        self._sources = store.sources
        self._runs = store.runs
        self._clock = clock
        self._sizes: dict[SourceId, int] = {}  # pages of sources
        self._counts: dict[Hashable, _Count] = {}
        self._counting: dict[Hashable, asyncio.Task[Any]] = {}

    @property
    def count_number(self) -> int:
        """Return how many counts are cached."""
        return len(self._counts)

    async def source_view(self, source: Source) -> SourceView:
        """Return a source with its numbers; name, URL, settings and the last run are never cached."""
        view = await self._cached("view", source.id, lambda: self._measured(source), source.id)
        last = await self._runs.last(source.id, 1)
        return replace(
            view,
            last_run=last[0].id if last else None,
            last_state=last[0].state if last else None,
            last_mode=last[0].mode if last else None,
            crawl_time=source.crawl_time,
            name=source.name,
            version=source.version,
            url=source.url,
            rules=source.rules,
            policy=source.policy,
        )

    async def _measured(self, source: Source) -> SourceView:
        view = await self._inner.source_view(source)
        self._sizes[source.id] = view.pages
        return view

    async def due_tallies(self, now: datetime) -> dict[SourceId, DueTally]:
        """Count what is due in each source."""
        count = self._inner.due_tallies
        return await self._cached("due", None, lambda: count(now))

    async def due_tally(self, source: SourceId, now: datetime, max_age: float | None) -> DueTally:
        """Count what is due in one source."""
        count = self._inner.due_tally
        return await self._cached("due", (source, max_age), lambda: count(source, now, max_age), source)

    async def oldest_checks(self) -> dict[SourceId, datetime]:
        """Return when the page of each source that waits longest was checked."""
        return await self._cached("oldest", None, self._inner.oldest_checks)

    async def changes_by_day(self, sources: Sequence[SourceId], since: date) -> list[DayCount]:
        """Count changes by source, day and kind."""
        count, key = self._inner.changes_by_day, (tuple(sources), since)
        return await self._cached("days", key, lambda: count(sources, since), *sources)

    async def totals(self) -> dict[str, Any]:
        """Return the numbers of the whole store."""
        return await self._cached("totals", None, self._inner.totals)

    async def checks_by_hour(self, source: SourceId, now: datetime) -> tuple[int, dict[datetime, int]]:
        """Count upcoming checks by hour."""
        count = self._inner.checks_by_hour
        return await self._cached("hours", source, lambda: count(source, now), source)

    async def lack(self, model: str, source: SourceId | None = None) -> Lack:
        """Count chunks without vectors."""
        count, sources = self._inner.lack, () if source is None else (source,)
        return await self._cached("lack", (model, source), lambda: count(model, source), *sources)

    async def count_copies(self, sink: str, sources: Sequence[SourceId]) -> dict[str, int]:
        """Count pages of sources by the state of their copies in an external store."""
        count, key = self._inner.count_copies, (sink, tuple(sources))
        return await self._cached("copies", key, lambda: count(sink, sources), *sources)

    async def count_stuck(self, sink: str, sources: Sequence[SourceId]) -> int:
        """Count pages of sources that an external store does not finish."""
        count, key = self._inner.count_stuck, (sink, tuple(sources))
        return await self._cached("stuck", key, lambda: count(sink, sources), *sources)

    async def close(self) -> None:
        """Stop counting in the background."""
        tasks = list(self._counting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _cached(
        self, name: str, of: Hashable, count: Callable[[], Awaitable[T]], *sources: SourceId
    ) -> T:
        """Return the last count where counting is slow, of some sources or of all."""
        key = (name, of)
        if not sources:
            await self._forget_removed_sources()
        kept = self._counts.get(key)
        if kept is None and (self._is_large(sources) or self._is_unknown(sources)):
            task = self._counting.get(key) or self._count_aside(key, count, sources)
            return cast("T", await asyncio.shield(task))  # one count for all who ask
        if kept is None or not self._is_large(sources):
            return await self._count(key, count, sources)
        age = self._clock() - kept.at
        if age <= FRESH_SECONDS:
            return cast("T", kept.value)
        task = self._counting.get(key) or self._count_aside(key, count, sources)
        if age > AGING_SECONDS:
            await asyncio.wait({task}, timeout=SHORT_WAIT_SECONDS if age <= OLD_SECONDS else None)
        if task.done() and not task.cancelled():
            return cast("T", task.result())
        return cast("T", kept.value)

    def _count_aside(
        self, key: Hashable, count: Callable[[], Awaitable[T]], sources: Sequence[SourceId]
    ) -> "asyncio.Task[Any]":
        task = asyncio.ensure_future(self._count(key, count, sources))
        self._counting[key] = task
        task.add_done_callback(lambda done: self._counted(key, done))
        return task

    def _is_large(self, sources: Sequence[SourceId]) -> bool:
        known = self._sizes.values() if not sources else [self._sizes.get(each, 0) for each in sources]
        return sum(known) >= LARGE_PAGES

    def _is_unknown(self, sources: Sequence[SourceId]) -> bool:
        return not self._sizes if not sources else any(each not in self._sizes for each in sources)

    async def _count(
        self, key: Hashable, count: Callable[[], Awaitable[T]], sources: Sequence[SourceId]
    ) -> T:
        value = await count()
        self._forget(key)
        if self._is_large(sources) or self._is_unknown(sources):
            self._counts[key] = _Count(value, self._clock())
        return value

    def _forget(self, key: Hashable) -> None:
        """Drop a count, those that are too old, and the oldest where there are too many."""
        self._counts.pop(key, None)
        latest = self._clock() - OLD_SECONDS
        for old, kept in list(self._counts.items()):  # oldest first
            if kept.at >= latest and len(self._counts) < MAX_COUNTS:
                break
            del self._counts[old]

    def _counted(self, key: Hashable, done: "asyncio.Task[Any]") -> None:
        del self._counting[key]
        if not done.cancelled() and done.exception() is not None:  # the next who asks is told what is wrong
            self._counts.pop(key, None)

    async def _forget_removed_sources(self) -> None:
        there = {source.id for source in await self._sources.all()}
        self._sizes = {source: size for source, size in self._sizes.items() if source in there}
