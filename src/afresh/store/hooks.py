"""Webhooks that came in, in the store."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from afresh.core.hooks import Wish
from afresh.core.model import SourceId
from afresh.store.dialect import Database
from afresh.store.records import certain

REMEMBERED = timedelta(days=30)  # how long a message is known again


class HookRecords:
    """Messages that came, and what they wish to be looked at."""

    db: Database

    async def take_delivery(
        self, hook: str, delivery: str, wishes: Sequence[tuple[SourceId, str]], now: datetime
    ) -> bool:
        """Take a message once, with what it wishes for; False if it came before."""
        async with self.db.write() as tx:
            if not await tx.run("add_delivery", hook=hook, delivery=delivery, now=now):
                return False
            await tx.run("forget_deliveries", before=now - REMEMBERED)
            for source, url in sorted(wishes):  # in one order, so that nobody waits in a circle
                await tx.run("add_wish", source=source, url=url, now=now)
            return True

    async def wishes(self, limit: int = 5_000) -> list[Wish]:
        """What is to be looked at, in the order in which it was first wished for."""
        async with self.db.read() as tx:
            return [
                Wish(
                    id=row["id"],
                    source_id=SourceId(row["source_id"]),
                    url=row["url"],
                    times=row["times"],
                    at=certain(row["at"]),
                )
                for row in await tx.all("wishes", limit=limit)
            ]

    async def fulfil(self, wishes: Sequence[Wish]) -> None:
        """Forget wishes, but not those that came again meanwhile."""
        async with self.db.write() as tx:
            for wish in wishes:
                await tx.run("fulfil_wish", number=wish.id, times=wish.times)
