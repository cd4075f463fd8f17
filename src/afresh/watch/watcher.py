"""Watch sources on this machine: which changed paths are due, and checks of just those."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from afresh.errors import AfreshError, ConfigError, RunBusy, StoreError, StoreUnavailable, UsageError
from afresh.events import Notice
from afresh.model.records import ListedUrl, RunMode, Source
from afresh.model.reports import RunReport
from afresh.ports import ChangeFeed
from afresh.store.store import Store
from afresh.urls.files import is_file_url

PATIENCE = 10  # multiple of the quiet time after which a path that keeps changing is due
MOST = 1_000  # paths, above which a full listing is cheaper


@dataclass(frozen=True, slots=True)
class DuePaths:
    """What to check now: some paths, or everything."""

    paths: frozenset[str] = frozenset()
    everything: bool = False


@dataclass(slots=True)
class _Stir:
    first: float
    last: float

    def at(self, quiet: float) -> float:
        """Return when it is due: after a quiet time, or after changing for too long."""
        return min(self.last + quiet, self.first + PATIENCE * quiet)


class Debounce:
    """Collects paths until each has been quiet for a while; too many become a check of everything."""

    def __init__(self, quiet: float, most: int = MOST) -> None:
        self._quiet = quiet
        self._most = most
        self._paths: dict[str, _Stir] = {}
        self._everything: _Stir | None = None

    def hear(self, path: str, now: float) -> None:
        """Record a change of a path."""
        if self._everything is not None:
            self._everything.last = max(now, self._everything.last)
            return
        stir = self._paths.setdefault(path, _Stir(now, now))
        stir.last = now
        if len(self._paths) > self._most:
            self.hear_all(now, since=min(each.first for each in self._paths.values()))

    def hear_all(self, now: float, *, since: float | None = None) -> None:
        """Record that anything may have changed, since a time; this includes single paths."""
        self._paths.clear()
        if self._everything is None or since is not None:
            self._everything = _Stir(now if since is None else since, now)
        self._everything.last = max(now, self._everything.last)

    def next_at(self) -> float | None:
        """Return when something will be due if nothing else changes, or None."""
        stirs = [self._everything] if self._everything is not None else self._paths.values()
        return min((stir.at(self._quiet) for stir in stirs), default=None)

    def take(self, now: float) -> DuePaths | None:
        """Remove and return what is due, with paths that were quiet half as long; None if nothing is due."""
        if self._everything is not None:
            if self._everything.at(self._quiet) > now:
                return None
            self._everything = None
            return DuePaths(everything=True)
        if all(stir.at(self._quiet) > now for stir in self._paths.values()):
            return None
        due = frozenset(path for path, stir in self._paths.items() if stir.at(self._quiet / 2) <= now)
        for path in due:
            del self._paths[path]
        return DuePaths(due)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTimes:
    """Intervals of a watch, in seconds."""

    debounce: float = 0.5
    rescan: float = 3_600.0
    again: float = 60.0  # after changes: until a full listing, to find missed ones
    tick: float = 1.0  # between checks that the root still exists


USUAL = WatchTimes()
Sight = RunReport | Notice
Sights = Callable[[Sight], None]


def ignore_sight(sight: Sight) -> None:
    """Do nothing."""


Look = Callable[[Source, RunMode, Sequence[ListedUrl]], Awaitable[RunReport | None]]
RETRIES = (1.0, 2.0, 5.0, 15.0)  # seconds until the next attempt after a failed check; the last one repeats


@dataclass(slots=True)
class SourceWatcher:
    """Watches one source."""

    source: Source
    store: Store
    change_feed: Callable[[Source], ChangeFeed]
    look: Look
    stopping: asyncio.Event
    times: WatchTimes
    tell: Sights
    _label: str = field(init=False)  # at the start of the watch
    _heard: Debounce = field(init=False)
    _waking: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _removed: bool = False
    _lost: bool = False  # events are no longer received
    _list_at: float = 0.0  # time of the next full listing
    _not_before: float = 0.0
    _failures: int = 0
    _pause: float = 0.0  # seconds until the next attempt to receive events
    _trouble: str | None = None  # the last reported problem, to report it once
    _greeted: bool = False

    def __post_init__(self) -> None:
        self._label = self.source.label
        self._heard = Debounce(self.times.debounce)
        self._list_at, self._pause = self._loop.time(), self.times.tick

    def wake(self) -> None:
        """Wake the watcher: something happened, or it has to stop."""
        self._waking.set()

    async def keep(self) -> None:
        """Watch until told to stop or until the source is removed; wait for a missing root."""
        while self._goes_on():
            change_feed = await self._placed()
            if change_feed is None:
                continue
            if not await self._armed(change_feed):
                await self._until(self._loop.time() + self._pause)
                continue
            try:
                self._list_at = self._loop.time()  # find changes from before
                while self._goes_on() and not self._lost and await asyncio.to_thread(change_feed.stands):
                    await self._attend(change_feed)
            finally:
                change_feed.close()
            await self._until(self._loop.time() + self.times.tick)

    async def _placed(self) -> ChangeFeed | None:
        try:
            return self.change_feed(self.source)
        except ConfigError as wrong:
            self._say(f"{wrong}; it is watched when its settings are right")
            await self._until(self._loop.time() + self.times.tick)
            await self._look_up()
            return None

    async def _look_up(self) -> Source | None:
        source = await self.store.sources.get(self.source.id)
        if source is None:
            self._removed = True
            self._say("it was removed, so it is no longer watched")
        else:
            self.source = source
        return source

    def _goes_on(self) -> bool:
        return not self._removed and not self.stopping.is_set()

    async def _armed(self, change_feed: ChangeFeed) -> bool:
        """Open the change feed; return False if events are unavailable and the source is listed instead."""
        self._lost, self._pause = False, self.times.tick
        loop = self._loop

        def heard(paths: Sequence[str]) -> None:
            loop.call_soon_threadsafe(self._hear, paths)

        def lost(why: str) -> None:
            loop.call_soon_threadsafe(self._lose, why)

        try:
            await asyncio.to_thread(change_feed.open, heard, lost)
        except FileNotFoundError:
            self._say(
                f"{change_feed.place} is not there: its pages are kept, and it is watched when it is back"
            )
            return False
        except OSError as error:
            self._say(f"changes cannot be heard ({error}): it is listed every {self.times.again:g} s instead")
            self._pause, self._list_at = self.times.again, loop.time()
            await self._attend(change_feed)
            return False
        if self._trouble is not None:
            self._trouble = None
            self.tell(Notice(text=f"{self._label} is watched again"))
        return True

    def _hear(self, paths: Sequence[str]) -> None:
        now = self._loop.time()
        for path in paths:
            self._heard.hear(path, now)
        self.wake()

    def _lose(self, why: str) -> None:
        """Mark the feed as lost; the listing after the next start finds missed changes."""
        self._lost = True
        self.wake()

    async def _attend(self, change_feed: ChangeFeed) -> None:
        now = self._loop.time()
        timed = now >= self._list_at
        if timed:
            self._heard.hear_all(now, since=now - PATIENCE * self.times.debounce)  # due now
        due = self._heard.take(now) if now >= self._not_before else None
        if due is None:
            moments = [self._list_at, now + self.times.tick]
            if (next_due := self._heard.next_at()) is not None:
                moments.append(next_due)
            await self._until(max(min(moments), self._not_before))
            return
        try:
            report = await self._looked(due, change_feed)
        except AfreshError as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreUnavailable):
                raise
            self._heard.hear_all(self._loop.time())  # nothing is lost: check everything later
            self._not_before = self._loop.time() + RETRIES[min(self._failures, len(RETRIES) - 1)]
            self._failures += 1
            if not isinstance(error, RunBusy):
                self._say(f"{error}; it is tried again")
            return
        self._failures = 0
        if report is not None:
            self._settle(report, timed=timed)

    async def _looked(self, due: DuePaths, change_feed: ChangeFeed) -> RunReport | None:
        source = await self._look_up()
        if source is None:
            return None
        pages: Sequence[ListedUrl] = ()
        if not due.everything:
            sifted = await asyncio.to_thread(change_feed.sift, due.paths)
            pages = [*sifted.there, *await self.store.listings.on_record_at(source.id, sifted.others)]
            if not pages and not sifted.everything:
                return None
            if not sifted.everything and len(pages) <= MOST:
                return await self.look(source, RunMode.CHECK, pages)
        self._list_at = self._loop.time() + self.times.rescan
        whole = RunMode.REFRESH if source.kind == "folder" else RunMode.DUE
        return await self.look(source, whole, ())

    def _settle(self, report: RunReport, *, timed: bool) -> None:
        if not timed or report.new or report.changed or report.deleted:
            self._list_at = min(self._list_at, self._loop.time() + self.times.again)
        self.tell(report)
        if not self._greeted:
            self._greeted = True
            self.tell(Notice(text=f"{self._label} is watched"))

    def _say(self, text: str) -> None:
        if text != self._trouble:
            self._trouble = text
            self.tell(Notice(text=f"{self._label}: {text}"))

    async def _until(self, moment: float) -> None:
        self._waking.clear()
        if not self.stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(moment):
                    await self._waking.wait()


AT_A_TIME = 3  # concurrent runs, so that a slow list of links does not delay folders


def watched_of(meant: Mapping[str, Sequence[Source]], everything: Sequence[Source]) -> list[Source]:
    """Return the sources to watch: those on this machine, of the given labels or of all."""
    for label, sources in meant.items():
        if not any(map(_is_watched, sources)):
            raise UsageError(
                f"{label} ({sources[0].url}) is no folder or file of this machine, so its changes cannot be "
                f"heard: `afresh refresh {label}` looks at it"
            )
    chosen = [source for sources in meant.values() for source in sources] if meant else everything
    found = {source.id: source for source in chosen if _is_watched(source)}
    if not found:
        raise UsageError("there is no folder and no list of links to watch: `afresh crawl FOLDER` adds one")
    return list(found.values())


def _is_watched(source: Source) -> bool:
    return is_file_url(source.url) and source.kind != "git"  # file events do not tell about commits


@dataclass(frozen=True, slots=True)
class Watcher:
    """Watches several sources concurrently."""

    store: Store
    change_feed: Callable[[Source], ChangeFeed]
    look: Look
    stopping: asyncio.Event
    times: WatchTimes
    tell: Sights

    async def keep(self, sources: Sequence[Source]) -> None:
        """Watch until told to stop, or until no source is left."""
        turns = asyncio.Semaphore(AT_A_TIME)

        async def look(source: Source, mode: RunMode, pages: Sequence[ListedUrl]) -> RunReport | None:
            async with turns:
                if self.stopping.is_set():
                    return None
                return await self.look(source, mode, pages)

        keepers = [
            SourceWatcher(source, self.store, self.change_feed, look, self.stopping, self.times, self.tell)
            for source in sources
        ]
        waking = asyncio.create_task(self._wake(keepers))
        try:
            async with asyncio.TaskGroup() as group:
                for keeper in keepers:
                    group.create_task(keeper.keep())
        except BaseExceptionGroup as trouble:
            raise trouble.exceptions[0] from trouble
        finally:
            waking.cancel()

    async def _wake(self, keepers: Sequence[SourceWatcher]) -> None:
        await self.stopping.wait()
        for keeper in keepers:
            keeper.wake()
