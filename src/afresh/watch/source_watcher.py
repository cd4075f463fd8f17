"""Keeping one source fresh: hear what changes, wait until it rests, have just that looked at.

| what happens                                  | what is looked at                                  |
|-----------------------------------------------|----------------------------------------------------|
| files change, come, go, move                  | those files                                        |
| a folder goes                                 | the pages on record below it                       |
| a folder comes, an ignore file changes        | everything, by listing it                          |
| more than 1,000 paths at once                 | everything: the system may have lost some          |
| after changes, within a minute                | everything, in case the system lost one unnoticed  |
| hearing fails, the root comes back, an hour   | everything                                         |
| another process is looking                    | everything, when it has finished                   |
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from afresh.errors import AfreshError, ConfigError, RunBusy, StoreError, StoreWaits
from afresh.events import Notice
from afresh.model.records import Listed, RunMode, Source
from afresh.model.reports import RunReport
from afresh.ports import Lookout
from afresh.store.store import Store
from afresh.watch.debounce import MOST, Debounce, Due
from afresh.watch.options import Sights, WatchTimes

Look = Callable[[Source, RunMode, Sequence[Listed]], Awaitable[RunReport | None]]
RETRIES = (1.0, 2.0, 5.0, 15.0)  # seconds until another try where a look could not be had; the last repeats


class Keeper:
    """Watches one source."""

    def __init__(
        self,
        source: Source,
        store: Store,
        lookout: Callable[[Source], Lookout],
        look: Look,
        stopping: asyncio.Event,
        times: WatchTimes,
        tell: Sights,
    ) -> None:
        self._source = source
        self._removed = False
        self._label = source.label
        self._store = store
        self._open_lookout = lookout
        self._look = look
        self._stopping = stopping
        self._times = times
        self._tell = tell
        self._heard = Debounce(times.debounce)
        self._waking = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._lost = False  # nothing is heard any more
        self._list_at = self._loop.time()
        self._not_before = 0.0
        self._failures = 0
        self._pause = times.tick  # until hearing is tried again
        self._trouble: str | None = None  # what was told last, so that it is told once
        self._greeted = False

    def wake(self) -> None:
        """Look up now: something happened, or it is time to end."""
        self._waking.set()

    async def keep(self) -> None:
        """Watch until told to stop or until the source is removed; a root that is away is waited for."""
        while self._goes_on():
            lookout = await self._placed()
            if lookout is None:
                continue
            if not await self._armed(lookout):
                await self._until(self._loop.time() + self._pause)
                continue
            try:
                self._list_at = self._loop.time()  # what happened while nobody listened
                while self._goes_on() and not self._lost and await asyncio.to_thread(lookout.stands):
                    await self._attend(lookout)
            finally:
                lookout.close()
            await self._until(self._loop.time() + self._times.tick)

    async def _placed(self) -> Lookout | None:
        """What hears of changes; None while the settings of the source are wrong."""
        try:
            return self._open_lookout(self._source)
        except ConfigError as wrong:
            self._say(f"{wrong}; it is watched when its settings are right")
            await self._until(self._loop.time() + self._times.tick)
            await self._look_up()
            return None

    async def _look_up(self) -> Source | None:
        """The source as it is now; None ends the watch: it was removed."""
        source = await self._store.sources.get(self._source.id)
        if source is None:
            self._removed = True
            self._say("it was removed, so it is no longer watched")
        else:
            self._source = source
        return source

    def _goes_on(self) -> bool:
        return not self._removed and not self._stopping.is_set()

    async def _armed(self, lookout: Lookout) -> bool:
        """Whether changes are heard; if the system cannot, the source is listed again and again instead."""
        self._lost, self._pause = False, self._times.tick
        loop = self._loop

        def heard(paths: Sequence[str]) -> None:
            loop.call_soon_threadsafe(self._hear, paths)

        def lost(why: str) -> None:
            loop.call_soon_threadsafe(self._lose, why)

        try:
            await asyncio.to_thread(lookout.open, heard, lost)
        except FileNotFoundError:
            self._say(f"{lookout.place} is not there: its pages are kept, and it is watched when it is back")
            return False
        except OSError as error:
            self._say(
                f"changes cannot be heard ({error}): it is listed every {self._times.again:g} s instead"
            )
            self._pause, self._list_at = self._times.again, loop.time()
            await self._attend(lookout)
            return False
        if self._trouble is not None:
            self._trouble = None
            self._tell(Notice(text=f"{self._label} is watched again"))
        return True

    def _hear(self, paths: Sequence[str]) -> None:
        now = self._loop.time()
        for path in paths:
            self._heard.hear(path, now)
        self.wake()

    def _lose(self, why: str) -> None:
        """What was not heard is found by listing, which follows when it is heard again."""
        self._lost = True
        self.wake()

    async def _attend(self, lookout: Lookout) -> None:
        """Look at what is due, or wait until something may be."""
        now = self._loop.time()
        timed = now >= self._list_at
        if timed:
            self._heard.want_all(now)
        due = self._heard.take(now) if now >= self._not_before else None
        if due is None:
            await self._until(self._next_at(now))
            return
        try:
            report = await self._looked(due, lookout)
        except AfreshError as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreWaits):
                raise
            self._try_again(error)
            return
        self._failures = 0
        if report is not None:
            self._settle(report, timed=timed)

    def _next_at(self, now: float) -> float:
        moments = [self._list_at, now + self._times.tick]
        if (due := self._heard.next_at()) is not None:
            moments.append(due)
        return max(min(moments), self._not_before)

    async def _looked(self, due: Due, lookout: Lookout) -> RunReport | None:
        """Have what is due looked at; None if there was nothing to look at after all."""
        source = await self._look_up()
        if source is None:
            return None
        pages: Sequence[Listed] = ()
        if not due.everything:
            sifted = await asyncio.to_thread(lookout.sift, due.paths)
            pages = [*sifted.there, *await self._store.listings.on_record_at(source.id, sifted.others)]
            if not pages and not sifted.everything:
                return None
            if not sifted.everything and len(pages) <= MOST:
                return await self._look(source, RunMode.CHECK, pages)
        self._list_at = self._loop.time() + self._times.rescan
        whole = RunMode.REFRESH if source.kind == "folder" else RunMode.DUE
        return await self._look(source, whole, ())

    def _try_again(self, error: AfreshError) -> None:
        """Nothing is lost: everything is looked at as soon as that can be."""
        self._heard.hear_all(self._loop.time())
        self._not_before = self._loop.time() + RETRIES[min(self._failures, len(RETRIES) - 1)]
        self._failures += 1
        if not isinstance(error, RunBusy):
            self._say(f"{error}; it is tried again")

    def _settle(self, report: RunReport, *, timed: bool) -> None:
        """Tell what was seen, and see to it that nothing was missed if there was a change."""
        if not timed or report.new or report.changed or report.deleted:
            self._list_at = min(self._list_at, self._loop.time() + self._times.again)
        self._tell(report)
        if not self._greeted:
            self._greeted = True
            self._tell(Notice(text=f"{self._label} is watched"))

    def _say(self, text: str) -> None:
        if text != self._trouble:
            self._trouble = text
            self._tell(Notice(text=f"{self._label}: {text}"))

    async def _until(self, moment: float) -> None:
        """Wait for a moment, or until woken."""
        self._waking.clear()
        if self._stopping.is_set():
            return
        try:
            async with asyncio.timeout_at(moment):
                await self._waking.wait()
        except TimeoutError:
            return
