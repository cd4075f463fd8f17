"""The use cases of operators: how the store stands, its numbers, and removal of what is old."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from afresh.aio import heard
from afresh.crawl.prune import Prune
from afresh.errors import AfreshError, StoreWaits
from afresh.events import Listener, ignore
from afresh.model.records import RunState
from afresh.model.reports import (
    StoreStatus,
)
from afresh.model.retention import PruneReport
from afresh.model.store_reports import Finding
from afresh.model.transitions import UNFINISHED
from afresh.services.context import Context, Service
from afresh.services.sinks import SinkService
from afresh.services.status_views import (
    alive_workers,
    status_of,
)
from afresh.store.cached_stats import CachedStats
from afresh.store.store import Store

log = logging.getLogger(__name__)
PRUNE_SECONDS = 86_400.0
OUTCOMES = ("new", "changed", "unchanged", "not_modified", "deleted", "moved", "failed", "refused")
SUMS = ("bytes", "ai_calls", "ai_tokens", "chunks_embedded", "links_scored", "worked_ms")
MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Numbers at one moment."""

    totals: Mapping[str, int]  # of the store: sources, pages, chunks, pending, in_flight, doubtful
    outcomes: Mapping[str, int]  # of looks at pages, by what they showed
    sums: Mapping[str, int]
    runs: Mapping[str, int]  # by state
    copies: Mapping[tuple[str, str], int]  # by sink and state
    letters: Mapping[str, int]  # by state


@dataclass(slots=True)
class Sums:
    """What runs counted: those that are over are added up once."""

    over: Counter[str] = field(default_factory=Counter)
    through: int = 0  # every run up to this number is over
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def now(self, store: Store) -> Counter[str]:
        """The sums at this moment."""
        async with self.turn:
            found, after, closed = Counter[str](), self.through, True
            while rows := await store.stats.counts_of_runs(after, MOST):
                for number, state, counts in rows:
                    closed = closed and state not in (*UNFINISHED, RunState.NEEDS_CONFIRMATION)
                    if closed:
                        self.over.update(counts)
                        self.through = number
                    else:
                        found.update(counts)
                    after = number
            return self.over + found


class StatusService(Service):
    """The whole store."""

    def __init__(self, context: Context, sinks: SinkService) -> None:
        super().__init__(context)
        self._sinks = sinks
        self._sums = Sums()

    async def get(self) -> StoreStatus:
        """The store at a glance."""
        status = await status_of(self._store, self._tools, self._clock(), self._models.wanted())
        return replace(status, sinks=await self._sinks.views(await self._store.sources.all()))

    async def sums(self) -> Mapping[str, int]:
        """How many pages and passages there are in all sources."""
        totals = await self._store.stats.totals()
        return {"pages": int(totals["pages"] or 0), "chunks": int(totals["chunks"] or 0)}

    async def figures(self) -> Figures:
        """The numbers of the store."""
        counts, totals = await self._sums.now(self._store), await self._store.stats.totals()
        alive = await alive_workers(self._store, *self._tools.identity(), self._clock())
        load = await self._store.stats.workload(alive.names)
        names = ("sources", "pages", "chunks", "doubtful")
        return Figures(
            totals={
                **{name: int(totals[name] or 0) for name in names},
                "pending": load.waiting,
                "in_flight": load.held,
            },
            outcomes={name: counts[name] for name in OUTCOMES},
            sums={name: counts[name] for name in SUMS},
            runs=await self._store.stats.runs_by_state(),
            copies=await self._store.stats.copies_by_state(),
            letters=await self._store.messages.count_letters(),
        )

    def cache_counts(self) -> None:
        """Count large sources less often than somebody asks; for a process that stays."""
        if not isinstance(self._store.stats, CachedStats):
            self._store.stats = CachedStats(self._store)

    async def doctor(self) -> list[Finding]:
        """What is well and what is not, with what to do about it."""
        return await self._tools.examine()

    async def ready(self) -> None:
        """Whether the store answers; it raises why not."""
        await self._store.vectors.serving_model()

    async def prune(
        self,
        *,
        kept: Mapping[str, timedelta | None] | None = None,
        dry_run: bool = False,
        vacuum: bool = False,
        listener: Listener = ignore,
    ) -> PruneReport:
        """Remove what is past its retention now; `kept` takes the place of settings of these names."""
        began, retention = self._clock(), replace(self._tools.retention(), **(kept or {}))
        counts = await self._store.retention.count_prunable(retention.at(began))
        if not dry_run:
            work = Prune(self._store, retention, self._clock, self._stopping, listener, expected=counts)
            counts = await work.run()
        stopped = self._stopping.is_set()
        freed = (
            await self._store.retention.reclaim_space() if vacuum and not dry_run and not stopped else None
        )
        return PruneReport(
            dry_run=dry_run,
            complete=not stopped,
            deleted_pages=counts.deleted_pages,
            attempts=counts.attempts,
            changes=counts.changes,
            messages=counts.messages,
            former_texts=counts.former_texts,
            freed_bytes=freed,
            retention=retention.in_seconds(),
            seconds=(self._clock() - began).total_seconds(),
        )

    async def keep_pruned(self, listener: Listener = ignore) -> None:
        """Remove what is past its retention once a day, until `stop`."""
        store, _ = self._tools.standing(listener, self._stopping)
        with suppress(StoreWaits):  # told to stop while the database was away
            while not self._stopping.is_set():
                work = Prune(store, self._tools.retention(), self._clock, self._stopping)
                try:
                    log.info("removed what is past its retention: %s", await work.run())
                except StoreWaits:
                    raise
                except AfreshError as error:
                    log.warning("what is past its retention could not be removed: %s", error)
                await heard(self._stopping, PRUNE_SECONDS)
