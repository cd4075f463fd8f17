"""Waiting that can be ended early.

`asyncio.wait_for` of Python 3.11 loses a cancellation that comes together with what it waits for, and whoever
was cancelled goes on for ever; `asyncio.timeout` does not.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


async def heard(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event came within some seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


async def cancel_late(work: Coroutine[Any, Any, object], stopping: asyncio.Event, seconds: float) -> None:
    """Do some work; after the stop event it has some seconds to end, and is then cancelled."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({task}, timeout=seconds)
    finally:
        stopped.cancel()
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()
