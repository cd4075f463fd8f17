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


def report_of(run: Run, source: Source) -> RunReport:
    """What a run did, in the words of the report."""
    end = run.finished_at or run.started_at
    return RunReport(
        run=run.id,
        source=source.name,
        version=source.version,
        mode=run.mode,
        state=run.state,
        seconds=round((end - run.started_at).total_seconds(), 3),
        error=run.error,
        notes=run.notes,
        **{name: run.counts.get(name, 0) for name in COUNTS},
    )
