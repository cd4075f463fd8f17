"""Sync external stores, and show pages with their copies."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from afresh.aio import wait_event
from afresh.errors import StoreUnavailable, UsageError
from afresh.events import Listener, ignore
from afresh.model.records import PageId, PageStatus, Source, SourceId
from afresh.model.reports import PageView
from afresh.services.context import Service, ServiceContext
from afresh.services.resolve import labelled_sources
from afresh.sync.after_runs import FinishedRuns, PostRunSync
from afresh.sync.copy import DesiredCopy
from afresh.sync.reconcile import with_copies
from afresh.sync.reports import PageCopy, SinkView, SyncReport
from afresh.sync.sync import SinkSync, sink_views

MAX_PAGES = 10_000  # pages whose copies are read in one query
POLL_SECONDS = 5.0  # between checks for ended runs
POLLS_BETWEEN_SYNCS = 720  # each store is synced every hour in any case, for removed sources


class SinkService(Service):
    def __init__(self, context: ServiceContext) -> None:
        super().__init__(context)
        self._sync = SinkSync(context.tools, context.stopping)

    async def sync(
        self,
        labels: Sequence[str] = (),
        *,
        source: Source | None = None,
        to: Sequence[str] = (),
        dry_run: bool = False,
        verify: bool = False,
        listener: Listener = ignore,
    ) -> list[SyncReport]:
        """Sync the pages of `source`, of `labels` or of all sources into the sinks `to`, by default all of theirs."""
        only = await labelled_sources(self._store, labels) if labels else None
        if source is not None:
            only, to = [source], to or self._at_least_one(source)
        return await self._sync.sync(to, only, dry_run=dry_run, verify=verify, listener=listener)

    def names(self, source: Source) -> list[str]:
        return sorted(self._tools.sinks_of(source))

    def _at_least_one(self, source: Source) -> list[str]:
        if not (names := self.names(source)):
            raise UsageError(f"no sink is configured for {source.label} (see `sinks` in the settings)")
        return names

    async def copies(
        self, source: Source, sink: str, *, state: PageStatus | None = None, after: int = 0, limit: int
    ) -> list[PageCopy]:
        if sink not in self._at_least_one(source):
            raise UsageError(f"{sink} is not a sink of {source.label}")
        return list(await self._store.copies.pages(sink, source.id, state=state, after=after, limit=limit))

    async def views(self, sources: Sequence[Source]) -> tuple[SinkView, ...]:
        return await sink_views(self._store, sources, self._tools.sinks_of)

    async def with_copies(self, sinks: Mapping[SourceId, Sequence[str]], views: list[PageView]) -> list[PageView]:
        """Return the pages with the states of their copies; `sinks` holds the sink names of each source."""
        held = [view.id for view in views if sinks.get(view.source_id)]
        copies: dict[PageId | None, list[DesiredCopy]] = {}
        for first in range(0, len(held), MAX_PAGES):
            for each in await self._store.copies.of_pages(held[first : first + MAX_PAGES]):
                copies.setdefault(each.copy.page_id, []).append(each)
        return [
            with_copies(view, own, copies.get(view.id, ())) if (own := sinks.get(view.source_id)) else view
            for view in views
        ]

    async def with_its_copies(self, source: Source | None, view: PageView) -> PageView:
        sinks = {source.id: list(self._tools.sinks_of(source))} if source is not None else {}
        return (await self.with_copies(sinks, [view]))[0]

    def after_runs(
        self, on_report: Callable[[SyncReport], None], listener: Listener, *, once: bool = False
    ) -> PostRunSync:
        return PostRunSync(self._sync, self._stopping, on_report, listener, once)

    async def keep(
        self, names: Sequence[str], *, on_report: Callable[[SyncReport], None] = ignore, listener: Listener = ignore
    ) -> None:
        """Sync external stores now, and after each run that ends in any process, until `stop`."""
        store, _ = self._tools.standing(listener, self._stopping)
        syncs, finished = self.after_runs(on_report, listener), FinishedRuns(store)
        polls = 0
        try:
            with suppress(StoreUnavailable):  # stopped while the database was unavailable
                while not self._stopping.is_set():
                    ended = await finished.poll()
                    sources = await store.sources.all() if ended else []
                    over = [source for source in sources if source.id in ended]
                    wanted = {name for source in over for name in self._tools.sinks_of(source)}
                    syncs.want(wanted.intersection(names) if polls % POLLS_BETWEEN_SYNCS else names)
                    polls += 1
                    await wait_event(self._stopping, POLL_SECONDS)
        except BaseException:
            syncs.leave()
            raise
        finally:
            await syncs.drain()
