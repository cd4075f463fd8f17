"""Doing several things at once, a few at a time, each to its end."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

T = TypeVar("T")

AT_ONCE = 3  # sources that are looked at side by side


async def side_by_side(work: Sequence[Callable[[], Coroutine[None, None, T]]]) -> list[T]:
    """What all of it gives, in order; if some of it fails, the rest is done first."""
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
