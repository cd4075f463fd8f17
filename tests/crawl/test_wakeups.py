"""Resting until there is news of work."""

import asyncio
from pathlib import Path

from tests.stores import new_store

from afresh.crawl.worker import FIRST_MUTE_SECONDS, MAX_MUTE_SECONDS, WakeupListener
from afresh.store.dialect import Database
from afresh.store.store import Store


class Rung(Store):
    """A store that always has news, and notes how long it was asked to wait for them."""

    def __init__(self, db: Database, url: str) -> None:
        super().__init__(db, url)
        self.waits: list[float] = []
        db.news.wait = self._receive  # type: ignore[method-assign]

    async def _receive(self, since: int, seconds: float) -> None:
        """At once, more news."""
        self.waits.append(round(seconds, 3))
        self.db.news.ring()


async def test_B21_a_worker_woken_in_vain_listens_less_often(tmp_path: Path) -> None:
    never = asyncio.Event()
    async with new_store(tmp_path, Rung) as store:
        wakeups = WakeupListener(store)
        for _ in range(4):
            wakeups.mark()
            await wakeups.wait(1.0, never)
        assert store.waits == [1.0, *(1.0 - times * FIRST_MUTE_SECONDS for times in (1, 2, 4))]
        wakeups.mute_seconds = 0.0
        wakeups.mark()
        await wakeups.wait(1.0, never)
        assert store.waits[-1] == MAX_MUTE_SECONDS, "who found something hears at once again"


async def test_a_wait_ends_when_it_is_stopped(store: Store) -> None:
    over = asyncio.Event()
    over.set()
    async with asyncio.timeout(20):
        await WakeupListener(store).wait(3600, over)
