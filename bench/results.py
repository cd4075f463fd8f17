"""All that a benchmark found, in one value."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from bench import recorded
from bench.checks import Check
from bench.figures import Goal, Row


@dataclass(frozen=True)
class Results:
    """Figures, goals and checks."""

    version: str
    machine: Mapping[str, object]
    server: str
    rounds: int
    corpora: Sequence[Mapping[str, object]]
    start_up: Mapping[str, float]
    rows: Sequence[Row]
    goals: Sequence[Goal]
    checks: Sequence[Check]
    rows_of_peers: Sequence[Row] = ()
    notes: Sequence[str] = ()

    @property
    def recorded(self) -> list[Row]:
        """Earlier figures of others on the corpora of this run."""
        names = {corpus["name"] for corpus in self.corpora}
        return [row for row in recorded.ROWS if row.corpus in names]

    @property
    def right(self) -> bool:
        """Whether every result was as it has to be."""
        return all(check.ok for check in self.checks)

    def as_json(self) -> dict[str, object]:
        """Everything in the types of JSON."""
        return {
            "command": " ".join(["python -m bench", *sys.argv[1:]]),
            "date": datetime.now(UTC).date().isoformat(),
            "version": self.version,
            "machine": dict(self.machine),
            "server": self.server,
            "rounds": self.rounds,
            "corpora": [dict(corpus) for corpus in self.corpora],
            "start_up_s": dict(self.start_up),
            "rows": [asdict(row) for row in self.rows],
            "peers": [asdict(row) for row in self.rows_of_peers],
            "recorded": {"source": recorded.SOURCE, "rows": [asdict(row) for row in self.recorded]},
            "goals": [{**asdict(goal), "met": goal.met} for goal in self.goals],
            "checks": [check.as_json() for check in self.checks],
            "right": self.right,
            "notes": list(self.notes),
        }
