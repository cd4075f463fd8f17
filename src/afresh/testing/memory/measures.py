"""Numbers of a store in memory."""

from collections import Counter

from afresh.core.model import RunId, RunState
from afresh.testing.memory.tables import Tables


class MemoryMeasures:
    """Counting."""

    tables: Tables

    async def runs_by_state(self) -> dict[str, int]:
        """How many runs there are, by state."""
        return dict(sorted(Counter(str(run.state) for run in self.tables.runs.values()).items()))

    async def copies_by_state(self) -> dict[tuple[str, str], int]:
        """How many copies there are, by sink and state."""
        found = Counter((copy.sink, str(copy.state)) for copy in self.tables.copies.values())
        return dict(sorted(found.items()))

    async def counts_of_runs(
        self, after: int, limit: int = 1_000
    ) -> list[tuple[RunId, RunState, dict[str, int]]]:
        """Runs with a greater number, in that order, and what they counted so far."""
        found = sorted((run for run in self.tables.runs.values() if run.id > after), key=lambda run: run.id)
        return [(run.id, run.state, dict(run.counts)) for run in found][:limit]
