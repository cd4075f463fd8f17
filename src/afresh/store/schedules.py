"""Next runs of sources and next checks of pages."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from afresh.model.filters import CheckCursor
from afresh.model.records import Run, RunLimits, SourceId
from afresh.model.reports import BackingOffPage
from afresh.schedule.change_rate import ChangeStats
from afresh.schedule.due import WaitingPage, due
from afresh.schedule.rules import ScheduledRun
from afresh.store.dialect import Row, Transaction
from afresh.store.records import at, record, rhythm_from
from afresh.store.repository import Repository
from afresh.urls.canonical import domain_of

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
FEW = 2_000  # if a source has fewer pages, reading them is faster than reading the queue of all sources


class ScheduleRepository(Repository):
    async def rhythms(self, source: SourceId) -> list[tuple[str, ChangeStats]]:
        """Return the URLs of pages with content, each with the statistics of its changes."""
        return [(row["url"], rhythm_from(row)) for row in await self._all("rhythms", source=source)]

    async def appointments(self) -> list[ScheduledRun]:
        """Return all scheduled runs, soonest first."""
        return await self._records(ScheduledRun, "schedules")

    async def plan(self, planned: ScheduledRun) -> None:
        """Plan the next run of a source, unless one is planned by the same schedule."""
        await self._run("plan_schedule", **_times(planned), rule=planned.rule)

    async def drop(self, sources: Sequence[SourceId]) -> None:
        """Delete the planned runs of sources that no longer have a schedule."""
        async with self.db.write() as tx:
            for source in sources:
                await tx.run("drop_schedule", source=source)

    async def hold(self, source: SourceId, next_at: datetime, worker: str) -> bool:
        """Reserve a planned run for a worker; return False if another live worker has reserved it."""
        return await self._run("hold_schedule", source=source, at=next_at, worker=worker) == 1

    async def let_go(self, source: SourceId, worker: str) -> None:
        await self._run("let_go_schedule", source=source, worker=worker)

    async def settle(self, after: ScheduledRun, worker: str) -> bool:
        """Store the result of a planned run, and plan the next one; return False if the reservation was lost."""
        how = {"since": after.fired_at, "run": after.run, "outcome": after.outcome}
        return await self._run("settle_schedule", **_times(after), **how, worker=worker) == 1


def _times(planned: ScheduledRun) -> dict[str, object]:
    return {"source": planned.source, "slot": planned.slot, "at": planned.next_at, "now": planned.planned_at}


class DueRepository(Repository):
    """Reads planned checks that belong to no run."""

    async def waiting(self, source: SourceId) -> list[WaitingPage]:
        """Return the pages of a source that wait for their next check, unsorted."""
        return await self._records(WaitingPage, "waiting_rows", source=source)

    async def next_checks(
        self,
        source: SourceId,
        now: datetime,
        max_age: float | None,
        *,
        everything: bool,
        after: CheckCursor | None,
        limit: int,
    ) -> list[WaitingPage]:
        """Return the due pages of a source or, with `everything`, all with a planned check, earliest first."""
        oldest = None if max_age is None else now - timedelta(seconds=max_age)
        since, url = after or (EARLIEST, "")
        asked = {"oldest": oldest, "everything": int(everything), "since": since, "after_url": url}
        async with self.db.read() as tx:
            name = await form_of(tx, "next_looks", source)
            rows = await tx.all(name, source=source, now=now, limit=limit, **asked)
            return [record(WaitingPage, row) for row in rows]

    async def backing_off(self, source: SourceId, now: datetime) -> list[BackingOffPage]:
        """Return the failed pages whose next attempt is in the future, soonest first."""
        return await self._records(BackingOffPage, "backing_off", source=source, now=now)


def listed_at(row: Row, recheck: float, now: datetime) -> datetime:
    """Return when to check a listed page: now, or `recheck` seconds after it was found gone."""
    checked = at(row["checked_at"])
    if not row["listed"] or checked is None:
        return now
    return checked + timedelta(seconds=recheck)


async def form_of(tx: Transaction, name: str, source: SourceId) -> str:
    """Return NAME_of_few, which reads pages first, for a source with few pages; else NAME, which reads the queue."""
    return f"{name}_of_few" if await tx.number("count_some_pages", source=source, most=FEW) < FEW else name


async def due_rows(tx: Transaction, run: Run, limits: RunLimits, now: datetime, max_age: float | None) -> list[int]:
    """Return the ids of the due checks in the queue; with a budget, only the earliest ones."""
    oldest = None if max_age is None else now - timedelta(seconds=max_age)
    rows = await tx.all("due_rows", run=run.id, source=run.source_id, now=now, oldest=oldest)
    if limits.budget is None:
        return [row["crawl_id"] for row in rows]
    room = await budget_left(tx, run, limits.budget)
    crawls = {row["url"]: row["crawl_id"] for row in rows}
    return [crawls[url] for url in due((record(WaitingPage, row) for row in rows), now, max_age=max_age, budget=room)]


async def budget_left(tx: Transaction, run: Run, budget: int) -> int:
    return max(0, budget - await tx.number("taken_room", run=run.id, source=run.source_id, partly=0))


async def plan_later_checks(tx: Transaction, run: Run, due_at: Mapping[str, datetime], now: datetime) -> None:
    """Plan checks of pages for a later run; checks that are already planned stay."""
    base = {"source": run.source_id, "now": now}
    rows = [{**base, "url": url, "domain": domain_of(url), "at": time} for url, time in due_at.items()]
    await tx.many("await_look", rows)
