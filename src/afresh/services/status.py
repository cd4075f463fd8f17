"""Show the state and the metrics of the store, and prune old records."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from afresh.aio import wait_event
from afresh.crawl.factory import settings_problem
from afresh.crawl.heartbeat import LiveWorkers
from afresh.crawl.retention import StorePruner
from afresh.dataclass import asdict, dataclass, field, replace
from afresh.errors import AfreshError, StoreUnavailable
from afresh.events import Listener, ignore
from afresh.model.records import UNFINISHED, RunState
from afresh.model.reports import BackingOffGroup, BackingOffPage, Finding, Freshness, StoreStatus, WorkerView
from afresh.model.retention import PruneReport
from afresh.services.context import Service, ServiceContext
from afresh.services.sinks import SinkService
from afresh.services.status_views import due_of, live_reports
from afresh.store.stats import CachedStats
from afresh.store.store import Store
from afresh.text.redact import mask_secrets
from afresh.urls.canonical import domain_of

log = logging.getLogger(__name__)
PRUNE_SECONDS = 86_400.0
OUTCOMES = ("new", "changed", "unchanged", "not_modified", "deleted", "moved", "failed", "refused")
SUMS = ("bytes", "ai_calls", "ai_tokens", "chunks_embedded", "links_scored", "worked_ms")
MOST = 1_000
HOSTS = 10  # hosts whose queues are listed individually
NAMED = 5  # failed pages of a source that are listed individually


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
    """Sums of the counts of all runs; the sums of the runs up to `last_ended` are cached in `ended`."""

    ended: Counter[str] = field(default_factory=Counter)
    last_ended: int = 0  # every run up to this id has ended
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def now(self, store: Store) -> Counter[str]:
        async with self.lock:
            found, after, closed = Counter[str](), self.last_ended, True
            while rows := await store.stats.counts_of_runs(after, MOST):
                for number, state, counts in rows:
                    closed = closed and state not in (*UNFINISHED, RunState.NEEDS_CONFIRMATION)
                    if closed:
                        self.ended.update(counts)
                        self.last_ended = number
                    else:
                        found.update(counts)
                    after = number
            return self.ended + found


class StatusService(Service):
    def __init__(self, context: ServiceContext, sinks: SinkService) -> None:
        super().__init__(context)
        self._sinks = sinks
        self._sums = RunTotals()

    async def get(self) -> StoreStatus:
        store, alive, now = self._store, await self._alive(), self._clock()
        serving, totals = await store.vectors.serving_model(), await store.stats.totals()
        load = await store.stats.workload(alive.names)
        reports = [report for _, report in await live_reports(store, alive, now)]
        running = [each for each in reports if each.state == RunState.RUNNING and each.seconds]
        return StoreStatus(
            store=mask_secrets(store.url),
            sources=totals["sources"],
            pages=totals["pages"],
            doubtful=totals["doubtful"],
            chunks=totals["chunks"],
            attempts=totals["attempts"],
            pending=load.waiting,
            in_flight=load.held,
            oldest_pending=load.oldest,
            runs=tuple(reports),
            workers=await self._workers(alive),
            hosts=tuple(await store.stats.busiest_hosts(HOSTS, alive.names)),
            pages_per_second=round(sum(each.checked / each.seconds for each in running), 2),
            size_bytes=await store.stats.size_bytes(),
            model=serving.name if serving else None,
            unembedded=(await store.stats.missing_vectors(serving.name)).number if serving else totals["chunks"],
            wanted_model=self._models.wanted(),
            freshness=await self._freshness(now),
            sinks=await self._sinks.views(await store.sources.all()),
        )

    async def _workers(self, alive: LiveWorkers) -> tuple[WorkerView, ...]:
        """Return the active processes, oldest first; each process registers one worker per run."""
        held, led = await self._store.workers.held_by(), defaultdict(list)
        for run in await self._store.runs.live():
            if run.state is RunState.RUNNING and run.worker is not None:
                led[run.worker].append(int(run.id))
        processes = defaultdict(list)
        for worker in await self._store.workers.all():
            if worker.name in alive.names:
                processes[worker.host, worker.pid].append(worker)
        views = [
            WorkerView(
                host=host,
                pid=pid,
                since=min(each.started_at or each.heartbeat_at for each in names),
                heartbeat_at=max(each.heartbeat_at for each in names),
                runs=tuple(sorted(run for each in names for run in led[each.name])),
                held=sum(held.get(each.name, 0) for each in names),
            )
            for (host, pid), names in processes.items()
        ]
        return tuple(sorted(views, key=lambda view: (view.since, view.host, view.pid)))

    async def _freshness(self, now: datetime) -> tuple[Freshness, ...]:
        sources, oldest = await self._store.sources.all(), await self._store.stats.oldest_checks()
        due, views = await due_of(self._store, self._tools, sources, now), []
        for source in sources:
            backing_off = await self._store.due.backing_off(source.id, now)
            views.append(
                Freshness(
                    source=source.name,
                    version=source.version,
                    kind=source.kind,
                    oldest_check=oldest.get(source.id),
                    due=due[source.id].due,
                    next_at=due[source.id].next_at,
                    backing_off=tuple(backing_off[:NAMED]),
                    backing_off_count=len(backing_off),
                    backing_off_groups=_groups(backing_off),
                    trouble=settings_problem(self._tools, source),
                )
            )
        return tuple(views)

    async def sums(self) -> Mapping[str, int]:
        totals = await self._store.stats.totals()
        return {"pages": int(totals["pages"] or 0), "chunks": int(totals["chunks"] or 0)}

    async def figures(self) -> Metrics:
        counts, totals = await self._sums.now(self._store), await self._store.stats.totals()
        load = await self._store.stats.workload((await self._alive()).names)
        names = ("sources", "pages", "chunks", "doubtful")
        return Metrics(
            totals={name: int(totals[name] or 0) for name in names} | {"pending": load.waiting, "in_flight": load.held},
            outcomes={name: counts[name] for name in OUTCOMES},
            sums={name: counts[name] for name in SUMS},
            runs=await self._store.stats.runs_by_state(),
            copies=await self._store.stats.copies_by_state(),
            messages=await self._store.messages.count_outbox(),
        )

    def cache_counts(self) -> None:
        """Cache the counts of large sources from now on; only long-running processes need this."""
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
        reclaims, lengths = vacuum and not dry_run and not stopped, asdict(retention).items()
        return PruneReport(
            dry_run=dry_run,
            complete=not stopped,
            **asdict(counts),
            freed_bytes=await self._store.retention.reclaim_space() if reclaims else None,
            retention={name: None if kept is None else kept.total_seconds() for name, kept in lengths},
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


def _groups(pages: Sequence[BackingOffPage]) -> tuple[BackingOffGroup, ...]:
    found = defaultdict[tuple[str, str | None], list[BackingOffPage]](list)
    for page in pages:
        found[domain_of(page.url), page.reason].append(page)
    groups = [(*key, len(each), each[0]) for key, each in found.items()]
    return tuple(BackingOffGroup(host=h, reason=r, count=n, first=page) for h, r, n, page in groups[:NAMED])
