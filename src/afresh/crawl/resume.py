"""Going on with a run that was interrupted: for how long that may be done, and what it has done before."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from afresh.crawl.counters import kept_counts
from afresh.model.records import Run, RunState

RESUME_WITHIN = timedelta(hours=24)  # an older run is given up for a new one
CONTINUE_WITHIN = timedelta(minutes=3)  # since its last work; after that everything is looked at again


def looks_again(run: Run, now: datetime) -> bool:
    """Whether what a run has looked at may have changed since, so that it looks at everything again."""
    last = run.worked_at or run.taken_at
    if last is None:
        return bool(run.queued or run.counts)
    return abs(now - last) > CONTINUE_WITHIN


def counts_so_far(run: Run, *, again: bool) -> Mapping[str, int]:
    """The counts that a run goes on with, with the time that a worker spent on it who died."""
    counts = kept_counts(run.counts) if again else dict(run.counts)
    if run.state is RunState.RUNNING and run.taken_at is not None and run.worked_at is not None:
        spent = max(timedelta(0), run.worked_at - run.taken_at)
        counts["worked_ms"] = counts.get("worked_ms", 0) + round(spent.total_seconds() * 1000)
    return counts
