"""What pictures are drawn from, in memory."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime

from afresh.core.model import Attempt, PageId, PageStatus, RunId, SourceId
from afresh.core.pictures import DayCount, HostState, MapPage
from afresh.core.views import HostQueue
from afresh.testing.memory.tables import Tables


class MemoryPictures:
    """Counting, and parts that have a bound."""

    tables: Tables

    async def changes_by_day(self, sources: Sequence[SourceId], since: date) -> list[DayCount]:
        """How many changes of each kind every day since then brought; days are those of UTC."""
        found = Counter(
            (source, change.at.astimezone(UTC).date(), str(change.kind))
            for source, change in self.tables.changes.values()
            if source in sources and change.at.astimezone(UTC).date() >= since
        )
        return [DayCount(source, day, kind, number) for (source, day, kind), number in sorted(found.items())]

    async def map_pages(self, source: SourceId, limit: int) -> tuple[list[MapPage], int]:
        """Pages that are not deleted, nearest to the root first, and how many there are."""
        pages = [row.page for row in self.tables.pages_of(source)]
        shown = [page for page in pages if page.status is not PageStatus.DELETED]
        shown.sort(key=lambda page: (page.depth, page.id))
        found = [
            MapPage(
                id=page.id,
                url=page.url,
                title=page.title,
                status=page.status,
                depth=page.depth,
                doubtful=page.doubt is not None,
                rhythm=page.rhythm,
            )
            for page in shown
        ]
        return found[:limit], len(found)

    async def map_links(self, source: SourceId, pages: Sequence[PageId]) -> list[tuple[PageId, PageId]]:
        """The links between some pages of a source."""
        ends = {self.tables.pages[page].page.url: page for page in pages}
        return [
            (page, ends[edge.url])
            for page in sorted(pages)
            for edge in self.tables.edges.get(page, ())
            if edge.url in ends
        ]

    async def host_queues(self, runs: Sequence[RunId], limit: int) -> list[HostQueue]:
        """The hosts that most waits for in some runs."""
        by_host: dict[str, list[Attempt]] = {}
        for attempt in self.tables.waiting():
            if attempt.run_id in runs:
                by_host.setdefault(attempt.domain, []).append(attempt)
        queues = [_queue(domain, attempts) for domain, attempts in by_host.items()]
        return sorted(queues, key=lambda queue: (-queue.waiting, queue.domain))[:limit]

    async def host_states(self, domains: Sequence[str]) -> list[HostState]:
        """What is known of some hosts."""
        return [each for each in self._states() if each.domain in domains]

    async def resting_hosts(self, now: datetime, limit: int) -> list[HostState]:
        """Hosts that may not be asked yet, those that rest longest first."""
        found = [(each.next_allowed_at, each) for each in self._states() if each.next_allowed_at]
        resting = [(until, each) for until, each in found if until > now]
        resting.sort(key=lambda pair: pair[0], reverse=True)
        return [each for _, each in resting][:limit]

    def _states(self) -> list[HostState]:
        return [
            HostState(domain=domain, locked_by=host.locked_by, next_allowed_at=host.next_allowed_at)
            for domain, host in sorted(self.tables.hosts.items())
        ]

    async def looks_by_hour(self, source: SourceId, now: datetime) -> tuple[int, dict[datetime, int]]:
        """How many pages are due, and how many wait for a look in each hour."""
        mine = [row for row, _ in self.tables.open_rows(source)]
        later = [each for each in mine if each.scheduled_for > now >= each.updated_at]
        hours = [each.scheduled_for.astimezone(UTC) for each in later]
        numbers = Counter(hour.replace(minute=0, second=0, microsecond=0) for hour in hours)
        return len(mine) - len(later), dict(numbers)


def _queue(domain: str, attempts: Sequence[Attempt]) -> HostQueue:
    free = [attempt for attempt in attempts if attempt.locked_at is None]
    return HostQueue(
        domain=domain,
        waiting=len(free),
        held=len(attempts) - len(free),
        oldest=min((attempt.scheduled_for for attempt in free), default=None),
    )
