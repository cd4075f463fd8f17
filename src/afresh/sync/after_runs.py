"""Sync sinks after runs, in the background, one sync per sink at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from afresh.aio import first_of
from afresh.backoff import next_wait
from afresh.errors import AfreshError, RunBusy, StoreUnavailable
from afresh.events import Listener, Notice
from afresh.model.records import Run, RunId, RunMode, RunState, SourceId
from afresh.store.store import Store
from afresh.sync.reports import SyncReport

log = logging.getLogger(__name__)

SOON = 60.0  # seconds until the next sync of a sink that was unfinished or busy
SELDOM = 3600.0  # seconds; the longest such wait

Sync: TypeAlias = Callable[[str], Awaitable[Sequence[SyncReport]]]


class PostRunSync:
    """Syncs sinks in the background while runs continue; retries unfinished ones later."""

    def __init__(
        self,
        sync: Sync,
        stopping: asyncio.Event,
        *,
        tell: Callable[[SyncReport], None],
        listener: Listener,
        once: bool = False,
    ) -> None:
        self._sync = sync
        self._stopping = stopping
        self._tell = tell
        self._listener = listener
        self._once = once  # no retries
        self._asked: dict[str, asyncio.Event] = {}
        self._going: dict[str, asyncio.Task[None]] = {}
        self._troubles: dict[
            str, tuple[str | None, int]
        ] = {}  # error and number of stuck documents, as last reported
        self.failed = False  # whether a sync failed

    def want(self, sinks: Iterable[str]) -> None:
        """Request a sync of sinks; a sink that is being synced is synced once more afterwards."""
        for name in sinks:
            self._asked.setdefault(name, asyncio.Event()).set()
            if name not in self._going:
                self._going[name] = asyncio.create_task(self._keep(name))

    def leave(self) -> None:
        """Cancel running syncs, as a sink that is down is retried forever; the next process resumes them."""
        if not self._stopping.is_set():
            for task in self._going.values():
                task.cancel()

    async def drain(self) -> None:
        """Wait for running syncs; they end soon after a stop request."""
        while self._going:
            await asyncio.wait(list(self._going.values()))
            # a task cancelled before its first step could not remove itself
            self._going = {name: task for name, task in self._going.items() if not task.done()}

    async def _keep(self, name: str) -> None:
        asked, pause = self._asked[name], SOON
        try:
            while not self._stopping.is_set():
                asked.clear()
                settled = await self._one(name)
                if asked.is_set():
                    continue
                if settled or self._once:
                    return
                await first_of(asked, self._stopping, seconds=pause)
                pause = next_wait(pause, SOON, SELDOM)
        finally:
            del self._going[name]

    async def _one(self, name: str) -> bool:
        """Sync once; return False if a retry may help."""
        try:
            reports = await self._sync(name)
        except RunBusy as busy:
            log.info("%s is left alone: %s", name, busy)
            return False
        except StoreUnavailable as trouble:  # stop requested while the database was down
            log.info("the sync of %s is left as it is: %s", name, trouble)
            return True
        except Exception as error:  # an internal error must not stop the other syncs
            if not isinstance(error, AfreshError):
                log.exception("the sync of %s failed", name)
            self.failed = True
            self._listener(Notice(text=f"{name} was not synced: {error}; tried again after the next run"))
            return True
        for report in reports:
            self._note(report)
        return not any(report.waiting or report.error for report in reports)

    def _note(self, report: SyncReport) -> None:
        did = report.uploaded or report.replaced or report.deleted or report.verified
        trouble = (report.error, report.stuck)
        if did or report.failed or trouble != self._troubles.get(report.sink, (None, 0)):
            self._tell(report)
        self._troubles[report.sink] = trouble
        self.failed = self.failed or report.error is not None or bool(report.failed or report.stuck)


RECENT = 100  # runs that may start and end between two polls
GOING = (RunState.QUEUED, RunState.RUNNING)


class FinishedRuns:
    """Polls for sources whose runs have ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: Mapping[RunId, Run] | None = None

    async def look(self) -> set[SourceId]:
        """Return the sources of runs that ended or were confirmed since the last call; none at first."""
        runs = [*await self._store.runs.records(None, limit=RECENT), *await self._store.runs.live()]
        before, now = self._seen, {run.id: run for run in runs if run.mode is not RunMode.SYNC}
        self._seen = now
        if before is None:
            return set()
        seen = {(run.id, run.state, run.finished_at) for run in before.values()}
        over = [run for run in now.values() if run.state not in GOING]
        ended = {run.source_id for run in over if (run.id, run.state, run.finished_at) not in seen}
        return ended | {run.source_id for run in before.values() if run.state in GOING and run.id not in now}
