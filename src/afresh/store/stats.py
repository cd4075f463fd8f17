"""Count records of the whole store and of sources; cache counts that are slow."""

import asyncio
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from datetime import date, datetime, timedelta
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from afresh.dataclass import replace
from afresh.model.charts import DayCount, HostState, MapNode
from afresh.model.records import PageId, RunId, RunState, Source, SourceId
from afresh.model.reports import HostQueue, SourceView, Workload
from afresh.schedule.due import DueCounts
from afresh.search.records import MissingCount
from afresh.store.dialect import Row
from afresh.store.records import at, record, rhythm_from
from afresh.store.repository import Repository, not_retried
from afresh.store.schedules import form_of

if TYPE_CHECKING:
    from afresh.store.store import Store

# Fields that a source and its view share:
_SAME = ("id", "name", "version", "kind", "url", "crawl_time", "rules", "policy")
_LAST = ("last_run", "last_state", "last_mode", "last_end")
_COUNTS = ("pages", "chunks", "links", "errors", "doubtful")


class StatsRepository(Repository):
    async def source_view(self, source: Source) -> SourceView:
        async with self.db.read() as tx:
            numbers = await tx.only("source_numbers", source=source.id)
            last = dict.fromkeys(_LAST) | dict(await tx.one("last_run", source=source.id) or {})
        same = {name: getattr(source, name) for name in _SAME} | {name: numbers[name] for name in _COUNTS}
        times = {"oldest_check": at(numbers["oldest_check"]), "last_end": at(last["last_end"])}
        return SourceView(**{**same, **last, **times})

    async def oldest_checks(self) -> dict[SourceId, datetime]:
        """Return for each source the earliest time at which one of its active pages was last checked."""
        rows = await self._all("oldest_checks")
        found = ((SourceId(row["source_id"]), at(row["oldest"])) for row in rows)
        return {source: oldest for source, oldest in found if oldest is not None}

    async def due_tally(self, source: SourceId, now: datetime, max_age: float | None) -> DueCounts:
        """Return how many pages of a source are due, and when the next one will be due."""
        age = timedelta(seconds=max_age or 0.0)
        oldest = None if max_age is None else now - age
        async with self.db.read() as tx:
            name = await form_of(tx, "due_tally", source)
            row = await tx.one(name, source=source, now=now, oldest=oldest)
        if row is None:
            return DueCounts()
        seen = at(row["seen"]) if max_age is not None else None
        moments = [each for each in (at(row["next"]), seen + age if seen else None) if each]
        return DueCounts(int(row["due"]), int(row["stale"]), min(moments, default=None))

    async def due_tallies(self, now: datetime) -> dict[SourceId, DueCounts]:
        """Return the result of `due_tally` for each source with planned checks, without a maximum age."""
        rows = await self._all("due_tallies", now=now)
        tally = {row["source_id"]: (int(row["due"]), int(row["stale"]), at(row["next"])) for row in rows}
        return {SourceId(source): DueCounts(*numbers) for source, numbers in tally.items()}

    async def missing_vectors(self, model: str, source: SourceId | None = None) -> MissingCount:
        """Return how many chunks have no vector of a model, and how many of these have no stored text."""
        async with self.db.read() as tx:
            number = await tx.number("model_by_name", name=model)
            missing = await tx.number("unembedded_number", model=number)  # reads indexes only
            if not missing:
                return MissingCount(0, 0)
            if source is None:
                return MissingCount(missing, await tx.number("unembedded_without_text", model=number))
            row = await tx.only("unembedded_counts", model=number, source=source)
            return MissingCount(row["missing"], row["without_text"])

    async def count_copies(self, sink: str, sources: Sequence[SourceId]) -> dict[str, int]:
        """Return the number of pages with content for each state of their copies in a sink."""
        rows = await self._all("count_copies", name=sink, sources=list(sources))
        return {row["state"]: int(row["number"]) for row in rows}

    async def count_stuck(self, sink: str, sources: Sequence[SourceId]) -> int:
        return await self._number("count_stuck", name=sink, sources=list(sources))

    async def changes_by_day(self, sources: Sequence[SourceId], since: date) -> list[DayCount]:
        """Return the number of changes of each source by kind and day (UTC), from the day `since` on."""
        rows = await self._all("changes_by_day", sources=list(sources), day=since.isoformat())
        counts = ((row["source_id"], row["day"], row["kind"], int(row["number"])) for row in rows)
        return [DayCount(source, date.fromisoformat(day), kind, n) for source, day, kind, n in counts]

    async def checks_by_hour(self, source: SourceId, now: datetime) -> tuple[int, dict[datetime, int]]:
        """Return how many pages are due, and how many checks are planned in each hour."""
        rows = await self._all("looks_by_hour", source=source, now=now)
        numbers = {row["hour"]: int(row["number"]) for row in rows}
        due = numbers.pop("", 0)
        return due, {datetime.fromisoformat(f"{hour}:00Z"): number for hour, number in numbers.items()}

    async def site_map(self, source: SourceId, limit: int) -> tuple[list[MapNode], list[tuple[PageId, PageId]], int]:
        """Return pages that are not deleted, nearest to the root first, the links between them, and their number."""
        async with self.db.read() as tx:
            pages = [_map_node(row) for row in await tx.all("map_pages", source=source, limit=limit)]
            ids = [page.id for page in pages]
            targets = {row["link_id"]: PageId(row["page_id"]) for row in await tx.all("map_targets", pages=ids)}
            rows = await tx.all("map_links", pages=ids, links=list(targets))
            size = await tx.number("map_size", source=source)
        return pages, [(PageId(row["page_id"]), targets[row["link_id"]]) for row in rows], size

    async def host_queues(self, runs: Sequence[RunId], limit: int) -> list[HostQueue]:
        """Return the hosts with the longest queues in these runs."""
        return await self._records(HostQueue, "host_queues", runs=list(runs), limit=limit)

    async def host_states(self, domains: Sequence[str]) -> list[HostState]:
        return await self._records(HostState, "host_states", domains=list(domains))

    async def resting_hosts(self, now: datetime, limit: int) -> list[HostState]:
        """Return hosts that may not be requested yet, the longest pause first."""
        return await self._records(HostState, "resting_now", now=now, limit=limit)

    async def runs_by_state(self) -> dict[str, int]:
        return {row["state"]: row["number"] for row in await self._all("runs_by_state")}

    async def copies_by_state(self) -> dict[tuple[str, str], int]:
        rows = await self._all("copies_by_state")
        return {(row["sink"], row["state"]): row["number"] for row in rows}

    async def counts_of_runs(self, after: int, limit: int = 1_000) -> list[tuple[RunId, RunState, dict[str, int]]]:
        """Return runs with an id above `after`, in order of their ids, with their counts so far."""
        rows = await self._all("counts_of_runs", after=after, limit=limit)
        return [(RunId(row["id"]), RunState(row["state"]), json.loads(row["counts"])) for row in rows]

    async def totals(self) -> dict[str, Any]:
        return dict(await self._one("totals") or {})

    async def workload(self, workers: Collection[str]) -> Workload:
        """Return how many pages open runs still have to check; pages claimed by `workers` count as in progress."""
        [workload] = await self._records(Workload, "workload", workers=list(workers))
        return workload

    async def busiest_hosts(self, limit: int, workers: Collection[str]) -> list[HostQueue]:
        """Return the hosts with the longest queues in open runs; pages claimed by `workers` count as in progress."""
        return await self._records(HostQueue, "busiest_hosts", limit=limit, workers=list(workers))

    async def size_bytes(self) -> int:
        return await self.db.size_bytes()

    async def integrity(self) -> str | None:
        """Return the problem of the database or its text index, if one is damaged."""
        return await self.db.find_problem()

    @not_retried
    async def close(self) -> None:
        """Stop counting in the background, which only `CachedStats` does."""

    async def try_to_write(self) -> None:
        """Open an empty write transaction; raise StoreError if that is impossible."""
        async with self.db.write():
            pass


