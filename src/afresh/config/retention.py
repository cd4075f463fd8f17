"""The section `retention`: how long what is over is kept."""

from dataclasses import dataclass
from datetime import datetime

from afresh.config import forms
from afresh.config.spec import text
from afresh.core.durations import read_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """Lengths of time after which `afresh prune`, runs and the scheduler remove records."""

    deleted_pages: str | None = text(
        "30d",
        "how long the record of a deleted page stays, so that `why` can explain it and a page that returns "
        "keeps its id; null: for ever",
        optional=True,
        form=forms.duration,
    )
    attempts: str | None = text(
        None,
        "how long attempts stay; the latest of each page and those of open runs stay in any case; "
        "null: for ever",
        optional=True,
        form=forms.duration,
    )
    changes: str | None = text(
        None, "how long the changes of pages stay; null: for ever", optional=True, form=forms.duration
    )
    outbox: str | None = text(
        "30d",
        "how long messages that were delivered, or given up, stay; null: for ever",
        optional=True,
        form=forms.duration,
    )


def cutoff(retention: str | None, now: datetime) -> datetime | None:
    """Return the time before which records are past their retention, or None where they stay for ever."""
    return None if retention is None else now - read_duration(retention)
