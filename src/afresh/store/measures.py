"""Numbers of a store, for those who watch over it."""

import json

from afresh.core.model import RunId, RunState
from afresh.store.dialect import Database


class Measures:
    """Counting, by index or over few rows."""

    db: Database

    async def runs_by_state(self) -> dict[str, int]:
        """How many runs there are, by state."""
        async with self.db.read() as tx:
            return {row["state"]: row["number"] for row in await tx.all("runs_by_state")}

    async def copies_by_state(self) -> dict[tuple[str, str], int]:
        """How many copies there are, by sink and state."""
        async with self.db.read() as tx:
            rows = await tx.all("copies_by_state")
            return {(row["sink"], row["state"]): row["number"] for row in rows}

    async def counts_of_runs(
        self, after: int, limit: int = 1_000
    ) -> list[tuple[RunId, RunState, dict[str, int]]]:
        """Runs with a greater number, in that order, and what they counted so far."""
        async with self.db.read() as tx:
            rows = await tx.all("counts_of_runs", after=after, limit=limit)
            return [(RunId(row["id"]), RunState(row["state"]), json.loads(row["counts"])) for row in rows]
