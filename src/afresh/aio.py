"""Wait for events, tasks and signals, with timeouts and cancellation handled.

In Python 3.11, `asyncio.wait_for` loses a cancellation that arrives together with the awaited result, so the
cancelled task continues for ever. `asyncio.timeout` does not.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")


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


async def run_until_stopped(work: Coroutine[Any, Any, T], stopping: asyncio.Event, seconds: float = 0.0) -> T | None:
    """Return the result of `work`; cancel it and return None if it has not ended `seconds` after the stop event."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({task}, timeout=seconds)
    finally:
        stopped.cancel()
        task.cancel()
        await asyncio.wait({task})
    return None if task.cancelled() else task.result()


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


async def run_together(work: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Run all to their end; after the first error, cancel the others and raise the error."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except BaseExceptionGroup as trouble:
        raise trouble.exceptions[0] from trouble


@contextmanager
def signal_handlers(handlers: Mapping[int, Callable[[], None]]) -> Iterator[None]:
    """Call the handlers of signals in this context; do nothing on Windows and outside of the main thread."""
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        with suppress(NotImplementedError, RuntimeError):
            for number in handlers:
                loop.remove_signal_handler(number)


AT_ONCE = 3  # calls that run concurrently


async def gather_all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Await all and return the results in order; after all have ended, raise the first error."""
    tasks = [asyncio.ensure_future(each) for each in work]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


async def gather_limited(work: Sequence[Callable[[], Coroutine[None, None, T]]]) -> list[T]:
    """Run all calls, AT_ONCE at a time, and return the results in order; after all calls, raise the first error."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def turn(begin: Callable[[], Coroutine[None, None, T]]) -> T:
        async with gate:
            return await begin()

    return await gather_all(map(turn, work))


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
