"""Attempts as a history: each with the source it belongs to."""

from dataclasses import dataclass, fields

from afresh.core.model import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry(Attempt):
    """An attempt with the source it belongs to."""

    source: str | None = None  # None: the source was removed
    version: str | None = None


def history_entry(attempt: Attempt, source: str | None, version: str | None) -> HistoryEntry:
    """Return an attempt with the name and version of its source."""
    values = {each.name: getattr(attempt, each.name) for each in fields(Attempt)}
    return HistoryEntry(**values, source=source, version=version)