def _map_node(row: Row) -> MapNode:
    rhythm = rhythm_from(row)
    seconds = rhythm.quiet + rhythm.spans
    pace = round(rhythm.changes / seconds * MONTH, 2) if seconds >= DAY else None
    doubtful = row["doubt"] is not None
    return record(MapNode, row, doubtful=doubtful, changes=rhythm.changes, changes_per_month=pace, parent=None)


T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])
DAY = 86_400.0
MONTH = 30 * DAY
LARGE_PAGES = 10_000  # from which counting takes too long for users
FRESH_SECONDS = 10.0  # after which a count is renewed in the background
AGING_SECONDS = 60.0  # after which callers wait for the new count, but only briefly
OLD_SECONDS = 600.0  # after which callers wait as long as it takes
SHORT_WAIT_SECONDS = 0.1
MAX_COUNTS = 200


def _cached_count(method: Method) -> Method:
    """Return `method` with a cache for `CachedStats`; the cache key is all arguments except `now`."""
    name, signature = method.__name__, inspect.signature(method)

    @wraps(method)
    async def call(self: "CachedStats", *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs).arguments
        source = given.get("source")
        sources = given.get("sources", [] if source is None else [source])
        key = [tuple(each) if each is sources else each for part, each in given.items() if part not in ("self", "now")]
        return await self._cached((name, *key), partial(getattr(self._inner, name), *args, **kwargs), sources)

    return cast("Method", call)


