"""The next time of each source that is looked at by itself, in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.freshness import Rhythm
from afresh.core.model import SourceId
from afresh.core.timing import Appointment
from afresh.testing.memory.tables import Tables


class MemorySchedules:
    """One row a source; whoever holds it is the only one to use its time."""

    tables: Tables

    async def rhythms(self, source: SourceId) -> list[tuple[str, Rhythm]]:
        """The pages with content, each with how often it was seen to change."""
        pages = [row.page for row in self.tables.pages_of(source) if row.page.content_hash is not None]
        return sorted(((page.url, page.rhythm) for page in pages), key=lambda pair: pair[0])

    async def appointments(self) -> list[Appointment]:
        """All that are planned, soonest first."""
        return sorted(self.tables.schedules.values(), key=lambda each: (each.next_at, each.source))

    async def plan_appointment(self, planned: Appointment) -> None:
        """Plan the next time of a source; one of the same rule that is planned already stays."""
        old = self.tables.schedules.get(planned.source)
        if old is None:
            self.tables.schedules[planned.source] = planned
        elif (old.rule != planned.rule or old.planned_at > planned.planned_at) and self._is_unheld(old):
            self.tables.schedules[planned.source] = replace(
                old,
                rule=planned.rule,
                slot=planned.slot,
                next_at=planned.next_at,
                planned_at=planned.planned_at,
            )

    async def drop_appointments(self, sources: Sequence[SourceId]) -> None:
        """Forget the times of sources that have no schedule any more."""
        for source in sources:
            self.tables.schedules.pop(source, None)

    async def hold_appointment(self, source: SourceId, next_at: datetime, worker: str) -> bool:
        """Whether this worker is the one to use that time; who is dead holds nothing."""
        row = self.tables.schedules.get(source)
        if row is None or row.next_at != next_at or not (row.held_by == worker or self._is_unheld(row)):
            return False
        self.tables.schedules[source] = replace(row, held_by=worker)
        return True

    async def let_go_appointment(self, source: SourceId, worker: str) -> None:
        """Leave a time to others."""
        row = self.tables.schedules.get(source)
        if row is not None and row.held_by == worker:
            self.tables.schedules[source] = replace(row, held_by=None)

    async def settle_appointment(self, after: Appointment, worker: str) -> bool:
        """Note how a time was used and plan the next one; whether it was still held."""
        row = self.tables.schedules.get(after.source)
        if row is None or row.held_by != worker:
            return False
        self.tables.schedules[after.source] = replace(after, rule=row.rule, held_by=None)
        return True

    def _is_unheld(self, row: Appointment) -> bool:
        return row.held_by is None or row.held_by not in self.tables.workers
