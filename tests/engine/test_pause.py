"""Waiting for an event, for a while: whoever is cancelled stops, whatever happens at the same moment."""

import asyncio

import pytest

from afresh.aio import heard


@pytest.mark.parametrize("ticks", range(5))
async def test_a_cancellation_that_comes_with_the_event_is_not_lost(ticks: int) -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(heard(event, 60))
    await asyncio.sleep(0)
    event.set()
    for _ in range(ticks):
        await asyncio.sleep(0)
    over = waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert over or waiting.cancelled()


async def test_an_event_is_heard_and_silence_is_told() -> None:
    event = asyncio.Event()
    assert not await heard(event, 0.001)
    event.set()
    assert await heard(event, 60)
