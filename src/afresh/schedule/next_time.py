"""When the schedule of a source wants it looked at."""

from datetime import datetime

from afresh.model.records import Source
from afresh.model.transitions import UNFINISHED
from afresh.schedule.rules import Schedule
from afresh.store.store import Store


async def next_time(
    store: Store, source: Source, schedule: Schedule | None, now: datetime
) -> datetime | None:
    """The next time, overdue or not: now for what never ran or was interrupted, None without a schedule."""
    if schedule is None:
        return None
    runs = await store.runs.last(source.id, 1)
    if not runs or runs[0].state in UNFINISHED:
        return now
    return schedule.next_after(runs[0].started_at)
