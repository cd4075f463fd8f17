"""What is asked of a store for pictures."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from afresh.core.model import PageId, RunId, SourceId
from afresh.core.pictures import DayCount, HostState, MapPage
from afresh.core.views import HostQueue


class Pictured(Protocol):
    """Numbers by day and hour, pages with their links, and hosts."""

    async def changes_by_day(self, sources: Sequence[SourceId], since: date) -> Sequence[DayCount]:
        """How many changes of each kind every day since then brought; days are those of UTC."""
        ...

    async def map_pages(self, source: SourceId, limit: int) -> tuple[Sequence[MapPage], int]:
        """Pages that are not deleted, nearest to the root first, and how many there are."""
        ...

    async def map_links(self, source: SourceId, pages: Sequence[PageId]) -> Sequence[tuple[PageId, PageId]]:
        """The links between some pages of a source."""
        ...

    async def host_queues(self, runs: Sequence[RunId], limit: int) -> Sequence[HostQueue]:
        """The hosts that most waits for in some runs."""
        ...

    async def resting_hosts(self, now: datetime, limit: int) -> Sequence[HostState]:
        """Hosts that may not be asked yet, those that rest longest first."""
        ...

    async def looks_by_hour(self, source: SourceId, now: datetime) -> tuple[int, Mapping[datetime, int]]:
        """How many pages are due, and how many wait for a look in each hour."""
        ...
