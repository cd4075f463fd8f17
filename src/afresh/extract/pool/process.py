"""One process that answers calls in order, as its parent sees it: whom to blame when it dies."""

import asyncio
import pickle
import signal
import struct
import sys
from collections import deque
from contextlib import suppress

from afresh.errors import ExtractError, ParserCrashed, ParserLate, ParserMissing
from afresh.extract.pool.wire import MAX_ANSWER_BYTES
from afresh.ops.processes import passed_on, reaped

FRAME = struct.Struct(">I?")  # the length of an answer, and whether it is the last of this process
LENGTH = struct.Struct(">I")
PIECE = 256 * 1024  # of a large answer, read at a time
SECONDS = 30.0  # for one call, from the moment the process begins with it
STARTING_SECONDS = 60.0
LEAVING_SECONDS = 5.0  # for a process that has closed its output
Buffer = bytes | bytearray


class Displaced(Exception):
    """The process ended while the call waited behind another; nobody knows what it would have done."""


class Child:
    """One process and the calls it has not answered yet, in order; it works on the first of them."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._waiting: deque[asyncio.Future[Buffer]] = deque()
        loop = asyncio.get_running_loop()
        self._clock: asyncio.TimerHandle | None = loop.call_later(STARTING_SECONDS, self._overrun)
        self._ready = self._late = self._distrusted = False
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> "Child":
        """Start a process; it is ready when it has said so."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "afresh.extract.pool.child",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=2 * PIECE,
                env=passed_on(),
                start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
            )
        except OSError as error:
            raise ParserMissing(f"the parser process does not start: {error}") from error
        return cls(process)

    async def call(self, call: object) -> Buffer:
        """Send one call, pickled only now so that large ones wait as they are, and wait for its answer."""
        stdin = self.process.stdin
        if stdin is None or self.broken:
            raise Displaced
        self._send(stdin, pickle.dumps(call, pickle.HIGHEST_PROTOCOL))
        answer: asyncio.Future[Buffer] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        if self._ready and len(self._waiting) == 1:
            self._begin()
        return await answer

    def _send(self, stdin: asyncio.StreamWriter, payload: bytes) -> None:
        stdin.write(LENGTH.pack(len(payload)))
        stdin.write(payload)

    def _begin(self) -> None:
        """The process begins with the first call that waits."""
        if self._clock is not None:
            self._clock.cancel()
        loop = asyncio.get_running_loop()
        self._clock = loop.call_later(SECONDS, self._overrun) if self._waiting else None

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
                if not self._waiting:  # nobody asked
                    self.distrust()
                    break
                self._give(answer)
                self._begin()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        await self._leave()
        if self._waiting and not retired:
            self._blame(self._reason())
        while self._waiting:
            self._blame(Displaced())

    async def _frame(self) -> tuple[Buffer, bool]:
        stdout = self.process.stdout
        if stdout is None:
            raise ConnectionError
        size, last = FRAME.unpack(await stdout.readexactly(FRAME.size))
        if size > MAX_ANSWER_BYTES:  # none that our own code sends
            self._kill()
            raise ConnectionError
        if size <= PIECE:
            return await stdout.readexactly(size), last
        answer = bytearray(size)  # filled in place: a large answer is not held twice
        filled = 0
        while filled < size:
            piece = await stdout.readexactly(min(PIECE, size - filled))
            answer[filled : filled + len(piece)] = piece
            filled += len(piece)
        return answer, last

    def _give(self, answer: Buffer) -> None:
        future = self._waiting.popleft()
        if not future.done():
            future.set_result(answer)

    def _blame(self, error: Exception) -> None:
        future = self._waiting.popleft()
        if not future.done():
            future.set_exception(error)

    def _reason(self) -> ExtractError:
        """Why the call that was in work has no answer."""
        if not self._ready:
            return ExtractError("the parser process does not start")
        if self._late:
            return ParserLate(f"reading the page took longer than {SECONDS:g} s")
        code = self.process.returncode or 0
        how = signal.Signals(-code).name if -code in set(signal.Signals) else f"exit code {code}"
        return ParserCrashed(f"the parser crashed on this page ({how})")

    @property
    def broken(self) -> bool:
        """Whether it will never answer again."""
        return self._distrusted or self._reader.done() or self.process.returncode is not None

    def distrust(self) -> None:
        """Kill the process and take no further answer of it; the calls that wait are made again elsewhere."""
        self._distrusted = True
        while self._waiting:
            self._blame(Displaced())
        self._kill()

    async def end(self) -> None:
        """Kill the process; what waits for it is told so."""
        if not self.broken:
            while self._waiting:
                self._blame(ExtractError("the parser was closed"))
            self._kill()
        try:
            await self._reader
        finally:
            transport = getattr(self.process, "_transport", None)
            if transport is not None:
                transport.close()

    async def _leave(self) -> None:
        """Wait for a process that has said its last word; killing it at once would hide how it ended."""
        if self._clock is not None:
            self._clock.cancel()
        try:
            async with asyncio.timeout(LEAVING_SECONDS):
                await reaped(self.process)
        except TimeoutError:
            self._kill()
            await reaped(self.process)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
