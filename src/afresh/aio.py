"""Wait for events and tasks, with timeouts and cancellation handled.

`asyncio.wait_for` of Python 3.11 loses a cancellation that comes together with what it waits for, and whoever
was cancelled goes on for ever; `asyncio.timeout` does not.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar


async def wait_event(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


async def wait_first(*events: asyncio.Event, seconds: float) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waits:
            task.cancel()


async def run_until_stopped(work: Coroutine[Any, Any, object], stopping: asyncio.Event, seconds: float) -> None:
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


async def wait_done(work: "asyncio.Future[Any]") -> None:
    """Wait until some work is done, however often we are cancelled; raise its error, else our cancellation.

    `asyncio.shield` returns at once when it is cancelled: the work goes on with nobody to hear of its error.
    """
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            cancelled = True
    work.result()
    if cancelled:
        raise asyncio.CancelledError


T = TypeVar("T")

AT_ONCE = 3  # sources that are worked on concurrently


async def gather_limited(work: Sequence[Callable[[], Coroutine[None, None, T]]]) -> list[T]:
    """Return all results in order; if something fails, finish the rest first."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def turn(begin: Callable[[], Coroutine[None, None, T]]) -> T:
        async with gate:
            return await begin()

    done = await asyncio.gather(*map(turn, work), return_exceptions=True)
    results: list[T] = []
    for each in done:
        if isinstance(each, BaseException):
            raise each
        results.append(each)
    return results


TURN_CHARACTERS = 8 * 1024  # URL characters that are processed without a break: the work grows with their length
ITEM_CHARACTERS = 64  # added for each item


async def yield_in_turns(items: Iterable[T], url_of: Callable[[T], str]) -> AsyncIterator[T]:
    """Yield items, giving other tasks a turn in between."""
    left = TURN_CHARACTERS
    for item in items:
        left -= ITEM_CHARACTERS + len(url_of(item))
        if left < 0:
            await asyncio.sleep(0)
            left = TURN_CHARACTERS
        yield item
