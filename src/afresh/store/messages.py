"""Incoming webhook deliveries with their refresh requests, and the outbox."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from afresh.model.records import Run, SourceId
from afresh.notify.incoming import RefreshRequest
from afresh.notify.outbox import MessageState, OutboxMessage
from afresh.store.dialect import Transaction
from afresh.store.repository import Repository

DUPLICATES_KNOWN = timedelta(days=30)  # how long a repeated delivery is recognised


class MessageRepository(Repository):
    async def take_delivery(
        self, hook: str, delivery: str, requests: Sequence[tuple[SourceId, str]], now: datetime
    ) -> bool:
        """Store a delivery with its refresh requests; return False if it is a duplicate."""
        async with self.db.write() as tx:
            if not await tx.run("add_delivery", hook=hook, delivery=delivery, now=now):
                return False
            await tx.run("forget_deliveries", before=now - DUPLICATES_KNOWN)
            for source, url in sorted(requests):  # in a fixed order, to avoid deadlocks
                await tx.run("add_refresh_request", source=source, url=url, now=now)
            return True

    async def refresh_requests(self, limit: int = 5_000) -> list[RefreshRequest]:
        """Return the open refresh requests, oldest first."""
        return await self._records(RefreshRequest, "refresh_requests", limit=limit)

    async def fulfil(self, requests: Sequence[RefreshRequest]) -> None:
        """Delete refresh requests, except those that were received again meanwhile."""
        async with self.db.write() as tx:
            for request in requests:
                await tx.run("fulfil_refresh_request", number=request.id, times=request.times)

    async def outbox(self, *, state: MessageState | None = None, limit: int = 100) -> list[OutboxMessage]:
        return await self._records(OutboxMessage, "outbox_messages", state=state, limit=limit)

    async def due(self, now: datetime, limit: int = 100) -> list[OutboxMessage]:
        """Return messages that are due, oldest first, at most `limit` for each target."""
        return await self._records(OutboxMessage, "due_messages", now=now, limit=limit)

    async def reserve(self, message: OutboxMessage, until: datetime) -> bool:
        """Reserve a message for sending; return False if another sender has reserved or sent it."""
        return bool(await self._run("reserve_message", number=message.id, attempts=message.attempts, until=until))

    async def record_attempt(
        self, message: OutboxMessage, state: MessageState, now: datetime, *, again: datetime | None, error: str | None
    ) -> None:
        """Store the result of an attempt to send, unless another attempt has started since."""
        ours = {"number": message.id, "attempts": message.attempts + 1}
        await self._run("record_message_attempt", **ours, state=state, until=again, error=error, now=now)

    async def count_outbox(self) -> dict[str, int]:
        return {row["state"]: row["number"] for row in await self._all("count_messages")}


async def post(tx: Transaction, run: Run, messages: Sequence[tuple[str, str]], now: datetime) -> None:
    """Store messages about a run, each a target and an event, in the outbox."""
    for target, event in messages:
        await tx.run("add_message", name=target, event=event, run=run.id, now=now)
