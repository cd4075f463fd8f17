"""What a store keeps of schedules."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from afresh.core.freshness import Rhythm
from afresh.core.model import SourceId
from afresh.core.timing import Appointment


class Rhythms(Protocol):
    """How often pages were seen to change."""

    async def rhythms(self, source: SourceId) -> Sequence[tuple[str, Rhythm]]: ...


class Appointments(Protocol):
    """The next time of each source, which one worker uses at a time."""

    async def appointments(self) -> Sequence[Appointment]: ...
    async def plan_appointment(self, planned: Appointment) -> None: ...
    async def drop_appointments(self, sources: Sequence[SourceId]) -> None: ...
    async def hold_appointment(self, source: SourceId, next_at: datetime, worker: str) -> bool: ...
    async def let_go_appointment(self, source: SourceId, worker: str) -> None: ...
    async def settle_appointment(self, after: Appointment, worker: str) -> bool: ...
