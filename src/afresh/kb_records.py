"""The use cases of records by their numbers: lists in parts, and single records changed by hand."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from types import EllipsisType, MappingProxyType

from afresh.core.answers import KeptAnswer
from afresh.core.errors import RunBusy, Unknown, UsageError
from afresh.core.link_score import KeywordError, checked_keywords, total_score, usual
from afresh.core.looks import Outcome
from afresh.core.model import Attempt, ChangeKind, PageId, RunId, RunMode, RunState, Source
from afresh.core.records import ALL_LINKS, AttemptPlace, LinkFilter, LinkPlace, LinkRecord, Sources
from afresh.core.sync_views import DocumentOutcome, SyncedDocument
from afresh.core.views import ChangeView, PageView, RunReport
from afresh.engine.adding import KB_OWNS, add_source
from afresh.engine.answering import Turn, begin
from afresh.engine.change_source import change_source, check_label, check_tokens, checked_url
from afresh.engine.kb_update import KINDS
from afresh.engine.records import (
    add_page,
    change_settings,
    check_idle,
    checked_settings,
    link_of,
    page_of,
    source_of,
    split,
)
from afresh.engine.runs import run_and_source
from afresh.engine.status import live_report
from afresh.engine.which import exact_source
from afresh.kb_work import Work

NOTHING: Mapping[str, object] = MappingProxyType({})


class Records(Work):
    """Sources, pages, links and runs as records."""

    async def all_sources(self) -> Sequence[Source]:
        """Every source, by name and version."""
        return await self._store.sources.all()

    async def source(self, number: int) -> Source:
        """One source."""
        return await source_of(self._store, number)

    async def add(
        self,
        target: str,
        *,
        name: str | None,
        version: str | None,
        settings: Mapping[str, object],
        keep: bool = True,
        again: bool = True,
    ) -> tuple[Source, bool]:
        """Add a source that somebody names from afar, and whether it is new; nothing is read yet.

        Without `keep` it is removed again if its first run reads nothing.
        """
        kind, url = self._tools.recognise_from_afar(target)
        known = {source.id for source in await self._store.sources.all()}
        rules, policy = split(settings)
        check, now = self._tools.check_settings, self._clock()
        own = {"by_operator": False, "keep": keep, "again": again}
        source = await add_source(self._store, kind, url, name, version, rules, policy, check, now, **own)
        return source, source.id not in known

    async def change_settings(
        self, source: Source, settings: Mapping[str, object], reset: Sequence[str]
    ) -> Source:
        """Lay settings over those of a source, and let some be as everywhere again."""
        check, now = self._tools.check_settings, self._clock()
        await change_settings(self._store, source, settings, reset, check, now)
        return await source_of(self._store, source.id)

    async def change_source(
        self,
        source: Source,
        *,
        name: str | None = None,
        version: str | EllipsisType | None = ...,
        url: str | None = None,
        again: bool = False,
        settings: Mapping[str, object] = NOTHING,
        reset: Sequence[str] = (),
        by_operator: bool = False,
    ) -> tuple[Source, list[str]]:
        """Change name, version, root and settings of a source, all or none, and say what follows from it.

        What is not named stays. A run under way is in the way of another root.
        """
        check, now = self._tools.check_settings, self._clock()
        rules, policy = checked_settings(source, settings, reset, check)
        name, notes = name or source.name, list[str]()
        version = source.version if isinstance(version, EllipsisType) else version
        renames = (name, version) != (source.name, source.version)
        if renames:
            check_label(source, name, version)
            tokens = list(await self._store.access.tokens())
            notes = check_tokens(tokens, source, name, version, now, by_operator=by_operator)
        root = source.url
        if url is not None:
            if source.name in KINDS:
                raise UsageError(f"url: {source.label} {KB_OWNS}")
            recognise = self._tools.recognise if by_operator else self._tools.recognise_from_afar
            root = await checked_url(self._store, source, url, recognise, again=again)
        if root != source.url:
            await check_idle(self._store, source, await self._alive())
        if renames or root != source.url:
            source = await change_source(
                self._store, source, name, version, root, now, by_operator=by_operator
            )
        if settings or reset:
            await self._store.sources.replace_rules(source.id, rules, policy, now)
        return await source_of(self._store, source.id), notes

    async def start(self, source: Source, mode: RunMode | None = None, *, full: bool = False) -> RunReport:
        """Queue a run of a source for whoever works, a refresh if it was read before; RunBusy names one that
        is open."""
        await check_idle(self._store, source, await self._alive())
        usual = RunMode.REFRESH if source.crawl_time else RunMode.CRAWL
        return await self._queue(source, mode or usual, full)

    async def page(self, number: int) -> PageView:
        """One page with its copies."""
        view = await page_of(self._store, number)
        return await self._with_its_copies(await self._store.sources.get(view.source_id), view)

    async def add_page(self, source: Source, url: str) -> PageView:
        """Make an address known and have it looked at: by the run that is open, or by one of what is due."""
        rules, _ = self._tools.bounds(source)
        page = await add_page(self._store, source, rules, self._tools.web_address(url), self._clock())
        if source.name not in KINDS:
            with suppress(RunBusy):  # else it waits for the next
                await self.start(source, RunMode.DUE)
        return page

    async def set_next_look(self, number: int, at: datetime) -> PageView:
        """Set when a page is looked at next."""
        await page_of(self._store, number)
        if not await self._store.pages.check_at(PageId(number), at, self._clock()):
            raise RunBusy(f"page {number} is part of a run that is open: try again when it is over")
        return await self.page(number)

    async def drop_page(self, number: int) -> None:
        """Take a page out of the index now; it comes back if a later run finds it."""
        if not await self._store.pages.drop(PageId(number), self._clock()):
            raise Unknown(f"there is no page {number} in the index")

    async def attempts(self, number: int, *, below: int | None, limit: int) -> list[Attempt]:
        """The attempts of a page, newest first."""
        await page_of(self._store, number)
        return list(await self._store.history.attempts(PageId(number), below=below, limit=limit))

    async def attempts_of_run(
        self,
        number: int,
        *,
        outcome: Outcome | None = None,
        after: AttemptPlace | None = None,
        limit: int,
    ) -> list[Attempt]:
        """What a run looked at so far, by outcome: those that went wrong first."""
        await self.run_source(number)
        if after is not None and outcome not in (None, after.outcome):
            raise UsageError(f"cursor: it is one of {after.outcome}: ask for that outcome, or leave it out")
        found = self._store.history.attempts_of_run(RunId(number), outcome=outcome, after=after, limit=limit)
        return list(await found)

    async def documents_of_run(
        self, number: int, *, outcome: DocumentOutcome | None = None, after: int = 0, limit: int
    ) -> list[SyncedDocument]:
        """What a sync did about documents, as it left each and as it is now."""
        await self.run_source(number)
        found = self._store.copies.documents_of_run(RunId(number), outcome=outcome, after=after, limit=limit)
        return list(await found)

    async def link_list(
        self,
        sources: Sources,
        which: LinkFilter = ALL_LINKS,
        *,
        after: LinkPlace | None = None,
        limit: int,
    ) -> list[LinkRecord]:
        """Links with the pages they stand on, those worth most first."""
        known = replace(which, keyword=usual(which.keyword) if which.keyword else None)
        return list(await self._store.links.records(sources, known, after=after, limit=limit))

    async def link(self, number: int) -> LinkRecord:
        """One link."""
        return await link_of(self._store, number)

    async def add_link(self, page: int, url: str, text: str) -> LinkRecord:
        """Put a link on a page, until the links of the page change."""
        made = await self._store.links.add(PageId(page), self._tools.web_address(url), text)
        if made is None:
            raise Unknown(f"there is no page {page}")
        return await link_of(self._store, made)

    async def set_link(
        self,
        number: int,
        score: float | None,
        comment: str | None,
        keywords: Mapping[str, float] | None = None,
    ) -> LinkRecord:
        """Set what a link is worth, until it is scored again; without a score, its keywords make it."""
        link = await link_of(self._store, number)
        if keywords is not None:
            try:
                keywords = checked_keywords(keywords.items())
            except KeywordError as wrong:
                raise UsageError(f"keywords: {wrong}") from None
            if score is None and keywords:
                weights = self._tools.keywords(await source_of(self._store, link.source_id))
                score = total_score(keywords, weights)
        await self._store.links.set_worth(number, score, comment, keywords)
        return await link_of(self._store, number)

    async def remove_link(self, number: int) -> None:
        """Take a link off all pages, until the links of one change."""
        if not await self._store.links.remove(number):
            raise Unknown(f"there is no link {number} on any page")

    async def run_list(
        self, sources: Sources, *, state: RunState | None = None, below: int | None, limit: int
    ) -> list[RunReport]:
        """Runs as far as they are, newest first."""
        by_id = {source.id: source for source in await self._store.sources.all()}
        runs = await self._store.runs.records(sources, state=state, below=below, limit=limit)
        alive, now = await self._alive(), self._clock()
        owned = [(run, by_id.get(run.source_id)) for run in runs]
        return [live_report(run, source, alive, now) for run, source in owned if source is not None]

    async def run_source(self, number: int) -> Source:
        """The source of a run."""
        return (await run_and_source(self._store, number))[1]

    async def changes(
        self,
        label: str | None = None,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        below: int | None = None,
        limit: int = 50,
    ) -> list[ChangeView]:
        """What changed, newest first; with `url` just on that page."""
        sources = [(await exact_source(self._store, label)).id] if label else None
        place = self._tools.address(url) if url is not None else None
        return await self.change_list(sources, run=run, url=place, kind=kind, below=below, limit=limit)

    async def change_list(
        self,
        sources: Sources,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        below: int | None = None,
        limit: int,
    ) -> list[ChangeView]:
        """Changes, newest first."""
        found = self._store.history.changes(sources, run=run, url=url, kind=kind, below=below, limit=limit)
        return list(await found)

    async def begin_answer(self, caller: str, name: str, asked: str) -> KeptAnswer | Turn:
        """What was answered to a request with this name, or the turn to answer it."""
        return await begin(self._store, self._clock, caller, name, asked)
