"""Messages from and to others: requests of webhooks that came in, and the outbox."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from afresh.model.records import Run, RunId, SourceId
from afresh.notify.incoming import Wish
from afresh.notify.outbox import Letter, LetterState
from afresh.store.dialect import Row, Session
from afresh.store.records import at, certain
from afresh.store.repository import Repository

REMEMBERED = timedelta(days=30)  # how long a message is known again


class MessageRepository(Repository):
    """Read and write both boxes."""

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

    async def letters(self, *, state: LetterState | None = None, limit: int = 100) -> list[Letter]:
        """Messages, newest first."""
        async with self.db.read() as tx:
            return [_letter(row) for row in await tx.all("letters", state=state, limit=limit)]

    async def letters_due(self, now: datetime, limit: int = 100) -> list[Letter]:
        """Messages whose time has come, oldest first, so many of each target."""
        async with self.db.read() as tx:
            return [_letter(row) for row in await tx.all("letters_due", now=now, limit=limit)]

    async def take_letter(self, letter: Letter, until: datetime) -> bool:
        """Be the one who sends it; False if another is, or it has gone."""
        async with self.db.write() as tx:
            taken = await tx.run("take_letter", number=letter.id, attempts=letter.attempts, until=until)
            return bool(taken)

    async def settle_letter(
        self, letter: Letter, state: LetterState, now: datetime, *, again: datetime | None, error: str | None
    ) -> None:
        """Note how a try went, unless another has begun since."""
        async with self.db.write() as tx:
            ours = {"number": letter.id, "attempts": letter.attempts + 1}
            await tx.run("settle_letter", **ours, state=state, until=again, error=error, now=now)

    async def count_letters(self) -> dict[str, int]:
        """How many there are, by state."""
        async with self.db.read() as tx:
            return {row["state"]: row["number"] for row in await tx.all("count_letters")}


async def post(tx: Session, run: Run, letters: Sequence[tuple[str, str]], now: datetime) -> None:
    """Write messages in the transaction that makes them true."""
    for target, event in letters:
        await tx.run("add_letter", name=target, event=event, run=run.id, now=now)


def _letter(row: Row) -> Letter:
    return Letter(
        id=row["id"],
        target=row["target"],
        event=row["event"],
        run_id=RunId(row["run_id"]),
        state=LetterState(row["state"]),
        attempts=row["attempts"],
        created_at=certain(row["created_at"]),
        next_try_at=at(row["next_try_at"]),
        ended_at=at(row["ended_at"]),
        error=row["error"],
    )
