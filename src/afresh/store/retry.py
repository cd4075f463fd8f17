"""Retry store calls on passing trouble: a locked database, a full disk, a server that is down.

Every method of a repository is one query or one transaction, so a call that failed left nothing behind, or
all of it where only the answer was lost. It can be made again either way; a claim is made again as
`claim_again`, so that pages that were taken without our knowledge are not lost.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from afresh.aio import heard
from afresh.errors import StoreDown, StoreFull, StoreWaits
from afresh.events import Listener, Notice, ignore

T = TypeVar("T")
FOREVER = float("inf")
PAUSE = 0.5  # seconds between two tries on a full disk or a server that is down
PAUSE_BUSY = 0.05  # a locked store is waited for by the store itself
TELL_BUSY_AFTER = 5.0  # a lock of a few seconds is nobody's trouble
LAST_TRIES = 3.0  # seconds that a locked store is still waited for once the run is to stop
FULL = "disk full: waiting for space; Ctrl-C stops"
DOWN = "{why}: waiting; Ctrl-C stops"
BUSY = "another process keeps the store locked: waiting; Ctrl-C stops"
GOING_ON = "the store can be written to again: going on"


@dataclass(slots=True, kw_only=True)
class RetryPolicy:
    """How long trouble that passes is waited out, and who hears of it."""

    busy_seconds: float = 30.0
    full_seconds: float = 0.0
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    listener: Listener = ignore
    clock: Callable[[], float] = time.monotonic
    _told: str | None = None

    async def call(self, work: Callable[[], Awaitable[T]], again: Callable[[], Awaitable[T]]) -> T:
        """The result of a call, made again for as long as it is worth it."""
        since: float | None = None
        while True:
            try:
                result = await work()
            except StoreWaits as trouble:
                now = self.clock()
                since = now if since is None else since
                if now - since >= self._limit(trouble):
                    raise
                self._tell(trouble, now - since)
                await self._pause(trouble)
                work = again
            else:
                if since is not None:
                    self._relieve()
                return result

    def _limit(self, trouble: StoreWaits) -> float:
        if self.stopping.is_set():
            return 0.0 if _lasts(trouble) else LAST_TRIES
        return self.full_seconds if isinstance(trouble, StoreFull) else self.busy_seconds

    def _tell(self, trouble: StoreWaits, waited: float) -> None:
        down = isinstance(trouble, StoreDown)
        text = FULL if isinstance(trouble, StoreFull) else DOWN.format(why=trouble) if down else BUSY
        if text != self._told and (_lasts(trouble) or waited >= TELL_BUSY_AFTER):
            self._told = text
            self.listener(Notice(text=text))

    def _relieve(self) -> None:
        if self._told is not None:
            self._told = None
            self.listener(Notice(text=GOING_ON))

    async def _pause(self, trouble: StoreWaits) -> None:
        if not _lasts(trouble):
            await asyncio.sleep(PAUSE_BUSY)
            return
        await heard(self.stopping, PAUSE)


def _lasts(trouble: StoreWaits) -> bool:
    """Whether it is over only when somebody does something about it."""
    return isinstance(trouble, StoreFull | StoreDown)
