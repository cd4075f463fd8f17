"""Work that must not block the event loop: done in processes of our own, which can be killed and replaced."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from afresh.errors import ParserCrashed
from afresh.extract.pool.process import Child, Displaced
from afresh.extract.pool.wire import decode

P = ParamSpec("P")
R = TypeVar("R")
AHEAD = 2  # calls given to a process at a time: one it works on, one that waits in the pipe


class Offload:
    """Calls module-level functions in a few processes, started when first needed."""

    def __init__(self, processes: int | None = None) -> None:
        self._number = processes or max(1, min(4, os.cpu_count() or 1))
        self._children: list[Child | None] = [None] * self._number
        self._free: asyncio.Queue[int] = asyncio.Queue()
        for _ in range(AHEAD):
            for slot in range(self._number):
                self._free.put_nowait(slot)
        self._starting = [asyncio.Lock() for _ in range(self._number)]

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a function; its error is an ExtractError, its crash or endless loop ParserCrashed.

        The result is plain data, or of the type that the function names as its `answer` (`Named`).
        """
        call = (function, args, kwargs)
        while True:
            try:
                return cast("R", await self._result(call, getattr(function, "answer", Any)))
            except Displaced:  # by a call that crashed, so that each repeat has one crash less before it
                continue

    async def everywhere(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> None:
        """Make a call in each process, so that it has started and knows the function."""
        await asyncio.gather(*(self.call(function, *args, **kwargs) for _ in range(self._number)))

    async def _result(self, call: object, kind: Any) -> Any:
        slot = await self._free.get()
        try:
            child = await self._child(slot)
            answer = await child.call(call)
            try:
                return decode(answer, kind)
            except ParserCrashed:
                child.distrust()
                raise
        finally:
            self._free.put_nowait(slot)

    async def _child(self, slot: int) -> Child:
        async with self._starting[slot]:
            child = self._children[slot]
            if child is None or child.broken:
                if child is not None:
                    await child.end()
                child = self._children[slot] = await Child.start()
            return child

    async def close(self) -> None:
        """End all processes."""
        for child in self._children:
            if child is not None:
                await child.end()
        self._children = [None] * self._number
