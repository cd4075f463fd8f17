"""Waiting that can be ended early.

`asyncio.wait_for` of Python 3.11 loses a cancellation that comes together with what it waits for, and whoever
was cancelled goes on for ever; `asyncio.timeout` does not.
"""

import asyncio
from contextlib import suppress


async def heard(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event came within some seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
