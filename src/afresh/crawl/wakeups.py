"""Resting until there is news of work; who is woken in vain again and again heeds the news less often."""

import asyncio

from afresh.store.store import Store

FIRST_DEAF, LONGEST_DEAF = 0.05, 1.0  # seconds without an ear for news after having been woken in vain


class Ear:
    """The ear of one who works: look, note what was found, rest."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since = store.db.news.count
        self._deaf = 0.0

    def look(self) -> None:
        """Note what is known before a look at the queue: news of what comes later ends the next rest."""
        self._since = self._store.db.news.count

    def found(self) -> None:
        """Note that there was something to do."""
        self._deaf = 0.0

    async def rest(self, seconds: float, *ends: asyncio.Event) -> None:
        """Wait for news, for one of the ends, or for so long."""
        waits: list[asyncio.Task[object]] = [asyncio.create_task(end.wait()) for end in ends]
        waits.append(asyncio.create_task(self._listen(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _listen(self, seconds: float) -> None:
        deaf = min(self._deaf, seconds)
        await asyncio.sleep(deaf)
        await self._store.db.news.hear(self._since, seconds - deaf)
        heard = self._store.db.news.count != self._since
        self._deaf = min(LONGEST_DEAF, max(FIRST_DEAF, 2 * self._deaf)) if heard else 0.0
