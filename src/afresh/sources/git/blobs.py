"""Files of a clone, read by one git process."""

import asyncio
import hashlib
from asyncio.subprocess import Process

from afresh.sources.git.process import Call, GitDamage, GitError, end, start

READ_SECONDS = 60.0


class BlobReader:
    """Reads files by their ids, one at a time, and checks that each is what its id says."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def read(self, blob: str, size: int) -> bytes:
        """The content of a file that is known to be here and to be of that size."""
        async with self._turn:
            whole = False
            try:
                async with asyncio.timeout(READ_SECONDS):
                    data = await self._ask(blob, size)
                whole = True
            except TimeoutError:
                raise GitError("git gave no answer in time", late=True) from None
            finally:
                if not whole:  # an answer may be under way that nobody reads
                    await self._end()
            return data

    async def close(self) -> None:
        """End the process."""
        async with self._turn:
            await self._end()

    async def _ask(self, blob: str, size: int) -> bytes:
        if self._process is None:
            self._process = await start(self._call)
        source, sink = self._process.stdout, self._process.stdin
        if source is None or sink is None:
            raise GitError("git cannot be spoken to")
        try:
            sink.write(f"{blob}\n".encode())
            await sink.drain()
            head = await source.readline()
            if head != f"{blob} blob {size}\n".encode():
                raise GitDamage("the clone lost a file")
            data = (await source.readexactly(size + 1))[:-1]
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            raise GitDamage("the clone is damaged") from None
        if _id_of(data, len(blob)) != blob:
            raise GitDamage("a file of the clone is not what its id says")
        return data

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            await end(process)


def _id_of(data: bytes, digits: int) -> str:
    made = hashlib.sha256() if digits == 64 else hashlib.sha1(usedforsecurity=False)
    made.update(b"blob %d\0" % len(data))
    made.update(data)
    return made.hexdigest()
