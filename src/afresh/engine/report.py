"""From a run on record to the report that people read."""

from afresh.core.model import Run, Source
from afresh.core.views import RunReport

COUNTS = (
    "checked",
    "new",
    "changed",
    "unchanged",
    "not_modified",
    "deleted",
    "missing",
    "moved",
    "failed",
    "refused",
    "doubtful",
    "flagged",
    "held",
    "bytes",
    "chunks_embedded",
    "chunks_reused",
    "ai_calls",
)


def seconds_of(run: Run) -> float:
    """How long a run was worked on; a pause before it went on does not count."""
    if "worked_ms" in run.counts:
        return run.counts["worked_ms"] / 1000
    return ((run.finished_at or run.started_at) - run.started_at).total_seconds()


def report_of(run: Run, source: Source) -> RunReport:
    """What a run did, in the words of the report."""
    return RunReport(
        run=run.id,
        source=source.name,
        version=source.version,
        mode=run.mode,
        state=run.state,
        seconds=round(seconds_of(run), 3),
        error=run.error,
        notes=run.notes,
        **{name: run.counts.get(name, 0) for name in COUNTS},
    )
