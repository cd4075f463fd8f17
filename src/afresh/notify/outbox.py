"""Outgoing messages: events of runs, their targets, and retries."""

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
PAGES = "pages"  # changes of pages: one message per run
DROPPED = "pages.dropped"  # only deletions of a confirmed run: the rest was sent before
DROPS = (ChangeKind.DELETED, ChangeKind.MOVED)
MOST_CHANGES = 1_000  # in one message
_PAUSES = (10, 60, 300, 1_800, 7_200, 14_400)  # seconds before each retry; the last one repeats
LIFE = timedelta(days=1)


class MessageState(StrEnum):
    """The state of a message."""

    WAITING = "waiting"
    SENT = "sent"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTarget:
    """A receiver of events."""

    name: str
    events: frozenset[str] = frozenset()  # empty: all
    sources: frozenset[str] = frozenset()  # empty: all

    def concerns(self, label: str) -> bool:
        """Return whether it receives events of a source."""
        return is_among(label, self.sources)

    def wants(self, event: str) -> bool:
        """Return whether it receives this kind of event."""
        return not self.events or event in self.events

    def wants_change(self, kind: ChangeKind) -> bool:
        """Return whether it receives this kind of page change."""
        return self.wants(f"page.{kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """A message to one target."""

    id: int
    target: str
    event: str
    run_id: RunId
    state: MessageState
    attempts: int
    created_at: datetime
    next_try_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None

    @property
    def message(self) -> str:
        """Return the message id, the same for every attempt, so that receivers can detect duplicates."""
        return f"afresh_{self.id}_{self.created_at:%Y%m%d%H%M%S}"


def letters(
    targets: Sequence[MessageTarget],
    label: str,
    state: RunState,
    counts: Mapping[str, int],
    *,
    confirmed: bool = False,
) -> list[tuple[str, str]]:
    """Return target and event of each message to send when a run ends like this."""
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


def run_told(letter: OutboxMessage, report: RunReport) -> dict[str, Any]:
    """Return the body of a message about a run."""
    return {"event": letter.event, "at": letter.created_at.isoformat(), **_run(report)}


def _run(report: RunReport) -> dict[str, Any]:
    names = ("checked", "new", "changed", "deleted", "moved", "missing", "failed", "refused", "held")
    counts = {name: getattr(report, name) for name in names}
    whose = {"source": report.source, "version": report.version, "run": report.run}
    return {**whose, "state": str(report.state), "error": report.error, "counts": counts}


def kinds_told(letter: OutboxMessage, target: MessageTarget) -> list[ChangeKind]:
    """Return the kinds of changes in a message about pages."""
    kinds = DROPS if letter.event == DROPPED else tuple(ChangeKind)
    return [kind for kind in kinds if target.wants_change(kind)]


def pages_told(letter: OutboxMessage, report: RunReport, changes: Sequence[ChangeView]) -> dict[str, Any]:
    """Return the body of a message about pages: the first changes, and whether there are more."""
    names = ("old_hash", "new_hash", "moved_to")
    told = [
        {"event": f"page.{change.kind}", "url": change.url, "at": change.at.isoformat()}
        | {name: getattr(change, name) for name in names}
        for change in changes[:MOST_CHANGES]
    ]
    more = len(changes) > MOST_CHANGES
    return {"event": PAGES, "at": letter.created_at.isoformat(), **_run(report), "pages": told, "more": more}


def next_try(letter: OutboxMessage, now: datetime) -> datetime | None:
    """Return the next attempt for a failed message; None once it is a day old."""
    at = now + timedelta(seconds=_PAUSES[min(letter.attempts, len(_PAUSES) - 1)])
    return at if at <= letter.created_at + LIFE else None
