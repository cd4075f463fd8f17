"""How long records are kept, and how many a prune removed."""

from datetime import datetime, timedelta

from afresh.dataclass import asdict, dataclass

REMOVED = "the record of the page was removed"  # the reason of an attempt that was open meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Prunable:
    """The time before which records of each kind may be removed; None to keep them all."""

    deleted_pages: datetime | None = None
    attempts: datetime | None = None
    changes: datetime | None = None
    outbox: datetime | None = None
    former_texts: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long records of each kind are kept; None: forever."""

    deleted_pages: timedelta | None = None
    attempts: timedelta | None = None
    changes: timedelta | None = None
    outbox: timedelta | None = None
    former_texts: timedelta | None = None

    def at(self, now: datetime) -> Prunable:
        return Prunable(**{name: None if kept is None else now - kept for name, kept in asdict(self).items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneCounts:
    """How many records of each kind are past their retention or were removed."""

    deleted_pages: int = 0
    attempts: int = 0
    changes: int = 0
    messages: int = 0
    former_texts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport(PruneCounts):
    """What a prune removed, or would remove."""

    dry_run: bool
    complete: bool  # False: stopped early
    freed_bytes: int | None = None  # returned to the disk; None: not requested, or left to the database
    retention: dict[str, float | None]  # seconds by kind of record; None: forever
    seconds: float
