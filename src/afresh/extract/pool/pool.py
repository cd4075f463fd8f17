"""Run blocking functions, such as parsers, in child processes that can be killed and replaced."""

import asyncio
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar, cast

from afresh.errors import ExtractError, ParserCrashed, ParserTimeout, ParserUnavailable
from afresh.extract.pool.wire import FRAME, LENGTH, MAX_ANSWER_BYTES, decode
from afresh.ops.processes import child_environment, wait_for_exit

PIECE = 256 * 1024  # bytes of a large answer that are read at a time
SECONDS = 30.0  # time limit of a call, from its start in the process
STARTING_SECONDS = 60.0
LEAVING_SECONDS = 5.0  # time until a process that has closed its output is killed
Buffer = bytes | bytearray
P = ParamSpec("P")
R = TypeVar("R")
AHEAD = 2  # calls sent to a process at a time: one in progress, one waiting in the pipe
MAX_WAIT_SECONDS = 3.0  # a call that waits longer starts another process


class CallDropped(Exception):
    """Raised if the process ended while the call was waiting behind another call."""


class ParserProcess:
    """A parser process and its unanswered calls in order; the process is executing the first of them."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.unanswered: deque[asyncio.Future[Buffer]] = deque()
        loop = asyncio.get_running_loop()
        self._clock = loop.call_later(STARTING_SECONDS, self._overrun)
        self._ready = self._late = self._distrusted = False
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> "ParserProcess":
        """Start a process, which sends a message when it is ready."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "afresh.extract.pool.child",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=2 * PIECE,
                env=child_environment(),
                start_new_session=True,  # Ctrl-C goes to the parent, which then ends its children
            )
        except OSError as error:
            raise ParserUnavailable(f"the parser process does not start: {error}") from error
        return cls(process)

    async def call(self, call: object) -> Buffer:
        """Send a call and return its answer. Calls are pickled only here; while they wait, they take little memory."""
        stdin = self.process.stdin
        if stdin is None or self.broken:
            raise CallDropped
        payload = pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
        stdin.write(LENGTH.pack(len(payload)))
        stdin.write(payload)
        del payload  # free its memory, because it is as large as a page and the answer may take seconds
        answer: asyncio.Future[Buffer] = asyncio.get_running_loop().create_future()
        self.unanswered.append(answer)
        if self._ready and len(self.unanswered) == 1:
            self._begin()
        return await answer

    def _begin(self) -> None:
        self._clock.cancel()
        if self.unanswered:
            self._clock = asyncio.get_running_loop().call_later(SECONDS, self._overrun)

    def _overrun(self) -> None:
        self._late = True
        self._kill()

    async def _read(self) -> None:
        retired = False
        try:
            await self._frame()
            self._ready = True
            self._begin()
            while not retired:
                answer, retired = await self._frame()
                if not self.unanswered:  # an answer to no call
                    self.distrust()
                    break
                future = self.unanswered.popleft()
                if not future.done():
                    future.set_result(answer)
                self._begin()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        await self._leave()
        if self.unanswered and not retired:
            self._blame(self._reason())
        while self.unanswered:
            self._blame(CallDropped())

    async def _frame(self) -> tuple[Buffer, bool]:
        stdout = self.process.stdout
        if stdout is None:
            raise ConnectionError
        size, last = FRAME.unpack(await stdout.readexactly(FRAME.size))
        if size > MAX_ANSWER_BYTES:  # a process that works correctly never sends so much
            self._kill()
            raise ConnectionError
        if size <= PIECE:
            return await stdout.readexactly(size), last
        answer = bytearray(size)  # filled in place, so that a large answer is in memory only once
        filled = 0
        while filled < size:
            piece = await stdout.readexactly(min(PIECE, size - filled))
            answer[filled : filled + len(piece)] = piece
            filled += len(piece)
        return answer, last

    def _blame(self, error: Exception) -> None:
        future = self.unanswered.popleft()
        if not future.done():
            future.set_exception(error)

    def _reason(self) -> ExtractError:
        if not self._ready:
            return ParserUnavailable("the parser process does not start")
        if self._late:
            return ParserTimeout(f"parsing the page took longer than {SECONDS:g} s")
        code = self.process.returncode or 0
        how = signal.Signals(-code).name if -code in set(signal.Signals) else f"exit code {code}"
        return ParserCrashed(f"the parser crashed on this page ({how})")

    @property
    def broken(self) -> bool:
        return self._distrusted or self._reader.done() or self.process.returncode is not None

    def distrust(self) -> None:
        """Kill the process and ignore its further answers; the pool repeats waiting calls in another process."""
        self._distrusted = True
        while self.unanswered:
            self._blame(CallDropped())
        self._kill()

    async def end(self) -> None:
        """Kill the process; waiting calls fail with ExtractError."""
        if not self.broken:
            while self.unanswered:
                self._blame(ExtractError("the parser was closed"))
            self._kill()
        try:
            await self._reader
        finally:
            transport = getattr(self.process, "_transport", None)
            if transport is not None:
                transport.close()

    async def _leave(self) -> None:
        """Wait for the end of a process that has closed its output; killing it at once would hide its exit code."""
        self._clock.cancel()
        try:
            async with asyncio.timeout(LEAVING_SECONDS):
                await wait_for_exit(self.process)
        except TimeoutError:
            self._kill()
            await wait_for_exit(self.process)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()


