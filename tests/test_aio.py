"""Waiting for an event, for a while: whoever is cancelled stops, whatever happens at the same moment."""

import asyncio
import gc
from collections.abc import Coroutine

import pytest

from afresh.aio import wait_done, wait_event


@pytest.mark.parametrize("ticks", range(5))
async def test_a_cancellation_that_comes_with_the_event_is_not_lost(ticks: int) -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(wait_event(event, 60))
    await asyncio.sleep(0)
    event.set()
    for _ in range(ticks):
        await asyncio.sleep(0)
    over = waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert over or waiting.cancelled()


async def test_an_event_is_received_and_silence_is_reported() -> None:
    event = asyncio.Event()
    assert not await wait_event(event, 0.001)
    event.set()
    assert await wait_event(event, 60)


async def test_F12_work_that_fails_after_a_cancellation_is_not_logged() -> None:
    loop, silent = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _, context: silent.append(context))
    go_on = asyncio.Event()

    async def write() -> None:
        await go_on.wait()
        raise OSError("disk full")

    waiting = asyncio.create_task(_wait_for(write()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    go_on.set()
    with pytest.raises(OSError, match="disk full"):
        await waiting
    gc.collect()
    await asyncio.sleep(0)
    assert silent == []


async def test_F12_work_that_ends_well_after_we_were_cancelled_is_done_and_we_are_cancelled() -> None:
    go_on, done = asyncio.Event(), list[str]()

    async def write() -> None:
        await go_on.wait()
        done.append("written")

    waiting = asyncio.create_task(_wait_for(write()))
    await asyncio.sleep(0)
    waiting.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done == ["written"]


async def _wait_for(work: Coroutine[None, None, None]) -> None:
    await wait_done(asyncio.ensure_future(work))
