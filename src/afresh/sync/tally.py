"""What a sync counts while it works, and the report it becomes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from afresh.model.records import PageStatus
from afresh.sync.copy import Copy, Wanted
from afresh.sync.reconcile import Step, is_stuck
from afresh.sync.reports import AuditView, SyncFailure, SyncReport

SHOWN = 20  # failures and foreign names in a report


@dataclass(slots=True)
class Tally:
    """The counts of one sync."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[SyncFailure] = field(default_factory=list)
    audit: AuditView | None = None
    notes: list[str] = field(default_factory=list)

    def fail(self, copy: Copy) -> None:
        """Count a page that could not be brought in line."""
        self.counts["failed"] += 1
        if len(self.failures) < SHOWN:
            self.failures.append(SyncFailure(url=copy.url, why=copy.error or "unknown"))

    def end(self, left: Sequence[Wanted]) -> None:
        """Count what is still to do."""
        for wanted in left:
            copy = wanted.copy
            if is_failed(copy):
                self.fail(copy)
            else:
                self.counts["waiting"] += 1
                self.counts["stuck"] += is_stuck(copy)

    def intend(self, wanted: Wanted, step: Step) -> None:
        """Count what a sync would do about a copy."""
        match step:
            case Step.DROP if wanted.hash is None:
                self.counts["deleted"] += 1
            case Step.DROP | Step.PUT:
                self.counts["replaced" if is_replaced(wanted) else "uploaded"] += 1
            case Step.LOOK | Step.WAIT | Step.ASK:
                self.end([wanted])

    def report(self, sink: str, kind: str, state: str, seconds: float, error: str | None) -> SyncReport:
        """The report of it all."""
        names = ("uploaded", "replaced", "deleted", "verified", "waiting", "failed", "stuck")
        counts: dict[str, Any] = {name: self.counts[name] for name in names}
        return SyncReport(
            sink=sink,
            kind=kind,
            state=state,
            **counts,
            failures=tuple(self.failures),
            audit=self.audit,
            seconds=seconds,
            error=error,
            notes=tuple(self.notes),
        )


def is_failed(copy: Copy) -> bool:
    """Whether a page could not be brought in line, or a document of it not be deleted."""
    return copy.state is PageStatus.ERROR or bool(copy.leftovers and copy.error)


def is_replaced(wanted: Wanted) -> bool:
    """Whether a document of other content stood or was to stand there before."""
    return wanted.copy.wanted_hash not in (None, wanted.hash)
