"""Sync external stores (sinks): each one is reserved by a worker, updated and reported.

A crawl never calls a sink. The pages themselves tell what has changed (`sync/copy.py`), so a sync may run at
any time, twice, or after a crash: it does what is left.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from afresh.crawl.heartbeat import Heartbeat, registered_worker
from afresh.errors import AfreshError, RunBusy, SinkError, SinkMissing
from afresh.events import Listener
from afresh.model.labels import is_among
from afresh.model.records import Source, SourceId
from afresh.ops.failpoints import failpoint
from afresh.store.store import Store
from afresh.sync.listing import Audit, listed
from afresh.sync.reconcile import plan
from afresh.sync.reports import SinkView, SyncReport
from afresh.sync.sync_pass import ConfiguredSink, SyncPass, SyncRetries, SyncRuns, SyncTally

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class SyncRunner:
    """Syncs external stores as a registered worker."""

    store: Store
    heartbeat: Heartbeat
    stopping: asyncio.Event
    listener: Listener
    new_id: str  # for a store without an id
    idle_runs: bool = True  # also create runs for sources with nothing to do
    sleep: Callable[[float], Awaitable[None]] | None = None  # for tests

    async def sync(
        self, outlets: Sequence[ConfiguredSink], only: Sequence[Source] | None = None, *, verify: bool = False
    ) -> list[SyncReport]:
        """Sync sinks, for all pages or some sources; return a report for each, even if others fail."""
        async with registered_worker(self.heartbeat, self.stopping):
            sources = frozenset(source.id for source in await self.store.sources.all())
            who, clock = self.heartbeat.me.name, self.heartbeat.clock
            runs = SyncRuns(store=self.store, worker=who, clock=clock, sources=sources)
            try:
                return await self._all(outlets, only, verify, runs)
            except AfreshError as error:
                runs.fail(runs.sources, str(error))
                raise
            finally:
                await runs.finish(stopped=self.stopping.is_set())

    async def _all(
        self, outlets: Sequence[ConfiguredSink], only: Sequence[Source] | None, verify: bool, runs: SyncRuns
    ) -> list[SyncReport]:
        reports = []
        for outlet in outlets:
            if self.stopping.is_set():
                break
            try:
                reports.append(await self._one(outlet, only, verify, runs))
            except RunBusy as busy:
                if len(outlets) == 1:
                    raise
                reports.append(SyncReport(sink=outlet.name, kind=outlet.kind, state="busy", error=str(busy)))
        return reports

    async def _one(
        self, outlet: ConfiguredSink, only: Sequence[Source] | None, verify: bool, runs: SyncRuns
    ) -> SyncReport:
        began, clock, worker = time.monotonic(), self.heartbeat.clock, self.heartbeat.me.name
        record = await self.store.copies.take_sink(outlet.name, outlet.place, worker)
        failpoint("sync.taken")
        audited = record.audited_at
        sources = attached(outlet, await self.store.sources.all())
        chosen = None if only is None else [source.id for source in only]
        work = SyncPass(
            store=self.store,
            outlet=outlet,
            worker=worker,
            store_id=await self.store.copies.store_id(self.new_id) or self.new_id,
            sources=sources,
            only=chosen,
            clock=clock,
            stopping=self.stopping,
            listener=self.listener,
            calls=SyncRetries(stopping=self.stopping, sleep=self.sleep),
            runs=runs,
            # it may have been changed by hand
            doubt=verify or record.audit or not audited or audited < clock() - outlet.times.audit,
        )
        concerned = [source for source in sources if chosen is None or source in chosen]
        if self.idle_runs:
            await runs.open(concerned)
        trouble: SinkError | None = None
        if record.resume_at is not None and record.resume_at > clock():
            wait = (record.resume_at - clock()).total_seconds()
            trouble = SinkError(f"it asked to be left alone until {record.resume_at:%H:%M:%S} UTC", wait)
        else:
            await self.store.copies.add(outlet.name, worker, concerned, clock())
            try:
                await work.go()
            except SinkError as error:
                trouble = error
                log.warning("%s: %s", outlet.name, outlet.said(error))
        await work.count_left()
        failpoint("sync.done")
        asked = trouble.retry_after if trouble is not None else None
        why = outlet.said(trouble) if trouble is not None else None
        if why is not None:
            runs.fail(concerned, f"{outlet.name}: {why}")
        await self.store.copies.leave_sink(
            outlet.name,
            worker,
            clock(),
            audited_at=work.audited_at,
            audit=work.doubt or isinstance(trouble, SinkMissing),
            resume_at=clock() + timedelta(seconds=asked) if asked else None,
            error=why,
        )
        counts = work.tally.counts
        left = counts["failed"] or counts["stuck"] or self.stopping.is_set()
        state = "failed" if trouble is not None else "partial" if left else "completed"
        report = work.tally.report(outlet.name, outlet.kind, state, time.monotonic() - began, why)
        return replace(report, runs=runs.numbers(concerned))

    async def preview(
        self, outlets: Sequence[ConfiguredSink], only: Sequence[Source] | None = None, *, verify: bool = False
    ) -> list[SyncReport]:
        """Return what a sync would do, without writing; a sink is only listed with `verify`."""
        reports = [await self._preview(outlet, only, verify) for outlet in outlets]
        return [replace(report, dry_run=True) for report in reports]

    async def _preview(
        self, outlet: ConfiguredSink, only: Sequence[Source] | None, verify: bool
    ) -> SyncReport:
        began, tally, clock = time.monotonic(), SyncTally(), self.heartbeat.clock
        sources = attached(outlet, await self.store.sources.all())
        chosen = None if only is None else [source.id for source in only]
        new = [source for source in sources if chosen is None or source in chosen]
        tally.counts["uploaded"] = await self.store.copies.count_uncopied(outlet.name, new)
        audit: Audit | None = None
        try:
            if verify:
                listing = await listed(outlet.sink.all, await self.store.copies.store_id())
                audit = Audit(listing, outlet.order, outlet.times)
        except SinkError as error:
            seconds, why = time.monotonic() - began, outlet.said(error)
            return tally.report(outlet.name, outlet.kind, "failed", seconds, why)
        after = 0
        while batch := await self.store.copies.of_sink(outlet.name, sources, after=after):
            after = batch[-1].copy.id
            judged = {copy.id: copy for copy in audit.judge(batch, clock())} if audit else {}
            for wanted in batch:
                copy = judged.get(wanted.copy.id, wanted.copy)
                if chosen is None or copy.source_id in chosen:
                    now = replace(wanted, copy=copy)
                    tally.intend(now, plan(now, outlet.order, clock()))
        if audit is not None:
            orphans = audit.orphans()
            tally.audit = audit.view(len(orphans))
            tally.counts["deleted"] += len(orphans)
        return tally.report(outlet.name, outlet.kind, "planned", time.monotonic() - began, None)


def attached(outlet: ConfiguredSink, sources: Sequence[Source]) -> list[SourceId]:
    """Return the sources that a sink should contain."""
    return [source.id for source in sources if is_among(source.label, outlet.sources)]


async def sink_views(
    store: Store, sources: Sequence[Source], sinks_of: Callable[[Source], Mapping[str, str]]
) -> tuple[SinkView, ...]:
    """Return the state of the pages of some sources in each of their sinks."""
    kinds: dict[str, str] = {}
    attached: dict[str, list[SourceId]] = {}
    for source in sources:
        for name, kind in sinks_of(source).items():
            kinds[name] = kind
            attached.setdefault(name, []).append(source.id)
    if not kinds:
        return ()
    records = {record.name: record for record in await store.copies.sink_records()}
    views = []
    for name in sorted(kinds):
        states = await store.stats.count_copies(name, attached[name])
        stuck = await store.stats.count_stuck(name, attached[name])
        view = SinkView(sink=name, kind=kinds[name], states=dict(sorted(states.items())), stuck=stuck)
        if (known := records.get(name)) is not None:
            same = (known.synced_at, known.error, known.failing_since)
            view = replace(view, synced_at=same[0], error=same[1], failing_since=same[2])
        views.append(view)
    return tuple(views)
