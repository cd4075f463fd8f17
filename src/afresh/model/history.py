"""Attempts as a history: each with the source it belongs to, and listings that stand for many pages."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime

from afresh.model.records import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry(Attempt):
    """An attempt with the source it belongs to."""

    source: str | None = None  # None: the source was removed
    version: str | None = None


def history_entry(attempt: Attempt, source: str | None, version: str | None) -> HistoryEntry:
    """Return an attempt with the name and version of its source."""
    values = {each.name: getattr(attempt, each.name) for each in fields(Attempt)}
    return HistoryEntry(**values, source=source, version=version)


def listing_reason(unchanged: int) -> str:
    """Return the evidence of an attempt that stands for many pages."""
    return f"the listing shows {unchanged} {'page' if unchanged == 1 else 'pages'} unchanged"


def newest_first(own: Iterable[Attempt], listings: Iterable[Attempt]) -> list[Attempt]:
    """Return the attempts of a page and those of listings that stand for it as one history."""
    return sorted([*own, *map(_as_of_page, listings)], key=recency, reverse=True)


def recency(attempt: Attempt) -> tuple[bool, datetime, int]:
    """Return the place of an attempt in time: a row that is still open may be older than those after it."""
    is_open = attempt.completed_at is None
    return is_open, attempt.completed_at or attempt.scheduled_for, attempt.id


def _as_of_page(listing: Attempt) -> Attempt:
    reason = f"unchanged by the listing of {listing.url}, run {listing.run_id}"
    return replace(listing, reason=reason)
