"""Keeping the knowledge base fresh while afresh runs on: what changes at once, links in their time."""

import asyncio
from collections.abc import Callable, Sequence

from afresh.aio import heard
from afresh.config.kb import KbSettings
from afresh.digest.records import FILES, LINKS
from afresh.digest.update import KbUpdate, Part
from afresh.errors import AfreshError, StoreError, StoreWaits
from afresh.events import Notice
from afresh.model.records import Listed, RunMode, Source
from afresh.model.reports import RunReport
from afresh.ports import Clock, Lookout
from afresh.store.store import Store
from afresh.watch.options import Sights, WatchTimes
from afresh.watch.watcher import Watch


class KbWatch:
    """Runs the three parts of runtime refresh that the settings switch on."""

    def __init__(
        self,
        update: KbUpdate,
        settings: KbSettings,
        store: Store,
        lookout: Callable[[Source], Lookout],
        stopping: asyncio.Event,
        clock: Clock,
        tell: Sights,
    ) -> None:
        self._update = update
        self._settings = settings
        self._store = store
        self._lookout = lookout
        self._stopping = stopping
        self._clock = clock
        self._tell = tell
        self._trouble: str | None = None

    async def keep(self) -> None:
        """Until told to stop."""
        sources, kb = await self._update.sources(), self._settings
        work = []
        if FILES in sources and kb.file_watch_enabled:
            work.append(self._watch(sources[FILES], kb.file_watch_debounce_seconds))
        if LINKS in sources and kb.links_watch_enabled:
            work.append(self._watch(sources[LINKS], kb.links_watch_debounce_seconds))
        if LINKS in sources:
            work.append(self._ticks())
        try:
            async with asyncio.TaskGroup() as group:
                for each in work:
                    group.create_task(each)
                group.create_task(self._stopping.wait())
        except BaseExceptionGroup as trouble:
            raise trouble.exceptions[0] from trouble

    async def _watch(self, source: Source, debounce: float) -> None:
        times = WatchTimes(debounce=debounce)
        watch = Watch(self._store, self._lookout, self._look, self._stopping, times, self._tell)
        await watch.keep([source])

    async def _look(self, source: Source, mode: RunMode, pages: Sequence[Listed]) -> RunReport:
        """Look at what changed; links that were added wait for the next tick."""
        budget = 0 if source.name == LINKS else None
        done = await self._update.part(Part(source.name, mode, pages, budget))
        report = done.links if source.name == LINKS else done.files
        if report is None:
            raise AfreshError(f"{source.name} is no longer part of the knowledge base")
        return report

    async def _ticks(self) -> None:
        while not self._stopping.is_set():
            if not await heard(self._stopping, self._settings.runtime_refresh_tick_seconds):
                await self._tick()

    async def _tick(self) -> None:
        kb = self._settings
        try:
            if await self._update.is_idle(self._clock()):  # an age alone would ask dead links at every tick
                return
            done = await self._update.part(Part(LINKS, RunMode.DUE, (), kb.url_refresh_budget_per_tick))
        except AfreshError as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreWaits):
                raise
            if str(error) != self._trouble:
                self._trouble = str(error)
                self._tell(Notice(text=f"{LINKS}: {error}; it is tried again"))
            return
        self._trouble = None
        if done.links is not None:
            self._tell(done.links)
