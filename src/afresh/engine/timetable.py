"""When the schedule of a source wants it looked at."""

from datetime import datetime

from afresh.core.model import Source
from afresh.core.states import UNFINISHED
from afresh.core.timing import Schedule
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
