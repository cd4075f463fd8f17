"""The life of a worker: it joins, takes back what dead workers held, and leaves nothing locked behind."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from afresh.core.errors import StoreError, StoreWaits
from afresh.core.model import Worker
from afresh.engine.pause import heard
from afresh.ports import Clock, Store

log = logging.getLogger(__name__)

BEATS = 1.5  # intervals without a beat after which a heart that looks silent is taken for stopped
PEEK = 0.2  # seconds between looks at hearts that are in doubt


@dataclass(slots=True, kw_only=True)
class Vigil:
    """Keeps our heart beating and watches those of the others.

    Clocks jump and differ, so a silent heart by the clock is only a doubt: dead is whose process is gone from
    this machine, or whose heart is also seen to stand still for longer than a beat takes.
    """

    store: Store
    me: Worker
    lease_seconds: float
    heartbeat_seconds: float
    clock: Clock
    ticks: Callable[[], float] = time.monotonic
    _beaten: float = field(init=False)  # when our own heart did last
    _lapses: int = 0
    _seen: dict[str, tuple[datetime, float]] = field(default_factory=dict)  # heartbeats, and since when
    _beating: set[str] = field(default_factory=set)  # whose heart was seen to move, whatever the clock says

    def __post_init__(self) -> None:
        self._beaten = self.ticks()

    @property
    def lapses(self) -> int:
        """How often we were silent for longer than our lease: what was claimed before is no longer ours."""
        return self._lapses + (self.ticks() - self._beaten > self.lease_seconds)

    async def beat(self) -> None:
        """Say that we are alive, for one more lease."""
        now = self.clock()
        me = replace(self.me, heartbeat_at=now)
        await self.store.beat(me, now + timedelta(seconds=self.lease_seconds))
        self._lapses, self._beaten = self.lapses, self.ticks()

    async def reclaim(self) -> bool:
        """Put back what nobody works on any more; whether all others are surely dead or alive."""
        known = await self.store.workers()
        doubted = [each for each in known if not is_alive(each, self.me, self.lease_seconds, self.clock())]
        dead = {each.name for each in doubted if self._is_gone(each) or self._stands_still(each)}
        self._seen = {name: seen for name, seen in self._seen.items() if name in {d.name for d in doubted}}
        orphaned = await self.store.lock_owners() - {worker.name for worker in known}
        if dead or orphaned:
            await self.store.reclaim(sorted(dead | orphaned), self.clock())
        return all(each.name in dead | self._beating for each in doubted)

    def _is_gone(self, worker: Worker) -> bool:
        return worker.host == self.me.host and not process_exists(worker.pid)

    def _stands_still(self, worker: Worker) -> bool:
        heartbeat, since = self._seen.get(worker.name, (None, 0.0))
        if heartbeat != worker.heartbeat_at:
            self._seen[worker.name] = (worker.heartbeat_at, self.ticks())
            if heartbeat is not None:
                self._beating.add(worker.name)
            return False
        return self.ticks() - since >= BEATS * self.heartbeat_seconds

    async def settle(self, stopping: asyncio.Event) -> None:
        """Reclaim, and stay until no worker is in doubt or we are to stop."""
        while not await self.reclaim() and not stopping.is_set():
            log.info("a worker was not heard of for longer than its lease: watching whether its heart beats")
            await heard(stopping, PEEK)


@asynccontextmanager
async def at_work(vigil: Vigil, stopping: asyncio.Event) -> AsyncIterator[None]:
    """Be known as a worker for a while, heart beating; claims of workers that died are put back first."""
    await vigil.store.join(vigil.me)
    heart = asyncio.create_task(_beat(vigil))
    try:
        await vigil.settle(stopping)
        yield
    finally:
        heart.cancel()
        try:
            await vigil.store.release(vigil.me.name, vigil.clock())
        except StoreWaits as error:  # what stays locked is taken back once this process is gone
            log.info("nothing could be given back: %s", error)


async def _beat(vigil: Vigil) -> None:
    while True:
        await asyncio.sleep(vigil.heartbeat_seconds)
        try:
            await vigil.beat()
        except StoreError as error:  # the lease outlives a few missed beats
            log.info("the heart missed a beat: %s", error)


def is_alive(worker: Worker, me: Worker, lease_seconds: float, now: datetime) -> bool:
    """Whether a worker seems to work: its heart beat lately and, on this machine, its process exists."""
    if worker.name == me.name:
        return True
    if abs(now - worker.heartbeat_at) > timedelta(seconds=lease_seconds):
        return False
    return worker.host != me.host or process_exists(worker.pid)


def process_exists(pid: int) -> bool:
    """Whether a process of this machine is there, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
