"""Numbers of large sources for a server: told as they were last counted, and counted anew meanwhile."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, NamedTuple, TypeVar, cast

from afresh.core.embedding import Lack
from afresh.core.model import Source, SourceId
from afresh.core.pictures import DayCount
from afresh.core.schedule import DueTally
from afresh.core.views import SourceView
from afresh.store.store import Store

T = TypeVar("T")
LARGE = 10_000  # pages, from which on counting takes longer than people wait
KEPT_SECONDS = 10.0  # after which a number is counted anew while the old one is told
AGING_SECONDS = 60.0  # after which the new one is waited for, though not long
OLD_SECONDS = 600.0  # after which it is waited for as long as it takes
PATIENCE = 0.1
MOST = 200  # numbers that are kept


class _Number(NamedTuple):
    value: Any
    at: float


class KeptNumbers:
    """A store whose numbers may be some seconds old where a source is large; all else is as it is."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._sizes: dict[SourceId, int] = {}  # pages of sources
        self._numbers: dict[Hashable, _Number] = {}
        self._counting: dict[Hashable, asyncio.Task[Any]] = {}

    @property
    def numbers_kept(self) -> int:
        """How many numbers are kept."""
        return len(self._numbers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def sources(self, name: str | None = None) -> Sequence[Source]:
        """The sources; the size of one that is gone no longer counts."""
        found = await self._store.sources(name)
        if name is None:
            there = {source.id for source in found}
            self._sizes = {source: size for source, size in self._sizes.items() if source in there}
        return found

    async def source_view(self, source: Source) -> SourceView:
        """A source with its numbers; name, URL, settings and the last run are told as they are."""
        view = await self._told("view", source.id, lambda: self._measured(source), source.id)
        last = await self._store.last_runs(source.id, 1)
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
        view = await self._store.source_view(source)
        self._sizes[source.id] = view.pages
        return view

    async def due_tallies(self, now: datetime) -> Mapping[SourceId, DueTally]:
        """What is due in each source."""
        return await self._told("due", None, lambda: self._store.due_tallies(now))

    async def due_tally(self, source: SourceId, now: datetime, max_age: float | None) -> DueTally:
        """What is due in one."""
        count = lambda: self._store.due_tally(source, now, max_age)  # noqa: E731
        return await self._told("due", (source, max_age), count, source)

    async def oldest_checks(self) -> Mapping[SourceId, datetime]:
        """When the page of each source that waits longest was looked at."""
        return await self._told("oldest", None, self._store.oldest_checks)

    async def changes_by_day(self, sources: Sequence[SourceId], since: date) -> Sequence[DayCount]:
        """Changes by source, day and kind."""
        key = (tuple(sources), since)
        return await self._told("days", key, lambda: self._store.changes_by_day(sources, since), *sources)

    async def totals(self) -> Mapping[str, Any]:
        """The numbers of the whole store."""
        return await self._told("totals", None, self._store.totals)

    async def looks_by_hour(self, source: SourceId, now: datetime) -> tuple[int, Mapping[datetime, int]]:
        """Looks by hour."""
        return await self._told("hours", source, lambda: self._store.looks_by_hour(source, now), source)

    async def lack(self, model: str, source: SourceId | None = None) -> Lack:
        """Chunks that lack vectors."""
        sources = () if source is None else (source,)
        return await self._told("lack", (model, source), lambda: self._store.lack(model, source), *sources)

    async def count_copies(self, sink: str, sources: Sequence[SourceId]) -> Mapping[str, int]:
        """Pages of sources by the state of their copies in a store."""
        key = (sink, tuple(sources))
        return await self._told("copies", key, lambda: self._store.count_copies(sink, sources), *sources)

    async def count_stuck(self, sink: str, sources: Sequence[SourceId]) -> int:
        """Pages of sources that a store does not finish."""
        key = (sink, tuple(sources))
        return await self._told("stuck", key, lambda: self._store.count_stuck(sink, sources), *sources)

    async def close(self) -> None:
        """Stop counting, and close the store."""
        tasks = list(self._counting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._store.close()

    async def _told(
        self, name: str, of: Hashable, count: Callable[[], Awaitable[T]], *sources: SourceId
    ) -> T:
        """The number as it was last counted, where that is worth it; of some sources, or of all."""
        key = (name, of)
        kept = self._numbers.get(key)
        if kept is None and (self._is_large(sources) or self._is_unknown(sources)):
            task = self._counting.get(key) or self._count_aside(key, count, sources)
            return cast("T", await asyncio.shield(task))  # one count for all who ask
        if kept is None or not self._is_large(sources):
            return await self._count(key, count, sources)
        age = self._clock() - kept.at
        if age <= KEPT_SECONDS:
            return cast("T", kept.value)
        task = self._counting.get(key) or self._count_aside(key, count, sources)
        if age > AGING_SECONDS:
            await asyncio.wait({task}, timeout=PATIENCE if age <= OLD_SECONDS else None)
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
        return sum(known) >= LARGE

    def _is_unknown(self, sources: Sequence[SourceId]) -> bool:
        return not self._sizes if not sources else any(each not in self._sizes for each in sources)

    async def _count(
        self, key: Hashable, count: Callable[[], Awaitable[T]], sources: Sequence[SourceId]
    ) -> T:
        value = await count()
        self._forget(key)
        if self._is_large(sources) or self._is_unknown(sources):
            self._numbers[key] = _Number(value, self._clock())
        return value

    def _forget(self, key: Hashable) -> None:
        """Drop what is counted anew, what is too old to be told, and the oldest where there is no room."""
        self._numbers.pop(key, None)
        latest = self._clock() - OLD_SECONDS
        for old, kept in list(self._numbers.items()):  # oldest first
            if kept.at >= latest and len(self._numbers) < MOST:
                break
            del self._numbers[old]

    def _counted(self, key: Hashable, done: "asyncio.Task[Any]") -> None:
        del self._counting[key]
        if not done.cancelled() and done.exception() is not None:  # the next who asks is told what is wrong
            self._numbers.pop(key, None)


def keeping(store: Store) -> Store:
    """A store that counts large sources less often than it is asked."""
    return cast("Store", KeptNumbers(store))
