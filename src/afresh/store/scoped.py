"""Limit a store to the sources of a token; only the methods that are named here are allowed.

Other sources look as if they did not exist. Ids of sources, pages, links, runs and chunks are returned for
visible sources only, so a method that takes such an id needs no check of its own.
"""

import inspect
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NoReturn, TypeVar

from afresh.access.permissions import BOUND, Permissions
from afresh.dataclass import replace
from afresh.errors import Forbidden
from afresh.model.filters import Sources
from afresh.model.records import Page, PageId, Run, RunId, Source, SourceId
from afresh.model.reports import PageView
from afresh.schedule.due import DueCounts
from afresh.schedule.rules import ScheduledRun
from afresh.search.records import SearchFilter, WordCounts
from afresh.store.links import LinkRepository
from afresh.store.pages import PageRepository
from afresh.store.repository import Repository
from afresh.store.runs import RunRepository
from afresh.store.schedules import ScheduleRepository
from afresh.store.sources import SourceRepository
from afresh.store.stats import StatsRepository
from afresh.store.store import Store

Class = TypeVar("Class", bound=type[Repository])
R = TypeVar("R", bound=Repository)
Own = tuple[str, Callable[..., Any]]  # name of a method, and the method


class VisibleSources:
    def __init__(self, sources: SourceRepository, allowed: Permissions) -> None:
        self._sources = sources
        self._allowed = allowed

    def only(self, source: Source | None) -> Source | None:
        return source if source is not None and self._allowed.sees(source.label) else None

    async def sources(self, name: str | None = None) -> list[Source]:
        return [each for each in await self._sources.all(name) if self._allowed.sees(each.label)]

    async def source(self, source: SourceId) -> Source | None:
        return self.only(await self._sources.get(source))

    async def ids(self, among: Sources = None) -> list[SourceId]:
        """Return the ids in `among` whose sources are visible; without `among`, the ids of all visible sources."""
        ids = [source.id for source in await self.sources()]
        return ids if among is None else [each for each in among if each in ids]


class _Scoped(Repository):
    def __init__(self, inner: Any, visible: VisibleSources) -> None:
        super().__init__(inner.db, inner.caches, None)  # the inner repository retries
        self._inner = inner
        self._visible = visible


def opens(
    *names: str, narrowed: Sequence[str] = (), found: Sequence[str] = (), guarded: Sequence[str] = ()
) -> Callable[[Class], Class]:
    """Return a class decorator that allows some methods of the wrapped repository; all others raise Forbidden.

    Methods in `names` are passed on unchanged. Methods in `narrowed` take sources or a search filter, which is limited
    to visible sources. Methods in `found` return a record, or None if its source is hidden. Methods in `guarded` change
    a record by its id if `get` finds it. Methods that the class itself defines are kept.
    """
    ways = {
        **dict.fromkeys(names, _passed_on),
        **dict.fromkeys(narrowed, _narrowed),
        **dict.fromkeys(found, _found),
        **dict.fromkeys(guarded, _guarded),
    }

    def close(cls: Class) -> Class:
        for name in dir(cls):
            method = getattr(cls, name)
            if name.startswith("_") or name in vars(cls) or not callable(method):
                continue
            setattr(cls, name, ways[name](method) if name in ways else _closed)
        return cls

    return close


def _passed_on(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: _Scoped, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._inner, method.__name__)(*args, **kwargs)

    return call


