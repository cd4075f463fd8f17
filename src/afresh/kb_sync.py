"""The use cases around external stores: syncing them, and showing pages with their copies."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from afresh.core.copies import SinkRecord, Wanted
from afresh.core.errors import UsageError
from afresh.core.events import Listener, ignore
from afresh.core.language import normalise_tag
from afresh.core.model import PageId, PageStatus, Source, SourceId
from afresh.core.records import LIVE_PAGES, PageFilter, Sources
from afresh.core.shown import with_copies
from afresh.core.sync_views import PageCopy, SinkView, SyncReport
from afresh.core.views import PageView, RunReport
from afresh.engine.tools import Tools
from afresh.engine.which import exact_source, exact_sources
from afresh.ports import Clock
from afresh.store.store import Store

PART = 10_000  # pages whose copies are asked for at once
LONGEST_TEXT = 500  # characters of a text that pages are found by


class Syncing:
    """Pages and their copies elsewhere."""

    _store: Store
    _tools: Tools
    _clock: Clock
    _stopping: asyncio.Event

    async def sync(
        self,
        labels: Sequence[str] = (),
        *,
        to: Sequence[str] = (),
        dry_run: bool = False,
        verify: bool = False,
        idle_runs: bool = True,
        listener: Listener = ignore,
    ) -> list[SyncReport]:
        """Bring external stores in line with the pages, all of them or those of some sources.

        Each source gets a run on record; without `idle_runs` only those with something to tell of.
        """
        meant = [await exact_sources(self._store, label) for label in dict.fromkeys(labels)]
        only = [source for sources in meant for source in sources] if labels else None
        return await self._synced(only, to, dry_run, verify, listener, idle_runs=idle_runs)

    async def sync_source(
        self, source: Source, *, to: Sequence[str] = (), dry_run: bool = False, verify: bool = False
    ) -> list[SyncReport]:
        """Bring external stores in line with the pages of one source, those named or all that hold it."""
        return await self._synced([source], to or self._at_least_one(source), dry_run, verify, ignore)

    async def _synced(
        self,
        only: Sequence[Source] | None,
        to: Sequence[str],
        dry_run: bool,
        verify: bool,
        listener: Listener,
        *,
        idle_runs: bool = True,
    ) -> list[SyncReport]:
        async with self._tools.syncing(to, listener, self._stopping) as (syncs, outlets):
            syncs.idle_runs = idle_runs
            if dry_run:
                return await syncs.preview(outlets, only, verify=verify)
            return await syncs.sync(outlets, only, verify=verify)

    def sink_names(self, source: Source) -> list[str]:
        """The names of the external stores that are to hold a source."""
        return sorted(self._tools.sinks_of(source))

    def _at_least_one(self, source: Source) -> list[str]:
        names = self.sink_names(source)
        if not names:
            raise UsageError(f"no external store is to hold {source.label}: sinks in the settings names them")
        return names

    async def copy_list(
        self, source: Source, sink: str, *, state: PageStatus | None = None, after: int = 0, limit: int
    ) -> list[PageCopy]:
        """The pages of a source and how each stands in a store that is to hold them."""
        if sink not in self._at_least_one(source):
            raise UsageError(f"{sink} is no external store that is to hold {source.label}")
        return list(await self._store.copies.pages(sink, source.id, state=state, after=after, limit=limit))

    async def pages(
        self, label: str, which: PageFilter = LIVE_PAGES, *, limit: int | None = None
    ) -> list[PageView]:
        """The pages of a source that a filter fits; with external stores its status is that of the copies."""
        which = in_usual_words(which)
        source = await exact_source(self._store, label)
        sinks = list(self._tools.sinks_of(source))
        if not sinks or which.status is None:
            views = await self._store.pages.of_source(source.id, which, limit=limit)
            return await self._with_copies({source.id: sinks}, views)
        views = await self._store.pages.of_source(source.id, replace(which, status=None, everything=True))
        shown = await self._with_copies({source.id: sinks}, views)
        return [view for view in shown if view.status is which.status][:limit]

    async def page_list(
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
            views = await self._with_copies(meant, sorted(found, key=lambda view: view.id))
            return [view for view in views if view.id > after and which.fits(view)][:limit]
        if which.status is None or not any(meant.values()):
            views = list(await self._store.pages.records(sources, which, after=after, limit=limit))
        else:
            views = await self._by_copies(meant, which, after, limit)
        return await self._with_copies(meant, views)

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

    async def _with_copies(
        self, sinks: Mapping[SourceId, Sequence[str]], views: list[PageView]
    ) -> list[PageView]:
        """Pages with their copies in the stores that are to hold each source."""
        held = [view.id for view in views if sinks.get(view.source_id)]
        copies: dict[PageId | None, list[Wanted]] = {}
        for first in range(0, len(held), PART):
            for each in await self._store.copies.of_pages(held[first : first + PART]):
                copies.setdefault(each.copy.page_id, []).append(each)
        return [
            with_copies(view, sinks.get(view.source_id, ()), copies.get(view.id, ()))
            if sinks.get(view.source_id)
            else view
            for view in views
        ]

    async def _with_its_copies(self, source: Source | None, view: PageView) -> PageView:
        """One page with its copies."""
        sinks = {source.id: list(self._tools.sinks_of(source))} if source is not None else {}
        return (await self._with_copies(sinks, [view]))[0]

    async def sink_views(self, sources: Sequence[Source]) -> tuple[SinkView, ...]:
        """How the pages of sources stand in each store that is to hold them."""
        kinds: dict[str, str] = {}
        attached: dict[str, list[SourceId]] = {}
        for source in sources:
            for name, kind in self._tools.sinks_of(source).items():
                kinds[name] = kind
                attached.setdefault(name, []).append(source.id)
        if not kinds:
            return ()
        records = {record.name: record for record in await self._store.copies.sink_records()}
        views = []
        for name in sorted(kinds):
            states = await self._store.stats.count_copies(name, attached[name])
            record = records.get(name)
            stuck = await self._store.stats.count_stuck(name, attached[name])
            view = SinkView(sink=name, kind=kinds[name], states=dict(sorted(states.items())), stuck=stuck)
            views.append(view if record is None else _as_recorded(view, record))
        return tuple(views)

    async def _with_sinks(self, source: Source, report: RunReport) -> RunReport:
        """What a run did, and how the documents of its source stand."""
        return replace(report, sinks=await self.sink_views([source]) or None)


def in_usual_words(which: PageFilter) -> PageFilter:
    """What is asked for, with the language as pages name it: EN is en."""
    if which.text and (len(which.text) > LONGEST_TEXT or not which.text.isprintable()):
        raise UsageError(f"text: expected at most {LONGEST_TEXT} characters that can be seen")
    return replace(which, language=normalise_tag(which.language) or which.language)


def _is_among(source: SourceId, sources: Sources) -> bool:
    return sources is None or source in sources


def _as_recorded(view: SinkView, record: SinkRecord) -> SinkView:
    return replace(view, synced_at=record.synced_at, error=record.error, failing_since=record.failing_since)
