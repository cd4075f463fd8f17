"""What pictures are drawn from: numbers by day and hour, pages with their links, hosts."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from afresh.core.model import PageId, PageStatus, RunId, SourceId
from afresh.core.pictures import DayCount, HostState, MapPage
from afresh.core.views import HostQueue
from afresh.store.dialect import Database, Row
from afresh.store.records import at, rhythm_from


class Pictures:
    """Counting by index, and parts that have a bound."""

    db: Database

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

    async def looks_by_hour(self, source: SourceId, now: datetime) -> tuple[int, dict[datetime, int]]:
        """How many pages are due, and how many wait for a look in each hour."""
        async with self.db.read() as tx:
            rows = await tx.all("looks_by_hour", source=source, now=now)
        numbers = {row["hour"]: int(row["number"]) for row in rows}
        due = numbers.pop("", 0)
        return due, {
            datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=UTC): number
            for hour, number in numbers.items()
        }


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
