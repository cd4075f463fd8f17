"""Show the state and the metrics of the store, and prune old records."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from afresh.aio import wait_event
from afresh.crawl.prune import StorePruner
from afresh.dataclass import asdict, dataclass, field, replace
from afresh.errors import AfreshError, StoreUnavailable
from afresh.events import Listener, ignore
from afresh.model.records import UNFINISHED, RunState
from afresh.model.reports import Finding, StoreStatus
from afresh.model.retention import PruneReport
from afresh.services.context import Service, ServiceContext
from afresh.services.sinks import SinkService
from afresh.services.status_views import status_of
from afresh.store.stats import CachedStats
from afresh.store.store import Store

log = logging.getLogger(__name__)
PRUNE_SECONDS = 86_400.0
OUTCOMES = ("new", "changed", "unchanged", "not_modified", "deleted", "moved", "failed", "refused")
SUMS = ("bytes", "ai_calls", "ai_tokens", "chunks_embedded", "links_scored", "worked_ms")
MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    totals: Mapping[str, int]  # of the store: sources, pages, chunks, pending, in_flight, doubtful
    outcomes: Mapping[str, int]  # of page checks
    sums: Mapping[str, int]
    runs: Mapping[str, int]  # by state
    copies: Mapping[tuple[str, str], int]  # by sink and state
    messages: Mapping[str, int]  # outgoing ones, by state


@dataclass(slots=True)
class RunTotals:
    """Sums of the counts of all runs; those of ended runs are cached."""

    over: Counter[str] = field(default_factory=Counter)
    through: int = 0  # every run up to this id has ended
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def now(self, store: Store) -> Counter[str]:
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
    def __init__(self, context: ServiceContext, sinks: SinkService) -> None:
        super().__init__(context)
        self._sinks = sinks
        self._sums = RunTotals()

    async def get(self) -> StoreStatus:
        now, wanted = self._clock(), self._models.wanted()
        status = await status_of(self._store, self._tools, await self._alive(), now, wanted)
        return replace(status, sinks=await self._sinks.views(await self._store.sources.all()))

    async def sums(self) -> Mapping[str, int]:
        """Return the number of pages and the number of chunks in all sources together."""
        totals = await self._store.stats.totals()
        return {"pages": int(totals["pages"] or 0), "chunks": int(totals["chunks"] or 0)}

    async def figures(self) -> Metrics:
        counts, totals = await self._sums.now(self._store), await self._store.stats.totals()
        load = await self._store.stats.workload((await self._alive()).names)
        names = ("sources", "pages", "chunks", "doubtful")
        return Metrics(
            totals={
                **{name: int(totals[name] or 0) for name in names},
                "pending": load.waiting,
                "in_flight": load.held,
            },
            outcomes={name: counts[name] for name in OUTCOMES},
            sums={name: counts[name] for name in SUMS},
            runs=await self._store.stats.runs_by_state(),
            copies=await self._store.stats.copies_by_state(),
            messages=await self._store.messages.count_outbox(),
        )

    def cache_counts(self) -> None:
        """Cache the counts of large sources from now on, as only long-running processes need."""
        if not isinstance(self._store.stats, CachedStats):
            self._store.stats = CachedStats(self._store)

    async def doctor(self) -> list[Finding]:
        from afresh.services.doctor import examine

        self._tools.check_everywhere()
        me, lease = self._tools.identity()
        return await examine(self._tools.config, self._tools.store, me, lease, self._clock())

    async def ready(self) -> None:
        """Raise an error if the store does not answer."""
        await self._store.vectors.serving_model()

    async def prune(
        self,
        *,
        kept: Mapping[str, timedelta | None] | None = None,
        dry_run: bool = False,
        vacuum: bool = False,
        listener: Listener = ignore,
    ) -> PruneReport:
        """Remove records past their retention, and return a report; `kept` overrides retention settings."""
        began, retention = self._clock(), replace(self._tools.retention(), **(kept or {}))
        counts = await self._store.retention.count_prunable(retention.at(began))
        if not dry_run:
            work = StorePruner(self._store, retention, self._clock, self._stopping, listener, expected=counts)
            counts = await work.run()
        stopped = self._stopping.is_set()
        reclaims = vacuum and not dry_run and not stopped
        freed = await self._store.retention.reclaim_space() if reclaims else None
        return PruneReport(
            dry_run=dry_run,
            complete=not stopped,
            **asdict(counts),
            freed_bytes=freed,
            retention=retention.in_seconds(),
            seconds=(self._clock() - began).total_seconds(),
        )

    async def keep_pruned(self, listener: Listener = ignore) -> None:
        """Remove records past their retention once a day, until `stop`."""
        store, _ = self._tools.standing(listener, self._stopping)
        with suppress(StoreUnavailable):  # stopped while the database was unavailable
            while not self._stopping.is_set():
                work = StorePruner(store, self._tools.retention(), self._clock, self._stopping)
                try:
                    log.info("removed records past their retention: %s", await work.run())
                except StoreUnavailable:
                    raise
                except AfreshError as error:
                    log.warning("records past their retention could not be removed: %s", error)
                await wait_event(self._stopping, PRUNE_SECONDS)
