"""Bringing the knowledge base up to date: the cache wins, two sources are run, both files are written."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from afresh.digest.cache import Cache, FileRecord, Record, SeenCache, UrlRecord
from afresh.digest.records import (
    FILES,
    LINKS,
    KbPage,
    as_cached,
    file_record,
    forgotten,
    is_dead,
    page_of,
    url_record,
)
from afresh.errors import KbError
from afresh.model.records import Listed, RunMode, RunState, Source
from afresh.model.reports import BackingOff, KbReport, RunReport
from afresh.ports import Clock, Shelf
from afresh.store.store import Store
from afresh.text.redact import one_line
from afresh.urls.canonical import canonical
from afresh.urls.files import file_url, path_of

Look = Callable[[Source, RunMode, Sequence[Listed], int | None], Awaitable[RunReport]]
KINDS = {FILES: "folder", LINKS: "links"}
SETTINGS = {FILES: "kb.sources_dir", LINKS: "kb.links_file_path"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where the knowledge base is."""

    roots: Mapping[str, str]  # name of a source → its address; those that are set
    cache: str
    index: str
    shelf: Shelf
    is_filled: Callable[[str], bool]  # whether the root of a source is there and holds something
    typed: Callable[[], Mapping[str, str]]  # listed address → as the list of links writes it
    brake: Callable[[int, int], bool]  # whether so many of all are too many to leave at once


@dataclass(frozen=True, slots=True)
class Part:
    """What an update looks at: a whole source, or some of its files."""

    name: str
    mode: RunMode
    pages: Sequence[Listed] = ()
    budget: int | None = None