def _narrowed(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    [parameter] = signature.parameters.keys() & {"sources", "within"}

    async def call(self: _Scoped, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        asked = given.arguments[parameter]
        is_filter = isinstance(asked, SearchFilter)
        ids = await self._visible.ids(asked.sources if is_filter else asked)
        given.arguments[parameter] = replace(asked, sources=tuple(ids)) if is_filter else ids
        return await getattr(self._inner, method.__name__)(*given.args[1:], **given.kwargs)

    return call


def _found(method: Callable[..., Any]) -> Callable[..., Any]:
    async def call(self: _Scoped, number: int) -> Any:
        found = await getattr(self._inner, method.__name__)(number)
        return found if found is not None and await self._visible.source(found.source_id) else None

    return call


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    async def call(self: Any, number: int, *args: Any, **kwargs: Any) -> bool:
        there = await self.get(number) is not None
        return there and await getattr(self._inner, method.__name__)(number, *args, **kwargs)

    return call


def _closed(self: _Scoped, *args: Any, **kwargs: Any) -> NoReturn:
    raise Forbidden(BOUND)


@opens("remove", "replace_rules")
class ScopedSources(_Scoped, SourceRepository):
    _inner: SourceRepository

    async def all(self, name: str | None = None) -> list[Source]:
        return await self._visible.sources(name)

    async def find(self, name: str, version: str | None) -> Source | None:
        return self._visible.only(await self._inner.find(name, version))

    async def find_by_url(self, url: str, version: str | None) -> Source | None:
        """Return the visible source with this root, even if a hidden source has the same root."""
        found = [each for each in await self.all() if (each.url, each.version) == (url, version)]
        return found[0] if found else None

    async def get(self, source: SourceId) -> Source | None:
        return await self._visible.source(source)

    async def add(self, *, name: str, version: str | None, **more: Any) -> Source:
        """Merge settings into those of a visible source; raise Forbidden for a new source."""
        if await self.find(name, version) is None:
            raise Forbidden("this token is limited to some sources and cannot add another")
        return await self._inner.add(name=name, version=version, **more)


@opens(
    *("of_source", "content", "add", "to_check", "doomed", "live_count"),
    narrowed=["records"],
    found=["get"],
    guarded=["check_at", "drop"],
)
class ScopedPages(_Scoped, PageRepository):
    _inner: PageRepository

    async def find(self, url: str, source: SourceId | None = None) -> list[tuple[Page, PageView, str, str | None]]:
        ids = await self._visible.ids()
        return [each for each in await self._inner.find(url, source) if each[0].source_id in ids]

    async def urls_with(self, part: str, source: SourceId | None = None, *, limit: int = 500) -> list[str]:
        found: list[str] = []
        for each in await self._visible.ids() if source is None else [source]:
            found += await self._inner.urls_with(part, each, limit=limit - len(found))
        return found


@opens("of_source", narrowed=["records"], found=["get"], guarded=["set_worth", "remove"])
class ScopedLinks(_Scoped, LinkRepository):
    _inner: LinkRepository

    def __init__(self, inner: LinkRepository, visible: VisibleSources, pages: ScopedPages) -> None:
        super().__init__(inner, visible)
        self._pages = pages

    async def add(self, page: PageId, url: str, text: str) -> int | None:
        there = await self._pages.get(page) is not None
        return await self._inner.add(page, url, text) if there else None

    async def leading_to(self, url: str, source: SourceId | None = None) -> tuple[Source, str, int, bool, bool] | None:
        for each in await self._visible.ids() if source is None else [source]:
            if found := await self._inner.leading_to(url, each):
                return found
        return None


@opens("start", "cancel", "last", narrowed=["records"], found=["get"])
class ScopedRuns(_Scoped, RunRepository):
    _inner: RunRepository

    async def unkept(self, run: RunId) -> tuple[Run, Source] | None:
        """Return a trial run and its removed source if the name of the source is visible."""
        found = await self._inner.unkept(run)
        return found if found is not None and self._visible.only(found[1]) is not None else None

    async def live(self) -> list[Run]:
        ids = await self._visible.ids()
        return [run for run in await self._inner.live() if run.source_id in ids]


@opens()
class ScopedSchedules(_Scoped, ScheduleRepository):
    _inner: ScheduleRepository

    async def appointments(self) -> list[ScheduledRun]:
        ids = await self._visible.ids()
        return [each for each in await self._inner.appointments() if each.source in ids]


@opens(
    *("source_view", "due_tally", "missing_vectors", "count_copies", "count_stuck", "site_map"),
    *("checks_by_hour", "host_queues", "host_states"),
    narrowed=["changes_by_day"],
)
class ScopedStats(_Scoped, StatsRepository):
    _inner: StatsRepository

    async def due_tallies(self, now: datetime) -> dict[SourceId, DueCounts]:
        ids = await self._visible.ids()
        return {each: due for each, due in (await self._inner.due_tallies(now)).items() if each in ids}


@cache
def _class_with(cls: Any, *names: str, narrowed: tuple[str, ...] = (), own: tuple[Own, ...] = ()) -> Any:
    return opens(*names, narrowed=narrowed)(type(f"Scoped{cls.__name__}", (_Scoped, cls), dict(own)))


async def _equal_counts(self: _Scoped, query: str) -> WordCounts:
    """Return equal counts for all words of a query: the real ones would tell what other sources contain."""
    return WordCounts(dict.fromkeys((await self._inner.word_counts(query)).counts, 1), 1)


class ScopedStore(Store):
    """A store limited to the sources that a token may see; operations on the whole store raise Forbidden."""

    def __init__(self, store: Store, allowed: Permissions) -> None:
        visible = VisibleSources(store.sources, allowed)

        def only(inner: R, *names: str, narrowed: tuple[str, ...] = (), own: tuple[Own, ...] = ()) -> R:
            cls: Any = type(inner)
            made: R = _class_with(cls, *names, narrowed=narrowed, own=own)(inner, visible)
            return made

        self.url = store.url
        self.sources = ScopedSources(store.sources, visible)
        self.pages = ScopedPages(store.pages, visible)
        self.history = only(store.history, "of_page", "evidence", "attempts", "attempts_of_run", narrowed=("changes",))
        self.links = ScopedLinks(store.links, visible, self.pages)
        self.link_scores = only(store.link_scores)
        self.listings = only(store.listings, "lists_pages")
        self.runs = ScopedRuns(store.runs, visible)
        self.workers = only(store.workers, "reclaim", "all")
        self.queue = only(store.queue)
        self.visits = only(store.visits)
        self.due = only(store.due, "waiting", "next_checks", "backing_off")
        self.schedules = ScopedSchedules(store.schedules, visible)
        searching = "scores", "passages", "page_chunks"
        self.search = only(store.search, *searching, narrowed=("matches",), own=(("word_counts", _equal_counts),))
        self.vectors = only(store.vectors, "of_chunks", "serving_model", narrowed=("nearest",))
        self.vectors.no_vectors = store.vectors.no_vectors
        self.chunks = only(store.chunks)
        copies = "sink_records", "pages", "of_pages", "count_documents", "documents_of_run"
        self.copies = only(store.copies, *copies, narrowed=("pages_by_state",))
        self.digest = only(store.digest)
        self.messages = only(store.messages)
        self.access = only(store.access)
        self.retention = only(store.retention)
        self.stats = ScopedStats(store.stats, visible)
