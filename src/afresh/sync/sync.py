"""Sync external stores (sinks): open a sink, reserve it for this worker, update it, and return a report.

A crawl never calls a sink. The stored pages and copies show what has changed (`sync/copy.py`), so a sync can
run at any time, also after a crash, and does what is left to do.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

from afresh.config import Config
from afresh.config.server import SinkSettings
from afresh.crawl.factory import RunToolFactory
from afresh.crawl.heartbeat import Heartbeat, registered_worker
from afresh.dataclass import dataclass, replace
from afresh.errors import AfreshError, ConfigError, RunBusy, SinkError, SinkMissing, UsageError
from afresh.events import Listener, ignore
from afresh.model.labels import is_among
from afresh.model.records import Source, SourceId
from afresh.ops.failpoints import failpoint
from afresh.plugins import SINKS, load_plugin
from afresh.ports import Sink, SinkKind
from afresh.store.store import Store
from afresh.sync.copy import SinkRecord
from afresh.sync.listing import Audit, list_documents
from afresh.sync.reconcile import SyncTimes, plan
from afresh.sync.reports import SinkView, SyncReport
from afresh.sync.sync_pass import ConfiguredSink, SyncPass, SyncRuns, SyncTally

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SinkSync:
    tools: RunToolFactory
    stopping: asyncio.Event

    async def sync(
        self,
        names: Sequence[str] = (),
        only: Sequence[Source] | None = None,
        *,
        dry_run: bool = False,
        verify: bool = False,
        idle_runs: bool = True,
        listener: Listener = ignore,
    ) -> list[SyncReport]:
        """Sync the named sinks (none named: all) with the pages of some sources (None: all); return a report for each.

        A run is stored for each source; without `idle_runs`, only for sources with changes or errors.
        """
        self.tools.check_everywhere()
        chosen = _chosen(self.tools.config, names)
        store, heartbeat = self.tools.standing(listener, self.stopping)
        async with AsyncExitStack() as opened:
            targets = []
            for name, settings in chosen.items():
                sink = open_sink(name, settings, self.tools.config.network.agent)
                opened.push_async_callback(sink.close)
                recheck, deadline = settings.recheck_seconds, settings.deadline_seconds
                times = SyncTimes(recheck=timedelta(seconds=recheck), deadline=timedelta(seconds=deadline))
                targets.append(ConfiguredSink(name=name, settings=settings, sink=sink, times=times))
            runner = SyncRunner(
                store=store,
                heartbeat=heartbeat,
                stopping=self.stopping,
                listener=listener,
                new_id=secrets.token_hex(16),
                idle_runs=idle_runs,
            )
            return await (runner.preview if dry_run else runner.sync)(targets, only, verify=verify)


def _chosen(config: Config, names: Sequence[str]) -> dict[str, SinkSettings]:
    if not (sinks := config.sinks):
        raise UsageError("no external store is configured: add one under `sinks:` (docs/howto/sinks.md)")
    for name in names:
        if name not in sinks:
            raise UsageError(f"there is no sink {name}; configured are: {', '.join(sorted(sinks))}")
    start = config.file.parent if config.file else Path()  # the base of relative paths
    chosen = {name: sinks[name] for name in sorted(sinks) if not names or name in names}
    return {
        name: replace(each, path=str((start / Path(each.path).expanduser()).absolute())) if each.path else each
        for name, each in chosen.items()
    }


def open_sink(name: str, settings: SinkSettings, user_agent: str) -> Sink:
    try:
        kind = load_plugin(SINKS, settings.kind, SinkKind)
    except ImportError as missing:
        raise ConfigError(f"sinks.{name}.kind: {settings.kind} is not installed ({missing})") from None
    if kind is None:
        raise ConfigError(f"sinks.{name}.kind: {settings.kind} is not installed: check the name or install its plug-in")
    if kind.base_url is None:
        return kind.open(name, settings)
    from afresh.sources.web.api_client import ApiClient

    address = settings.base_url or kind.base_url
    return kind.open(name, settings, ApiClient([address], user_agent=user_agent, connections=settings.at_once))


@dataclass(slots=True, kw_only=True)
class SyncRunner:
    store: Store
    heartbeat: Heartbeat
    stopping: asyncio.Event
    listener: Listener
    new_id: str  # id for an afresh store that has none yet
    idle_runs: bool = True  # create runs also for sources without changes
    sleep: Callable[[float], Awaitable[None]] | None = None  # replaced in tests

    async def sync(
        self, targets: Sequence[ConfiguredSink], only: Sequence[Source] | None = None, *, verify: bool = False
    ) -> list[SyncReport]:
        """Sync each sink with the pages of the sources in `only` (None: all), even if another sink fails."""
        reports: list[SyncReport] = []
        async with registered_worker(self.heartbeat, self.stopping):
            sources = frozenset(source.id for source in await self.store.sources.all())
            worker, clock = self.heartbeat.me.name, self.heartbeat.clock
            runs = SyncRuns(store=self.store, worker=worker, clock=clock, sources=sources)
            try:
                for target in targets:
                    if self.stopping.is_set():
                        break
                    try:
                        reports.append(await self._sync_one(target, only, verify, runs))
                    except RunBusy as busy:
                        if len(targets) == 1:
                            raise
                        reports.append(
                            SyncReport(sink=target.name, kind=target.settings.kind, state="busy", error=str(busy))
                        )
            except AfreshError as error:
                runs.fail(runs.sources, str(error))
                raise
            finally:
                await runs.finish(stopped=self.stopping.is_set())
        return reports

    async def _sync_one(
        self, target: ConfiguredSink, only: Sequence[Source] | None, verify: bool, runs: SyncRuns
    ) -> SyncReport:
        began, clock, worker = time.monotonic(), self.heartbeat.clock, self.heartbeat.me.name
        record = await self.store.copies.take_sink(target.name, target.settings.place, worker)
        failpoint("sync.taken")
        sources, chosen, affected = await self._sources_of(target, only)
        audited = record.audited_at
        work = SyncPass(
            store=self.store,
            target=target,
            worker=worker,
            store_id=await self.store.copies.store_id(self.new_id) or self.new_id,
            sources=sources,
            only=chosen,
            clock=clock,
            stopping=self.stopping,
            listener=self.listener,
            sleep=self.sleep,
            runs=runs,
            # list it once a day, because it may have been changed manually
            needs_listing=verify or record.audit or not audited or audited < clock() - target.times.audit,
        )
        if self.idle_runs:
            await runs.open(affected)
        error = await self._update(work, record, affected)
        await work.count_left()
        failpoint("sync.done")
        pause = error.retry_after if error is not None else None
        why = target.describe(error) if error is not None else None
        if why is not None:
            runs.fail(affected, f"{target.name}: {why}")
        await self.store.copies.leave_sink(
            target.name,
            worker,
            clock(),
            audited_at=work.audited_at,
            audit=work.needs_listing or isinstance(error, SinkMissing),
            resume_at=clock() + timedelta(seconds=pause) if pause else None,
            error=why,
        )
        counts = work.tally.counts
        left = counts["failed"] or counts["stuck"] or self.stopping.is_set()
        state = "failed" if error is not None else "partial" if left else "completed"
        return replace(work.tally.report(target, state, time.monotonic() - began, why), runs=runs.numbers(affected))

    async def _update(self, work: SyncPass, record: SinkRecord, affected: Sequence[SourceId]) -> SinkError | None:
        """Update a sink; return the error that stopped the update (also a pause that the sink asked for), or None."""
        target, clock = work.target, self.heartbeat.clock
        if record.resume_at is not None and record.resume_at > clock():
            wait = (record.resume_at - clock()).total_seconds()
            return SinkError(f"the service asked for a pause until {record.resume_at:%H:%M:%S} UTC", wait)
        await self.store.copies.add(target.name, work.worker, affected, clock())
        try:
            await work.run()
        except SinkError as error:
            log.warning("%s: %s", target.name, target.describe(error))
            return error
        return None

    async def _sources_of(
        self, target: ConfiguredSink, only: Sequence[Source] | None
    ) -> tuple[list[SourceId], list[SourceId] | None, list[SourceId]]:
        """Return the sources of the sink, those of this sync (None: all), and those in both."""
        sources = [each.id for each in await self.store.sources.all() if is_among(each.label, target.settings.sources)]
        chosen = None if only is None else [source.id for source in only]
        return sources, chosen, [source for source in sources if chosen is None or source in chosen]

    async def preview(
        self, targets: Sequence[ConfiguredSink], only: Sequence[Source] | None = None, *, verify: bool = False
    ) -> list[SyncReport]:
        """Report what a sync would do; the documents in the sinks are listed only with `verify`."""
        return [replace(await self._preview(target, only, verify), dry_run=True) for target in targets]

    async def _preview(self, target: ConfiguredSink, only: Sequence[Source] | None, verify: bool) -> SyncReport:
        began, tally, clock = time.monotonic(), SyncTally(), self.heartbeat.clock
        sources, chosen, affected = await self._sources_of(target, only)
        tally.counts["uploaded"] = await self.store.copies.count_uncopied(target.name, affected)
        audit: Audit | None = None
        try:
            if verify:
                listing = await list_documents(target.sink, await self.store.copies.store_id())
                audit = Audit(listing, target.order, target.times)
        except SinkError as error:
            return tally.report(target, "failed", time.monotonic() - began, target.describe(error))
        after = 0
        while batch := await self.store.copies.of_sink(target.name, sources, after=after):
            after = batch[-1].copy.id
            judged = {copy.id: copy for copy in audit.judge(batch, clock())} if audit else {}
            for wanted in batch:
                copy = judged.get(wanted.copy.id, wanted.copy)
                if chosen is None or copy.source_id in chosen:
                    now = replace(wanted, copy=copy)
                    tally.intend(now, plan(now, target.order, clock()))
        if audit is not None:
            orphans = audit.orphans()
            tally.audit = audit.view(len(orphans))
            tally.counts["deleted"] += len(orphans)
        return tally.report(target, "planned", time.monotonic() - began)


async def sink_views(
    store: Store, sources: Sequence[Source], sinks_of: Callable[[Source], Mapping[str, str]]
) -> tuple[SinkView, ...]:
    attached: dict[tuple[str, str], list[SourceId]] = {}
    for source in sources:
        for sink in sinks_of(source).items():
            attached.setdefault(sink, []).append(source.id)
    records = {record.name: record for record in await store.copies.sink_records()} if attached else {}
    views = []
    for (name, kind), held in sorted(attached.items()):
        states = dict(sorted((await store.stats.count_copies(name, held)).items()))
        view = SinkView(sink=name, kind=kind, states=states, stuck=await store.stats.count_stuck(name, held))
        if (known := records.get(name)) is not None:
            view = replace(view, synced_at=known.synced_at, error=known.error, failing_since=known.failing_since)
        views.append(view)
    return tuple(views)
