"""A request with a name of its own, while it is answered: nobody else answers it, however long that takes."""

import asyncio
import logging
from collections.abc import Coroutine
from datetime import datetime
from types import TracebackType
from typing import Self

from afresh.access.idempotency import RENEWED, KeptAnswer
from afresh.aio import heard
from afresh.errors import AfreshError
from afresh.ports import Clock
from afresh.store.store import Store

log = logging.getLogger(__name__)


class Turn:
    """Ours from `began` on, which is renewed; what comes to nothing is forgotten."""

    def __init__(self, store: Store, clock: Clock, caller: str, name: str, began: datetime) -> None:
        self._store = store
        self._clock = clock
        self._key = caller, name
        self._began = began
        self._over = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to renew it."""
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the request be made again, if it came to nothing."""
        await _to_its_end(self._end(forget=error is not None))

    async def keep(self, answer: KeptAnswer) -> None:
        """Remember the answer for a day."""
        await self._rest()
        await self._store.access.keep_answer(*self._key, self._began, answer)

    async def renew(self) -> bool:
        """Say that it is still being answered; False if others took it for given up."""
        now = self._clock()
        if not await self._store.access.renew_answer(*self._key, self._began, now):
            return False
        self._began = now
        return True

    async def _renew(self) -> None:
        ours = True
        while ours and not await heard(self._over, RENEWED.total_seconds()):
            try:
                ours = await self.renew()
            except AfreshError as error:
                log.warning("an answer under way cannot be renewed: %s", error)

    async def _end(self, *, forget: bool) -> None:
        await self._rest()
        if forget:
            await self._store.access.forget_answer(*self._key, self._began)

    async def _rest(self) -> None:
        """Renew no more; a renewal under way ends first, as it may have moved the beginning already."""
        self._over.set()
        if self._renewing is not None:
            await asyncio.wait({self._renewing})


async def _to_its_end(work: Coroutine[None, None, None]) -> None:
    """Do it, however often we are cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as told:
            cancelled = told
    if cancelled is not None:
        raise cancelled
    task.result()


async def begin(store: Store, clock: Clock, caller: str, name: str, asked: str) -> KeptAnswer | Turn:
    """What was answered to a request with this name, or the turn to answer it."""
    now = clock()
    known = await store.access.begin_answer(caller, name, asked, now)
    return known if known is not None else Turn(store, clock, caller, name, now)
