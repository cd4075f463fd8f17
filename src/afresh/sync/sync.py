"""Syncing external stores: each is taken by one worker, brought in line and reported on.

A crawl never calls a store. What changed is known from the pages themselves (`sync/copy.py`), so a sync may
run at any time, twice, or after a crash: it does what is left.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from afresh.crawl.heartbeat import Vigil, at_work
from afresh.errors import AfreshError, RunBusy, SinkError, SinkGone
from afresh.events import Listener
from afresh.model.labels import is_among
from afresh.model.records import Source, SourceId
from afresh.ops.failpoints import failpoint
from afresh.store.store import Store
from afresh.sync.copy import SinkRecord
from afresh.sync.listing import Audit, listed
from afresh.sync.reconcile import plan
from afresh.sync.reports import SyncReport
from afresh.sync.retry import Calls
from afresh.sync.runs import SyncRuns
from afresh.sync.sync_pass import Outlet, SyncWork
from afresh.sync.tally import Tally

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Syncs:
    """What is needed to sync: the store, a worker's life, and someone to tell."""

    store: Store
    vigil: Vigil
    stopping: asyncio.Event
    listener: Listener
    new_id: str  # for a store that has none yet
    idle_runs: bool = True  # sources with nothing to do get a run, too
    sleep: Callable[[float], Awaitable[None]] | None = None  # for tests

    async def sync(
        self, outlets: Sequence[Outlet], only: Sequence[Source] | None = None, *, verify: bool = False
    ) -> list[SyncReport]:
        """Bring stores in line, all pages or those of some sources; trouble with one leaves the others."""
        async with at_work(self.vigil, self.stopping):
            runs = SyncRuns(
                store=self.store,
                worker=self.vigil.me.name,
                clock=self.vigil.clock,
                sources=frozenset(source.id for source in await self.store.sources.all()),
            )
            try:
                return await self._all(outlets, only, verify, runs)
            except AfreshError as error:
                runs.fail(runs.sources, str(error))
                raise
            finally:
                await runs.finish(stopped=self.stopping.is_set())

    async def _all(
        self, outlets: Sequence[Outlet], only: Sequence[Source] | None, verify: bool, runs: SyncRuns
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
        self, outlet: Outlet, only: Sequence[Source] | None, verify: bool, runs: SyncRuns
    ) -> SyncReport:
        began, clock, worker = time.monotonic(), self.vigil.clock, self.vigil.me.name
        record = await self.store.copies.take_sink(outlet.name, outlet.place, worker)
        failpoint("sync.taken")
        sources = attached(outlet, await self.store.sources.all())
        chosen = None if only is None else [source.id for source in only]
        work = SyncWork(
            store=self.store,
            outlet=outlet,
            worker=worker,
            store_id=await self.store.copies.store_id(self.new_id) or self.new_id,
            sources=sources,
            only=chosen,
            clock=clock,
            stopping=self.stopping,
            listener=self.listener,
            calls=Calls(stopping=self.stopping, sleep=self.sleep),
            runs=runs,
            doubt=verify or _is_in_doubt(record, clock() - outlet.times.audit),
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
            audit=work.doubt or isinstance(trouble, SinkGone),
            resume_at=clock() + timedelta(seconds=asked) if asked else None,
            error=why,
        )
        state = _state(work.tally, trouble, stopped=self.stopping.is_set())
        report = work.tally.report(outlet.name, outlet.kind, state, time.monotonic() - began, why)
        return replace(report, runs=runs.numbers(concerned))

    async def preview(
        self, outlets: Sequence[Outlet], only: Sequence[Source] | None = None, *, verify: bool = False
    ) -> list[SyncReport]:
        """What a sync would do; nothing is written, and a store is only listed where that is asked for."""
        reports = [await self._preview(outlet, only, verify) for outlet in outlets]
        return [replace(report, dry_run=True) for report in reports]

    async def _preview(self, outlet: Outlet, only: Sequence[Source] | None, verify: bool) -> SyncReport:
        began, tally, clock = time.monotonic(), Tally(), self.vigil.clock
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
            return tally.report(
                outlet.name, outlet.kind, "failed", time.monotonic() - began, outlet.said(error)
            )
        after = 0
        while batch := await self.store.copies.of_sink(outlet.name, sources, after=after):
            after = batch[-1].copy.id
            judged = {copy.id: copy for copy in audit.judge(batch, clock())} if audit else {}
            for wanted in batch:
                copy = judged.get(wanted.copy.id, wanted.copy)
                if chosen is None or copy.source_id in chosen:
                    now = type(wanted)(copy=copy, hash=wanted.hash, moved=wanted.moved)
                    tally.intend(now, plan(now, outlet.order, clock()))
        if audit is not None:
            orphans = audit.orphans()
            tally.audit = audit.view(len(orphans))
            tally.counts["deleted"] += len(orphans)
        return tally.report(outlet.name, outlet.kind, "planned", time.monotonic() - began, None)


def attached(outlet: Outlet, sources: Sequence[Source]) -> list[SourceId]:
    """The sources that a store is to hold."""
    return [source.id for source in sources if is_attached(outlet.sources, source)]


def is_attached(names: Sequence[str], source: Source) -> bool:
    """Whether a store with this list of names or labels is to hold a source; without a list it holds all."""
    return is_among(source.label, names)


def _is_in_doubt(record: SinkRecord, since: datetime) -> bool:
    """Whether what a store holds has to be listed first: now and then somebody changes it by hand."""
    return record.audit or record.audited_at is None or record.audited_at < since


def _state(tally: Tally, trouble: SinkError | None, *, stopped: bool) -> str:
    if trouble is not None:
        return "failed"
    return "partial" if tally.counts["failed"] or tally.counts["stuck"] or stopped else "completed"
