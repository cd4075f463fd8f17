"""Define outgoing messages: the events of a run, their targets, and the times of retries."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from afresh.dataclass import dataclass
from afresh.model.labels import is_among
from afresh.model.records import UNFINISHED, ChangeKind, RunId, RunState
from afresh.model.reports import ChangeView, RunReport

FINISHED, BRAKED = "run.finished", "run.braked"
PAGES = "pages"  # all changes of pages in a run
DROPPED = "pages.dropped"  # only the deletions of a confirmed run, whose other changes were sent before
DROPS = (ChangeKind.DELETED, ChangeKind.MOVED)
MAX_CHANGES = 1_000  # changes in one message
_PAUSES = (10, 60, 300, 1_800, 7_200, 14_400)  # seconds before each retry; the last value repeats
LIFE = timedelta(days=1)


class MessageState(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTarget:
    name: str
    events: frozenset[str] = frozenset()  # names of events; empty: all events
    sources: frozenset[str] = frozenset()  # labels of sources; empty: all sources

    def concerns(self, label: str) -> bool:
        return is_among(label, self.sources)

    def wants(self, event: str) -> bool:
        return not self.events or event in self.events

    def wants_change(self, kind: ChangeKind) -> bool:
        return self.wants(f"page.{kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
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
    def message_id(self) -> str:
        """Return an id that all attempts share, so that receivers can detect duplicates."""
        return f"afresh_{self.id}_{self.created_at:%Y%m%d%H%M%S}"


def messages_to_send(
    targets: Sequence[MessageTarget], label: str, state: RunState, counts: Mapping[str, int], *, confirmed: bool = False
) -> list[tuple[str, str]]:
    """Return the messages about the end of a run, as pairs of target and event.

    `confirmed` means that the run ends because its deletions were confirmed: then only deletions and moves are
    reported, because the other changes were sent before.
    """
    if state in UNFINISHED:
        return []
    ended = BRAKED if state is RunState.NEEDS_CONFIRMATION else FINISHED
    changed = [kind for kind in (DROPS if confirmed else tuple(ChangeKind)) if counts.get(kind)]
    found = []
    for target in targets:
        if not target.concerns(label):
            continue
        if target.wants(ended):
            found.append((target.name, ended))
        if any(map(target.wants_change, changed)):
            found.append((target.name, DROPPED if confirmed else PAGES))
    return found


def run_body(message: OutboxMessage, report: RunReport) -> dict[str, Any]:
    return {"event": message.event, "at": message.created_at.isoformat(), **_run(report)}


def _run(report: RunReport) -> dict[str, Any]:
    names = ("checked", "new", "changed", "deleted", "moved", "missing", "failed", "refused", "held")
    counts = {name: getattr(report, name) for name in names}
    whose = {"source": report.source, "version": report.version, "run": report.run}
    return {**whose, "state": str(report.state), "error": report.error, "counts": counts}


def kinds_in(message: OutboxMessage, target: MessageTarget) -> list[ChangeKind]:
    return [kind for kind in (DROPS if message.event == DROPPED else tuple(ChangeKind)) if target.wants_change(kind)]


def pages_body(message: OutboxMessage, report: RunReport, changes: Sequence[ChangeView]) -> dict[str, Any]:
    names = ("old_hash", "new_hash", "moved_to")
    body = [
        {"event": f"page.{change.kind}", "url": change.url, "at": change.at.isoformat()}
        | {name: getattr(change, name) for name in names}
        for change in changes[:MAX_CHANGES]
    ]
    more = len(changes) > MAX_CHANGES
    return {"event": PAGES, "at": message.created_at.isoformat(), **_run(report), "pages": body, "more": more}


def next_try(message: OutboxMessage, now: datetime) -> datetime | None:
    at = now + timedelta(seconds=_PAUSES[min(message.attempts, len(_PAUSES) - 1)])
    return at if at <= message.created_at + LIFE else None
