"""All that a benchmark found, in one value."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from bench.checks import Check
from bench.figures import Goal, Row


@dataclass(frozen=True)
class Results:
    """Figures, goals and checks."""

    command: str
    version: str
    commit: str | None  # None if src differs from it
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
    def right(self) -> bool:
        """Whether every result was as it has to be."""
        return all(check.ok for check in self.checks)

    def as_json(self) -> dict[str, object]:
        """Everything in the types of JSON."""
        return self.summary() | {"checks": [check.as_json() for check in self.checks]}

    def summary(self) -> dict[str, object]:
        """The figures without the single checks, as they are published."""
        return {
            "command": self.command,
            "date": datetime.now(UTC).date().isoformat(),
            "version": self.version,
            "commit": self.commit,
            "machine": dict(self.machine),
            "server": self.server,
            "rounds": self.rounds,
            "corpora": [dict(corpus) for corpus in self.corpora],
            "start_up_s": dict(self.start_up),
            "rows": [asdict(row) for row in self.rows],
            "peers": [asdict(row) for row in self.rows_of_peers],
            "goals": [{**asdict(goal), "met": goal.met} for goal in self.goals],
            "right": self.right,
            "notes": list(self.notes),
        }
