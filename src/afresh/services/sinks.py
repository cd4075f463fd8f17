"""The use cases of external stores: sync them, and show pages with their copies."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from afresh.aio import heard
from afresh.errors import StoreWaits, UsageError
from afresh.events import Listener, ignore
from afresh.model.records import PageId, PageStatus, Source, SourceId
from afresh.model.reports import PageView, RunReport
from afresh.services.context import Service, ignore_report
from afresh.services.resolve import exact_sources
from afresh.sync.after_runs import Following
from afresh.sync.copy import SinkRecord, Wanted
from afresh.sync.finished_runs import Endings
from afresh.sync.page_status import with_copies
from afresh.sync.reports import PageCopy, SinkView, SyncReport

PART = 10_000  # pages whose copies are asked for at once
LOOK = 5.0  # seconds between looks at which runs ended
EVERY_LOOK = 720  # of these: every hour each store is synced in any case, for sources that were removed


class SinkService(Service):
    """External stores."""

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

    def names(self, source: Source) -> list[str]:
        """The names of the external stores that are to hold a source."""
        return sorted(self._tools.sinks_of(source))

    def _at_least_one(self, source: Source) -> list[str]:
        names = self.names(source)
        if not names:
            raise UsageError(f"no external store is to hold {source.label}: sinks in the settings names them")
        return names

    async def copies(
        self, source: Source, sink: str, *, state: PageStatus | None = None, after: int = 0, limit: int
    ) -> list[PageCopy]:
        """The pages of a source and how each stands in a store that is to hold them."""
        if sink not in self._at_least_one(source):
            raise UsageError(f"{sink} is no external store that is to hold {source.label}")
        return list(await self._store.copies.pages(sink, source.id, state=state, after=after, limit=limit))

    async def views(self, sources: Sequence[Source]) -> tuple[SinkView, ...]:
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

    async def with_copies(
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

    async def with_its_copies(self, source: Source | None, view: PageView) -> PageView:
        """One page with its copies."""
        sinks = {source.id: list(self._tools.sinks_of(source))} if source is not None else {}
        return (await self.with_copies(sinks, [view]))[0]

    async def with_sinks(self, source: Source, report: RunReport) -> RunReport:
        """What a run did, and how the documents of its source stand."""
        return replace(report, sinks=await self.views([source]) or None)

    def following(
        self, *, tell: Callable[[SyncReport], None], listener: Listener, once: bool = False
    ) -> Following:
        """What syncs external stores after runs, and is not waited for."""

        async def sync(name: str) -> list[SyncReport]:
            return await self.sync(to=[name], idle_runs=False, listener=listener)

        return Following(sync, self._stopping, tell=tell, listener=listener, once=once)

    async def keep(
        self,
        names: Sequence[str],
        *,
        tell: Callable[[SyncReport], None] = ignore_report,
        listener: Listener = ignore,
    ) -> None:
        """Sync external stores at once and after every run that ends, in whatever process, until `stop`."""
        store, _ = self._tools.standing(listener, self._stopping)
        following, endings = self.following(tell=tell, listener=listener), Endings(store)
        looks = 0
        try:
            with suppress(StoreWaits):  # told to stop while the database was away
                while not self._stopping.is_set():
                    ended = await endings.look()
                    sources = (
                        [each for each in await store.sources.all() if each.id in ended] if ended else []
                    )
                    wanted = {name for source in sources for name in self._tools.sinks_of(source)}
                    following.want(wanted.intersection(names) if looks % EVERY_LOOK else names)
                    looks += 1
                    await heard(self._stopping, LOOK)
        except BaseException:
            following.leave()
            raise
        finally:
            await following.drain()


def _as_recorded(view: SinkView, record: SinkRecord) -> SinkView:
    return replace(view, synced_at=record.synced_at, error=record.error, failing_since=record.failing_since)
