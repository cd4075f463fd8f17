"""The life of a worker: it joins, takes back what dead workers held, and leaves nothing locked behind."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from afresh.aio import heard
from afresh.errors import StoreError, StoreWaits
from afresh.model.records import Run, RunId, Worker
from afresh.ports import Clock
from afresh.store.store import Store

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
    _back_at: float | None = None  # when our own heart beat again after a lapse
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
        began = self.ticks()
        known = await self.store.workers.beat(replace(self.me, heartbeat_at=self.clock()))
        if self.lapses > self._lapses:
            self._lapses, self._back_at = self.lapses, began
        if not known:  # others took us for dead, for whatever reason
            self._lapses += 1
        self._beaten = began  # the lease runs from before it was written down

    async def renew(self) -> None:
        """Beat until we have a lease: what is claimed without one is taken from us without our notice."""
        while self.ticks() - self._beaten > self.lease_seconds:  # a beat may itself take longer than that
            await self.beat()

    async def reclaim(self) -> bool:
        """Put back what nobody works on any more; whether all others are surely dead or alive."""
        owners = (
            await self.store.workers.lock_owners()
        )  # first: who joins now and claims at once is no orphan
        known = await self.store.workers.all()
        doubted = [each for each in known if not is_alive(each, self.me, self.lease_seconds, self.clock())]
        dead = {each.name for each in doubted if _is_gone(each, self.me) or self._stands_still(each)}
        self._seen = {name: seen for name, seen in self._seen.items() if name in {d.name for d in doubted}}
        orphaned = owners - {worker.name for worker in known}
        if dead or orphaned:
            hearts = {each.name: each.heartbeat_at for each in doubted}
            await self.store.workers.reclaim(sorted(dead | orphaned), self.clock(), hearts)
        return all(each.name in dead | self._beating for each in doubted)

    def _stands_still(self, worker: Worker) -> bool:
        heartbeat, since = self._seen.get(worker.name, (None, 0.0))
        if heartbeat != worker.heartbeat_at:
            self._seen[worker.name] = (worker.heartbeat_at, self.ticks())
            if heartbeat is not None:
                self._beating.add(worker.name)
            return False
        if self._back_at is not None and self.ticks() - self._back_at < self.lease_seconds:
            return False  # what silenced us, a database that was away, may have silenced it as well
        return self.ticks() - since >= BEATS * self.heartbeat_seconds

    async def settle(self, stopping: asyncio.Event) -> None:
        """Reclaim, and stay until no worker is in doubt or we are to stop."""
        while not await self.reclaim() and not stopping.is_set():
            log.info("a worker was not heard of for longer than its lease: watching whether its heart beats")
            await heard(stopping, PEEK)


@asynccontextmanager
async def at_work(vigil: Vigil, stopping: asyncio.Event) -> AsyncIterator[None]:
    """Be known as a worker for a while, heart beating; claims of workers that died are put back first."""
    await vigil.store.workers.join(vigil.me)
    heart = asyncio.create_task(_beat(vigil))
    try:
        await vigil.settle(stopping)
        yield
    finally:
        heart.cancel()
        try:
            await vigil.store.workers.release(vigil.me.name, vigil.clock())
        except StoreWaits as error:  # what stays locked is taken back once this process is gone
            log.info("nothing could be given back: %s", error)


async def _beat(vigil: Vigil) -> None:
    while True:
        await asyncio.sleep(vigil.heartbeat_seconds)
        try:
            await vigil.beat()
        except StoreError as error:  # the lease outlives a few missed beats
            log.info("the heart missed a beat: %s", error)


async def release_gone(store: Store, me: Worker, now: datetime) -> None:
    """Put back what processes of this machine held that are gone."""
    workers = await store.workers.all()
    gone = {each.name: each.heartbeat_at for each in workers if _is_gone(each, me)}
    if gone:
        await store.workers.reclaim(sorted(gone), now, gone)


def _is_gone(worker: Worker, me: Worker) -> bool:
    return worker.host == me.host and not process_exists(worker.pid)


def is_alive(worker: Worker, me: Worker, lease_seconds: float, now: datetime) -> bool:
    """Whether a worker seems to work: its heart beat lately and, on this machine, its process exists."""
    if worker.name == me.name:
        return True
    if abs(now - worker.heartbeat_at) > timedelta(seconds=lease_seconds):
        return False
    return worker.host != me.host or process_exists(worker.pid)


@dataclass(frozen=True, slots=True)
class LiveWorkers:
    """The workers that really work, and the runs of others that they help in."""

    names: frozenset[str]
    helped: frozenset[RunId]
    heartbeats: Mapping[str, datetime] = field(default_factory=dict)  # of all, also of those that died

    def work_on(self, run: Run) -> bool:
        """Whether somebody leads a run, or helps in it and leads it as soon as its leader is missed."""
        return run.worker in self.names or run.id in self.helped


def live_workers(workers: Sequence[Worker], me: Worker, lease_seconds: float, now: datetime) -> LiveWorkers:
    """Those of some workers that really work."""
    alive = [each for each in workers if is_alive(each, me, lease_seconds, now)]
    helped = frozenset(each.helps for each in alive if each.helps is not None)
    beats = {each.name: each.heartbeat_at for each in workers}
    return LiveWorkers(frozenset(each.name for each in alive), helped, beats)


def process_exists(pid: int) -> bool:
    """Whether a process of this machine is there, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _has_ended(pid)


def _has_ended(pid: int) -> bool:
    """Whether a process is over and only its parent has not asked how it ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])
