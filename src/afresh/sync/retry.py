"""Calls to an external store: made again while it is busy, and never for longer than is decent."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from afresh.aio import heard
from afresh.errors import SinkBusy

log = logging.getLogger(__name__)
T = TypeVar("T")
TRIES = 4
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0  # what asks for a longer one is left to the next sync


@dataclass(slots=True, kw_only=True)
class Calls:
    """Waits, unless told to stop."""

    stopping: asyncio.Event
    sleep: Callable[[float], Awaitable[None]] | None = None  # for tests

    async def pause(self, seconds: float) -> None:
        """Let some time pass, less if we are to stop."""
        if self.sleep is not None:
            await self.sleep(seconds)
            return
        await heard(self.stopping, seconds)

    async def make(self, what: str, call: Callable[[], Awaitable[T]], *, only_if_told: bool = False) -> T:
        """The answer to a call that may be made twice; `only_if_told`: only after the store said when."""
        pause = FIRST_PAUSE
        for left in reversed(range(TRIES)):
            try:
                return await call()
            except SinkBusy as busy:
                wait = pause if busy.retry_after is None else busy.retry_after
                unsure = only_if_told and busy.retry_after is None
                if unsure or not left or wait > LONGEST_PAUSE or self.stopping.is_set():
                    raise
                log.info("%s: %s; again in %.0f s", what, busy, wait)
                await self.pause(wait)
                pause *= 2
        raise AssertionError("the last try raises")
