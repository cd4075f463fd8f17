"""Register a worker, send its heartbeat, release the claims of dead workers, and keep time while clocks jump."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from afresh.aio import wait_event
from afresh.dataclass import dataclass, field, replace
from afresh.errors import StoreError, StoreUnavailable
from afresh.model.records import Run, RunId, WorkerRecord
from afresh.ports import Clock
from afresh.store.store import Store

log = logging.getLogger(__name__)

DEAD_AFTER_INTERVALS = 1.5  # heartbeat intervals without a change
RECHECK_SECONDS = 0.2  # between checks of a worker that may be dead


@dataclass(slots=True, kw_only=True)
class Heartbeat:
    """Sends this worker's heartbeat and detects workers that died.

    Clocks jump and differ, so an old heartbeat alone does not show that a worker died. A worker counts as dead
    if its process is gone from this machine, or if it sends no heartbeat for 1.5 times `heartbeat_seconds`.
    """

    store: Store
    me: WorkerRecord
    lease_seconds: float
    heartbeat_seconds: float
    clock: Clock
    monotonic: Callable[[], float] = time.monotonic
    _sent_at: float = 0.0  # when the last heartbeat was sent
    _lapses: int = 0  # how often the lease of this worker ran out
    _back_at: float | None = None  # when a heartbeat was sent again after a lapse
    _seen: dict[str, tuple[datetime, float]] = field(default_factory=dict)  # heartbeats, and when each was first read
    _seen_alive: set[str] = field(default_factory=set)  # workers whose heartbeat changed while this one watched

    def __post_init__(self) -> None:
        self._sent_at = self.monotonic()

    @property
    def lapses(self) -> int:
        """Return how often the lease of this worker ran out; it loses all claims made before such a lapse."""
        return self._lapses + (self.monotonic() - self._sent_at > self.lease_seconds)

    async def send(self) -> None:
        began = self.monotonic()
        known = await self.store.workers.beat(replace(self.me, heartbeat_at=self.clock()))
        if self.lapses > self._lapses:
            self._lapses, self._back_at = self.lapses, began
        if not known:  # another worker considered this one dead
            self._lapses += 1
        self._sent_at = began  # the lease counts from before the write

    async def ensure_lease(self) -> None:
        """Renew the lease if it ran out: without a lease, other workers could take over new claims unnoticed."""
        while self.monotonic() - self._sent_at > self.lease_seconds:  # sending may itself take that long
            await self.send()

    async def reclaim(self) -> bool:
        """Release the claims of dead workers; return False if another call is needed to know which workers are dead."""
        # Read the owners of claims first: else a worker that joins meanwhile would be missing among the workers.
        owners = await self.store.workers.lock_owners()
        known = await self.store.workers.all()
        uncertain = [each for each in known if not is_alive(each, self.me, self.lease_seconds, self.clock())]
        dead = {each.name for each in uncertain if _is_process_gone(each, self.me) or self._has_stopped(each)}
        self._seen = {name: seen for name, seen in self._seen.items() if name in {d.name for d in uncertain}}
        orphaned = owners - {worker.name for worker in known}
        if dead or orphaned:
            heartbeats = {each.name: each.heartbeat_at for each in uncertain}
            await self.store.workers.reclaim(sorted(dead | orphaned), self.clock(), heartbeats)
        return all(each.name in dead | self._seen_alive for each in uncertain)

    def _has_stopped(self, worker: WorkerRecord) -> bool:
        heartbeat, since = self._seen.get(worker.name, (None, 0.0))
        if heartbeat != worker.heartbeat_at:
            self._seen[worker.name] = (worker.heartbeat_at, self.monotonic())
            if heartbeat is not None:
                self._seen_alive.add(worker.name)
            return False
        if self._back_at is not None and self.monotonic() - self._back_at < self.lease_seconds:
            return False  # the outage that delayed this worker's heartbeat may have delayed that one, too
        return self.monotonic() - since >= DEAD_AFTER_INTERVALS * self.heartbeat_seconds

    async def wait_until_certain(self, stopping: asyncio.Event) -> None:
        """Release the claims of dead workers, after waiting until it is known which workers are dead."""
        while not await self.reclaim() and not stopping.is_set():
            log.info("the lease of a worker has expired: checking whether it is still alive")
            await wait_event(stopping, RECHECK_SECONDS)


@asynccontextmanager
async def registered_worker(heartbeat: Heartbeat, stopping: asyncio.Event) -> AsyncIterator[None]:
    """Register this process as a worker, and send heartbeats in the body of `with`."""
    await heartbeat.store.workers.join(heartbeat.me)
    sending = asyncio.create_task(_send_regularly(heartbeat))
    try:
        await heartbeat.wait_until_certain(stopping)
        yield
    finally:
        sending.cancel()
        try:
            await heartbeat.store.workers.release(heartbeat.me.name, heartbeat.clock())
        except StoreUnavailable as error:  # other workers release the locks once this process is gone
            log.info("claims could not be released: %s", error)


async def _send_regularly(heartbeat: Heartbeat) -> None:
    while True:
        await asyncio.sleep(heartbeat.heartbeat_seconds)
        try:
            await heartbeat.send()
        except StoreError as error:  # the lease outlasts a few missed heartbeats
            log.info("the heartbeat could not be sent: %s", error)


async def release_dead_processes(store: Store, me: WorkerRecord, now: datetime) -> None:
    workers = await store.workers.all()
    gone = {each.name: each.heartbeat_at for each in workers if _is_process_gone(each, me)}
    if gone:
        await store.workers.reclaim(sorted(gone), now, gone)


def _is_process_gone(worker: WorkerRecord, me: WorkerRecord) -> bool:
    return worker.host == me.host and not process_exists(worker.pid)


def is_alive(worker: WorkerRecord, me: WorkerRecord, lease_seconds: float, now: datetime) -> bool:
    """Return whether a worker seems alive: a recent heartbeat and, on this machine, a running process."""
    if worker.name == me.name:
        return True
    if abs(now - worker.heartbeat_at) > timedelta(seconds=lease_seconds):
        return False
    return worker.host != me.host or process_exists(worker.pid)


@dataclass(frozen=True, slots=True)
class LiveWorkers:
    names: frozenset[str]
    helped: frozenset[RunId]
    heartbeats: Mapping[str, datetime] = field(default_factory=dict)  # of all workers, dead ones too

    def is_working_on(self, run: Run) -> bool:
        return run.worker in self.names or run.id in self.helped


def live_workers(workers: Sequence[WorkerRecord], me: WorkerRecord, lease_seconds: float, now: datetime) -> LiveWorkers:
    alive = [each for each in workers if is_alive(each, me, lease_seconds, now)]
    helped = frozenset(each.helps for each in alive if each.helps is not None)
    heartbeats = {each.name: each.heartbeat_at for each in workers}
    return LiveWorkers(frozenset(each.name for each in alive), helped, heartbeats)


def process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True
    # a zombie has ended
    return stat.rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])


class MonotonicClock:
    """Wraps a clock so that due times are reached: if the system clock is set back, time goes on from where it was."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock()
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        now = self._clock()
        if now < self._last:
            self._ahead += self._last - now
        self._last = now
        return now + self._ahead