class CachedStats(StatsRepository):
    """Statistics that may be some seconds old if sources are large."""

    def __init__(self, store: "Store", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(store.stats.db, store.stats.caches, None)  # the inner repository retries
        self._inner = store.stats
        self._sources = store.sources
        self._runs = store.runs
        self._clock = clock
        self._sizes: dict[SourceId, int] = {}  # pages per source
        self._counts: dict[Hashable, tuple[Any, float]] = {}  # value and time of each count
        self._counting: dict[Hashable, asyncio.Task[Any]] = {}

    async def source_view(self, source: Source) -> SourceView:
        """Return a source with its counts; name, URL, settings and last run are never cached."""
        view = await self._cached(("view", source.id), lambda: self._measured(source), [source.id])
        runs = await self._runs.last(source.id)
        run, state, mode = (runs[0].id, runs[0].state, runs[0].mode) if runs else (None, None, None)
        same: dict[str, Any] = {name: getattr(source, name) for name in _SAME}
        return replace(view, last_run=run, last_state=state, last_mode=mode, **same)

    async def _measured(self, source: Source) -> SourceView:
        view = await self._inner.source_view(source)
        self._sizes[source.id] = view.pages
        return view

    due_tallies = _cached_count(StatsRepository.due_tallies)
    due_tally = _cached_count(StatsRepository.due_tally)
    oldest_checks = _cached_count(StatsRepository.oldest_checks)
    changes_by_day = _cached_count(StatsRepository.changes_by_day)
    totals = _cached_count(StatsRepository.totals)
    checks_by_hour = _cached_count(StatsRepository.checks_by_hour)
    missing_vectors = _cached_count(StatsRepository.missing_vectors)
    count_copies = _cached_count(StatsRepository.count_copies)
    count_stuck = _cached_count(StatsRepository.count_stuck)

    async def close(self) -> None:
        tasks = list(self._counting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _cached(self, key: Hashable, count: Callable[[], Awaitable[T]], sources: Sequence[SourceId]) -> T:
        """Return a count, from the cache if the sources (none named: all) are large."""
        if not sources:
            there = {source.id for source in await self._sources.all()}
            self._sizes = {source: size for source, size in self._sizes.items() if source in there}
        kept = self._counts.get(key)
        if kept is None and (self._is_large(sources) or self._is_unknown(sources)):
            task = self._counting.get(key) or self._count_aside(key, count, sources)
            return cast("T", await asyncio.shield(task))  # one count for all callers
        if kept is None or not self._is_large(sources):
            return await self._count(key, count, sources)
        value, counted_at = kept
        age = self._clock() - counted_at
        if age <= FRESH_SECONDS:
            return cast("T", value)
        task = self._counting.get(key) or self._count_aside(key, count, sources)
        if age > AGING_SECONDS:
            await asyncio.wait({task}, timeout=SHORT_WAIT_SECONDS if age <= OLD_SECONDS else None)
        return cast("T", task.result() if task.done() and not task.cancelled() else value)

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

    async def _count(self, key: Hashable, count: Callable[[], Awaitable[T]], sources: Sequence[SourceId]) -> T:
        value = await count()
        self._counts.pop(key, None)
        latest = self._clock() - OLD_SECONDS
        for old, (_, counted_at) in list(self._counts.items()):  # oldest first
            if counted_at >= latest and len(self._counts) < MAX_COUNTS:
                break
            del self._counts[old]
        if self._is_large(sources) or self._is_unknown(sources):
            self._counts[key] = value, self._clock()
        return value

    def _counted(self, key: Hashable, done: "asyncio.Task[Any]") -> None:
        del self._counting[key]
        if not done.cancelled() and done.exception() is not None:  # the next caller gets the error
            self._counts.pop(key, None)
