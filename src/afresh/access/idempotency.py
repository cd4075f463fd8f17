"""Answer a repeated request with the stored response: one whose idempotency key was used in the last 24 hours."""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self

from afresh.aio import wait_done, wait_event
from afresh.dataclass import dataclass
from afresh.errors import AfreshError
from afresh.ports import Clock

if TYPE_CHECKING:
    from afresh.store.store import Store

KEPT = timedelta(hours=24)  # how long a response is stored
RENEWED = timedelta(seconds=15)  # time between two renewals of a claim
GIVEN_UP = timedelta(minutes=1)  # another process may take over a claim that was not renewed for so long
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response to a request with an idempotency key; `status` is None while the request is in progress."""

    request_hash: str  # to detect another request with the same key
    status: int | None = None
    location: str | None = None
    body: str | None = None


class RequestClaim:
    """The exclusive right to process a request: renewed until the response is stored; an error deletes the claim."""

    def __init__(self, store: "Store", clock: Clock, caller: str, name: str, began: datetime) -> None:
        self._store = store
        self._clock = clock
        self._key = caller, name
        self._began = began
        self._over = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(self, _kind: object, error: object, _trace: object) -> None:
        await wait_done(asyncio.ensure_future(self._end(forget=error is not None)))

    async def keep(self, answer: StoredResponse) -> None:
        await self._rest()
        await self._store.access.keep_answer(*self._key, self._began, answer)

    async def renew(self) -> bool:
        """Renew the claim; return False if another process took it over."""
        now = self._clock()
        if not await self._store.access.renew_answer(*self._key, self._began, now):
            return False
        self._began = now
        return True

    async def _renew(self) -> None:
        ours = True
        while ours and not await wait_event(self._over, RENEWED.total_seconds()):
            try:
                ours = await self.renew()
            except AfreshError as error:
                log.warning("an idempotency key cannot be kept locked, so a repeated request may run twice: %s", error)

    async def _end(self, *, forget: bool) -> None:
        await self._rest()
        if forget:
            await self._store.access.forget_answer(*self._key, self._began)

    async def _rest(self) -> None:
        self._over.set()
        if self._renewing is not None:
            await asyncio.wait({self._renewing})


async def begin(
    store: "Store", clock: Clock, caller: str, key: str, request_hash: str
) -> StoredResponse | RequestClaim:
    """Return what is stored for an idempotency key; if nothing is, a claim to process the request."""
    now = clock()
    known = await store.access.begin_answer(caller, key, request_hash, now)
    return known if known is not None else RequestClaim(store, clock, caller, key, now)
