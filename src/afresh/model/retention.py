"""Retention: how long records stay that nothing needs any more, and what a prune removed."""

from dataclasses import dataclass, fields
from datetime import datetime, timedelta

REMOVED = "the record of the page was removed"  # the reason of an attempt that waited meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Prunable:
    """The times before which records are past their retention; None: they stay."""

    deleted_pages: datetime | None = None
    attempts: datetime | None = None
    changes: datetime | None = None
    outbox: datetime | None = None
    former_texts: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long records stay; None: for ever."""

    deleted_pages: timedelta | None = None
    attempts: timedelta | None = None
    changes: timedelta | None = None
    outbox: timedelta | None = None
    former_texts: timedelta | None = None

    def at(self, now: datetime) -> Prunable:
        """Return what is past its retention by now."""

        def before(kept: timedelta | None) -> datetime | None:
            return None if kept is None else now - kept

        return Prunable(
            deleted_pages=before(self.deleted_pages),
            attempts=before(self.attempts),
            changes=before(self.changes),
            outbox=before(self.outbox),
            former_texts=before(self.former_texts),
        )

    def in_seconds(self) -> dict[str, float | None]:
        """Return the lengths of time as numbers, by their names in the settings."""
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: None if each is None else each.total_seconds() for name, each in kept.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneCounts:
    """How many records of each table are past their retention, or were removed."""

    deleted_pages: int = 0
    attempts: int = 0
    changes: int = 0
    messages: int = 0
    former_texts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport:
    """What a prune removed, or would remove."""

    dry_run: bool
    complete: bool  # False: stopped before the end
    deleted_pages: int
    attempts: int
    changes: int
    messages: int
    former_texts: int = 0
    freed_bytes: int | None = None  # given back to the disk; None: not asked for, or left to the database
    retention: dict[str, float | None]  # the seconds that each kind of record stays; None: for ever
    seconds: float
