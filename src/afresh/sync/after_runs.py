"""Sync external stores (sinks) in the background after runs, each sink in one sync at a time."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from afresh.aio import wait_first
from afresh.backoff import next_wait
from afresh.dataclass import dataclass, field
from afresh.errors import AfreshError, RunBusy, StoreUnavailable
from afresh.events import Listener, Notice
from afresh.model.records import Run, RunId, RunMode, RunState, SourceId
from afresh.store.store import Store
from afresh.sync.reports import SyncReport
from afresh.sync.sync import SinkSync

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 60.0  # first wait before syncing an unfinished or busy sink again
MAX_RETRY_SECONDS = 3600.0  # maximum wait before syncing such a sink again
RECENT_RUNS = 100  # maximum number of runs that start and end between two polls
GOING = (RunState.QUEUED, RunState.RUNNING)


@dataclass(slots=True)
class PostRunSync:
    sinks: SinkSync
    stopping: asyncio.Event
    on_report: Callable[[SyncReport], None]
    listener: Listener
    once: bool = False  # do not retry
    failed: bool = False  # at least one sync failed
    _asked: dict[str, asyncio.Event] = field(default_factory=dict)
    _going: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _problems: dict[str, tuple[str | None, int]] = field(default_factory=dict)  # sink → reported error, stuck documents

    def want(self, sinks: Iterable[str]) -> None:
        """Start a sync of each sink; if one is in progress, sync that sink again afterwards."""
        for name in sinks:
            self._asked.setdefault(name, asyncio.Event()).set()
            if name not in self._going:
                self._going[name] = asyncio.create_task(self._keep(name))

    def leave(self) -> None:
        """Cancel all syncs unless a stop was requested: the sync of an unreachable sink would never end."""
        if not self.stopping.is_set():
            for task in self._going.values():
                task.cancel()

    async def drain(self) -> None:
        """Wait until all syncs have ended after a stop request."""
        while self._going:
            await asyncio.wait(list(self._going.values()))
            # a task that was cancelled before its first step did not remove itself
            self._going = {name: task for name, task in self._going.items() if not task.done()}

    async def _keep(self, name: str) -> None:
        asked, pause = self._asked[name], FIRST_RETRY_SECONDS
        try:
            while not self.stopping.is_set():
                asked.clear()
                is_complete = await self._sync_once(name)
                if asked.is_set():
                    continue
                if is_complete or self.once:
                    return
                await wait_first(asked, self.stopping, seconds=pause)
                pause = next_wait(pause, FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS)
        finally:
            del self._going[name]

    async def _sync_once(self, name: str) -> bool:
        """Sync a sink; return False if a retry is needed."""
        try:
            reports = await self.sinks.sync([name], idle_runs=False, listener=self.listener)
        except RunBusy as busy:
            log.info("the sync of %s was skipped: %s", name, busy)
            return False
        except StoreUnavailable as error:  # a stop was requested while the database was down
            log.info("the sync of %s was stopped: %s", name, error)
            return True
        except Exception as error:  # an internal error must not stop the other syncs
            if not isinstance(error, AfreshError):
                log.exception("the sync of %s failed", name)
            self.failed = True
            self.listener(Notice(text=f"{name} was not synced: {error}; the next attempt is after the next run"))
            return True
        for report in reports:
            self._pass_on(report)
        return not any(report.waiting or report.error for report in reports)

    def _pass_on(self, report: SyncReport) -> None:
        """Pass a report to `on_report`, unless the sync did nothing and its problem was reported before."""
        did = report.uploaded or report.replaced or report.deleted or report.verified
        problem = (report.error, report.stuck)
        if did or report.failed or problem != self._problems.get(report.sink, (None, 0)):
            self.on_report(report)
        self._problems[report.sink] = problem
        self.failed = self.failed or report.error is not None or bool(report.failed or report.stuck)


@dataclass(slots=True)
class FinishedRuns:
    store: Store
    _seen: Mapping[RunId, Run] | None = None

    async def poll(self) -> set[SourceId]:
        """Return the sources with runs that ended since the last call; none on the first call."""
        runs = [*await self.store.runs.records(None, limit=RECENT_RUNS), *await self.store.runs.live()]
        before, now = self._seen, {run.id: run for run in runs if run.mode is not RunMode.SYNC}
        self._seen = now
        if before is None:
            return set()
        seen = {(run.id, run.state, run.finished_at) for run in before.values()}
        over = [run for run in now.values() if run.state not in GOING]
        ended = {run.source_id for run in over if (run.id, run.state, run.finished_at) not in seen}
        return ended | {run.source_id for run in before.values() if run.state in GOING and run.id not in now}
