"""The store as far as a token may see it: what is not opened here is closed.

Sources that are not open look like ones that do not exist. So ids of sources, pages, links, runs and chunks
are handed out only for what is open, and a method that takes such an id needs no check of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from afresh.access.permissions import BOUND, Allowed
from afresh.errors import Forbidden
from afresh.model.charts import DayCount
from afresh.model.filters import (
    ALL_LINKS,
    LIVE_PAGES,
    LinkFilter,
    LinkPlace,
    LinkRecord,
    PageFilter,
    Sources,
)
from afresh.model.records import Page, PageId, Run, RunId, RunState, Source, SourceId
from afresh.model.reports import ChangeView, PageView
from afresh.schedule.due import DueTally
from afresh.schedule.rules import Appointment
from afresh.search.request import Narrowed
from afresh.search.results import Match, Nearest
from afresh.store.copies import CopyRepository
from afresh.store.due import DueRepository
from afresh.store.history import HistoryRepository
from afresh.store.links import LinkRepository
from afresh.store.listings import ListingRepository
from afresh.store.pages import PageRepository
from afresh.store.repository import Repository
from afresh.store.runs import RunRepository
from afresh.store.schedules import ScheduleRepository
from afresh.store.search import SearchRepository
from afresh.store.sources import SourceRepository
from afresh.store.stats import StatsRepository
from afresh.store.store import Store
from afresh.store.vectors import VectorRepository
from afresh.store.workers import WorkerRepository

if TYPE_CHECKING:
    from afresh.ports import Matrix

Class = TypeVar("Class", bound=type[Repository])


class Visible:
    """The sources that a token may see."""

    def __init__(self, sources: SourceRepository, allowed: Allowed) -> None:
        self._sources = sources
        self._allowed = allowed

    def only(self, source: Source | None) -> Source | None:
        """Return the source if it may be seen."""
        return source if source is not None and self._allowed.sees(source.label) else None

    async def sources(self, name: str | None = None) -> list[Source]:
        """Return all that may be seen."""
        return [each for each in await self._sources.all(name) if self._allowed.sees(each.label)]

    async def source(self, source: SourceId) -> Source | None:
        """Return one by its id, if it may be seen."""
        return self.only(await self._sources.get(source))

    async def ids(self, among: Sources = None) -> list[SourceId]:
        """Return the ids of those that may be seen, of some or of all."""
        ids = [source.id for source in await self.sources()]
        return ids if among is None else [each for each in among if each in ids]


class _Scoped(Repository):
    """A repository in front of another one."""

    def __init__(self, inner: Any, visible: Visible) -> None:
        super().__init__(inner.db, inner.caches, None)  # the inner one retries
        self._inner = inner
        self._visible = visible


def opens(*names: str) -> Callable[[Class], Class]:
    """Pass some methods on to the inner repository and close all others that the class does not define."""

    def close(cls: Class) -> Class:
        for name in dir(cls):
            if name.startswith("_") or name in vars(cls) or not callable(getattr(cls, name)):
                continue
            setattr(cls, name, _passed_on(name) if name in names else _closed)
        return cls

    return close


def _passed_on(name: str) -> Callable[..., Any]:
    def call(self: _Scoped, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._inner, name)(*args, **kwargs)

    return call


def _closed(self: _Scoped, *args: Any, **kwargs: Any) -> NoReturn:
    raise Forbidden(BOUND)


@opens("remove", "replace_rules")
class ScopedSources(_Scoped, SourceRepository):
    """Sources that may be seen; no other can be added."""

    _inner: SourceRepository

    async def all(self, name: str | None = None) -> list[Source]:
        """Return all sources, or all versions of one name."""
        return await self._visible.sources(name)

    async def find(self, name: str, version: str | None) -> Source | None:
        """Return a source by its name."""
        return self._visible.only(await self._inner.find(name, version))

    async def find_by_url(self, url: str, version: str | None) -> Source | None:
        """Return a source by its root, which others that are not open may share."""
        found = [each for each in await self.all() if (each.url, each.version) == (url, version)]
        return found[0] if found else None

    async def get(self, source: SourceId) -> Source | None:
        """Return a source by its id."""
        return await self._visible.source(source)

    async def add(self, *, name: str, version: str | None, **more: Any) -> Source:
        """Merge settings over those of a source that is there; refuse a new one."""
        if await self.find(name, version) is None:
            raise Forbidden("this token is bound to some sources, and cannot add another")
        return await self._inner.add(name=name, version=version, **more)


@opens("of_source", "content", "add", "to_check", "doomed", "live_count")
class ScopedPages(_Scoped, PageRepository):
    """Pages of the sources that may be seen."""

    _inner: PageRepository

    async def records(
        self, sources: Sources, which: PageFilter = LIVE_PAGES, *, after: int = 0, limit: int
    ) -> list[PageView]:
        """Return pages in the order of their ids."""
        return await self._inner.records(await self._visible.ids(sources), which, after=after, limit=limit)

    async def get(self, page: PageId) -> PageView | None:
        """Return a page by its id."""
        found = await self._inner.get(page)
        return found if found is not None and await self._visible.source(found.source_id) else None

    async def check_at(self, page: PageId, at: datetime, now: datetime) -> bool:
        """Set when a page is checked next."""
        return await self.get(page) is not None and await self._inner.check_at(page, at, now)

    async def drop(self, page: PageId, now: datetime) -> bool:
        """Take a page out of the index."""
        return await self.get(page) is not None and await self._inner.drop(page, now)

    async def find(
        self, url: str, source: SourceId | None = None
    ) -> list[tuple[Page, PageView, str, str | None]]:
        """Return the pages at a URL."""
        ids = await self._visible.ids()
        return [each for each in await self._inner.find(url, source) if each[0].source_id in ids]

    async def urls_with(self, part: str, source: SourceId | None = None, *, limit: int = 500) -> list[str]:
        """Return URLs that contain some text."""
        found: list[str] = []
        for each in await self._visible.ids() if source is None else [source]:
            found += await self._inner.urls_with(part, each, limit=limit - len(found))
        return found


@opens("of_page", "evidence", "attempts", "attempts_of_run")
class ScopedHistory(_Scoped, HistoryRepository):
    """Attempts and changes of the sources that may be seen."""

    _inner: HistoryRepository

    async def changes(self, sources: Sources, **more: Any) -> list[ChangeView]:
        """Return changes, newest first."""
        return await self._inner.changes(await self._visible.ids(sources), **more)


@opens("of_source")
class ScopedLinks(_Scoped, LinkRepository):
    """Links of the sources that may be seen."""

    _inner: LinkRepository

    def __init__(self, inner: LinkRepository, visible: Visible, pages: ScopedPages) -> None:
        super().__init__(inner, visible)
        self._pages = pages

    async def records(
        self,
        sources: Sources,
        which: LinkFilter = ALL_LINKS,
        *,
        after: LinkPlace | None = None,
        limit: int,
    ) -> list[LinkRecord]:
        """Return links, best first."""
        return await self._inner.records(await self._visible.ids(sources), which, after=after, limit=limit)

    async def get(self, link: int) -> LinkRecord | None:
        """Return a link by its id."""
        found = await self._inner.get(link)
        return found if found is not None and await self._visible.source(found.source_id) else None

    async def add(self, page: PageId, url: str, text: str) -> int | None:
        """Put a link on a page."""
        there = await self._pages.get(page) is not None
        return await self._inner.add(page, url, text) if there else None

    async def set_worth(
        self,
        link: int,
        score: float | None,
        comment: str | None,
        keywords: Mapping[str, float] | None = None,
    ) -> bool:
        """Set what a link is worth."""
        there = await self.get(link) is not None
        return there and await self._inner.set_worth(link, score, comment, keywords)

    async def remove(self, link: int) -> bool:
        """Take a link off all pages."""
        return await self.get(link) is not None and await self._inner.remove(link)

    async def leading_to(
        self, url: str, source: SourceId | None = None
    ) -> tuple[Source, str, int, bool, bool] | None:
        """Return a link that leads to a URL."""
        for each in await self._visible.ids() if source is None else [source]:
            if found := await self._inner.leading_to(url, each):
                return found
        return None


@opens("start", "cancel", "last")
class ScopedRuns(_Scoped, RunRepository):
    """Runs of the sources that may be seen."""

    _inner: RunRepository

    async def get(self, run: RunId) -> Run | None:
        """Return a run by its id."""
        found = await self._inner.get(run)
        return found if found is not None and await self._visible.source(found.source_id) else None

    async def unkept(self, run: RunId) -> tuple[Run, Source] | None:
        """Return a run of a source that was not kept, if a source of that name may be seen."""
        found = await self._inner.unkept(run)
        return found if found is not None and self._visible.only(found[1]) is not None else None

    async def live(self) -> list[Run]:
        """Return the open runs."""
        ids = await self._visible.ids()
        return [run for run in await self._inner.live() if run.source_id in ids]

    async def records(
        self, sources: Sources, *, state: RunState | None = None, below: int | None = None, limit: int
    ) -> list[Run]:
        """Return runs, newest first."""
        ids = await self._visible.ids(sources)
        return await self._inner.records(ids, state=state, below=below, limit=limit)


@opens("reclaim", "all")
class ScopedWorkers(_Scoped, WorkerRepository):
    """Workers, which belong to no source."""


@opens("waiting", "next_checks", "backing_off")
class ScopedDue(_Scoped, DueRepository):
    """Pages that wait, by the id of their source."""


@opens("lists_pages")
class ScopedListings(_Scoped, ListingRepository):
    """Whether a source lists its pages."""


@opens()
class ScopedSchedules(_Scoped, ScheduleRepository):
    """Schedules of the sources that may be seen."""

    _inner: ScheduleRepository

    async def appointments(self) -> list[Appointment]:
        """Return when sources are checked by themselves."""
        ids = await self._visible.ids()
        return [each for each in await self._inner.appointments() if each.source in ids]


@opens("scores", "passages", "page_chunks")
class ScopedSearch(_Scoped, SearchRepository):
    """Full-text search in the sources that may be seen."""

    _inner: SearchRepository

    async def matches(self, query: str, within: Narrowed, limit: int, *, strict: bool = False) -> list[Match]:
        """Return the chunks that match best."""
        inside = replace(within, sources=tuple(await self._visible.ids(within.sources)))
        return await self._inner.matches(query, inside, limit, strict=strict)


@opens("likeness", "of_chunks", "serving_model")
class ScopedVectors(_Scoped, VectorRepository):
    """Vector search in the sources that may be seen."""

    _inner: VectorRepository

    async def nearest(self, model: str, vector: "Matrix", within: Narrowed, limit: int) -> Nearest:
        """Return the chunks whose meaning is nearest."""
        inside = replace(within, sources=tuple(await self._visible.ids(within.sources)))
        return await self._inner.nearest(model, vector, inside, limit)


@opens("sink_records", "pages", "of_pages", "count_documents", "documents_of_run")
class ScopedCopies(_Scoped, CopyRepository):
    """Copies of pages of the sources that may be seen."""

    _inner: CopyRepository

    async def pages_by_state(
        self, sinks: Sequence[str], sources: Sequence[SourceId], which: PageFilter = LIVE_PAGES, **more: Any
    ) -> list[PageView]:
        """Return pages whose copies have a status, in the order of their ids."""
        return await self._inner.pages_by_state(sinks, await self._visible.ids(sources), which, **more)


@opens(
    *("source_view", "due_tally", "lack", "count_copies", "count_stuck", "map_pages", "map_links"),
    *("checks_by_hour", "host_queues", "host_states"),
)
class ScopedStats(_Scoped, StatsRepository):
    """Numbers of the sources that may be seen."""

    _inner: StatsRepository

    async def due_tallies(self, now: datetime) -> dict[SourceId, DueTally]:
        """Count what is due in each source."""
        ids = await self._visible.ids()
        return {each: due for each, due in (await self._inner.due_tallies(now)).items() if each in ids}

    async def changes_by_day(self, sources: Sequence[SourceId], since: date) -> list[DayCount]:
        """Count changes by source, day and kind."""
        return await self._inner.changes_by_day(await self._visible.ids(sources), since)


R = TypeVar("R", bound=Repository)


def _closed_whole(repository: R) -> R:
    """Return a repository of the same class whose methods are all closed."""
    cls = type(f"Closed{type(repository).__name__}", (_Scoped, type(repository)), {})
    made: R = opens()(cls)(repository, None)
    return made


class ScopedStore(Store):
    """A store without the sources that a token may not see, and without what concerns them all."""

    def __init__(self, store: Store, allowed: Allowed) -> None:
        visible = Visible(store.sources, allowed)
        self.url = store.url
        self.sources = ScopedSources(store.sources, visible)
        self.pages = ScopedPages(store.pages, visible)
        self.history = ScopedHistory(store.history, visible)
        self.links = ScopedLinks(store.links, visible, self.pages)
        self.link_scores = _closed_whole(store.link_scores)
        self.listings = ScopedListings(store.listings, visible)
        self.runs = ScopedRuns(store.runs, visible)
        self.workers = ScopedWorkers(store.workers, visible)
        self.queue = _closed_whole(store.queue)
        self.visits = _closed_whole(store.visits)
        self.due = ScopedDue(store.due, visible)
        self.schedules = ScopedSchedules(store.schedules, visible)
        self.search = ScopedSearch(store.search, visible)
        self.vectors = ScopedVectors(store.vectors, visible)
        self.vectors.no_vectors = store.vectors.no_vectors
        self.chunks = _closed_whole(store.chunks)
        self.copies = ScopedCopies(store.copies, visible)
        self.digest = _closed_whole(store.digest)
        self.messages = _closed_whole(store.messages)
        self.access = _closed_whole(store.access)
        self.retention = _closed_whole(store.retention)
        self.stats = ScopedStats(store.stats, visible)
