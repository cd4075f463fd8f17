"""MCP over stdin and stdout: the protocol has them for itself, everything else goes to stderr."""

import asyncio
import json
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NoReturn

import anyio

from afresh.server.mcp.server import AfreshServer
from afresh.text.json_input import read_json

Tell = Callable[[bytes | None], None]
CHUNK = 65_536
LONGEST = 4_194_304  # bytes of a line; a longer one is no message
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # half a sign, or one half of two that are one sign
GRACE = 10.0  # seconds after a signal until the process ends whatever hangs


@dataclass(frozen=True)
class Wire:
    """The two descriptors that the client is at the other end of."""

    reads: int
    writes: int


def take_wire() -> Wire:
    """Take stdin and stdout away from everyone else, for the rest of the process.

    Whatever prints, here, in a library or in a child process, prints to stderr from now on.
    """
    sys.stdout.flush()
    wire = Wire(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return wire


async def serve(server: AfreshServer, wire: Wire) -> None:
    """Serve the client until it closes the line, or until SIGTERM or SIGINT."""
    with os.fdopen(wire.writes, "w", encoding="utf-8", newline="\n") as writes:
        talk = asyncio.create_task(server.speak(lines(wire.reads), anyio.wrap_file(writes)))
        with _ending(talk):
            await asyncio.wait({talk})
        if talk.cancelled():
            return
        if error := talk.exception():
            _unless_hung_up(error)


async def lines(descriptor: int) -> AsyncIterator[str]:
    """The lines that come in; a thread of its own reads them, so that nobody waits for it at the end."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes | None] = asyncio.Queue()

    def tell(line: bytes | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(arrived.put_nowait, line)

    threading.Thread(target=_read, args=(descriptor, tell), daemon=True, name="mcp-stdin").start()
    while (line := await arrived.get()) is not None:
        yield _whole(line).decode("utf-8", "replace")


def _whole(line: bytes) -> bytes:
    """The line without halves of signs, which would leave whoever asks without any answer."""
    if not _HALF.search(line):
        return line
    try:
        told = read_json(line, max_bytes=LONGEST)
        return json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
    except ValueError:
        return line


def _read(descriptor: int, tell: Tell) -> None:
    pieces: list[bytes] = []
    held = 0
    with suppress(OSError):
        while data := os.read(descriptor, CHUNK):
            *ends, rest = data.split(b"\n")
            for end in ends:
                tell(b"".join((*pieces, end) if held <= LONGEST else pieces[:1]))
                pieces, held = [], 0
            if held <= LONGEST:
                pieces.append(rest)
                held += len(rest)
    if held:
        tell(b"".join(pieces))
    tell(None)


@contextmanager
def _ending(talk: "asyncio.Task[None]") -> Iterator[None]:
    """Let signals end the talk; the process ends even if the client takes nothing any more."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        talk.cancel()
        loop.call_later(GRACE, _quit)

    numbers = (signal.SIGTERM, signal.SIGINT)
    with suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
        for number in numbers:
            loop.add_signal_handler(number, end)
    yield
    with suppress(NotImplementedError, RuntimeError):
        for number in numbers:
            loop.remove_signal_handler(number)


def _quit() -> NoReturn:
    os._exit(0)  # runs that are open are taken up by the next process


def _unless_hung_up(error: BaseException) -> None:
    """A client that is gone is no trouble; anything else is."""
    inner = error
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    if not isinstance(inner, BrokenPipeError | ConnectionResetError):
        raise error
