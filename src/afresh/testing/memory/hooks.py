"""Webhooks that came in, in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.hooks import Wish
from afresh.core.model import SourceId
from afresh.testing.memory.tables import Tables


class MemoryHooks:
    """Messages that came, and what they wish to be looked at."""

    tables: Tables

    async def take_delivery(
        self, hook: str, delivery: str, wishes: Sequence[tuple[SourceId, str]], now: datetime
    ) -> bool:
        """Take a message once, with what it wishes for; False if it came before."""
        if (hook, delivery) in self.tables.deliveries:
            return False
        self.tables.deliveries[hook, delivery] = now
        for source, url in sorted(wishes):
            found = self.tables.wishes.get((source, url))
            self.tables.wishes[source, url] = (
                replace(found, times=found.times + 1, at=now)
                if found
                else Wish(id=next(self.tables.numbers), source_id=source, url=url, times=1, at=now)
            )
        return True

    async def wishes(self, limit: int = 5_000) -> list[Wish]:
        """What is to be looked at, in the order in which it was first wished for."""
        found = (wish for wish in self.tables.wishes.values() if wish.source_id in self.tables.sources)
        return sorted(found, key=lambda wish: wish.id)[:limit]

    async def fulfil(self, wishes: Sequence[Wish]) -> None:
        """Forget wishes, but not those that came again meanwhile."""
        for wish in wishes:
            if self.tables.wishes.get((wish.source_id, wish.url)) == wish:
                del self.tables.wishes[wish.source_id, wish.url]
