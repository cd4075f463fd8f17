"""The section `retention`: how long what is over is kept."""

from dataclasses import dataclass
from datetime import timedelta

from afresh.config import forms
from afresh.config.spec import text
from afresh.model.retention import Retention
from afresh.text.durations import read_duration


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
    former_texts: str | None = text(
        "30d",
        "how long the text stays that a page had before it lost nearly all of it, for `afresh restore`; "
        "null: for ever",
        optional=True,
        form=forms.duration,
    )


def retention_of(settings: RetentionSettings) -> Retention:
    """Return the settings as lengths of time."""
    return Retention(
        deleted_pages=_length(settings.deleted_pages),
        attempts=_length(settings.attempts),
        changes=_length(settings.changes),
        outbox=_length(settings.outbox),
        former_texts=_length(settings.former_texts),
    )


def _length(kept: str | None) -> timedelta | None:
    return None if kept is None else read_duration(kept)
