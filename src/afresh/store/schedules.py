"""Schedules in the store: when each source has its next run, and how often its pages change."""

from collections.abc import Sequence
from datetime import datetime

from afresh.model.records import RunId, SourceId
from afresh.schedule.change_rate import Rhythm
from afresh.schedule.rules import Appointment
from afresh.store.dialect import Row
from afresh.store.records import at, certain, rhythm_from
from afresh.store.repository import Repository


class ScheduleRepository(Repository):
    """Read and write appointments."""

    async def rhythms(self, source: SourceId) -> list[tuple[str, Rhythm]]:
        """The pages with content, each with how often it was seen to change."""
        async with self.db.read() as tx:
            return [(row["url"], rhythm_from(row)) for row in await tx.all("rhythms", source=source)]

    async def appointments(self) -> list[Appointment]:
        """All that are planned, soonest first."""
        async with self.db.read() as tx:
            return [_appointment(row) for row in await tx.all("schedules")]

    async def plan(self, planned: Appointment) -> None:
        """Plan the next time of a source; one of the same rule that is planned already stays."""
        async with self.db.write() as tx:
            await tx.run(
                "plan_schedule",
                source=planned.source,
                rule=planned.rule,
                slot=planned.slot,
                at=planned.next_at,
                now=planned.planned_at,
            )

    async def drop(self, sources: Sequence[SourceId]) -> None:
        """Forget the times of sources that have no schedule any more."""
        async with self.db.write() as tx:
            for source in sources:
                await tx.run("drop_schedule", source=source)

    async def hold(self, source: SourceId, next_at: datetime, worker: str) -> bool:
        """Whether this worker is the one to use that time; who is dead holds nothing."""
        async with self.db.write() as tx:
            return await tx.run("hold_schedule", source=source, at=next_at, worker=worker) == 1

    async def let_go(self, source: SourceId, worker: str) -> None:
        """Leave a time to others."""
        async with self.db.write() as tx:
            await tx.run("let_go_schedule", source=source, worker=worker)

    async def settle(self, after: Appointment, worker: str) -> bool:
        """Note how a time was used and plan the next one; whether it was still held."""
        async with self.db.write() as tx:
            done = await tx.run(
                "settle_schedule",
                source=after.source,
                slot=after.slot,
                at=after.next_at,
                now=after.planned_at,
                since=after.fired_at,
                run=after.run,
                outcome=after.outcome,
                worker=worker,
            )
            return done == 1


def _appointment(row: Row) -> Appointment:
    return Appointment(
        source=SourceId(row["source_id"]),
        rule=row["rule"],
        slot=certain(row["slot"]),
        next_at=certain(row["next_at"]),
        planned_at=certain(row["planned_at"]),
        held_by=row["held_by"],
        run=RunId(row["run_id"]) if row["run_id"] is not None else None,
        outcome=row["outcome"],
        fired_at=at(row["fired_at"]),
    )