class ParserPool:
    """Calls module-level functions in child processes: one for every two processors, more while pages take long."""

    def __init__(self, processes: int | None = None) -> None:
        most = processes or max(1, min(4, os.cpu_count() or 1))
        self._number = processes or (most + 1) // 2  # used from the start
        self._children: list[ParserProcess | None] = [None] * most
        self._free: asyncio.Queue[int] = asyncio.Queue()
        for _ in range(AHEAD):
            for slot in range(self._number):
                self._free.put_nowait(slot)
        self._starting = [asyncio.Lock() for _ in range(most)]

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of a function; raise ExtractError, or ParserCrashed on a crash or timeout.

        A `LazyFunction` that `goes_first` does not wait behind calls that have no process yet.
        """
        call, kind = (function, args, kwargs), getattr(function, "answer", Any)
        goes_first = getattr(function, "goes_first", False)
        while True:
            if goes_first:
                calls = [len(child.unanswered) if child else 0 for child in self._children[: self._number]]
                slot = calls.index(min(calls))
            else:
                slot = await self._slot() if self._free.empty() else self._free.get_nowait()
            try:
                child = self._children[slot]
                if child is None or child.broken:
                    child = await self._start(slot)
                answer = await child.call(call)
                try:
                    return cast("R", decode(answer, kind))
                except ParserCrashed:
                    child.distrust()
                    raise
            except CallDropped:  # another call crashed the process: repeat this one
                continue
            finally:
                if not goes_first:
                    self._free.put_nowait(slot)

    async def everywhere(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a function in each process, so that all processes have started and have imported the function."""
        await asyncio.gather(*(self.call(function, *args, **kwargs) for _ in range(self._number)))

    async def _slot(self) -> int:
        """Return the index of a process that can take another call; if none can for a while, add a process."""
        if self._number < len(self._children):
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_WAIT_SECONDS):
                    return await self._free.get()
        if self._number < len(self._children):
            for _ in range(AHEAD):
                self._free.put_nowait(self._number)
            self._number += 1
        return await self._free.get()

    async def _start(self, slot: int) -> ParserProcess:
        """Return a new process in a slot, or the one that another call has started meanwhile."""
        async with self._starting[slot]:
            child = self._children[slot]
            if child is None or child.broken:
                if child is not None:
                    await child.end()
                child = self._children[slot] = await ParserProcess.start()
            return child

    async def close(self) -> None:
        for child in self._children:
            if child is not None:
                await child.end()
        self._children = [None] * len(self._children)
