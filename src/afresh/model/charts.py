"""Chart data of a source: changes by day, site map, hosts, next checks, and what a run saved."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from afresh.dataclass import dataclass, field, replace
from afresh.model.records import PageId, PageStatus, SourceId
from afresh.model.reports import HostQueue, RunReport


class DayCount(NamedTuple):
    """How many changes of one kind a source had on a day."""

    source: SourceId
    day: date
    kind: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDay:
    """The changes of one day, by kind."""

    day: date
    changes: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The days (UTC) of a period on which pages changed, in order."""

    since: date
    through: date
    changes: int
    days: tuple[ChangeDay, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapNode:
    """A page on the map, and the page before it on the shortest path from the root."""

    id: PageId
    url: str
    title: str | None
    status: PageStatus
    depth: int
    doubtful: bool
    changes: int
    changes_per_month: float | None  # None: observed for less than a day
    parent: PageId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteMap:
    """The pages nearest to the root of a source, up to a limit, and the links between them."""

    pages: int  # in total
    nodes: tuple[MapNode, ...]
    links: tuple[tuple[PageId, PageId], ...]  # without those from a parent to its child
    pages_left_out: int
    links_left_out: int  # between the shown pages


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """A host that a worker has locked, or that afresh must not request before `next_allowed_at`."""

    domain: str
    locked_by: str | None
    next_allowed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView(HostQueue):
    """A queue of pages for a host, and whether the host is requested now or has to rest."""

    worked_on: bool  # whether a worker requests it now
    resting: bool  # whether it must not be requested before `next_allowed_at`
    next_allowed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Politeness:
    """The rate limits, and the state of each host."""

    delay_seconds: float  # between two requests to a host; robots.txt may demand more
    respects_robots: bool
    concurrency: int  # concurrent requests to one host without a delay
    hosts: tuple[HostView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingChecks:
    """How many pages are due now, and how many become due in each of the next hours."""

    due: int  # now
    hours: tuple[int, ...]  # in each of the next hours
    later: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSavings:
    """How many pages of a source are fresh, and what its last ended run cost and saved."""

    pages: int  # with content
    fresh: int  # of those, not due
    oldest_check: datetime | None
    run: RunReport | None
    processed: int = 0  # new or changed
    skipped: int = 0  # unchanged
    bytes_saved: int | None = None  # compared with a run that read everything, if there is one
    bytes_saved_percent: int | None = None
    embeddings_saved: int = 0  # chunks of skipped pages, and reused chunks of changed ones
    counted: Mapping[str, int] = field(default_factory=dict)  # checks by outcome


def calendar_of(counts: Sequence[DayCount], since: date, through: date) -> Calendar:
    """Return the changes of each day in a period, summed over all sources."""
    by_day: dict[date, Counter[str]] = defaultdict(Counter)
    for count in counts:
        if since <= count.day <= through:
            by_day[count.day][count.kind] += count.number
    days = tuple(
        ChangeDay(day=day, changes=sum(kinds.values()), kinds=dict(sorted(kinds.items())))
        for day, kinds in sorted(by_day.items())
    )
    return Calendar(since=since, through=through, changes=sum(day.changes for day in days), days=days)


def by_source(
    counts: Sequence[DayCount], sources: Sequence[SourceId], since: date, days: int
) -> dict[SourceId, tuple[int, ...]]:
    """Return for each source the number of changes on each of `days` days from `since`."""
    changes = {source: [0] * days for source in sources}
    for count in counts:
        day = (count.day - since).days
        if count.source in changes and 0 <= day < days:
            changes[count.source][day] += count.number
    return {source: tuple(numbers) for source, numbers in changes.items()}


def map_of(pages: Sequence[MapNode], links: Sequence[tuple[PageId, PageId]], total: int, max_links: int) -> SiteMap:
    """Return the map of `pages`, which are sorted by their distance from the root; the source has `total` pages.

    The map has all `pages` and at most `max_links` links, not counting those from a parent to its child.
    """
    places = {page.id: place for place, page in enumerate(pages)}
    nearest: dict[PageId, PageId] = {}
    for start, end in links:
        best = nearest.get(end)
        if places[start] < places[end] and (best is None or places[start] < places[best]):
            nearest[end] = start
    others = [(start, end) for start, end in links if start != end and nearest.get(end) != start]
    others.sort(key=lambda link: places[link[0]] + places[link[1]])
    return SiteMap(
        pages=total,
        nodes=tuple(replace(page, parent=nearest.get(page.id)) for page in pages),
        links=tuple(others[:max_links]),
        pages_left_out=max(0, total - len(pages)),
        links_left_out=max(0, len(others) - max_links),
    )


def upcoming_by_hour(due: int, hours: Mapping[datetime, int], now: datetime, wanted: int) -> UpcomingChecks:
    """Return the numbers of checks that are due now, in each of the next `wanted` hours, and later."""
    first = now.replace(minute=0, second=0, microsecond=0)
    *starts, end = [first + timedelta(hours=place) for place in range(wanted + 1)]
    later = sum(number for hour, number in hours.items() if hour >= end)
    return UpcomingChecks(due=due, hours=tuple(hours.get(start, 0) for start in starts), later=later)
