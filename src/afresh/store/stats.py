"""Numbers of the store and of single sources."""

import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from afresh.model.records import (
    PageId,
    RunId,
    Source,
    SourceId,
)
from afresh.model.reports import HostQueue, SourceView
from afresh.model.store_reports import Workload
from afresh.schedule.due import DueTally
from afresh.search.vectors import Lack
from afresh.store.dialect import Row
from afresh.store.due import form_of
from afresh.store.records import (
    at,
)
from afresh.store.repository import not_retried
from afresh.store.vectors import model_number

if TYPE_CHECKING:
    pass
from datetime import date

from afresh.model.charts import DayCount, HostState, MapPage
from afresh.model.records import PageStatus, RunState
from afresh.store.records import rhythm_from
from afresh.store.repository import Repository


class StatsRepository(Repository):
    """Count."""

    async def source_view(self, source: Source) -> SourceView:
        """A source with its numbers."""
        async with self.db.read() as tx:
            numbers = await tx.one("source_numbers", source=source.id)
            run = await tx.one("last_run", source=source.id)
            assert numbers is not None  # noqa: S101 - an aggregate always has a row
            return SourceView(
                id=source.id,
                name=source.name,
                version=source.version,
                kind=source.kind,
                url=source.url,
                crawl_time=source.crawl_time,
                pages=numbers["pages"],
                chunks=numbers["chunks"],
                links=numbers["links"],
                errors=numbers["errors"],
                doubtful=numbers["doubtful"],
                oldest_check=at(numbers["oldest_check"]),
                last_run=RunId(run["id"]) if run else None,
                last_state=run["state"] if run else None,
                last_mode=run["mode"] if run else None,
                last_end=at(run["finished_at"]) if run else None,
                rules=source.rules,
                policy=source.policy,
            )

    async def oldest_checks(self) -> dict[SourceId, datetime]:
        """Of each source that has pages with content, when the one that waits longest was looked at."""
        async with self.db.read() as tx:
            rows = await tx.all("oldest_checks")
            found = ((SourceId(row["source_id"]), at(row["oldest"])) for row in rows)
            return {source: oldest for source, oldest in found if oldest is not None}

    async def due_tally(self, source: SourceId, now: datetime, max_age: float | None) -> DueTally:
        """How many pages of a source are due, and when the next one will be."""
        age = timedelta(seconds=max_age or 0.0)
        oldest = None if max_age is None else now - age
        async with self.db.read() as tx:
            name = await form_of(tx, "due_tally", source)
            row = await tx.one(name, source=source, now=now, oldest=oldest)
        if row is None:
            return DueTally()
        seen = at(row["seen"]) if max_age is not None else None
        moments = [each for each in (at(row["next"]), seen + age if seen else None) if each]
        return DueTally(int(row["due"]), int(row["stale"]), min(moments, default=None))

    async def due_tallies(self, now: datetime) -> dict[SourceId, DueTally]:
        """The same for every source that has pages which wait, where none is too old for its age alone."""
        async with self.db.read() as tx:
            rows = await tx.all("due_tallies", now=now)
        return {
            SourceId(row["source_id"]): DueTally(int(row["due"]), int(row["stale"]), at(row["next"]))
            for row in rows
        }

    async def lack(self, model: str, source: SourceId | None = None) -> Lack:
        """How much is missing until the model can serve."""
        async with self.db.read() as tx:
            number = await model_number(tx, model)
            found = await tx.one("unembedded_number", model=number)  # which is answered by indexes alone
            missing = int(found["missing"]) if found else 0
            if not missing:
                return Lack(0, 0)
            if source is None:
                bare = await tx.one("unembedded_without_text", model=number)
                return Lack(missing, int(bare["without_text"]) if bare else 0)
            row = await tx.one("unembedded_counts", model=number, source=source)
            return Lack(row["missing"], row["without_text"]) if row else Lack(0, 0)

    async def count_copies(self, sink: str, sources: Sequence[SourceId]) -> dict[str, int]:
        """How many pages with content stand how in a store."""
        async with self.db.read() as tx:
            rows = await tx.all("count_copies", name=sink, sources=list(sources))
            return {row["state"]: int(row["number"]) for row in rows}

    async def count_stuck(self, sink: str, sources: Sequence[SourceId]) -> int:
        """How many pages are processed by a store for longer than it may take."""
        async with self.db.read() as tx:
            row = await tx.one("count_stuck", name=sink, sources=list(sources))
            return int(row["number"]) if row else 0

    async def changes_by_day(self, sources: Sequence[SourceId], since: date) -> list[DayCount]:
        """How many changes of each kind every day since then brought; days are those of UTC."""
        async with self.db.read() as tx:
            rows = await tx.all("changes_by_day", sources=list(sources), day=since.isoformat())
        return [
            DayCount(
                SourceId(row["source_id"]), date.fromisoformat(row["day"]), row["kind"], int(row["number"])
            )
            for row in rows
        ]

    async def checks_by_hour(self, source: SourceId, now: datetime) -> tuple[int, dict[datetime, int]]:
        """How many pages are due, and how many wait for a look in each hour."""
        async with self.db.read() as tx:
            rows = await tx.all("looks_by_hour", source=source, now=now)
        numbers = {row["hour"]: int(row["number"]) for row in rows}
        due = numbers.pop("", 0)
        return due, {
            datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=UTC): number
            for hour, number in numbers.items()
        }

    async def map_pages(self, source: SourceId, limit: int) -> tuple[list[MapPage], int]:
        """Pages that are not deleted, nearest to the root first, and how many there are."""
        async with self.db.read() as tx:
            rows = await tx.all("map_pages", source=source, limit=limit)
            size = await tx.one("map_size", source=source)
        return [_map_page(row) for row in rows], int(size["pages"]) if size else 0

    async def map_links(self, source: SourceId, pages: Sequence[PageId]) -> list[tuple[PageId, PageId]]:
        """The links between some pages of a source."""
        async with self.db.read() as tx:
            found = await tx.all("map_targets", pages=list(pages))
            targets = {row["link_id"]: PageId(row["page_id"]) for row in found}
            rows = await tx.all("map_links", pages=list(pages), links=list(targets))
        return [(PageId(row["page_id"]), targets[row["link_id"]]) for row in rows]

    async def host_queues(self, runs: Sequence[RunId], limit: int) -> list[HostQueue]:
        """The hosts that most waits for in some runs."""
        async with self.db.read() as tx:
            rows = await tx.all("host_queues", runs=list(runs), limit=limit)
        return [
            HostQueue(
                domain=row["domain"], waiting=row["waiting"], held=row["held"], oldest=at(row["oldest"])
            )
            for row in rows
        ]

    async def host_states(self, domains: Sequence[str]) -> list[HostState]:
        """What is known of some hosts."""
        async with self.db.read() as tx:
            return [_state(row) for row in await tx.all("host_states", domains=list(domains))]

    async def resting_hosts(self, now: datetime, limit: int) -> list[HostState]:
        """Hosts that may not be asked yet, those that rest longest first."""
        async with self.db.read() as tx:
            return [_state(row) for row in await tx.all("resting_now", now=now, limit=limit)]

    async def runs_by_state(self) -> dict[str, int]:
        """How many runs there are, by state."""
        async with self.db.read() as tx:
            return {row["state"]: row["number"] for row in await tx.all("runs_by_state")}

    async def copies_by_state(self) -> dict[tuple[str, str], int]:
        """How many copies there are, by sink and state."""
        async with self.db.read() as tx:
            rows = await tx.all("copies_by_state")
            return {(row["sink"], row["state"]): row["number"] for row in rows}

    async def counts_of_runs(
        self, after: int, limit: int = 1_000
    ) -> list[tuple[RunId, RunState, dict[str, int]]]:
        """Runs with a greater number, in that order, and what they counted so far."""
        async with self.db.read() as tx:
            rows = await tx.all("counts_of_runs", after=after, limit=limit)
            return [(RunId(row["id"]), RunState(row["state"]), json.loads(row["counts"])) for row in rows]

    async def totals(self) -> dict[str, Any]:
        """The numbers of the whole store."""
        async with self.db.read() as tx:
            return dict(await tx.one("totals") or {})

    async def workload(self, workers: Collection[str]) -> Workload:
        """What open runs still have to look at; only what these workers hold is in work."""
        async with self.db.read() as tx:
            row = await tx.one("workload", workers=list(workers))
            assert row is not None  # noqa: S101
            return Workload(waiting=row["waiting"], held=row["held"], oldest=at(row["oldest"]))

    async def busiest_hosts(self, limit: int, workers: Collection[str]) -> list[HostQueue]:
        """The hosts that most waits for in open runs, the longest queue first; these workers hold pages."""
        async with self.db.read() as tx:
            return [
                HostQueue(
                    domain=row["domain"],
                    waiting=row["waiting"],
                    held=row["held"],
                    oldest=at(row["oldest"]),
                )
                for row in await tx.all("busiest_hosts", limit=limit, workers=list(workers))
            ]

    async def size_bytes(self) -> int:
        """How much room the store takes."""
        return await self.db.size_bytes()

    async def integrity(self) -> str | None:
        """What is broken in the database or its text index, or None."""
        return await self.db.trouble()

    @not_retried
    async def close(self) -> None:
        """Stop counting in the background, where that is done."""

    async def try_to_write(self) -> None:
        """Take the right to write for a moment; raises what keeps us from it."""
        async with self.db.write():
            pass


def _map_page(row: Row) -> MapPage:
    return MapPage(
        id=PageId(row["id"]),
        url=row["url"],
        title=row["title"],
        status=PageStatus(row["status"]),
        depth=row["depth"],
        doubtful=row["doubt"] is not None,
        rhythm=rhythm_from(row),
    )


def _state(row: Row) -> HostState:
    return HostState(
        domain=row["domain"], locked_by=row["locked_by"], next_allowed_at=at(row["next_allowed_at"])
    )
