"""How processes of ours end."""

import asyncio
from asyncio.subprocess import Process
from contextlib import suppress

_PIECE = 65_536


async def reaped(process: Process) -> int:
    """The exit code of a process that ends; what is left in its pipes is thrown away.

    asyncio tells of an end only when the pipes are closed too, which they never are while somebody pauses
    reading a full one.
    """
    await asyncio.gather(_drained(process.stdout), _drained(process.stderr))
    return await process.wait()


async def _drained(stream: asyncio.StreamReader | None) -> None:
    with suppress(OSError):
        while stream is not None and await stream.read(_PIECE):
            pass