class KbUpdate:
    """Updates cache and index, one update at a time."""

    def __init__(self, store: Store, desk: Desk, look: Look, clock: Clock) -> None:
        self._store = store
        self._desk = desk
        self._look = look
        self._clock = clock
        self._turn = asyncio.Lock()

    async def sources(self) -> dict[str, Source]:
        """The sources of the knowledge base, made where they are missing or were rooted elsewhere."""
        return (await self._rooted(await self._store.digest.cache_seen()))[0]

    async def whole(self, budget: int) -> KbReport:
        """Look at all files and at the links that are due."""
        return await self.part(Part(FILES, RunMode.REFRESH), Part(LINKS, RunMode.DUE, (), budget))

    async def part(self, *asked: Part) -> KbReport:
        """Look at some of it, under the lock of the one writer; where that fails both files stay."""
        desk, parts = self._desk, list(asked)
        async with self._turn, desk.shelf.one_writer(self._clock):
            cache, seen = await asyncio.to_thread(desk.shelf.read), await self._store.digest.cache_seen()
            sources, fresh = await self._rooted(seen)
            imposed = fresh or seen != self._cache_now()
            if imposed:
                if fresh or seen != self._taken_over():
                    await self._impose(sources, cache.sources if cache else {})
                    await self._store.digest.see_cache(self._taken_over())
                parts = _everything(parts)
            reports = {
                each.name: await self._ran(sources[each.name], each) for each in parts if each.name in sources
            }
            now = self._clock()
            before = cache or Cache(generated_at=now, sources={})
            after = before.with_sources(await self._records(sources, before, now), now)
            if imposed and (held := self._held(before, after)):
                await self._store.digest.see_cache(
                    SeenCache(desk.cache, "held")
                )  # it is to be taken over again
                raise held
            written = await asyncio.to_thread(desk.shelf.write, after)
            if (told := self._cache_now()) is not None and (imposed or told != seen):
                await self._store.digest.see_cache(told)
        report = _report(desk, reports, before, after, now, written=written)
        return replace(report, failing_links=await self._failing(sources.get(LINKS), after, now))

    async def is_idle(self, now: datetime) -> bool:
        """Whether the time of no link has come, and nobody has touched the cache."""
        from afresh.schedule.due import due

        cache = await asyncio.to_thread(self._desk.shelf.read)
        if cache is None or await self._store.digest.cache_seen() != self._cache_now():
            return False
        source = await self._store.sources.find(LINKS, None)
        return source is None or not due(await self._store.due.waiting(source.id), now, budget=1)

    async def _failing(self, links: Source | None, cache: Cache, now: datetime) -> tuple[BackingOff, ...]:
        """The links that cannot be read, whether this update asked for them or left them for later."""
        records = [each for each in cache.sources.values() if isinstance(each, UrlRecord)]
        if links is None or not any(each.consecutive_failures for each in records):
            return ()
        dead = {page.url for page in await self._store.digest.pages(links.id) if is_dead(page)}
        reasons = {each.url: each.reason for each in await self._store.due.backing_off(links.id, now)}
        return tuple(
            BackingOff(
                url=each.url,
                failures=each.consecutive_failures,
                next_at=each.next_check_at,
                reason=reasons.get(url),
            )
            for each in sorted(records, key=lambda record: record.url)
            if (url := canonical(each.url)) in dead
        )

    def _cache_now(self) -> SeenCache | None:
        digest = self._desk.shelf.digest
        return None if digest is None else SeenCache(self._desk.cache, digest)

    def _taken_over(self) -> SeenCache:
        """The mark of a cache that the store took over, until the update that did so is through.

        If that one fails, the next finds it and keeps what was made since: nothing is paid for twice.
        """
        return SeenCache(self._desk.cache, f"taken over: {self._desk.shelf.digest or 'none'}")

    async def _rooted(self, seen: SeenCache | None) -> tuple[dict[str, Source], bool]:
        """The sources, and whether one of them is new; one whose root is no longer set goes."""
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
            found[name] = known or await self._store.sources.add(
                name=name,
                version=None,
                kind=kind,
                url=root,
                rules={},
                policy={},
                now=self._clock(),
                by_operator=True,
            )
        return found, fresh

    async def _impose(self, sources: Mapping[str, Source], records: Mapping[str, Record]) -> None:
        """Where the cache says something else than the store, the cache is right."""
        now = self._clock()
        for name, source in sources.items():
            is_file = name == FILES
            said = {page.url: page for page in _pages(records.values(), source, is_file=is_file)}
            known = {page.url: page for page in await self._store.digest.pages(source.id)}
            new = [
                lost
                for url, page in known.items()
                if url not in said and (lost := forgotten(page, None if is_file else now)) != page
            ]
            other = [
                page
                for url, page in said.items()
                if url not in known
                or as_cached(known[url], is_file=is_file) != as_cached(page, is_file=is_file)
            ]
            if new or other:
                await self._store.digest.impose(source.id, [*new, *other], now)

    async def _ran(self, source: Source, part: Part) -> RunReport:
        report = await self._look(source, part.mode, part.pages, part.budget)
        if report.state == RunState.FAILED and not report.checked:
            raise KbError(f"{SETTINGS[source.name]}: {report.error}; cache and index are as they were")
        return report

    def _held(self, before: Cache, after: Cache) -> KbError | None:
        """Why what only the cache knows does not leave: the brake of a run holds nothing of that."""
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
            pages, names = (
                await self._store.digest.pages(sources[LINKS].id),
                await asyncio.to_thread(self._desk.typed),
            )
            if any(page.url not in names for page in pages):  # off the list, and held by the brake
                names = {**_names(before), **names}
            for page in pages:
                name = names.get(page.url, page.url)
                records[name] = url_record(page, name, now)
        return records


def _everything(parts: Sequence[Part]) -> list[Part]:
    """The parts, and what else may differ once the cache was taken over: all files, and the list."""
    links = next((each for each in parts if each.name == LINKS), Part(LINKS, RunMode.DUE, (), 0))
    return [Part(FILES, RunMode.REFRESH), links]


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


def _pages(records: Iterable[Record], source: Source, *, is_file: bool) -> list[KbPage]:
    """What the records of one source say of its pages."""
    pages = []
    root = path_of(source.url).rstrip("/")
    for record in records:
        if isinstance(record, FileRecord) and is_file:
            pages.append(page_of(record, file_url(f"{root}/{record.rel_path}")))
        elif isinstance(record, UrlRecord) and not is_file and (url := canonical(record.url)):
            pages.append(page_of(record, url))
    return pages


def _names(cache: Cache) -> dict[str, str]:
    """How the cache writes the addresses of links."""
    return {
        url: record.url
        for record in cache.sources.values()
        if isinstance(record, UrlRecord) and (url := canonical(record.url))
    }


def _report(
    desk: Desk, reports: Mapping[str, RunReport], before: Cache, after: Cache, now: datetime, *, written: bool
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
