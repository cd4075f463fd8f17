"""The store and the tools as far as they are open to who asks: whatever is not said here is closed.

Sources that are not open look like ones that do not exist. So numbers of sources, pages, links, runs and
chunks are handed out only for what is open, and what takes such a number needs no look at it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from afresh.core.access import BOUND, Allowed
from afresh.core.asking import Narrowed
from afresh.core.errors import Forbidden, Unknown
from afresh.core.found import Match, Nearest
from afresh.core.model import Page, PageId, Run, RunId, Source, SourceId
from afresh.core.pictures import DayCount
from afresh.core.records import LinkFilter, LinkRecord, PageFilter, Sources
from afresh.core.schedule import DueTally
from afresh.core.timing import Appointment
from afresh.core.views import ChangeView, PageView
from afresh.engine.settled import if_settled
from afresh.engine.tools import Tools
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.core.glimpse import Glimpse
    from afresh.ports import Matrix

_OF_THE_STORE = {  # they take numbers, or tell nothing of any source
    *(
        "start_run",
        "reclaim",
        "cancel_run",
        "last_runs",
        "remove_source",
        "replace_rules",
        "live_count",
        "waiting",
    ),
    *("source_view", "pages", "links", "held", "history", "evidence", "attempt_records", "due_tally"),
    *("attempts_of_run", "documents_of_run", "count_documents"),  # whose run was told
    *("scores", "likeness", "vectors_of", "passages", "page_chunks", "lack", "pages_to_look_at"),
    *(
        "copies_of_pages",
        "pages_copied",
        "count_copies",
        "count_stuck",
        "sink_records",
        "backing_off",
        "add_page",
    ),
    *("lists_pages", "serving_model", "workers", "doomed", "map_pages", "map_links", "looks_by_hour"),
    *("next_looks",),
    *("host_queues", "host_states"),  # of runs and hosts that were told
}
_OF_THE_TOOLS = {
    *(
        "retention",
        "bounds",
        "open",
        "recognise",
        "recognise_from_afar",
        "recognise_on_the_web",
        "check_settings",
    ),
    *("address", "page_address", "web_address"),
    *("why_left_out", "keeps_text", "keywords", "schedule", "identity", "sinks_of", "targets", "manners"),
}


class BoundedStore:
    """A store without the sources that are not open."""

    def __init__(self, store: Store, allowed: Allowed) -> None:
        self._store = store
        self._allowed = allowed

    def __getattr__(self, name: str) -> Any:
        """What is the same for everybody."""
        return _open(self._store, name, _OF_THE_STORE)

    async def sources(self, name: str | None = None) -> list[Source]:
        """Those that are open."""
        return [each for each in await self._store.sources(name) if self._allowed.sees(each.label)]

    async def find_source(self, name: str, version: str | None) -> Source | None:
        """A source by its name."""
        return self._seen(await self._store.find_source(name, version))

    async def find_source_by_url(self, url: str, version: str | None) -> Source | None:
        """A source by its root, which others that are not open may share."""
        found = [each for each in await self.sources() if (each.url, each.version) == (url, version)]
        return found[0] if found else None

    async def source_by_id(self, source: SourceId) -> Source | None:
        """A source by its number."""
        return self._seen(await self._store.source_by_id(source))

    async def add_source(self, *, name: str, version: str | None, **more: Any) -> Source:
        """Lay settings over those of a source that is there; a new one is refused."""
        if await self.find_source(name, version) is None:
            raise Forbidden("this token is bound to some sources, and cannot add another")
        return await self._store.add_source(name=name, version=version, **more)

    async def run_by_id(self, run: RunId) -> Run | None:
        """A run by its number."""
        found = await self._store.run_by_id(run)
        return found if found is not None and await self.source_by_id(found.source_id) else None

    async def unkept_run(self, run: RunId) -> tuple[Run, Source] | None:
        """A run of a source that was not kept, if one may see a source of that name."""
        found = await self._store.unkept_run(run)
        return found if found is not None and self._seen(found[1]) is not None else None

    async def live_runs(self) -> list[Run]:
        """Runs that are open."""
        ids = await self._ids()
        return [run for run in await self._store.live_runs() if run.source_id in ids]

    async def due_tallies(self, now: datetime) -> dict[SourceId, DueTally]:
        """What is due in each source."""
        ids = await self._ids()
        return {each: due for each, due in (await self._store.due_tallies(now)).items() if each in ids}

    async def changes_by_day(self, sources: Sequence[SourceId], since: date) -> Sequence[DayCount]:
        """Changes by source, day and kind."""
        ids = await self._ids()
        return await self._store.changes_by_day([each for each in sources if each in ids], since)

    async def appointments(self) -> list[Appointment]:
        """When sources are looked at by themselves."""
        ids = await self._ids()
        return [each for each in await self._store.appointments() if each.source in ids]

    async def run_records(self, sources: Sources, **more: Any) -> Sequence[Run]:
        """Runs, newest first."""
        return await self._store.run_records(await self._among(sources), **more)

    async def page_records(self, sources: Sources, *which: PageFilter, **more: Any) -> Sequence[PageView]:
        """Pages in the order of their numbers."""
        return await self._store.page_records(await self._among(sources), *which, **more)

    async def pages_by_copies(
        self, sinks: Sequence[str], sources: Sequence[SourceId], *which: PageFilter, **more: Any
    ) -> Sequence[PageView]:
        """Pages whose copies have a status, in the order of their numbers."""
        ids = await self._ids()
        meant = [each for each in sources if each in ids]
        return await self._store.pages_by_copies(sinks, meant, *which, **more)

    async def link_records(self, sources: Sources, *which: LinkFilter, **more: Any) -> Sequence[LinkRecord]:
        """Links, best first."""
        return await self._store.link_records(await self._among(sources), *which, **more)

    async def change_records(self, sources: Sources, **more: Any) -> Sequence[ChangeView]:
        """Changes, newest first."""
        return await self._store.change_records(await self._among(sources), **more)

    async def page_record(self, page: PageId) -> PageView | None:
        """A page by its number."""
        found = await self._store.page_record(page)
        return found if found is not None and await self.source_by_id(found.source_id) else None

    async def link_record(self, link: int) -> LinkRecord | None:
        """A link by its number."""
        found = await self._store.link_record(link)
        return found if found is not None and await self.source_by_id(found.source_id) else None

    async def look_at(self, page: PageId, at: datetime, now: datetime) -> bool:
        """Set when a page is looked at next."""
        return await self.page_record(page) is not None and await self._store.look_at(page, at, now)

    async def drop_page(self, page: PageId, now: datetime) -> bool:
        """Take a page out of the index."""
        return await self.page_record(page) is not None and await self._store.drop_page(page, now)

    async def add_link(self, page: PageId, url: str, text: str) -> int | None:
        """Put a link on a page."""
        there = await self.page_record(page) is not None
        return await self._store.add_link(page, url, text) if there else None

    async def set_link(self, link: int, *worth: Any) -> bool:
        """Set what a link is worth."""
        return await self.link_record(link) is not None and await self._store.set_link(link, *worth)

    async def remove_link(self, link: int) -> bool:
        """Take a link off all pages."""
        return await self.link_record(link) is not None and await self._store.remove_link(link)

    async def find_pages(
        self, url: str, source: SourceId | None = None
    ) -> list[tuple[Page, PageView, str, str | None]]:
        """The pages at an address."""
        ids = await self._ids()
        return [each for each in await self._store.find_pages(url, source) if each[0].source_id in ids]

    async def addresses_with(
        self, part: str, source: SourceId | None = None, *, limit: int = 500
    ) -> list[str]:
        """Addresses that hold some letters."""
        found: list[str] = []
        for each in await self._ids() if source is None else [source]:
            found += await self._store.addresses_with(part, each, limit=limit - len(found))
        return found

    async def link_to(
        self, url: str, source: SourceId | None = None
    ) -> tuple[Source, str, int, bool, bool] | None:
        """A link that leads to an address."""
        for each in await self._ids() if source is None else [source]:
            if found := await self._store.link_to(url, each):
                return found
        return None

    async def matches(
        self, query: str, within: Narrowed, limit: int, *, strict: bool = False
    ) -> Sequence[Match]:
        """The chunks that match best."""
        return await self._store.matches(query, await self._narrowed(within), limit, strict=strict)

    async def nearest(self, model: str, vector: "Matrix", within: Narrowed, limit: int) -> Nearest:
        """The chunks whose meaning is nearest."""
        return await self._store.nearest(model, vector, await self._narrowed(within), limit)

    async def _narrowed(self, within: Narrowed) -> Narrowed:
        return replace(within, sources=tuple(await self._among(within.sources)))

    async def _among(self, sources: Sources) -> list[SourceId]:
        ids = await self._ids()
        return ids if sources is None else [each for each in sources if each in ids]

    async def _ids(self) -> list[SourceId]:
        return [source.id for source in await self.sources()]

    def _seen(self, source: Source | None) -> Source | None:
        return source if source is not None and self._allowed.sees(source.label) else None


class ReadersTools:
    """The tools of who may only read: of the web they see just what belongs to sources."""

    refusal = "is no part of any source, and this token may only read what is kept"

    def __init__(self, tools: Tools, store: "BoundedStore | Store") -> None:
        self._tools = tools
        self._store = store

    def __getattr__(self, name: str) -> Any:
        """What is the same for everybody."""
        return getattr(self._tools, name)

    async def glance(self, url: str) -> "Glimpse":
        """The text at a web address as it is now; Unknown, if that or where it leads belongs to no source."""
        await self._check(url)
        glimpse = await self._tools.glance(url)
        await self._check(glimpse.url)
        return glimpse

    async def _check(self, url: str) -> None:
        if await self._store.find_pages(url):
            return
        for source in await self._store.sources():
            bounds = if_settled(self._tools.bounds, source) if source.kind == "web" else None
            if bounds is not None and bounds[0].refusal(url, 0) is None:
                return
        raise Unknown(f"{url} {self.refusal}")


class BoundedTools(ReadersTools):
    """The same without what concerns all sources."""

    refusal = "is no part of the sources that this token is bound to"

    def __getattr__(self, name: str) -> Any:
        """What is the same for everybody."""
        return _open(self._tools, name, _OF_THE_TOOLS)


def _open(whole: object, name: str, names: set[str]) -> Any:
    if name not in names:
        raise AttributeError(name) if name.startswith("__") else Forbidden(BOUND)
    return getattr(whole, name)
