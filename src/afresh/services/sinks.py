"""Sync external stores, and show pages with their copies."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from afresh.aio import heard
from afresh.errors import StoreUnavailable, UsageError
from afresh.events import Listener, ignore
from afresh.model.records import PageId, PageStatus, Source, SourceId
from afresh.model.reports import PageView
from afresh.services.context import Service, ignore_report
from afresh.services.resolve import labelled_sources
from afresh.services.sink_registry import syncing
from afresh.sync.after_runs import FinishedRuns, PostRunSync
from afresh.sync.copy import DesiredCopy
from afresh.sync.reconcile import with_copies
from afresh.sync.reports import PageCopy, SinkView, SyncReport
from afresh.sync.sync import sink_views

PART = 10_000  # pages whose copies are requested at once
LOOK = 5.0  # seconds between checks for ended runs
EVERY_LOOK = 720  # checks; each store is synced every hour in any case, for removed sources


class SinkService(Service):
    """Syncs external stores and shows copies."""

    async def sync(
        self,
        labels: Sequence[str] = (),
        *,
        source: Source | None = None,
        to: Sequence[str] = (),
        dry_run: bool = False,
        verify: bool = False,
        idle_runs: bool = True,
        listener: Listener = ignore,
    ) -> list[SyncReport]:
        """Sync external stores with the pages of all or some sources, and return a report for each.

        With one `source`, sync the stores that are to hold it, unless `to` names others. Each source gets a
        stored run; without `idle_runs`, only sources with something to report get one.
        """
        only = await labelled_sources(self._store, labels) if labels else None
        if source is not None:
            only, to = [source], to or self._at_least_one(source)
        async with syncing(self._tools, to, listener, self._stopping) as (syncs, outlets):
            syncs.idle_runs = idle_runs
            return await (syncs.preview if dry_run else syncs.sync)(outlets, only, verify=verify)

    def names(self, source: Source) -> list[str]:
        """Return the names of the external stores that are to hold a source."""
        return sorted(self._tools.sinks_of(source))

    def _at_least_one(self, source: Source) -> list[str]:
        names = self.names(source)
        if not names:
            raise UsageError(f"no external store is to hold {source.label}: sinks in the settings names them")
        return names

    async def copies(
        self, source: Source, sink: str, *, state: PageStatus | None = None, after: int = 0, limit: int
    ) -> list[PageCopy]:
        """Return the pages of a source with the state of their copies in a store that is to hold them."""
        if sink not in self._at_least_one(source):
            raise UsageError(f"{sink} is no external store that is to hold {source.label}")
        return list(await self._store.copies.pages(sink, source.id, state=state, after=after, limit=limit))

    async def views(self, sources: Sequence[Source]) -> tuple[SinkView, ...]:
        """Return the counts of copies in each store that is to hold some of the sources."""
        return await sink_views(self._store, sources, self._tools.sinks_of)

    async def with_copies(
        self, sinks: Mapping[SourceId, Sequence[str]], views: list[PageView]
    ) -> list[PageView]:
        """Return pages with their copies in the stores that are to hold each source."""
        held = [view.id for view in views if sinks.get(view.source_id)]
        copies: dict[PageId | None, list[DesiredCopy]] = {}
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
        """Return a page with its copies."""
        sinks = {source.id: list(self._tools.sinks_of(source))} if source is not None else {}
        return (await self.with_copies(sinks, [view]))[0]

    def following(
        self, *, tell: Callable[[SyncReport], None], listener: Listener, once: bool = False
    ) -> PostRunSync:
        """Return an object that syncs external stores after runs, in the background."""

        async def sync(name: str) -> list[SyncReport]:
            return await self.sync(to=[name], idle_runs=False, listener=listener)

        return PostRunSync(sync, self._stopping, tell=tell, listener=listener, once=once)

    async def keep(
        self,
        names: Sequence[str],
        *,
        tell: Callable[[SyncReport], None] = ignore_report,
        listener: Listener = ignore,
    ) -> None:
        """Sync external stores now and after every run that ends in any process, until `stop`."""
        store, _ = self._tools.standing(listener, self._stopping)
        following, endings = self.following(tell=tell, listener=listener), FinishedRuns(store)
        looks = 0
        try:
            with suppress(StoreUnavailable):  # stopped while the database was unavailable
                while not self._stopping.is_set():
                    ended = await endings.look()
                    sources = await store.sources.all() if ended else []
                    over = [source for source in sources if source.id in ended]
                    wanted = {name for source in over for name in self._tools.sinks_of(source)}
                    following.want(wanted.intersection(names) if looks % EVERY_LOOK else names)
                    looks += 1
                    await heard(self._stopping, LOOK)
        except BaseException:
            following.leave()
            raise
        finally:
            await following.drain()
