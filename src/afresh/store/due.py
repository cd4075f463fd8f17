"""Pages that wait for their next check, and the part of them that a run takes."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from afresh.model.filters import LookPlace
from afresh.model.records import Limits, Listed, Run, SourceId
from afresh.model.reports import BackingOff
from afresh.schedule.due import Waiting, due
from afresh.store.dialect import Row, Session
from afresh.store.records import at, certain, waiting_from
from afresh.store.repository import Repository
from afresh.urls.canonical import domain_of

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
FEW = 2_000  # pages of a source that are gone through sooner than the queue of all sources


class DueRepository(Repository):
    """Read rows of the queue that belong to no run yet."""

    async def waiting(self, source: SourceId) -> list[Waiting]:
        """The pages of a source that wait for their next look, in no order."""
        async with self.db.read() as tx:
            return [waiting_from(row) for row in await tx.all("waiting_rows", source=source)]

    async def next_checks(
        self,
        source: SourceId,
        now: datetime,
        max_age: float | None,
        *,
        everything: bool,
        after: LookPlace | None,
        limit: int,
    ) -> list[Waiting]:
        """The pages of a source that are due, or all that wait, in the order in which they get their turn."""
        asked = {
            "oldest": None if max_age is None else now - timedelta(seconds=max_age),
            "everything": int(everything),
            "since": after.planned if after else EARLIEST,
            "after_url": after.url if after else "",
        }
        async with self.db.read() as tx:
            name = await form_of(tx, "next_looks", source)
            rows = await tx.all(name, source=source, now=now, limit=limit, **asked)
            return [waiting_from(row) for row in rows]

    async def backing_off(self, source: SourceId, now: datetime) -> list[BackingOff]:
        """The pages that failed and whose next look is still to come, soonest first."""
        async with self.db.read() as tx:
            rows = await tx.all("backing_off", source=source, now=now)
            return [
                BackingOff(
                    url=row["url"],
                    failures=row["failures"],
                    next_at=certain(row["scheduled_for"]),
                    reason=row["reason"],
                )
                for row in rows
            ]

    async def unlisted(self, source: SourceId) -> list[Listed]:
        """The pages with content that the listing on record does not name."""
        async with self.db.read() as tx:
            return [Listed(row["url"], row["depth"]) for row in await tx.all("unlisted", source=source)]


def listed_at(row: Row, recheck: float, now: datetime) -> datetime:
    """When a listed page without a next look is due: at once, unless it was on the list when it went."""
    checked = at(row["checked_at"])
    if not row["listed"] or checked is None:
        return now
    return checked + timedelta(seconds=recheck)


async def form_of(tx: Session, name: str, source: SourceId) -> str:
    """The statement that goes through the queue, or through the pages of a source that has few."""
    row = await tx.one("count_some_pages", source=source, most=FEW)
    return f"{name}_of_few" if row and row["number"] < FEW else name


async def due_rows(tx: Session, run: Run, limits: Limits, now: datetime, max_age: float | None) -> list[int]:
    """The rows that are due; those that are longest so where the budget has no room for all."""
    oldest = None if max_age is None else now - timedelta(seconds=max_age)
    rows = await tx.all("due_rows", run=run.id, source=run.source_id, now=now, oldest=oldest)
    room = await room_in(tx, run, limits)
    if room is None:
        return [row["crawl_id"] for row in rows]
    crawls = {row["url"]: row["crawl_id"] for row in rows}
    return [crawls[url] for url in due(map(waiting_from, rows), now, max_age=max_age, budget=room)]


async def room_in(tx: Session, run: Run, limits: Limits) -> int | None:
    """How many more pages a run may queue by its budget; None: any number."""
    if limits.budget is None:
        return None
    row = await tx.one("taken_room", run=run.id, source=run.source_id, partly=0)
    return max(0, limits.budget - (row["taken"] if row else 0))


async def await_looks(tx: Session, run: Run, due_at: Mapping[str, datetime], now: datetime) -> None:
    """Let pages wait for a look that a later run takes; those that do already go on as they are."""
    base = {"source": run.source_id, "now": now}
    rows = [{**base, "url": url, "domain": domain_of(url), "at": time} for url, time in due_at.items()]
    await tx.many("await_look", rows)
