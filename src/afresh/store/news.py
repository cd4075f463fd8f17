"""News of work: who waits for some looks again when it comes, and otherwise when its time is up."""

import asyncio
from contextlib import suppress

WORK = frozenset(  # statements after which somebody who waits may find something to do
    {
        *("insert_run", "resume_run", "finish_run"),
        *("open_crawl", "reopen_crawl", "adopt_known", "adopt_rows", "give_back_crawls", "release_crawls"),
        *("release_hosts", "hand_over_hosts"),
    }
)


class News:
    """Counts the news that came."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.Event()

    def ring(self) -> None:
        """Wake all who wait."""
        self.count += 1
        rung, self._next = self._next, asyncio.Event()
        rung.set()

    async def hear(self, since: int, seconds: float) -> None:
        """Wait until there is more news than `since`, or for so long."""
        if self.count != since:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._next.wait()
