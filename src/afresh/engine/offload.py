"""Work that must not block the event loop: done in processes of our own, which can be killed and replaced."""

import asyncio
import os
import pickle
import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from afresh.core.errors import ExtractError

P = ParamSpec("P")
R = TypeVar("R")
HEADER = struct.Struct(">I")
AHEAD = 2  # calls given to a process at a time: one it works on, one that waits in the pipe
SECONDS = 60.0


class Crashed(Exception):
    """The process ended before it answered."""


class Child:
    """One process and the calls it has not answered yet, in order."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._waiting: deque[asyncio.Future[bytes]] = deque()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> "Child":
        """Start a process that waits for calls."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "afresh.engine.offload_child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**20,
            start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
        )
        return cls(process)

    async def call(self, payload: bytes) -> bytes:
        """Send one call and wait for its answer."""
        stdin = self.process.stdin
        if stdin is None or self._reader.done():
            raise Crashed
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        stdin.write(HEADER.pack(len(payload)))
        stdin.write(payload)
        return await answer

    async def _read(self) -> None:
        stdout = self.process.stdout
        try:
            while stdout is not None:
                (size,) = HEADER.unpack(await stdout.readexactly(HEADER.size))
                answer = await stdout.readexactly(size)
                future = self._waiting.popleft()
                if not future.done():
                    future.set_result(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            while self._waiting:
                future = self._waiting.popleft()
                if not future.done():
                    future.set_exception(Crashed())

    @property
    def broken(self) -> bool:
        """Whether it will never answer again."""
        return self._reader.done() or self.process.returncode is not None

    async def end(self) -> None:
        """Kill the process and everything that waits for it."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reader
        transport = getattr(self.process, "_transport", None)
        if transport is not None:
            transport.close()


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
        """The result of a function; a crash or an endless loop of it is an ExtractError."""
        call = (function, args, kwargs)
        for _ in range(2):  # a call that only waited behind the one that crashed gets a second chance
            try:
                ok, value = pickle.loads(await self._answer(call))  # noqa: S301 - our own process
            except Crashed:
                continue
            if ok:
                return cast("R", value)
            raise ExtractError(str(value))
        raise ExtractError("the parser crashed on this page")

    async def _answer(self, call: object) -> bytes:
        slot = await self._free.get()
        try:
            payload = pickle.dumps(call, pickle.HIGHEST_PROTOCOL)  # only now: large calls wait as they are
            child = await self._child(slot)
            try:
                return await asyncio.wait_for(child.call(payload), SECONDS)
            except TimeoutError:
                await child.end()
                raise ExtractError(f"reading the page took longer than {SECONDS:.0f} s") from None
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
