"""Syncs that follow scheduled runs: triggered and not waited for, one at a time for each external store."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from afresh.errors import AfreshError, RunBusy, StoreWaits
from afresh.events import Listener, Notice
from afresh.sync.reports import SyncReport

log = logging.getLogger(__name__)

SOON = 60.0  # seconds until a store is synced again that was not done, or busy
SELDOM = 3600.0  # the longest such wait

Sync: TypeAlias = Callable[[str], Awaitable[Sequence[SyncReport]]]


class Following:
    """Brings external stores in line while runs go on; what a store leaves undone is tried again later."""

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
        self._once = once  # nothing is tried again
        self._asked: dict[str, asyncio.Event] = {}
        self._going: dict[str, asyncio.Task[None]] = {}
        self._troubles: dict[str, tuple[str | None, int]] = {}  # error and stuck documents, as last told
        self.failed = False  # whether the last word on a store was trouble

    def want(self, sinks: Iterable[str]) -> None:
        """Have stores synced; one that is being synced is synced once more afterwards."""
        for name in sinks:
            self._asked.setdefault(name, asyncio.Event()).set()
            if name not in self._going:
                self._going[name] = asyncio.create_task(self._keep(name))

    def leave(self) -> None:
        """Leave what is under way to the next process that starts: what is down is tried again for ever."""
        if not self._stopping.is_set():
            for task in self._going.values():
                task.cancel()

    async def drain(self) -> None:
        """Wait for what is under way; once told to stop it ends soon."""
        while self._going:
            await asyncio.wait(list(self._going.values()))
            # who was cancelled before its first step could not take itself out
            self._going = {name: task for name, task in self._going.items() if not task.done()}

    async def _keep(self, name: str) -> None:
        """Sync a store until it is in line and nobody asks for more."""
        asked, pause = self._asked[name], SOON
        try:
            while not self._stopping.is_set():
                asked.clear()
                settled = await self._one(name)
                if asked.is_set():
                    continue
                if settled or self._once:
                    return
                await self._rest(asked, pause)
                pause = min(2 * pause, SELDOM)
        finally:
            del self._going[name]

    async def _one(self, name: str) -> bool:
        """One sync; False: there is something left that time may settle."""
        try:
            reports = await self._sync(name)
        except RunBusy as busy:
            log.info("%s is left alone: %s", name, busy)
            return False
        except StoreWaits as trouble:  # told to stop while the database was away
            log.info("the sync of %s is left as it is: %s", name, trouble)
            return True
        except AfreshError as error:
            self._give_up(name, error)
            return True
        except Exception as error:
            log.exception("the sync of %s failed", name)
            self._give_up(name, error)
            return True
        for report in reports:
            self._note(report)
        return not any(report.waiting or report.error for report in reports)

    def _give_up(self, name: str, error: Exception) -> None:
        """Trouble that is not with the store itself is no reason to leave the others alone."""
        self.failed = True
        self._listener(Notice(text=f"{name} was not synced: {error}; tried again after the next run"))

    def _note(self, report: SyncReport) -> None:
        """Tell of a sync that did something, or met trouble that is not known yet."""
        did = report.uploaded or report.replaced or report.deleted or report.verified
        trouble = (report.error, report.stuck)
        if did or report.failed or trouble != self._troubles.get(report.sink, (None, 0)):
            self._tell(report)
        self._troubles[report.sink] = trouble
        self.failed = self.failed or report.error is not None or bool(report.failed or report.stuck)

    async def _rest(self, asked: asyncio.Event, seconds: float) -> None:
        waits = {asyncio.create_task(asked.wait()), asyncio.create_task(self._stopping.wait())}
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()
