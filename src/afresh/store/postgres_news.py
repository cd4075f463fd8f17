"""News of work between processes: PostgreSQL passes them on to those who listen.

Nothing depends on it. A message that is lost, a connection to listen on that cannot be had, a pooler in
between that knows no LISTEN: who waits looks again when its time is up, as with SQLite.
"""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg

from afresh.store.news import News
from afresh.store.postgres_trouble import TROUBLES

CHANNEL = "afresh_work"
TOGETHER = 0.03  # seconds in which news go out as one: each costs the server a lock that all commits share
AGAIN = 10.0  # seconds until it is tried again to listen
PATIENCE = 5.0  # seconds that a connection to listen on may take


class PostgresNews(News):
    """News that all processes on a database share."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._ear: asyncpg.Connection | None = None
        self._listen_at = 0.0
        self._telling: asyncio.Task[None] | None = None

    def tell(self, pool: asyncpg.Pool) -> None:
        """Let all processes know, this one included."""
        if self._ear is None:
            self.ring()
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell(pool, TOGETHER))

    async def _tell(self, pool: asyncpg.Pool, wait: float) -> None:
        await asyncio.sleep(wait)
        self._telling = None
        with suppress(*TROUBLES):
            async with pool.acquire() as connection:
                await connection.execute(f"notify {CHANNEL}")

    async def hear(self, since: int, seconds: float) -> None:
        """Wait for news, of other processes too where the server can be listened to."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._ear is None and loop.time() >= self._listen_at:
            self._listen_at = loop.time() + AGAIN
            await self._listen(min(PATIENCE, seconds))
        await super().hear(since, max(0.0, until - loop.time()))

    async def _listen(self, seconds: float) -> None:
        ear = None
        try:
            async with asyncio.timeout(seconds):
                ear = await asyncpg.connect(self._url, server_settings={"application_name": "afresh listens"})
                ear.add_termination_listener(self._lose)
                await ear.add_listener(CHANNEL, self._heard)
        except (*TROUBLES, TimeoutError):
            if ear is not None:
                ear.terminate()
            return
        self._ear = ear
        self.ring()  # what came before we listened

    def _heard(self, *told: Any) -> None:
        del told
        self.ring()

    def _lose(self, *told: Any) -> None:
        del told
        self._ear, self._listen_at = None, 0.0

    async def close(self, pool: asyncpg.Pool) -> None:
        """Pass on what was not told yet, and listen no more."""
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
            await self._tell(pool, 0.0)
        if self._ear is not None:
            self._ear.remove_termination_listener(self._lose)
            self._ear.terminate()
            self._ear = None
