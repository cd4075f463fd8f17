"""Messages to others: what a run has to tell whom, and how long it is tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from afresh.model.labels import is_among
from afresh.model.records import ChangeKind, RunId, RunState
from afresh.model.reports import ChangeView, RunReport
from afresh.model.transitions import UNFINISHED

FINISHED, BRAKED = "run.finished", "run.braked"
PAGES = "pages"  # what became of pages: one message for all of a run
DROPPED = "pages.dropped"  # the same for what a confirmed run deletes: the rest was told before
DROPS = (ChangeKind.DELETED, ChangeKind.MOVED)
MOST_CHANGES = 1_000  # in one message
_PAUSES = (10, 60, 300, 1_800, 7_200, 14_400)  # seconds before each further try; the last repeats
LIFE = timedelta(days=1)


class LetterState(StrEnum):
    """What became of a message."""

    WAITING = "waiting"
    SENT = "sent"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Someone who is told of events."""

    name: str
    events: frozenset[str] = frozenset()  # none: all
    sources: frozenset[str] = frozenset()  # none: all

    def concerns(self, label: str) -> bool:
        """Whether it is told of a source."""
        return is_among(label, self.sources)

    def wants(self, event: str) -> bool:
        """Whether it is told of events of this kind."""
        return not self.events or event in self.events

    def wants_change(self, kind: ChangeKind) -> bool:
        """Whether it is told of pages to which this happened."""
        return self.wants(f"page.{kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One message to one target."""

    id: int
    target: str
    event: str
    run_id: RunId
    state: LetterState
    attempts: int
    created_at: datetime
    next_try_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None

    @property
    def message(self) -> str:
        """Its id, the same at every try, so that whoever got it twice can tell."""
        return f"afresh_{self.id}_{self.created_at:%Y%m%d%H%M%S}"


def letters(
    targets: Sequence[Target],
    label: str,
    state: RunState,
    counts: Mapping[str, int],
    *,
    confirmed: bool = False,
) -> list[tuple[str, str]]:
    """What is to be told when a run ends like this: target and event of each message."""
    if state in UNFINISHED:
        return []
    ended = BRAKED if state is RunState.NEEDS_CONFIRMATION else FINISHED
    kinds = DROPS if confirmed else tuple(ChangeKind)
    changed = [kind for kind in kinds if counts.get(kind)]
    found = []
    for target in targets:
        if not target.concerns(label):
            continue
        if target.wants(ended):
            found.append((target.name, ended))
        if any(map(target.wants_change, changed)):
            found.append((target.name, DROPPED if confirmed else PAGES))
    return found


def run_told(letter: Letter, report: RunReport) -> dict[str, Any]:
    """The body of a message about a run."""
    return {"event": letter.event, "at": letter.created_at.isoformat(), **_run(report)}


def _run(report: RunReport) -> dict[str, Any]:
    names = ("checked", "new", "changed", "deleted", "moved", "missing", "failed", "refused", "held")
    counts = {name: getattr(report, name) for name in names}
    return {
        "source": report.source,
        "version": report.version,
        "run": report.run,
        "state": str(report.state),
        "error": report.error,
        "counts": counts,
    }


def kinds_told(letter: Letter, target: Target) -> list[ChangeKind]:
    """Which changes a message about pages tells of."""
    kinds = DROPS if letter.event == DROPPED else tuple(ChangeKind)
    return [kind for kind in kinds if target.wants_change(kind)]


def pages_told(letter: Letter, report: RunReport, changes: Sequence[ChangeView]) -> dict[str, Any]:
    """The body of a message about pages: the first of these, and whether there are more."""
    told = [
        {
            "event": f"page.{change.kind}",
            "url": change.url,
            "at": change.at.isoformat(),
            "old_hash": change.old_hash,
            "new_hash": change.new_hash,
            "moved_to": change.moved_to,
        }
        for change in changes[:MOST_CHANGES]
    ]
    more = len(changes) > MOST_CHANGES
    return {"event": PAGES, "at": letter.created_at.isoformat(), **_run(report), "pages": told, "more": more}


def next_try(letter: Letter, now: datetime) -> datetime | None:
    """When a message that failed is tried again; None: never, it is a day old."""
    at = now + timedelta(seconds=_PAUSES[min(letter.attempts, len(_PAUSES) - 1)])
    return at if at <= letter.created_at + LIFE else None
