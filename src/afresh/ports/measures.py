"""What the store tells those who watch over it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from afresh.core.model import RunId, RunState
from afresh.core.store_views import Workload


class Measured(Protocol):
    """Numbers of a store."""

    async def workload(self, workers: Collection[str]) -> Workload:
        """What open runs still have to look at; only what these workers hold is in work."""
        ...

    async def runs_by_state(self) -> Mapping[str, int]: ...

    async def copies_by_state(self) -> Mapping[tuple[str, str], int]:
        """How many copies there are, by sink and state."""
        ...

    async def counts_of_runs(
        self, after: int, limit: int = 1_000
    ) -> Sequence[tuple[RunId, RunState, Mapping[str, int]]]:
        """Runs with a greater number, in that order, and what they counted so far."""
        ...
