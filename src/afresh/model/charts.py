"""What pictures of a source are drawn from: changes by day, a map of its pages, hosts, what a run saved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import NamedTuple

from afresh.model.records import PageId, PageStatus, SourceId
from afresh.model.reports import RunReport
from afresh.schedule.change_rate import Rhythm

DAY = 86_400.0
MONTH = 30 * DAY


class DayCount(NamedTuple):
    """How many changes of one kind a day brought to a source."""

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
    """The changes of every day of a span that had any, in order; days are those of UTC."""

    since: date
    through: date
    changes: int
    days: tuple[ChangeDay, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPage:
    """A page as a map shows it."""

    id: PageId
    url: str
    title: str | None
    status: PageStatus
    depth: int
    doubtful: bool
    rhythm: Rhythm


@dataclass(frozen=True, slots=True, kw_only=True)
class MapNode:
    """A page on the map, and the page that leads to it on the shortest way."""

    id: PageId
    url: str
    title: str | None
    status: PageStatus
    depth: int
    doubtful: bool
    changes: int
    changes_per_month: float | None  # None: not watched for a day yet
    parent: PageId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteMap:
    """Pages and the links between them, those nearest to the root first, as far as there is room."""

    pages: int  # there are
    nodes: tuple[MapNode, ...]
    links: tuple[tuple[PageId, PageId], ...]  # beyond those from a parent to its child
    pages_left_out: int
    links_left_out: int  # of those between the pages shown


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """A host that somebody looks at, or that rests."""

    domain: str
    locked_by: str | None
    next_allowed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """How a host is treated just now."""

    domain: str
    waiting: int  # pages of open runs
    held: int  # of those, looked at or about to be
    oldest: datetime | None  # since when the first has been due
    worked_on: bool  # by a worker
    resting: bool
    next_allowed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Politeness:
    """The rules by which hosts are asked, and how they stand."""

    delay_seconds: float  # between two requests to a host; robots.txt may ask for more
    respects_robots: bool
    concurrency: int  # requests to one host at once, where no delay is asked for
    hosts: tuple[HostView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LooksAhead:
    """When pages are looked at next."""

    due: int  # now
    hours: tuple[int, ...]  # in each of the hours to come
    later: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the last run that ended cost, and what it did not."""

    pages: int  # with content
    fresh: int  # of those, not due for a look
    oldest_check: datetime | None
    run: RunReport | None
    processed: int = 0  # new or changed
    skipped: int = 0  # as they were
    bytes_saved: int | None = None  # beside a run that read everything, as far as one is on record
    bytes_saved_percent: int | None = None
    embeddings_saved: int = 0  # chunks of the pages that were skipped, and those kept of changed ones
    counted: Mapping[str, int] = field(default_factory=dict)  # looks by what they showed


def calendar_of(counts: Sequence[DayCount], since: date, through: date) -> Calendar:
    """The days of some counts, added up over sources."""
    by_day: dict[date, dict[str, int]] = {}
    for each in counts:
        if since <= each.day <= through:
            kinds = by_day.setdefault(each.day, {})
            kinds[each.kind] = kinds.get(each.kind, 0) + each.number
    days = tuple(
        ChangeDay(day=day, changes=sum(kinds.values()), kinds=dict(sorted(kinds.items())))
        for day, kinds in sorted(by_day.items())
    )
    return Calendar(since=since, through=through, changes=sum(day.changes for day in days), days=days)


def by_source(
    counts: Sequence[DayCount], sources: Sequence[SourceId], since: date, days: int
) -> dict[SourceId, tuple[int, ...]]:
    """For each source how many changes each of some days brought."""
    found = {source: [0] * days for source in sources}
    for each in counts:
        place = (each.day - since).days
        if each.source in found and 0 <= place < days:
            found[each.source][place] += each.number
    return {source: tuple(numbers) for source, numbers in found.items()}


def map_of(
    pages: Sequence[MapPage], links: Sequence[tuple[PageId, PageId]], there: int, room: int
) -> SiteMap:
    """The map of some pages, nearest first, with as many other links as there is room for."""
    places = {page.id: place for place, page in enumerate(pages)}
    nearest: dict[PageId, PageId] = {}
    for start, end in links:
        best = nearest.get(end)
        if places[start] < places[end] and (best is None or places[start] < places[best]):
            nearest[end] = start
    others = [(start, end) for start, end in links if start != end and nearest.get(end) != start]
    others.sort(key=lambda link: places[link[0]] + places[link[1]])
    return SiteMap(
        pages=there,
        nodes=tuple(_node(page, nearest.get(page.id)) for page in pages),
        links=tuple(others[:room]),
        pages_left_out=max(0, there - len(pages)),
        links_left_out=max(0, len(others) - room),
    )


def _node(page: MapPage, parent: PageId | None) -> MapNode:
    return MapNode(
        id=page.id,
        url=page.url,
        title=page.title,
        status=page.status,
        depth=page.depth,
        doubtful=page.doubtful,
        changes=page.rhythm.changes,
        changes_per_month=_per_month(page.rhythm),
        parent=parent,
    )


def _per_month(rhythm: Rhythm) -> float | None:
    seconds = rhythm.quiet + rhythm.spans
    return round(rhythm.changes / seconds * MONTH, 2) if seconds >= DAY else None


def ahead_of(due: int, hours: Mapping[datetime, int], now: datetime, wanted: int) -> LooksAhead:
    """Looks by the hour they are planned in, seen from now."""
    first = now.replace(minute=0, second=0, microsecond=0)
    ends = [first + timedelta(hours=place + 1) for place in range(wanted)]
    last = ends[-1] if ends else first
    return LooksAhead(
        due=due,
        hours=tuple(hours.get(end - timedelta(hours=1), 0) for end in ends),
        later=sum(number for hour, number in hours.items() if hour >= last),
    )
