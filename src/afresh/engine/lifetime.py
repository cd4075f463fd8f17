"""The life of a worker: it joins, takes back what dead workers held, and leaves nothing locked behind."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from afresh.core.errors import StoreError, StoreWaits
from afresh.core.model import Worker
from afresh.ports import Clock, Store

log = logging.getLogger(__name__)


@asynccontextmanager
async def at_work(
    store: Store, worker: Worker, lease_seconds: float, heartbeat_seconds: float, clock: Clock
) -> AsyncIterator[None]:
    """Be known as a worker for a while, heart beating; claims of workers that died are put back first."""
    await store.join(worker)
    await reclaim_dead(store, worker, lease_seconds, clock())
    heart = asyncio.create_task(_beat(store, worker.name, lease_seconds, heartbeat_seconds, clock))
    try:
        yield
    finally:
        heart.cancel()
        try:
            await store.release(worker.name, clock())
        except StoreWaits as error:  # what stays locked is taken back once this process is gone
            log.info("nothing could be given back: %s", error)


async def _beat(store: Store, worker: str, lease: float, every: float, clock: Clock) -> None:
    while True:
        await asyncio.sleep(every)
        now = clock()
        try:
            await store.beat(worker, now, now + timedelta(seconds=lease))
        except StoreError as error:  # the lease outlives a few missed beats
            log.info("the heart missed a beat: %s", error)


async def reclaim_dead(store: Store, me: Worker, lease_seconds: float, now: datetime) -> int:
    """Put back what nobody works on any more."""
    known = await store.workers()
    dead = {worker.name for worker in known if not is_alive(worker, me, lease_seconds, now)}
    orphaned = await store.lock_owners() - {worker.name for worker in known}
    if not dead and not orphaned:
        return 0
    return await store.reclaim(sorted(dead | orphaned), now)


def is_alive(worker: Worker, me: Worker, lease_seconds: float, now: datetime) -> bool:
    """Whether a worker still works: its heart beats and, on this machine, its process exists."""
    if worker.name == me.name:
        return True
    if now - worker.heartbeat_at > timedelta(seconds=lease_seconds):
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
