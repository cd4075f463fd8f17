"""Watch local sources for changes, and check only the changed files."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from afresh.aio import run_together, wait_first
from afresh.crawl.tools import RunOptions
from afresh.dataclass import dataclass, field
from afresh.errors import AfreshError, ConfigError, RunBusy, StoreError, StoreUnavailable, UsageError
from afresh.events import Listener, Notice
from afresh.model.records import ListedUrl, RunMode, Source
from afresh.model.reports import RunReport
from afresh.ports import ChangeFeed
from afresh.store.store import Store
from afresh.urls.files import is_file_url

MAX_QUIET_PERIODS = 10  # a path that keeps changing is checked after so many quiet periods
MAX_SINGLE_PATHS = 1_000  # with more changed paths, a full listing is cheaper
MAX_CONCURRENT_RUNS = 3  # concurrent runs, so that a slow list of links does not delay folders


@dataclass(frozen=True, slots=True)
class DuePaths:
    paths: frozenset[str] = frozenset()
    everything: bool = False


@dataclass(slots=True)
class _Activity:
    first: float
    last: float

    def at(self, quiet: float) -> float:
        """Return the due time: `quiet` s after the last change, at most MAX_QUIET_PERIODS * `quiet` after the first."""
        return min(self.last + quiet, self.first + MAX_QUIET_PERIODS * quiet)


@dataclass(slots=True)
class Debounce:
    """Collects changed paths until each was quiet for some time; too many count as a change of the whole source."""

    quiet: float  # seconds without a change after which a path is due
    max_paths: int = MAX_SINGLE_PATHS
    _paths: dict[str, _Activity] = field(default_factory=dict)
    _everything: _Activity | None = None

    def add(self, path: str, now: float) -> None:
        if self._everything is not None:
            self._everything.last = max(now, self._everything.last)
            return
        self._paths.setdefault(path, _Activity(now, now)).last = now
        if len(self._paths) > self.max_paths:
            self.add_everything(now, since=min(each.first for each in self._paths.values()))

    def add_everything(self, now: float, *, since: float | None = None) -> None:
        """Record a change of the whole source instead of single paths: from `since` (default: `now`) to `now`."""
        self._paths.clear()
        if self._everything is None or since is not None:
            self._everything = _Activity(now if since is None else since, now)
        self._everything.last = max(now, self._everything.last)

    def next_at(self) -> float | None:
        active = [self._everything] if self._everything is not None else self._paths.values()
        return min((activity.at(self.quiet) for activity in active), default=None)

    def take(self, now: float) -> DuePaths | None:
        """Remove and return the due paths, with those that are almost due; None if none is due."""
        if self._everything is not None:
            if self._everything.at(self.quiet) > now:
                return None
            self._everything = None
            return DuePaths(everything=True)
        if all(activity.at(self.quiet) > now for activity in self._paths.values()):
            return None
        due = frozenset(path for path, activity in self._paths.items() if activity.at(self.quiet / 2) <= now)
        for path in due:
            del self._paths[path]
        return DuePaths(due)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTimes:
    debounce: float = 0.5
    rescan: float = 3_600.0
    again: float = 60.0  # time from changes to a full listing, which finds missed changes
    tick: float = 1.0  # time between checks that the root still exists


DEFAULT_TIMES = WatchTimes()
WatchReport = RunReport | Notice
WatchListener = Callable[[WatchReport], None]

RunSource = Callable[[Source, RunOptions, Listener], Awaitable[RunReport]]
RETRY_SECONDS = (1.0, 2.0, 5.0, 15.0)  # time until the next attempt after failures; the last one repeats


@dataclass(slots=True)
class SourceWatcher:
    source: Source
    watch: "Watcher"
    turns: asyncio.Semaphore  # limits concurrent runs
    _changes: Debounce
    _label: str = ""  # the label of the source at the start of the watch
    _waking: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _removed: bool = False
    _lost: bool = False  # the change feed no longer reports events
    _list_at: float = 0.0  # when the next full listing is due
    _retry_at: float = 0.0
    _failures: int = 0
    _pause: float = 0.0  # seconds until the next attempt to receive events
    _problem: str | None = None  # the last reported problem, which is not reported again
    _announced: bool = False

    def __post_init__(self) -> None:
        self._label = self.source.label
        self._list_at, self._pause = self._loop.time(), self.watch.times.tick

    async def keep(self) -> None:
        """Watch until a stop or the removal of the source; wait while its root is missing."""
        while self._is_active():
            change_feed = await self._open_feed()
            if change_feed is None or not await self._start_feed(change_feed):
                await self._sleep_until(self._loop.time() + self._pause)
                continue
            try:
                self._list_at = self._loop.time()  # list now, to find earlier changes
                while self._is_active() and not self._lost and await asyncio.to_thread(change_feed.is_intact):
                    await self._attend(change_feed)
            finally:
                change_feed.close()
            await self._sleep_until(self._loop.time() + self.watch.times.tick)

    async def _open_feed(self) -> ChangeFeed | None:
        try:
            return self.watch.change_feed(self.source)
        except ConfigError as wrong:
            self._say(f"{wrong}; the source is watched as soon as its settings are valid")
            await self._reload_source()
            return None

    async def _reload_source(self) -> Source | None:
        if (source := await self.watch.store.sources.get(self.source.id)) is None:
            self._removed = True
            self._say("the source was removed and is no longer watched")
        else:
            self.source = source
        return source

    def _is_active(self) -> bool:
        return not self._removed and not self.watch.stopping.is_set()

    async def _start_feed(self, change_feed: ChangeFeed) -> bool:
        """Open the change feed, or list once if files have no events; return False to be called again after a pause."""
        self._lost, self._pause = False, self.watch.times.tick

        def on_change(paths: Sequence[str]) -> None:
            self._loop.call_soon_threadsafe(self._add_changes, paths)

        def on_loss(why: str) -> None:
            self._loop.call_soon_threadsafe(self._lose_feed)

        try:
            await asyncio.to_thread(change_feed.open, on_change, on_loss)
        except FileNotFoundError:
            self._say(f"{change_feed.place} does not exist; its pages are kept, and watching resumes when it is back")
            return False
        except OSError as error:
            self._say(f"no file events ({error}); listing all files every {self.watch.times.again:g} s instead")
            self._pause, self._list_at = self.watch.times.again, self._loop.time()
            await self._attend(change_feed)
            return False
        if self._problem is not None:
            self._problem = None
            self.watch.on_report(Notice(text=f"Watching {self._label} again"))
        return True

    def _add_changes(self, paths: Sequence[str]) -> None:
        now = self._loop.time()
        for path in paths:
            self._changes.add(path, now)
        self._waking.set()

    def _lose_feed(self) -> None:
        """Record that the change feed ended; when it starts again, a listing finds the missed changes."""
        self._lost = True
        self._waking.set()

    async def _attend(self, change_feed: ChangeFeed) -> None:
        now = self._loop.time()
        timed = now >= self._list_at
        if timed:
            self._changes.add_everything(now, since=now - MAX_QUIET_PERIODS * self.watch.times.debounce)  # due now
        due = self._changes.take(now) if now >= self._retry_at else None
        if due is None:
            moments = [self._list_at, now + self.watch.times.tick]
            if (next_due := self._changes.next_at()) is not None:
                moments.append(next_due)
            await self._sleep_until(max(min(moments), self._retry_at))
            return
        try:
            report = await self._check(due, change_feed)
        except AfreshError as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreUnavailable):
                raise
            self._changes.add_everything(self._loop.time())  # check everything later, so that no change is missed
            self._retry_at = self._loop.time() + RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
            self._failures += 1
            if not isinstance(error, RunBusy):
                self._say(f"{error}; retrying")
            return
        self._failures = 0
        if report is not None:
            self._report(report, timed=timed)

    async def _check(self, due: DuePaths, change_feed: ChangeFeed) -> RunReport | None:
        if (source := await self._reload_source()) is None:
            return None
        pages: Sequence[ListedUrl] = ()
        if not due.everything:
            changed = await asyncio.to_thread(change_feed.classify, due.paths)
            pages = [*changed.files, *await self.watch.store.listings.stored_below(source.id, changed.other_urls)]
            if not pages and not changed.everything:
                return None
            if not changed.everything and len(pages) <= MAX_SINGLE_PATHS:
                return await self._run(source, RunOptions(mode=RunMode.CHECK, pages=pages))
        self._list_at = self._loop.time() + self.watch.times.rescan
        return await self._run(source, RunOptions(mode=RunMode.REFRESH if source.kind == "folder" else RunMode.DUE))

    async def _run(self, source: Source, options: RunOptions) -> RunReport | None:
        async with self.turns:
            if self.watch.stopping.is_set():
                return None
            return await self.watch.run(source, options, self.watch.listener)

    def _report(self, report: RunReport, *, timed: bool) -> None:
        if not timed or report.new or report.changed or report.deleted:
            self._list_at = min(self._list_at, self._loop.time() + self.watch.times.again)
        self.watch.on_report(report)
        if not self._announced:
            self._announced = True
            self.watch.on_report(Notice(text=f"Watching {self._label}"))

    def _say(self, text: str) -> None:
        if text != self._problem:
            self._problem = text
            self.watch.on_report(Notice(text=f"{self._label}: {text}"))

    async def _sleep_until(self, moment: float) -> None:
        self._waking.clear()
        await wait_first(self._waking, self.watch.stopping, seconds=moment - self._loop.time())


def select_watched(labelled: Mapping[str, Sequence[Source]], everything: Sequence[Source]) -> list[Source]:
    for label, sources in labelled.items():
        if not any(map(_is_watchable, sources)):
            raise UsageError(
                f"{label} ({sources[0].url}) is not a folder or file on this machine and cannot be watched: "
                f"run `afresh refresh {label}`"
            )
    chosen = [source for sources in labelled.values() for source in sources] if labelled else everything
    if not (found := {source.id: source for source in chosen if _is_watchable(source)}):
        raise UsageError("there is no folder or link list to watch: add one with `afresh crawl FOLDER`")
    return list(found.values())


def _is_watchable(source: Source) -> bool:
    return is_file_url(source.url) and source.kind != "git"  # file events do not show commits


@dataclass(frozen=True, slots=True)
class Watcher:
    store: Store
    change_feed: Callable[[Source], ChangeFeed]
    run: RunSource
    stopping: asyncio.Event
    times: WatchTimes
    on_report: WatchListener
    listener: Listener

    async def keep(self, sources: Sequence[Source]) -> None:
        turns = asyncio.Semaphore(MAX_CONCURRENT_RUNS)
        watchers = [SourceWatcher(source, self, turns, Debounce(self.times.debounce)) for source in sources]
        await run_together(watcher.keep() for watcher in watchers)
