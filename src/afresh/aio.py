"""Wait for events and tasks, with timeouts and cancellation handled.

In Python 3.11, `asyncio.wait_for` loses a cancellation that arrives together with the awaited result, so the
cancelled task continues for ever. `asyncio.timeout` does not.
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
    """Run `work` to its end; cancel it if it has not ended `seconds` after the stop event."""
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
    """Wait until a future is done, even if the caller is cancelled meanwhile; then raise its error or the cancellation.

    `asyncio.shield` would return at once when the caller is cancelled, and an error of the future would be lost.
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

AT_ONCE = 3  # calls that run concurrently


async def gather_limited(work: Sequence[Callable[[], Coroutine[None, None, T]]]) -> list[T]:
    """Run all calls, AT_ONCE at a time, and return the results in order; after all calls, raise the first error."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def turn(begin: Callable[[], Coroutine[None, None, T]]) -> T:
        async with gate:
            return await begin()

    done = await asyncio.gather(*map(turn, work), return_exceptions=True)
    results: list[T] = []
    for result in done:
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


TURN_CHARACTERS = 8 * 1024  # URL characters to process before other tasks get a turn: time grows with their number
ITEM_CHARACTERS = 64  # counted for each item in addition to its URL


async def yield_in_turns(items: Iterable[T], url_of: Callable[[T], str]) -> AsyncIterator[T]:
    """Yield the items; let other tasks run after every few items, more often if the URLs are long."""
    left = TURN_CHARACTERS
    for item in items:
        left -= ITEM_CHARACTERS + len(url_of(item))
        if left < 0:
            await asyncio.sleep(0)
            left = TURN_CHARACTERS
        yield item
