"""Update the digest, once or continuously: cache, two sources and both files."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from afresh.aio import heard
from afresh.config.kb import KbSettings
from afresh.crawl.run import Runner
from afresh.crawl.tools import RunOptions
from afresh.digest.cache import Cache, FileRecord, Record, SeenCache, UrlRecord
from afresh.digest.records import (
    FILES,
    KINDS,
    LINKS,
    DigestPage,
    as_cached,
    file_record,
    is_dead,
    page_of,
    url_record,
)
from afresh.errors import AfreshError, KbError, StoreError, StoreUnavailable
from afresh.events import Listener, Notice, ignore
from afresh.model.records import ListedUrl, RunMode, RunState, Source
from afresh.model.reports import BackingOffPage, KbReport, RunReport
from afresh.ports import ChangeFeed, Clock, DigestStorage
from afresh.store.store import Store
from afresh.text.redact import one_line
from afresh.urls.canonical import canonical
from afresh.urls.files import file_url, path_of
from afresh.watch.watcher import Sights, Watcher, WatchTimes

SETTINGS = {FILES: "kb.sources_dir", LINKS: "kb.links_file_path"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestPaths:
    """The locations of the digest."""

    roots: Mapping[str, str]  # name of a source → its URL, if set
    cache: str
    index: str
    digest_files: DigestStorage
    is_filled: Callable[[str], bool]  # whether the root of a source exists and is not empty
    typed: Callable[[], Mapping[str, str]]  # URL → as written in the list of links
    brake: Callable[[int, int], bool]  # whether so many of all are too many to remove at once


@dataclass(frozen=True, slots=True)
class UpdateScope:
    """What an update checks: a whole source, or some of its files."""

    name: str
    mode: RunMode
    pages: Sequence[ListedUrl] = ()
    budget: int | None = None


class DigestUpdater:
    """Updates cache and index, one update at a time."""

    def __init__(
        self, store: Store, desk: DigestPaths, runner: Runner, clock: Clock, listener: Listener = ignore
    ) -> None:
        self._store = store
        self._desk = desk
        self._runner = runner
        self._listener = listener
        self._clock = clock
        self._turn = asyncio.Lock()

    async def sources(self) -> dict[str, Source]:
        """Return the sources of the digest; create them if they are missing or had another root."""
        return (await self._rooted(await self._store.digest.cache_seen()))[0]

    async def whole(self, budget: int) -> KbReport:
        """Check all files and the links that are due."""
        return await self.part(
            UpdateScope(FILES, RunMode.REFRESH), UpdateScope(LINKS, RunMode.DUE, (), budget)
        )

    async def part(self, *asked: UpdateScope) -> KbReport:
        """Check some parts, under the write lock; if that fails, both files stay unchanged."""
        desk, parts = self._desk, list(asked)
        async with self._turn, desk.digest_files.one_writer(self._clock):
            cache, seen = (
                await asyncio.to_thread(desk.digest_files.read),
                await self._store.digest.cache_seen(),
            )
            sources, fresh = await self._rooted(seen)
            imposed = fresh or seen != self._cache_now()
            if imposed:
                if fresh or seen != self._taken_over():
                    await self._impose(sources, cache.sources if cache else {})
                    await self._store.digest.see_cache(self._taken_over())
                links = [each for each in parts if each.name == LINKS] or [
                    UpdateScope(LINKS, RunMode.DUE, (), 0)
                ]
                parts = [UpdateScope(FILES, RunMode.REFRESH), links[0]]  # all that may differ from the cache
            reports = {
                each.name: await self._ran(sources[each.name], each) for each in parts if each.name in sources
            }
            now = self._clock()
            before = cache or Cache(generated_at=now, sources={})
            after = before.with_sources(await self._records(sources, before, now), now)
            if imposed and (held := self._held(before, after)):
                again = SeenCache(desk.cache, "held")  # the cache has to be imported again
                await self._store.digest.see_cache(again)
                raise held
            written = await asyncio.to_thread(desk.digest_files.write, after)
            if (told := self._cache_now()) is not None and (imposed or told != seen):
                await self._store.digest.see_cache(told)
        report = _report(desk, reports, before, after, now, written=written)
        return replace(report, failing_links=await self._failing(sources.get(LINKS), after, now))

    async def is_idle(self, now: datetime) -> bool:
        """Return whether no link is due and the cache is unchanged."""
        from afresh.schedule.due import due

        cache = await asyncio.to_thread(self._desk.digest_files.read)
        if cache is None or await self._store.digest.cache_seen() != self._cache_now():
            return False
        source = await self._store.sources.find(LINKS, None)
        return source is None or not due(await self._store.due.waiting(source.id), now, budget=1)

    async def _failing(self, links: Source | None, cache: Cache, now: datetime) -> tuple[BackingOffPage, ...]:
        """Return the links that cannot be read, whether this update requested them or not."""
        records = [each for each in cache.sources.values() if isinstance(each, UrlRecord)]
        if links is None or not any(each.consecutive_failures for each in records):
            return ()
        dead = {page.url for page in await self._store.digest.pages(links.id) if is_dead(page)}
        reasons = {each.url: each.reason for each in await self._store.due.backing_off(links.id, now)}
        return tuple(
            BackingOffPage(
                url=each.url,
                failures=each.consecutive_failures,
                next_at=each.next_check_at,
                reason=reasons.get(url),
            )
            for each in sorted(records, key=lambda record: record.url)
            if (url := canonical(each.url)) in dead
        )

    def _cache_now(self) -> SeenCache | None:
        digest = self._desk.digest_files.digest
        return None if digest is None else SeenCache(self._desk.cache, digest)

    def _taken_over(self) -> SeenCache:
        """Return the mark of a cache that was imported while the update is unfinished.

        If the update fails, the next one finds the mark and keeps what was made since, so that nothing is
        paid twice.
        """
        return SeenCache(self._desk.cache, f"taken over: {self._desk.digest_files.digest or 'none'}")

    async def _rooted(self, seen: SeenCache | None) -> tuple[dict[str, Source], bool]:
        """Return the sources, and whether one of them is new; remove a source whose root is no longer set."""
        found, fresh = {}, False
        for name, kind in KINDS.items():
            root, known = self._desk.roots.get(name), await self._store.sources.find(name, None)
            if known is not None and known.url != root:
                if seen is not None and seen.path != self._desk.cache:
                    raise _taken(known, seen)
                if root is not None and not await asyncio.to_thread(self._desk.is_filled, name):
                    raise _keeps_its_place(known, root)
                await self._store.sources.remove(known.id, self._clock())
                known = None
            if root is None:
                continue
            fresh = fresh or known is None
            made: Any = {"name": name, "kind": kind, "url": root, "rules": {}, "policy": {}, "version": None}
            found[name] = known or await self._store.sources.add(**made, now=self._clock(), by_operator=True)
        return found, fresh

    async def _impose(self, sources: Mapping[str, Source], records: Mapping[str, Record]) -> None:
        """Update the store where the cache differs: the cache takes precedence."""
        now = self._clock()
        for name, source in sources.items():
            is_file = name == FILES
            said = {page.url: page for page in _pages(records.values(), source, is_file=is_file)}
            known = {page.url: page for page in await self._store.digest.pages(source.id)}
            next_at = None if is_file else now  # pages missing in the cache are new, and links are due now
            unsaid = [page for url, page in known.items() if url not in said]
            lost = [DigestPage(url=page.url, depth=page.depth, next_at=next_at) for page in unsaid]
            changed = [page for page in lost if page != known[page.url]]
            for url, page in said.items():
                before = as_cached(known[url], is_file=is_file) if url in known else None
                if before != as_cached(page, is_file=is_file):
                    changed.append(page)
            if changed:
                await self._store.digest.impose(source.id, changed, now)

    async def _ran(self, source: Source, part: UpdateScope) -> RunReport:
        options = RunOptions(mode=part.mode, pages=part.pages, budget=part.budget)
        report = await self._runner.run(source, options, self._listener)
        if report.state == RunState.FAILED and not report.checked:
            raise KbError(f"{SETTINGS[source.name]}: {report.error}; cache and index are as they were")
        return report

    def _held(self, before: Cache, after: Cache) -> KbError | None:
        """Return an error if too many cache records would vanish, which no deletion limit of a run sees."""
        gone = before.sources.keys() - after.sources.keys()
        if not self._desk.brake(len(before.sources), len(gone)):
            return None
        return KbError(
            f"{len(gone)} of {len(before.sources)} sources that {self._desk.cache} knows are not there, "
            f"such as {one_line(min(gone))}: cache and index are as they were. Check "
            f"{' and '.join(SETTINGS.values())}; if they are to go, take them out of the cache"
        )

    async def _records(
        self, sources: Mapping[str, Source], before: Cache, now: datetime
    ) -> dict[str, Record]:
        records: dict[str, Record] = {}
        if FILES in sources:
            root = path_of(sources[FILES].url).rstrip("/") + "/"
            for page in await self._store.digest.pages(sources[FILES].id):
                path = path_of(page.url).removeprefix(root)
                if record := file_record(page, path):
                    records[path] = record
        if LINKS in sources:
            pages = await self._store.digest.pages(sources[LINKS].id)
            names = await asyncio.to_thread(self._desk.typed)
            if any(
                page.url not in names for page in pages
            ):  # not listed any more, and kept by the deletion limit
                known = [each.url for each in before.sources.values() if isinstance(each, UrlRecord)]
                names = {**{url: raw_url for raw_url in known if (url := canonical(raw_url))}, **names}
            for page in pages:
                name = names.get(page.url, page.url)
                records[name] = url_record(page, name, now)
        return records


def _taken(known: Source, seen: SeenCache) -> KbError:
    return KbError(
        f"{known.name} in this store is {path_of(known.url)} of the knowledge base with the cache "
        f"{seen.path}: a store holds one knowledge base, so name another store for this one (store.url), "
        f"or, if that one is no more or was moved here, type `afresh remove {known.name}`"
    )


def _keeps_its_place(known: Source, root: str) -> KbError:
    return KbError(
        f"{SETTINGS[known.name]}: {path_of(root)} is not there or holds nothing, so it does not "
        f"take the place of {path_of(known.url)}: everything is kept; cache and index are as they were"
    )


def _pages(records: Iterable[Record], source: Source, *, is_file: bool) -> list[DigestPage]:
    pages = []
    root = path_of(source.url).rstrip("/")
    for record in records:
        if isinstance(record, FileRecord) and is_file:
            pages.append(page_of(record, file_url(f"{root}/{record.rel_path}")))
        elif isinstance(record, UrlRecord) and not is_file and (url := canonical(record.url)):
            pages.append(page_of(record, url))
    return pages


def _report(
    desk: DigestPaths,
    reports: Mapping[str, RunReport],
    before: Cache,
    after: Cache,
    now: datetime,
    *,
    written: bool,
) -> KbReport:
    links = [record for record in after.sources.values() if isinstance(record, UrlRecord)]
    later = [record.next_check_at for record in links if record.next_check_at > now]
    return KbReport(
        index=desk.index,
        cache=desk.cache,
        files=reports.get(FILES),
        links=reports.get(LINKS),
        file_records=len(after.sources) - len(links),
        url_records=len(links),
        added=len(after.sources.keys() - before.sources.keys()),
        removed=len(before.sources.keys() - after.sources.keys()),
        summaries=sum(report.summaries for report in reports.values()),
        ai_calls=sum(report.ai_calls for report in reports.values()),
        due=len(links) - len(later),
        next_check_at=min(later, default=None),
        written=written,
    )


@dataclass(slots=True)
class DigestWatcher:
    """Runs the three parts of the runtime refresh that are enabled."""

    update: DigestUpdater
    settings: KbSettings
    store: Store
    change_feed: Callable[[Source], ChangeFeed]
    stopping: asyncio.Event
    clock: Clock
    tell: Sights
    _trouble: str | None = None

    async def keep(self) -> None:
        """Run until told to stop."""
        sources, kb = await self.update.sources(), self.settings
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
                group.create_task(self.stopping.wait())
        except BaseExceptionGroup as trouble:
            raise trouble.exceptions[0] from trouble

    async def _watch(self, source: Source, debounce: float) -> None:
        times = WatchTimes(debounce=debounce)
        watch = Watcher(self.store, self.change_feed, self._look, self.stopping, times, self.tell)
        await watch.keep([source])

    async def _look(self, source: Source, mode: RunMode, pages: Sequence[ListedUrl]) -> RunReport:
        """Check what changed; added links wait for the next tick."""
        budget = 0 if source.name == LINKS else None
        done = await self.update.part(UpdateScope(source.name, mode, pages, budget))
        report = done.links if source.name == LINKS else done.files
        if report is None:
            raise AfreshError(f"{source.name} is no longer part of the knowledge base")
        return report

    async def _ticks(self) -> None:
        while not await heard(self.stopping, self.settings.runtime_refresh_tick_seconds):
            await self._tick()

    async def _tick(self) -> None:
        kb = self.settings
        try:
            if await self.update.is_idle(self.clock()):  # age alone would request dead links at every tick
                return
            done = await self.update.part(UpdateScope(LINKS, RunMode.DUE, (), kb.url_refresh_budget_per_tick))
        except AfreshError as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreUnavailable):
                raise
            if str(error) != self._trouble:
                self._trouble = str(error)
                self.tell(Notice(text=f"{LINKS}: {error}; it is tried again"))
            return
        self._trouble = None
        if done.links is not None:
            self.tell(done.links)
