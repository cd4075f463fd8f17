"""The use cases of pages: list, open, explain, add, check and drop them, and what changed."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from afresh.crawl.fetched_page import Glimpse
from afresh.digest.update import KINDS
from afresh.errors import RunBusy, Unknown, UsageError
from afresh.events import ignore
from afresh.model.filters import LIVE_PAGES, LookPlace, PageFilter, Sources
from afresh.model.history import HistoryEntry
from afresh.model.overview import PassageView
from afresh.model.records import Attempt, ChangeKind, Page, PageId, RunMode, Source, SourceId
from afresh.model.reports import (
    ChangeView,
    NextLook,
    OpenedPage,
    PageView,
    Why,
)
from afresh.schedule.due import due_at
from afresh.services.context import Context, Service
from afresh.services.explain import explain, explain_removed, history_of
from afresh.services.read_page import open_page, why_unknown
from afresh.services.records import (
    add_page,
    page_of,
)
from afresh.services.resolve import best_sources, exact_source
from afresh.services.restore import restore_page
from afresh.services.runs import RunService
from afresh.services.sinks import SinkService
from afresh.text.language import normalise_tag

LONGEST_TEXT = 500  # characters of a text that pages are found by


class PageService(Service):
    """Pages and their history."""

    def __init__(self, context: Context, runs: RunService, sinks: SinkService) -> None:
        super().__init__(context)
        self._runs = runs
        self._sinks = sinks

    async def of_source(
        self, label: str, which: PageFilter = LIVE_PAGES, *, limit: int | None = None
    ) -> list[PageView]:
        """The pages of a source that a filter fits; with external stores its status is that of the copies."""
        which = in_usual_words(which)
        source = await exact_source(self._store, label)
        sinks = list(self._tools.sinks_of(source))
        if not sinks or which.status is None:
            views = await self._store.pages.of_source(source.id, which, limit=limit)
            return await self._sinks.with_copies({source.id: sinks}, views)
        views = await self._store.pages.of_source(source.id, replace(which, status=None, everything=True))
        shown = await self._sinks.with_copies({source.id: sinks}, views)
        return [view for view in shown if view.status is which.status][:limit]

    async def records(
        self,
        sources: Sources,
        which: PageFilter = LIVE_PAGES,
        *,
        url: str | None = None,
        after: int = 0,
        limit: int,
    ) -> list[PageView]:
        """Pages in the order of their numbers, with their copies; with `url` just those at that address."""
        which, there = in_usual_words(which), await self._store.sources.all()
        meant = {each.id: list(self._tools.sinks_of(each)) for each in there if _is_among(each.id, sources)}
        if url is not None:
            found = [view for _, view, _, _ in await self._store.pages.find(url) if view.source_id in meant]
            views = await self._sinks.with_copies(meant, sorted(found, key=lambda view: view.id))
            return [view for view in views if view.id > after and which.fits(view)][:limit]
        if which.status is None or not any(meant.values()):
            views = list(await self._store.pages.records(sources, which, after=after, limit=limit))
        else:
            views = await self._by_copies(meant, which, after, limit)
        return await self._sinks.with_copies(meant, views)

    async def _by_copies(
        self, meant: Mapping[SourceId, Sequence[str]], which: PageFilter, after: int, limit: int
    ) -> list[PageView]:
        """Pages of sources that a status fits, asked once for all sources that the same stores hold."""
        groups: dict[tuple[str, ...], list[SourceId]] = {}
        for source, sinks in meant.items():
            groups.setdefault(tuple(sinks), []).append(source)
        parts = [
            await self._store.copies.pages_by_state(sinks, held, which, after=after, limit=limit)
            if sinks
            else await self._store.pages.records(held, which, after=after, limit=limit)
            for sinks, held in groups.items()
        ]
        return sorted((view for part in parts for view in part), key=lambda view: view.id)[:limit]

    async def get(self, number: int) -> PageView:
        """One page with its copies."""
        view = await page_of(self._store, number)
        return await self._sinks.with_its_copies(await self._store.sources.get(view.source_id), view)

    async def open(
        self, url: str, *, within: str | None = None, former: bool = False, from_afar: bool = False
    ) -> OpenedPage:
        """The stored text of a page, or of the page it moved to; `from_afar`: no path is taken for one."""
        address = (self._tools.page_address if from_afar else self._tools.address)(url)
        chosen = (await best_sources(self._store, within))[0] if within else [None]
        for source in chosen:
            opened = await open_page(self._store, address, source.id if source else None, former=former)
            if opened is not None:
                return opened
        raise UsageError(await self._why_not(address, chosen[0].id if chosen[0] else None))

    async def explain(self, url: str, *, within: str | None = None) -> Why:
        """The evidence behind the state of a page."""
        source = (await self._source(within)).id if within else None
        found = await self._store.pages.find(self._tools.address(url), source)
        removed = None if found else await explain_removed(self._store, self._tools.address(url), source)
        if removed is not None:
            return removed
        page, view, name, version = found[0] if found else await self._page(url, within)
        shown = await self._sinks.with_its_copies(await self._store.sources.get(page.source_id), view)
        return await explain(self._store, page, shown, name, version, self._tools.retention().former_texts)

    async def history(self, url: str, *, within: str | None = None) -> list[HistoryEntry]:
        """All attempts to look at an address, source by source, newest first."""
        source = (await self._source(within)).id if within else None
        attempts = await history_of(self._store, self._tools.address(url), source)
        if not attempts:
            raise UsageError(f"nothing is known of {url}; `afresh pages NAME` lists the addresses on record")
        return attempts

    async def attempts(self, number: int, *, below: int | None, limit: int) -> list[Attempt]:
        """The attempts of a page, newest first."""
        await page_of(self._store, number)
        return list(await self._store.history.attempts(PageId(number), below=below, limit=limit))

    async def changes(
        self,
        label: str | None = None,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        below: int | None = None,
        limit: int = 50,
    ) -> list[ChangeView]:
        """What changed, newest first; with `url` just on that page."""
        sources = [(await exact_source(self._store, label)).id] if label else None
        place = self._tools.address(url) if url is not None else None
        return await self.change_records(sources, run=run, url=place, kind=kind, below=below, limit=limit)

    async def change_records(
        self,
        sources: Sources,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        below: int | None = None,
        limit: int,
    ) -> list[ChangeView]:
        """Changes, newest first."""
        found = self._store.history.changes(sources, run=run, url=url, kind=kind, below=below, limit=limit)
        return list(await found)

    async def add(self, source: Source, url: str) -> PageView:
        """Make an address known and have it looked at: by the run that is open, or by one of what is due."""
        rules, _ = self._tools.bounds(source)
        page = await add_page(self._store, source, rules, self._tools.web_address(url), self._clock())
        if source.name not in KINDS:
            with suppress(RunBusy):  # else it waits for the next
                await self._runs.start(source, RunMode.DUE)
        return page

    async def check_at(self, number: int, at: datetime) -> PageView:
        """Set when a page is looked at next."""
        await page_of(self._store, number)
        if not await self._store.pages.check_at(PageId(number), at, self._clock()):
            raise RunBusy(f"page {number} is part of a run that is open: try again when it is over")
        return await self.get(number)

    async def drop(self, number: int) -> None:
        """Take a page out of the index now; it comes back if a later run finds it."""
        if not await self._store.pages.drop(PageId(number), self._clock()):
            raise Unknown(f"there is no page {number} in the index")

    async def restore(self, url: str, *, within: str | None = None) -> OpenedPage:
        """Put the former text of a page back that lost nearly all of it."""
        source = (await exact_source(self._store, within)).id if within else None
        async with self._models.for_remake(ignore, self._stopping) as remake:
            return await restore_page(remake, self._tools.address(url), source)

    async def passages(self, page: int) -> list[PassageView]:
        """The pieces of a page that are searched, in the order of its text."""
        found = (await self._store.search.page_chunks([PageId(page)])).get(PageId(page), ())
        return [PassageView(content=each.content, path=each.path, types=each.types) for each in found]

    async def fetch_once(self, url: str) -> Glimpse:
        """The text at a web address as it is now; nothing is kept."""
        return await self._tools.glance(self._tools.web_address(url))

    async def next_checks(
        self, source: Source, *, everything: bool = False, after: LookPlace | None = None, limit: int
    ) -> list[NextLook]:
        """The pages of a source that are due, in the order of their turn; on request all that wait."""
        now, max_age = self._clock(), self._tools.bounds(source)[1].max_age_seconds
        found = await self._store.due.next_checks(
            source.id, now, max_age, everything=everything, after=after, limit=limit
        )
        moments = [(page, due_at(page, now, max_age)) for page in found]
        return [
            NextLook(url=page.url, next_look=at, due=at <= now, planned=page.next_at) for page, at in moments
        ]

    async def _page(self, url: str, within: str | None) -> tuple[Page, PageView, str, str | None]:
        source = (await self._source(within)).id if within else None
        found = await self._store.pages.find(self._tools.address(url), source)
        if not found:
            raise UsageError(await self._why_not(self._tools.address(url), source))
        return found[0]

    async def _why_not(self, url: str, within: SourceId | None) -> str:
        return await why_unknown(self._store, self._tools, url, within)


def in_usual_words(which: PageFilter) -> PageFilter:
    """What is asked for, with the language as pages name it: EN is en."""
    if which.text and (len(which.text) > LONGEST_TEXT or not which.text.isprintable()):
        raise UsageError(f"text: expected at most {LONGEST_TEXT} characters that can be seen")
    return replace(which, language=normalise_tag(which.language) or which.language)


def _is_among(source: SourceId, sources: Sources) -> bool:
    return sources is None or source in sources
