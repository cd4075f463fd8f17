"""List, open, explain, add, check, restore and drop pages, and list their changes."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from afresh.crawl.factory import RunToolFactory, settings_or_none, settings_problem
from afresh.crawl.plausibility import RESTORED
from afresh.dataclass import asdict, replace
from afresh.errors import NotFound, RunBusy, UsageError, no_former_text_message
from afresh.events import ignore
from afresh.model.fetch import CHUNKER
from afresh.model.filters import LIVE_PAGES, CheckCursor, PageFilter, Sources
from afresh.model.labels import label_of
from afresh.model.overview import FetchedPage, PassageView
from afresh.model.records import Attempt, ChangeKind, Page, PageId, PageStatus, RunMode, Source, SourceId, last_answered
from afresh.model.reports import ChangeView, HistoryEntry, NextCheck, OpenedPage, PageExplanation, PageView, recency
from afresh.model.retention import REMOVED
from afresh.model.versions import is_newer
from afresh.schedule.due import due_at
from afresh.schedule.plan import next_check
from afresh.search.records import RechunkJob
from afresh.search.reindex import ReindexTools, cut_page
from afresh.services.context import Service, ServiceContext
from afresh.services.resolve import best_sources, page_of, source_of
from afresh.services.runs import RunService
from afresh.services.sinks import SinkService
from afresh.sources.detect import address as address_of
from afresh.sources.detect import page_address, web_address
from afresh.sources.linklist.parse import LINKS
from afresh.store.store import Store
from afresh.text.language import normalise_tag
from afresh.text.normalize import text_hash
from afresh.text.quantities import count
from afresh.urls.files import is_file_url
from afresh.urls.suggest import clues, nearest
from afresh.urls.traps import display_pattern, pattern_of


def _summary(page: Page, latest: Attempt | None) -> str:
    if latest is None:
        return "not checked yet: it is queued"
    reason = latest.reason or str(latest.outcome)
    parts = [f"the server answers {reason}: the page does not exist" if reason.isdigit() else reason]
    if page.doomed_by is not None:
        parts.append(f"run {page.doomed_by} would delete it and needs confirmation")
    elif page.status is PageStatus.ACTIVE and latest.error_message:
        parts.append("the content of the last successful check is kept")
    if page.doubt is not None and page.doubt not in parts[0]:
        parts.append(page.doubt)
    if page.missing_count:
        times = "run" if page.missing_count == 1 else "runs in a row"
        parts.append(f"no link led here in {page.missing_count} complete {times}")
    return "; ".join(parts)


def _label(entry: HistoryEntry) -> tuple[str | None, str | None]:
    return entry.source, entry.version


async def explain_removed(store: Store, url: str, source: SourceId | None) -> PageExplanation | None:
    """Explain from attempts and changes what happened to a URL whose page is no longer stored."""
    done = [each for each in await store.history.of_url(url, source) if each.outcome is not None]
    if not (owned := [each for each in done if each.source is not None]):
        return None
    latest, mine = owned[0], [each for each in owned if _label(each) == _label(owned[0])]
    if (owner := await store.sources.find(latest.source or "", latest.version)) is None:
        return None
    deleted = next(iter(await store.history.changes([owner.id], url=url, kind=ChangeKind.DELETED, limit=1)), None)
    seen = next((each for each in mine if each.reason and not each.reason.startswith(REMOVED)), latest)
    when = f"deleted on {deleted.at:%Y-%m-%d %H:%M} UTC by run {deleted.run}; " if deleted else ""
    summary = f"{seen.reason or seen.outcome}; {when}its record was removed since (retention.deleted_pages)"
    fields = ("title", "language", "content_hash", "etag", "last_modified", "content_type")
    unknown: Any = dict.fromkeys((*fields, "crawl_time", "last_seen", "moved_to"))
    page = PageView(
        id=PageId(0),  # no page is stored
        source_id=owner.id,
        url=url,
        status=PageStatus.DELETED,
        depth=0,
        checked_at=seen.completed_at,
        changed_at=deleted.at if deleted else None,
        missing_count=0,
        **unknown,
    )
    return PageExplanation(
        url=url,
        source=owner.name,
        version=owner.version,
        status=PageStatus.DELETED,
        summary=summary,
        page=page,
        latest=seen,
        next_look=None,
        linked_from=(),
        attempts=len(mine),
    )


MAX_TEXT_CHARS = 500  # characters of a text filter


class PageService(Service):
    def __init__(self, context: ServiceContext, runs: RunService, sinks: SinkService) -> None:
        super().__init__(context)
        self._runs = runs
        self._sinks = sinks

    async def of_source(
        self, label: str, which: PageFilter = LIVE_PAGES, *, limit: int | None = None
    ) -> list[PageView]:
        """Return the pages of a source that match `which`; the status of a page includes the states of its copies."""
        which = normalised(which)
        source = await self._source(label)
        sinks = list(self._tools.sinks_of(source))
        if not sinks or which.status is None:
            views = await self._store.pages.of_source(source.id, which, limit=limit)
            return await self._sinks.with_copies({source.id: sinks}, views)
        views = await self._store.pages.of_source(source.id, replace(which, status=None, everything=True))
        views = await self._sinks.with_copies({source.id: sinks}, views)
        return [view for view in views if view.status is which.status][:limit]

    async def records(
        self, sources: Sources, which: PageFilter = LIVE_PAGES, *, url: str | None = None, after: int = 0, limit: int
    ) -> list[PageView]:
        """Return pages with their copies, ordered by id; with `url`, only the pages at that URL."""
        which, there = normalised(which), await self._store.sources.all()
        chosen = {each.id: list(self._tools.sinks_of(each)) for each in there if sources is None or each.id in sources}
        if url is not None:
            found = [view for _, view, _, _ in await self._store.pages.find(url) if view.source_id in chosen]
            views = await self._sinks.with_copies(chosen, sorted(found, key=lambda view: view.id))
            return [view for view in views if view.id > after and which.fits(view)][:limit]
        if which.status is None or not any(chosen.values()):
            views = list(await self._store.pages.records(sources, which, after=after, limit=limit))
        else:
            views = await self._by_copies(chosen, which, after, limit)
        return await self._sinks.with_copies(chosen, views)

    async def _by_copies(
        self, chosen: Mapping[SourceId, Sequence[str]], which: PageFilter, after: int, limit: int
    ) -> list[PageView]:
        """Return the pages whose copies have the status in `which`; `chosen` holds the sink names of each source."""
        groups: dict[tuple[str, ...], list[SourceId]] = {}
        for source, sinks in chosen.items():
            groups.setdefault(tuple(sinks), []).append(source)
        parts = [
            await self._store.copies.pages_by_state(sinks, held, which, after=after, limit=limit)
            if sinks
            else await self._store.pages.records(held, which, after=after, limit=limit)
            for sinks, held in groups.items()
        ]
        return sorted((view for part in parts for view in part), key=lambda view: view.id)[:limit]

    async def get(self, number: int) -> PageView:
        view = await page_of(self._store, number)
        return await self._sinks.with_its_copies(await self._store.sources.get(view.source_id), view)

    async def open(
        self, url: str, *, within: str | None = None, former: bool = False, remote: bool = False
    ) -> OpenedPage:
        """Return the stored text of a page or of its redirect target; a `remote` caller may not use local paths."""
        address = (page_address if remote else address_of)(url)
        chosen = (await best_sources(self._store, within))[0] if within else [None]
        for source in chosen:
            opened = await open_page(self._store, address, source.id if source else None, former=former)
            if opened is not None:
                return opened
        raise UsageError(await why_unknown(self._store, self._tools, address, chosen[0].id if chosen[0] else None))

    async def explain(self, url: str, *, within: str | None = None) -> PageExplanation:
        source, address = await self._within(within), address_of(url)
        if not (found := await self._store.pages.find(address, source)):
            if (removed := await explain_removed(self._store, address, source)) is not None:
                return removed
            raise UsageError(await why_unknown(self._store, self._tools, address, source))
        page, view, name, version = found[0]
        owner = await source_of(self._store, page.source_id)
        views = await self._sinks.with_its_copies(owner, view)
        held, keep = await self._store.pages.content(page.id), self._tools.retention().former_texts
        latest, next_look, linked_from, attempts = await self._store.history.evidence(page)
        links = await self._store.history.linked_from_count(page)
        check_at, note = await self._next_check(owner, page, next_look, links)
        return PageExplanation(
            url=page.url,
            source=name,
            version=version,
            status=views.status,
            summary=_summary(page, latest),
            page=views,
            latest=latest,
            next_look=next_look,
            linked_from=linked_from,
            attempts=attempts,
            linked_from_count=links,
            next_check=check_at,
            next_check_note=note,
            former=held.former,
            former_until=held.former_at + keep if held.former_at and keep is not None else None,
        )

    async def _next_check(
        self, source: Source, page: Page, due: datetime | None, links: int
    ) -> tuple[datetime | None, str]:
        if wrong := settings_problem(self._tools, source):
            return None, f"not before the settings of {source.label} are valid: {wrong}"
        age = self._tools.bounds(source)[1].max_age_seconds
        answered = last_answered(page.checked_at, page.observed_at, page.last_seen)
        if due is not None and age is not None and answered is not None:
            due = min(due, answered + timedelta(seconds=age))
        run_at = await self._next_run(source, await self._planned_runs())
        return next_check(source, page, self._tools.schedule(source), run_at, due, links=links)

    async def history(self, url: str, *, within: str | None = None) -> list[HistoryEntry]:
        """Return all attempts at a URL, grouped by source, newest first."""
        store, address, source = self._store, address_of(url), await self._within(within)
        found = {entry.id: entry for entry in await store.history.of_url(address, source)}
        for page, _, name, version in await store.pages.find(address, source):
            for attempt in await store.history.of_page(page.id):  # attempts at former URLs included
                found[attempt.id] = HistoryEntry(**asdict(attempt), source=name, version=version)
        if not found:
            raise UsageError(f"{url} has no history; `afresh pages NAME` lists the stored URLs")
        newest = sorted(found.values(), key=recency, reverse=True)
        order = {label: place for place, label in enumerate(dict.fromkeys(map(_label, newest)))}
        return sorted(newest, key=lambda entry: order[_label(entry)])

    async def attempts(self, number: int, *, below: int | None, limit: int) -> list[Attempt]:
        await page_of(self._store, number)
        return list(await self._store.history.attempts(PageId(number), below=below, limit=limit))

    async def changes(
        self,
        label: str | None = None,
        *,
        sources: Sources = None,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        below: int | None = None,
        limit: int = 50,
    ) -> list[ChangeView]:
        """Return changes, newest first; with `url` (exactly as stored), only those of that page.

        With `below`, return only changes with a smaller id.
        """
        among = [(await self._source(label)).id] if label else sources
        return await self._store.history.changes(among, run=run, url=url, kind=kind, below=below, limit=limit)

    async def add(self, source: Source, url: str) -> PageView:
        """Add a URL as a page that is due now, and start a run of due pages unless a run of the source is open."""
        url, store, now = web_address(url), self._store, self._clock()
        if (why := self._tools.bounds(source)[0].refusal(url, 1)) is not None:
            raise UsageError(f"url: {url} does not belong to {source.label}: {why}")
        if known := await store.pages.find(url, source.id):
            page = known[0][0]
            if page.status is PageStatus.DELETED:
                raise UsageError(f"url: {url} was deleted: a refresh adds it again if a page links to it")
            await store.pages.check_at(page.id, now, now)
            added = page.id
        else:
            added = await store.pages.add(source.id, url, 1, now)
        view = await page_of(store, added)
        if not source.is_of_digest:
            with suppress(RunBusy):  # otherwise the page waits for the next run
                await self._runs.start(source, RunMode.DUE)
        return view

    async def check_at(self, number: int, at: datetime) -> PageView:
        await page_of(self._store, number)
        if not await self._store.pages.check_at(PageId(number), at, self._clock()):
            raise RunBusy(f"page {number} is queued in an open run: try again when the run has ended")
        return await self.get(number)

    async def drop(self, number: int) -> None:
        """Remove a page from the index; a later run that finds the page adds it again."""
        if not await self._store.pages.drop(PageId(number), self._clock()):
            raise NotFound(f"there is no page {number} in the index")

    async def restore(self, url: str, *, within: str | None = None) -> OpenedPage:
        source = await self._within(within)
        async with self._models.for_reindex(ignore, self._stopping) as tools:
            return await restore_page(tools, address_of(url), source)

    async def passages(self, page: int) -> list[PassageView]:
        found = (await self._store.search.page_chunks([PageId(page)])).get(PageId(page), ())
        return [PassageView(content=each.content, path=each.path, types=each.types) for each in found]

    async def fetch_once(self, url: str) -> FetchedPage:
        return await self._tools.fetch_once(web_address(url))

    async def next_checks(
        self, source: Source, *, everything: bool = False, after: CheckCursor | None = None, limit: int
    ) -> list[NextCheck]:
        """Return the due pages of a source, earliest first; with `everything`, also pages that become due later."""
        now, max_age = self._clock(), self._tools.bounds(source)[1].max_age_seconds
        found = await self._store.due.next_checks(
            source.id, now, max_age, everything=everything, after=after, limit=limit
        )
        moments = [(page, due_at(page, now, max_age)) for page in found]
        return [NextCheck(url=page.url, next_look=at, due=at <= now, planned=page.next_at) for page, at in moments]

    async def _within(self, label: str | None) -> SourceId | None:
        return (await self._source(label)).id if label else None


def normalised(which: PageFilter) -> PageFilter:
    """Return the filter with its language tag normalised (EN becomes en); raise UsageError if a value is invalid."""
    if which.text and (len(which.text) > MAX_TEXT_CHARS or not which.text.isprintable()):
        raise UsageError(f"text: expected at most {MAX_TEXT_CHARS} printable characters")
    return replace(which, language=normalise_tag(which.language) or which.language)


_MAX_MOVES = 10
_MAX_COMPARED_URLS = 500  # stored URLs that are compared with an unknown one


async def open_page(store: Store, url: str, source: SourceId | None, *, former: bool = False) -> OpenedPage | None:
    """Return the page at a URL or at its redirect target; None if the URL is not stored."""
    moves: list[str] = []
    while True:
        if not (found := await store.pages.find(url, source)):
            if moves:
                raise UsageError(f"{moves[-1]} moved to {url}, which is not indexed")
            return None
        best = found[0]  # without a version in the request, the newest one wins
        for each in found[1:]:
            if each[2] == best[2] and is_newer(each[3], best[3]):
                best = each
        page, _, name, version = best
        if page.status is not PageStatus.REDIRECT or not page.moved_to:
            break
        moves.append(url)
        if page.moved_to in moves or len(moves) > _MAX_MOVES:
            raise UsageError(f"{moves[0]} redirects in a loop: {' → '.join((*moves, page.moved_to))}")
        url, source = page.moved_to, source or page.source_id
    return OpenedPage(
        url=page.url,
        title=page.title or page.url,
        source=name,
        version=version,
        language=page.language,
        status=page.status,
        content_type=page.content_type,
        checked_at=last_answered(page.checked_at, page.observed_at, page.last_seen),
        changed_at=page.changed_at,
        markdown=await _text(store, page, label_of(name, version), former=former),
        moved_from=tuple(moves),
        also_in=tuple(label_of(*each[2:]) for each in found[1:] if each[0].content_hash is not None),
        doubt=page.doubt,
    )


async def why_unknown(store: Store, tools: RunToolFactory, url: str, within: SourceId | None) -> str:
    """Return why no page is stored for a URL: it is an excluded file, an excluded link or unknown."""
    for source in await store.sources.all() if is_file_url(url) else ():
        chosen = source.id == (within or source.id)
        if chosen and (reason := settings_or_none(lambda each: tools.why_left_out(each, url), source)):
            return f"{url} is left out of {source.label}: {reason}"
    if (link := await store.links.leading_to(url, within)) is None:
        for clue in clues(url):
            if near := nearest(url, await store.pages.urls_with(clue, within, limit=_MAX_COMPARED_URLS)):
                return f"{url} is not indexed; similar: {', '.join(near)}"
        return f"{url} is not indexed; `afresh pages NAME` lists the indexed URLs"
    source, page, depth, follow, belongs = link
    if source.kind == LINKS:
        return f"{url} is linked from {page}, but {source.label} is a list of links: only URLs in the list are read"
    if wrong := settings_problem(tools, source):
        return f"{url} is linked from {page}, but the settings of {source.label} are invalid: {wrong}"
    rules, _ = tools.bounds(source)
    reason = rules.refusal(url, depth + 1)
    if reason is None and follow and not belongs and (pattern := pattern_of(url, rules.root)):
        most = count(rules.max_per_pattern, "page")
        reason = f"there are already {most} like {display_pattern(pattern)}, which look like an infinite URL space"
    if reason is None:
        reason = "max_pages was reached" if follow else "the link or its page says nofollow"
    return f"{url} is linked from {page} but was left out: {reason}"


async def _text(store: Store, page: Page, label: str, *, former: bool) -> str:
    held = await store.pages.content(page.id)
    if former:
        if held.former is None:
            raise UsageError(no_former_text_message(page.url))
        return held.former
    if page.content_hash is None:
        raise UsageError(_why_empty(page, label))
    if held.markdown is None:
        raise UsageError(
            f"no text of {page.url} is stored, only its words (storage.body: none); "
            f"to store it, set storage.body: markdown and run `afresh refresh {label}`"
        )
    return held.markdown


def _why_empty(page: Page, label: str) -> str:
    match page.status:
        case PageStatus.DELETED:
            at = page.changed_at
            since = f"on {at:%Y-%m-%d at %H:%M:%S} UTC" if at else "some time ago"
            return f"{page.url} was deleted {since}; `afresh why {page.url}` tells why"
        case PageStatus.PENDING:
            return f"{page.url} has not been read yet; `afresh refresh {label}` reads it"
    return f"{page.url} has no stored text; `afresh why {page.url}` tells why"


async def restore_page(tools: ReindexTools, url: str, source: SourceId | None) -> OpenedPage:
    """Restore and index the former text of a page; it stays until the page shows another text."""
    if not (found := await tools.store.pages.find(url, source)):
        raise UsageError(f"{url} is not a stored page; `afresh pages NAME --doubtful` lists those that can be restored")
    for page, *_ in found:
        held = await tools.store.pages.content(page.id)
        if held.former is None or page.content_hash is None:
            continue
        restored = replace(
            page,
            title=held.former_title or page.title,
            content_hash=text_hash(held.former),
            refused_hash=page.content_hash,
            doubt=RESTORED,
            chunker=CHUNKER,
        )
        cut = await cut_page(tools, RechunkJob(restored, held.former))
        if not await tools.store.chunks.restore(cut, page, tools.clock()):
            raise RunBusy(f"{url} was not restored: it was read again meanwhile; see `afresh why {url}`")
        if await tools.store.digest.records(page.id) is not None:  # the next update summarises it
            await tools.store.pages.check_at(page.id, tools.clock(), tools.clock())
        if (opened := await open_page(tools.store, url, page.source_id)) is not None:
            return opened
    if any(page.content_hash is not None and page.doubt and page.doubt_hash for page, *_ in found):
        raise NotFound(
            f"{url} still has its text: its last check showed doubtful content, which was not stored, so there is "
            f"nothing to restore (details: `afresh why {url}`)"
        )
    raise NotFound(no_former_text_message(url))
