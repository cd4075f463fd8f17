"""The use cases around runs on record, and a look at an address that is none."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from afresh.aio import heard
from afresh.core.errors import AfreshError, StoreWaits
from afresh.core.events import Listener, ignore
from afresh.core.glimpse import Glimpse
from afresh.core.model import RunState, Source
from afresh.core.retention import PruneReport
from afresh.core.sync_views import DocumentCounts
from afresh.core.views import RunReport
from afresh.engine.lifetime import LiveWorkers
from afresh.engine.prune import Prune
from afresh.engine.runs import cancel_run, run_and_source, runs_of, waits_for_work
from afresh.engine.status import alive_workers, awaited_report
from afresh.engine.tools import Tools
from afresh.engine.which import exact_sources
from afresh.kb_sync import Syncing
from afresh.ports import Clock
from afresh.store.store import Store

log = logging.getLogger(__name__)
PRUNE_SECONDS = 86_400.0


class RunsOnRecord(Syncing):
    """What was done, is being done and waits to be done."""

    _store: Store
    _tools: Tools
    _clock: Clock
    _stopping: asyncio.Event

    async def runs(self, label: str | None = None) -> list[RunReport]:
        """The latest runs of all sources, or of those a label means, newest first."""
        sources: Sequence[Source] = (
            await exact_sources(self._store, label) if label else await self._store.sources.all()
        )
        return await runs_of(self._store, sources, await self._alive(), self._clock())

    async def run(self, number: int) -> RunReport:
        """One run, as far as it is."""
        run, source = await run_and_source(self._store, number)
        report = awaited_report(run, source, await self._alive(), self._clock())
        if report.documents is None or run.state is not RunState.RUNNING:
            return report
        return replace(report, documents=DocumentCounts(**await self._store.copies.count_documents(run.id)))

    async def cancel(self, number: int) -> RunReport:
        """Stop a run, in whatever process; what it has read stays, and the next refresh goes on with it."""
        return await cancel_run(self._store, number, self._clock())

    async def has_work(self) -> bool:
        """Whether a run is open that no process works on."""
        return await waits_for_work(self._store, await self._alive())

    async def glance(self, url: str) -> Glimpse:
        """The text at a web address as it is now; nothing is kept."""
        return await self._tools.glance(self._tools.web_address(url))

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

    async def stops_within(self, seconds: float) -> bool:
        """Wait for some seconds, or until `stop`: then it is True."""
        return await heard(self._stopping, seconds)

    async def _alive(self) -> LiveWorkers:
        return await alive_workers(self._store, *self._tools.identity(), self._clock())
