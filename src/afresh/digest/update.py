"""Update the digest (`init-kb`) once or continuously: its two sources (files and links), its cache and its index."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Any

from afresh.aio import run_together, wait_event
from afresh.config.kb import KbPaths, KbSettings
from afresh.crawl.run import Runner
from afresh.crawl.run_verdict import exceeds_deletion_limit
from afresh.crawl.tools import RunOptions
from afresh.dataclass import dataclass, field, replace
from afresh.digest.cache import Cache, FileRecord, Record, SeenCache, UrlRecord
from afresh.digest.files import DigestFiles, one_writer
from afresh.digest.records import FILES, KINDS, LINKS, DigestPage, as_cached, file_record, is_dead, page_of, url_record
from afresh.errors import AfreshError, KbError, StoreError, StoreUnavailable
from afresh.events import Listener, Notice, ignore
from afresh.model.records import Policy, RunMode, RunState, Source
from afresh.model.reports import BackingOffPage, KbReport, RunReport
from afresh.ports import ChangeFeed, Clock
from afresh.sources.linklist.lister import is_filled, typed_links
from afresh.store.store import Store
from afresh.text.quantities import count
from afresh.text.redact import one_line
from afresh.urls.canonical import canonical
from afresh.urls.files import file_url, path_of
from afresh.watch.watcher import Watcher, WatchListener, WatchTimes

SETTINGS = {FILES: "kb.sources_dir", LINKS: "kb.links_file_path"}

ALL_FILES = RunOptions(mode=RunMode.REFRESH)


@dataclass(frozen=True, slots=True)
class DigestUpdater:
    store: Store
    paths: KbPaths
    policy: Policy  # its deletion limit also applies to records of the cache
    files: DigestFiles
    runner: Runner
    clock: Clock
    listener: Listener
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def sources(self) -> dict[str, Source]:
        """Return the sources by name; create or replace those that do not match the settings."""
        return (await self._rooted(await self.store.digest.recorded_cache()))[0]

    async def whole(self, budget: int) -> KbReport:
        """Check all files and at most `budget` due links."""
        return await self.part({FILES: ALL_FILES, LINKS: _due_links(budget)})

    async def part(self, parts: Mapping[str, RunOptions]) -> KbReport:
        """Check the sources or pages in `parts` under the write lock; after an error, cache and index are unchanged."""
        async with self.turn, one_writer(self.paths.lock, self.clock):
            cache = await asyncio.to_thread(self.files.read)
            seen = await self.store.digest.recorded_cache()
            sources, fresh = await self._rooted(seen)
            imposed = fresh or seen != self._cache_now()
            if imposed:
                if fresh or seen != self._taken_over():
                    await self._impose(sources, cache.sources if cache else {})
                    await self.store.digest.record_cache(self._taken_over())
                parts = {FILES: ALL_FILES, LINKS: parts.get(LINKS, _due_links(0))}  # the cache is new: check everything
            reports = {name: await self._ran(sources[name], each) for name, each in parts.items() if name in sources}
            now = self.clock()
            before = cache or Cache(generated_at=now, sources={})
            after = before.with_sources(await self._records(sources, before, now), now)
            if imposed and (held := self._held(before, after)):
                again = SeenCache(self._cache_path, "held")  # makes the next update import the cache again
                await self.store.digest.record_cache(again)
                raise held
            written = await asyncio.to_thread(self.files.write, after)
            if (cache_now := self._cache_now()) is not None and (imposed or cache_now != seen):
                await self.store.digest.record_cache(cache_now)
        report = _report(self.paths, reports, before, after, now, written=written)
        return replace(report, failing_links=await self._failing(sources.get(LINKS), after, now))

    async def run(self, source: Source, options: RunOptions, listener: Listener) -> RunReport:
        """Update the digest after files or the link list changed; new links are checked later, with the due ones."""
        done = await self.part({source.name: replace(options, budget=0 if source.name == LINKS else None)})
        report = done.links if source.name == LINKS else done.files
        if report is None:
            raise AfreshError(f"{source.name} is no longer part of the knowledge base")
        return report

    async def is_idle(self, now: datetime) -> bool:
        from afresh.schedule.due import due

        cache = await asyncio.to_thread(self.files.read)
        if cache is None or await self.store.digest.recorded_cache() != self._cache_now():
            return False
        source = await self.store.sources.find(LINKS, None)
        return source is None or not due(await self.store.due.waiting(source.id), now, budget=1)

    async def _failing(self, links: Source | None, cache: Cache, now: datetime) -> tuple[BackingOffPage, ...]:
        records = [each for each in cache.sources.values() if isinstance(each, UrlRecord)]
        if links is None or not any(each.consecutive_failures for each in records):
            return ()
        dead = {page.url for page in await self.store.digest.pages(links.id) if is_dead(page)}
        reasons = {each.url: each.reason for each in await self.store.due.backing_off(links.id, now)}
        return tuple(
            BackingOffPage(
                url=each.url, failures=each.consecutive_failures, next_at=each.next_check_at, reason=reasons.get(url)
            )
            for each in sorted(records, key=lambda record: record.url)
            if (url := canonical(each.url)) in dead
        )

    @property
    def _cache_path(self) -> str:
        return str(self.paths.cache)

    def _cache_now(self) -> SeenCache | None:
        return None if self.files.digest is None else SeenCache(self._cache_path, self.files.digest)

    def _taken_over(self) -> SeenCache:
        """Return a mark that the cache was imported, but the update is not finished.

        After an error, the next update finds it and does not import the cache again, which would undo new summaries.
        """
        return SeenCache(self._cache_path, f"taken over: {self.files.digest or 'none'}")

    async def _rooted(self, seen: SeenCache | None) -> tuple[dict[str, Source], bool]:
        """Return the sources of the digest, and whether one is new; remove one that is no longer configured."""
        found, fresh = {}, False
        places = {FILES: self.paths.sources_dir, LINKS: self.paths.links_file}
        for name, kind in KINDS.items():
            place, known = places[name], await self.store.sources.find(name, None)
            root = file_url(str(place)) if place is not None else None
            if known is not None and known.url != root:
                if seen is not None and seen.path != self._cache_path:
                    raise _taken(known, seen)
                if root is not None and not await asyncio.to_thread(is_filled, place, name):
                    raise _keeps_its_place(known, root)
                await self.store.sources.remove(known.id, self.clock())
                known = None
            if root is None:
                continue
            fresh = fresh or known is None
            made: Any = {"name": name, "kind": kind, "url": root, "rules": {}, "policy": {}, "version": None}
            found[name] = known or await self.store.sources.add(**made, now=self.clock(), by_operator=True)
        return found, fresh

    async def _impose(self, sources: Mapping[str, Source], records: Mapping[str, Record]) -> None:
        """Change stored pages that differ from their cache records, which take precedence."""
        now = self.clock()
        for name, source in sources.items():
            is_file = name == FILES
            cached = {page.url: page for page in _pages(records.values(), source, is_file=is_file)}
            known = {page.url: page for page in await self.store.digest.pages(source.id)}
            next_at = None if is_file else now  # a page that is missing in the cache is new, so a link is due now
            uncached = [page for url, page in known.items() if url not in cached]
            lost = [DigestPage(url=page.url, depth=page.depth, next_at=next_at) for page in uncached]
            changed = [page for page in lost if page != known[page.url]]
            for url, page in cached.items():
                before = as_cached(known[url], is_file=is_file) if url in known else None
                if before != as_cached(page, is_file=is_file):
                    changed.append(page)
            if changed:
                await self.store.digest.apply_cache(source.id, changed, now)

    async def _ran(self, source: Source, options: RunOptions) -> RunReport:
        report = await self.runner.run(source, replace(options, for_digest=True), self.listener)
        if report.state == RunState.FAILED and not report.checked:
            raise KbError(f"{SETTINGS[source.name]}: {report.error}; cache and index are unchanged")
        return report

    def _held(self, before: Cache, after: Cache) -> KbError | None:
        """Return an error if more cache records would be removed than the deletion limit allows."""
        gone = before.sources.keys() - after.sources.keys()
        if not exceeds_deletion_limit(len(before.sources), len(gone), self.policy):
            return None
        return KbError(
            f"{len(gone)} of {count(len(before.sources), 'entry', 'entries')} in the cache {self.paths.cache} have no "
            f"file or link any more, such as {one_line(min(gone))}: cache and index are unchanged. Check "
            f"{' and '.join(SETTINGS.values())}; if you removed these files or links on purpose, delete their entries "
            "from the cache"
        )

    async def _records(self, sources: Mapping[str, Source], before: Cache, now: datetime) -> dict[str, Record]:
        records: dict[str, Record] = {}
        if FILES in sources:
            root = path_of(sources[FILES].url).rstrip("/") + "/"
            for page in await self.store.digest.pages(sources[FILES].id):
                path = path_of(page.url).removeprefix(root)
                if record := file_record(page, path):
                    records[path] = record
        if LINKS in sources:
            pages = await self.store.digest.pages(sources[LINKS].id)
            names = await asyncio.to_thread(typed_links, self.paths.links_file)
            if any(page.url not in names for page in pages):  # no longer listed, but kept because of the deletion limit
                known = [each.url for each in before.sources.values() if isinstance(each, UrlRecord)]
                names = {**{url: raw_url for raw_url in known if (url := canonical(raw_url))}, **names}
            for page in pages:
                name = names.get(page.url, page.url)
                records[name] = url_record(page, name, now)
        return records


def _due_links(budget: int) -> RunOptions:
    return RunOptions(mode=RunMode.DUE, budget=budget)


def _taken(known: Source, seen: SeenCache) -> KbError:
    return KbError(
        f"the source {known.name} of this store, {path_of(known.url)}, belongs to another knowledge base, whose cache "
        f"is {seen.path}. A store can have only one knowledge base: set store.url to another store, "
        f"or, if the other knowledge base was deleted or moved here, run `afresh remove {known.name}`"
    )


def _keeps_its_place(known: Source, root: str) -> KbError:
    return KbError(
        f"{SETTINGS[known.name]} was changed from {path_of(known.url)} to {path_of(root)}, which is missing or empty: "
        "all pages, the cache and the index are unchanged. Correct the setting, or add notes or links at the new place"
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
    paths: KbPaths, reports: Mapping[str, RunReport], before: Cache, after: Cache, now: datetime, *, written: bool
) -> KbReport:
    links = [record for record in after.sources.values() if isinstance(record, UrlRecord)]
    later = [record.next_check_at for record in links if record.next_check_at > now]
    return KbReport(
        index=str(paths.index),
        cache=str(paths.cache),
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
    """Keeps the digest up to date: watches the files and the list of links, and checks due links."""

    update: DigestUpdater
    settings: KbSettings
    change_feed: Callable[[Source], ChangeFeed]
    stopping: asyncio.Event
    on_report: WatchListener
    _problem: str | None = None

    async def keep(self) -> None:
        sources, kb = await self.update.sources(), self.settings
        work: list[Coroutine[Any, Any, object]] = [self.stopping.wait()]
        if FILES in sources and kb.file_watch_enabled:
            work.append(self._watch(sources[FILES], kb.file_watch_debounce_seconds))
        if LINKS in sources and kb.links_watch_enabled:
            work.append(self._watch(sources[LINKS], kb.links_watch_debounce_seconds))
        if LINKS in sources:
            work.append(self._ticks())
        await run_together(work)

    async def _watch(self, source: Source, debounce: float) -> None:
        update, times = self.update, WatchTimes(debounce=debounce)
        watch = Watcher(update.store, self.change_feed, update.run, self.stopping, times, self.on_report, ignore)
        await watch.keep([source])

    async def _ticks(self) -> None:
        while not await wait_event(self.stopping, self.settings.runtime_refresh_tick_seconds):
            await self._tick()

    async def _tick(self) -> None:
        budget = self.settings.url_refresh_budget_per_tick
        try:
            if await self.update.is_idle(self.update.clock()):  # otherwise dead links would be requested at every tick
                return
            done = await self.update.part({LINKS: _due_links(budget)})
        except AfreshError as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreUnavailable):
                raise
            if str(error) != self._problem:
                self._problem = str(error)
                self.on_report(Notice(text=f"{LINKS}: {error}; retrying later"))
            return
        self._problem = None
        if done.links is not None:
            self.on_report(done.links)
