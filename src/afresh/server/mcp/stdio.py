"""MCP over stdin and stdout, which are reserved for the protocol; all other output goes to stderr."""

import asyncio
import json
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import anyio

from afresh.aio import signal_handlers
from afresh.server.mcp.server import AfreshServer
from afresh.text.json_input import read_json

READ_BYTES = 65_536
MAX_LINE_BYTES = 4_194_304  # a longer line is not a message
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # a surrogate, alone or in a pair
EXIT_SECONDS = 10.0  # time between a signal and the forced exit


def take_wire() -> tuple[int, int]:
    """Reserve stdin and stdout for the protocol and return their descriptors; all other output goes to stderr now."""
    sys.stdout.flush()
    wire = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return wire


async def serve(server: AfreshServer, reads: int, writes: int) -> None:
    """Serve the client until it closes stdin, or until SIGTERM or SIGINT."""
    with os.fdopen(writes, "w", encoding="utf-8", newline="\n") as out:
        talk = asyncio.create_task(server.serve_lines(lines(reads), anyio.wrap_file(out)))

        def end() -> None:
            """Cancel the session; exit even if the client does not read any more."""
            talk.cancel()
            asyncio.get_running_loop().call_later(EXIT_SECONDS, os._exit, 0)  # the next process resumes open runs

        with signal_handlers({signal.SIGTERM: end, signal.SIGINT: end}):
            await asyncio.wait({talk})
        error = inner = None if talk.cancelled() else talk.exception()
        while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
            inner = inner.exceptions[0]
        if error and not isinstance(inner, BrokenPipeError | ConnectionResetError):
            raise error  # a disconnected client is no error


async def lines(descriptor: int) -> AsyncIterator[str]:
    """Yield incoming lines; a daemon thread reads them, so that shutdown does not wait for it."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes | None] = asyncio.Queue()

    def put(line: bytes | None) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(arrived.put_nowait, line)

    threading.Thread(target=_read, args=(descriptor, put), daemon=True, name="mcp-stdin").start()
    while (line := await arrived.get()) is not None:
        yield _without_surrogates(line).decode("utf-8", "replace")


def _without_surrogates(line: bytes) -> bytes:
    """Replace lone surrogates in a line, since the SDK would not answer such a request."""
    if not _SURROGATE.search(line):
        return line
    try:
        return json.dumps(read_json(line, max_bytes=MAX_LINE_BYTES), ensure_ascii=False).encode("utf-8", "replace")
    except ValueError:
        return line


def _read(descriptor: int, put: Callable[[bytes | None], None]) -> None:
    pieces: list[bytes] = []
    held = 0
    with suppress(OSError):
        while data := os.read(descriptor, READ_BYTES):
            *ends, rest = data.split(b"\n")
            for end in ends:
                put(b"".join((*pieces, end) if held <= MAX_LINE_BYTES else pieces[:1]))
                pieces, held = [], 0
            if held <= MAX_LINE_BYTES:
                pieces.append(rest)
                held += len(rest)
    if held:
        put(b"".join(pieces))
    put(None)
