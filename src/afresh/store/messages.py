"""Incoming webhook deliveries with their refresh requests, and the outbox."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from afresh.model.records import Run, SourceId
from afresh.notify.incoming import RefreshRequest
from afresh.notify.outbox import MessageState, OutboxMessage
from afresh.store.dialect import Transaction
from afresh.store.records import record
from afresh.store.repository import Repository

REMEMBERED = timedelta(days=30)  # how long duplicates are recognised


class MessageRepository(Repository):
    """Reads and writes deliveries, refresh requests and outgoing messages."""

    async def take_delivery(
        self, hook: str, delivery: str, wishes: Sequence[tuple[SourceId, str]], now: datetime
    ) -> bool:
        """Store a delivery with its refresh requests; return False if it is a duplicate."""
        async with self.db.write() as tx:
            if not await tx.run("add_delivery", hook=hook, delivery=delivery, now=now):
                return False
            await tx.run("forget_deliveries", before=now - REMEMBERED)
            for source, url in sorted(wishes):  # in a fixed order, to avoid deadlocks
                await tx.run("add_wish", source=source, url=url, now=now)
            return True

    async def wishes(self, limit: int = 5_000) -> list[RefreshRequest]:
        """Return the open refresh requests, oldest first."""
        return [record(RefreshRequest, row) for row in await self._all("wishes", limit=limit)]

    async def fulfil(self, wishes: Sequence[RefreshRequest]) -> None:
        """Delete refresh requests, except those that were repeated meanwhile."""
        async with self.db.write() as tx:
            for wish in wishes:
                await tx.run("fulfil_wish", number=wish.id, times=wish.times)

    async def letters(self, *, state: MessageState | None = None, limit: int = 100) -> list[OutboxMessage]:
        """Return messages, newest first."""
        return [record(OutboxMessage, row) for row in await self._all("letters", state=state, limit=limit)]

    async def letters_due(self, now: datetime, limit: int = 100) -> list[OutboxMessage]:
        """Return messages that are due, oldest first, up to a limit per target."""
        return [record(OutboxMessage, row) for row in await self._all("letters_due", now=now, limit=limit)]

    async def take_letter(self, letter: OutboxMessage, until: datetime) -> bool:
        """Reserve a message for sending; return False if another sender has it or it was sent."""
        return bool(await self._run("take_letter", number=letter.id, attempts=letter.attempts, until=until))

    async def settle_letter(
        self,
        letter: OutboxMessage,
        state: MessageState,
        now: datetime,
        *,
        again: datetime | None,
        error: str | None,
    ) -> None:
        """Store the result of an attempt, unless another attempt has started since."""
        ours = {"number": letter.id, "attempts": letter.attempts + 1}
        await self._run("settle_letter", **ours, state=state, until=again, error=error, now=now)

    async def count_letters(self) -> dict[str, int]:
        """Return the number of messages by state."""
        return {row["state"]: row["number"] for row in await self._all("count_letters")}


async def post(tx: Transaction, run: Run, letters: Sequence[tuple[str, str]], now: datetime) -> None:
    """Store messages in the transaction of the events they report."""
    for target, event in letters:
        await tx.run("add_letter", name=target, event=event, run=run.id, now=now)
