"""Waiting for what the log says."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager


class LogLines(logging.Handler):
    """Hears the log of afresh; whoever waits for a line goes on when it is written."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._came = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line with its data."""
        self.lines.append(f"{record.getMessage()} {getattr(record, 'data', '')}")
        self._loop.call_soon_threadsafe(self._came.set)

    async def line(self, *words: str, after: int = 0) -> int:
        """Wait for a line with all these words; how many lines there are up to it."""
        async with asyncio.timeout(60):
            while True:
                for number, line in enumerate(self.lines[after:], after + 1):
                    if all(word in line for word in words):
                        return number
                self._came.clear()
                await self._came.wait()


@contextmanager
def hearing() -> Iterator[LogLines]:
    """The lines of the log while it is open."""
    log, lines = logging.getLogger("afresh"), LogLines()
    before = log.level
    log.setLevel(logging.INFO)
    log.addHandler(lines)
    try:
        yield lines
    finally:
        log.removeHandler(lines)
        log.setLevel(before)
