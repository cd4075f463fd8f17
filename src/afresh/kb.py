"""The knowledge base: the use cases, each a few lines, under every face."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from afresh.config.kb import KbSettings
from afresh.core.asking import Asked, Mode, Narrowed
from afresh.core.errors import ConfigError, RunBusy, UsageError
from afresh.core.events import Listener, Notice, ignore
from afresh.core.history import HistoryEntry
from afresh.core.link_score import usual
from afresh.core.model import Listed, Page, RunMode, Source, SourceId
from afresh.core.signals import needs_text, without_text
from afresh.core.store_views import Finding
from afresh.core.views import (
    Answer,
    FoundVersion,
    KbReport,
    LinkView,
    OpenedPage,
    PageView,
    Plan,
    Reindexed,
    RunReport,
    StoreStatus,
    Why,
)
from afresh.core.watching import USUAL, Sights, WatchTimes, ignore_sight
from afresh.engine import journal
from afresh.engine.adding import add_source
from afresh.engine.confirm import confirm_run
from afresh.engine.explain import explain, explain_removed, history_of
from afresh.engine.kb_update import KbUpdate
from afresh.engine.kb_watch import KbWatch
from afresh.engine.plan import plan_of
from afresh.engine.reading import open_page, why_unknown
from afresh.engine.reindex import reindex
from afresh.engine.run import run_source
from afresh.engine.runs import run_and_source
from afresh.engine.settled import if_settled
from afresh.engine.side_by_side import side_by_side
from afresh.engine.status import status_of
from afresh.engine.tools import Models, Tools
from afresh.engine.watch import Watch, watched_of
from afresh.engine.which import best_sources, exact_source, exact_sources, stand_in_note
from afresh.kb_access import Admission
from afresh.kb_glances import Glances
from afresh.kb_hooks import Hooks
from afresh.kb_measures import Measures, Sums
from afresh.kb_pictures import Pictures
from afresh.kb_records import Records
from afresh.kb_schedule import Scheduling
from afresh.ports import Clock
from afresh.store.store import Store


class KnowledgeBase(Records, Glances, Hooks, Scheduling, Admission, Measures, Pictures):
    """Everything afresh can be asked to do."""

    def __init__(self, store: Store, tools: Tools, models: Models, clock: Clock) -> None:
        self._store = store
        self._tools = tools
        self._models = models
        self._clock = clock
        self._stopping = asyncio.Event()
        self._sums = Sums()

    async def crawl(
        self,
        target: str,
        *,
        name: str | None = None,
        version: str | None = None,
        rules: Mapping[str, object] | None = None,
        policy: Mapping[str, object] | None = None,
        full: bool = False,
        trust: bool = False,
        redetect: bool = False,
        follow_move: bool = False,
        keep: bool = True,
        again: bool = True,
        listener: Listener = ignore,
    ) -> RunReport:
        """Add the source if it is new, and read it now; `follow_move` lets its root lead to another site.

        Without `keep` it is removed again if its first run reads nothing.
        """
        kind, url = self._tools.recognise(target)
        source = await add_source(
            self._store,
            kind,
            url,
            name,
            version,
            rules or {},
            policy or {},
            self._tools.check_settings,
            self._clock(),
            by_operator=True,
            keep=keep,
            again=again,
        )
        return await self._run(
            source, RunMode.CRAWL, full, trust, redetect, listener, follow_move=follow_move
        )

    async def refresh(
        self,
        labels: Sequence[str] = (),
        *,
        due: bool = False,
        budget: int | None = None,
        full: bool = False,
        trust: bool = False,
        redetect: bool = False,
        follow_move: bool = False,
        listener: Listener = ignore,
    ) -> list[RunReport]:
        """Look again at some sources or all, or just at what is `due`, processing only what changed.

        `full` reads every page again, `trust` believes every 200, and `redetect` reads every page again and
        sets its language anew; `budget` is how many pages of each source are looked at of what is due;
        `follow_move` lets the root of a source lead to another site.
        """
        meant = [await exact_sources(self._store, label) for label in dict.fromkeys(labels)]
        chosen = [source for sources in meant for source in sources] or list(await self._store.sources.all())
        mode = RunMode.DUE if due else RunMode.REFRESH

        async def one(source: Source) -> RunReport | None:
            try:
                slot = await self._next_time(source) if due else None
                if self._stopping.is_set() or (slot is not None and slot > self._clock()):
                    return None
                asked = (mode, full, trust, redetect, listener, slot, (), budget, follow_move)
                return await self._run(source, *asked)
            except RunBusy as busy:  # another process looks after it: no reason to leave the others alone
                if len(chosen) == 1 and not due:
                    raise
                listener(Notice(text=f"{source.label} is left out: {busy}"))
                return None
            except ConfigError as wrong:  # told when the others are done
                raise wrong if len(chosen) == 1 else ConfigError(f"{source.label}: {wrong}") from None

        reports = await side_by_side([partial(one, source) for source in chosen])
        return [report for report in reports if report is not None]

    async def watch(
        self,
        labels: Sequence[str] = (),
        *,
        times: WatchTimes = USUAL,
        tell: Sights = ignore_sight,
        listener: Listener = ignore,
    ) -> None:
        """Keep files on this machine fresh until `stop`: what changes is looked at when it changes."""
        meant = {label: await exact_sources(self._store, label) for label in labels}
        sources = watched_of(meant, await self._store.sources.all())

        async def look(source: Source, mode: RunMode, pages: Sequence[Listed]) -> RunReport:
            return await self._run(source, mode, False, False, False, listener, pages=pages)

        async with self._tools.kept_warm():
            watch = Watch(self._store, self._tools.lookout, look, self._stopping, times, tell)
            await watch.keep(sources)

    async def init_kb(self, *, listener: Listener = ignore) -> KbReport:
        """Bring index and cache of the knowledge base up to date: files, and links that are due."""
        update, settings = self._kb_update(listener)
        return await update.whole(settings.url_refresh_budget_per_init)

    async def watch_kb(self, *, tell: Sights = ignore_sight, listener: Listener = ignore) -> KbReport:
        """The same, and then keep both up to date until `stop`, as far as the settings say."""
        update, settings = self._kb_update(listener)
        async with self._tools.kept_warm():
            report = await update.whole(settings.url_refresh_budget_per_init)
            for run in (report.files, report.links):
                if run is not None:
                    tell(run)
            if settings.runtime_refresh_enabled:
                lookout, stopping = self._tools.lookout, self._stopping
                await KbWatch(update, settings, self._store, lookout, stopping, self._clock, tell).keep()
        return report

    def _kb_update(self, listener: Listener) -> tuple[KbUpdate, KbSettings]:
        desk, settings = self._tools.desk()

        async def look(
            source: Source, mode: RunMode, pages: Sequence[Listed], budget: int | None
        ) -> RunReport:
            return await self._run(source, mode, False, False, False, listener, pages=pages, budget=budget)

        return KbUpdate(self._store, desk, look, self._clock), settings

    async def search(
        self,
        query: str,
        *,
        within: Sequence[str] = (),
        language: str | None = None,
        path: str | None = None,
        changed_within: timedelta | None = None,
        checked_within: timedelta | None = None,
        mode: str = Mode.HYBRID,
        max_age: timedelta | None = None,
        limit: int = 10,
        every_chunk: bool = False,
        context: bool = False,
        listener: Listener = ignore,
    ) -> Answer:
        """The passages that answer a query best; `max_age` looks at their pages again if they are older."""
        from afresh.engine.search import answer, older_pages

        if limit < 1:
            raise UsageError(f"at least one answer has to be allowed, not {limit}")
        now = self._clock()
        meant = [await best_sources(self._store, label) for label in within]
        chosen = [source for sources, _ in meant for source in sources]
        told = [note for _, version in meant if (note := stand_in_note(version))]
        told += await self._unkept(chosen, query, context)
        narrowed = Narrowed(
            sources=tuple(source.id for source in chosen) if chosen else None,
            language=language,
            path=path,
            changed_after=now - changed_within if changed_within else None,
            checked_after=now - checked_within if checked_within else None,
        )
        asked = Asked(query=query, within=narrowed, mode=Mode(mode), limit=limit, every_chunk=every_chunk)
        async with self._models.for_questions(asked.mode) as (embedder, notes):
            found = await answer(self._store, asked, embedder, notes, context=context)
            old = older_pages(found.hits, now - max_age) if max_age is not None else {}
            if old:
                told += await self._check(old, listener)
                found = await answer(self._store, asked, embedder, notes, context=context)
            return replace(found, notes=(*found.notes, *told))

    async def _unkept(self, chosen: Sequence[Source], query: str, context: bool) -> list[str]:
        """What a search asks for that sources without text cannot give."""
        if not needs_text(query, context=context):
            return []
        sources = chosen or await self._store.sources.all()
        keeps = self._tools.keeps_text
        return without_text([each.label for each in sources if if_settled(keeps, each) is False], query)

    async def _check(self, old: Mapping[str, Sequence[Listed]], listener: Listener) -> list[str]:
        """Look again at some pages, by the label of their source; what could not be done."""
        from afresh.engine.search import told_of_check

        notes = []
        for label, pages in old.items():
            if self._stopping.is_set():
                notes.append(f"{label} was not looked at again: stopped")
                continue
            source = await self._source(label)
            try:
                report = await self._run(source, RunMode.CHECK, False, False, False, listener, pages=pages)
            except RunBusy as busy:
                notes.append(f"{label} was not looked at again: {busy}")
                continue
            notes += told_of_check(label, report)
        return notes

    async def reindex(self, labels: Sequence[str] = (), *, listener: Listener = ignore) -> list[Reindexed]:
        """Make chunks and vectors anew from stored text where the recipe or the model changed."""
        chosen: list[Source | None] = [await self._source(label) for label in dict.fromkeys(labels)] or [None]
        reports = []
        for source in chosen:
            if self._stopping.is_set():
                break
            async with self._models.for_remake(listener, self._stopping) as remake:
                reports.append(await reindex(remake, source))
        return reports

    async def open(
        self, url: str, *, within: str | None = None, former: bool = False, from_afar: bool = False
    ) -> OpenedPage:
        """The stored text of a page, or of the page it moved to; `from_afar`: no path is taken for one."""
        address = (self._tools.page_address if from_afar else self._tools.address)(url)
        chosen = (await best_sources(self._store, within))[0] if within else [None]
        for source in chosen:
            opened = await open_page(self._store, address, source.id if source else None, former=former)
            if opened is not None:
                return opened
        raise UsageError(await self._why_not(address, chosen[0].id if chosen[0] else None))

    async def find_version(self, label: str) -> FoundVersion:
        """The version of a source that a label means, which may be a range, and the versions there are."""
        return (await best_sources(self._store, label))[1]

    async def links(
        self,
        label: str,
        *,
        page: str | None = None,
        keyword: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
    ) -> list[LinkView]:
        """The links of a source, or of one of its pages, those worth most first."""
        source, on = await self._source(label), page and self._tools.address(page)
        word = keyword and usual(keyword)
        return await self._store.links.of_source(
            source.id, page=on, keyword=word, min_score=min_score, limit=limit
        )

    async def history(self, url: str, *, within: str | None = None) -> list[HistoryEntry]:
        """All attempts to look at an address, source by source, newest first."""
        source = (await self._source(within)).id if within else None
        attempts = await history_of(self._store, self._tools.address(url), source)
        if not attempts:
            raise UsageError(f"nothing is known of {url}; `afresh pages NAME` lists the addresses on record")
        return attempts

    async def why(self, url: str, *, within: str | None = None) -> Why:
        """The evidence behind the state of a page."""
        source = (await self._source(within)).id if within else None
        found = await self._store.pages.find(self._tools.address(url), source)
        removed = None if found else await explain_removed(self._store, self._tools.address(url), source)
        if removed is not None:
            return removed
        page, view, name, version = found[0] if found else await self._page(url, within)
        shown = await self._with_its_copies(await self._store.sources.get(page.source_id), view)
        return await explain(self._store, page, shown, name, version, self._tools.retention().former_texts)

    async def status(self) -> StoreStatus:
        """The store at a glance."""
        status = await status_of(self._store, self._tools, self._clock(), self._models.wanted())
        return replace(status, sinks=await self.sink_views(await self._store.sources.all()))

    async def plan(self, label: str) -> Plan:
        """What a refresh would look at and cost; writes and fetches nothing."""
        source = await self._source(label)
        bounds = self._tools.bounds(source)
        plan = await plan_of(self._store, source, *bounds, self._clock(), self._models.wanted())
        return replace(plan, next_time=await self._next_time(source))

    async def remove(self, label: str) -> int:
        """Delete a source and its pages; the answer is how many had content. Several versions: name one."""
        source = await exact_source(self._store, label, only=True)
        pages = await self._store.pages.live_count(source.id)
        await self._store.sources.remove(source.id, self._clock())
        return pages

    async def confirm(self, run: int) -> RunReport:
        """Let a run that the brake holds delete what it found gone."""
        found, source = await run_and_source(self._store, run)
        return await confirm_run(self._store, found, source, self._clock(), self._tools.targets())

    async def ready(self) -> None:
        """Whether the store answers; it raises why not."""
        await self._store.vectors.serving_model()

    async def doctor(self) -> list[Finding]:
        """What is well and what is not, with what to do about it."""
        return await self._tools.examine()

    def stop(self) -> None:
        """Ask the run under way to end soon; what is finished is kept, the rest waits."""
        self._stopping.set()

    async def close(self) -> None:
        """Close the store."""
        await self._store.close()

    async def _run(
        self,
        source: Source,
        mode: RunMode,
        full: bool,
        trust: bool,
        redetect: bool,
        listener: Listener,
        slot: datetime | None = None,
        pages: Sequence[Listed] = (),
        budget: int | None = None,
        follow_move: bool = False,
    ) -> RunReport:
        async with self._tools.open(source, full, trust, redetect, listener, self._stopping) as (kit, rules):
            if follow_move and kit.aim is not None:
                rules = replace(rules, may_move=True)  # noqa: PLW2901
                kit.aim(rules)
            if budget is not None:
                kit.policy = replace(kit.policy, budget_per_run=budget)
            with journal.run_span(source, mode) as ended:
                report = ended(await run_source(kit, source, rules, mode, self._stopping, slot, pages))
        return await self._with_sinks(source, report)

    async def _source(self, label: str) -> Source:
        return await exact_source(self._store, label)

    async def _page(self, url: str, within: str | None) -> tuple[Page, PageView, str, str | None]:
        source = (await self._source(within)).id if within else None
        found = await self._store.pages.find(self._tools.address(url), source)
        if not found:
            raise UsageError(await self._why_not(self._tools.address(url), source))
        return found[0]

    async def _why_not(self, url: str, within: SourceId | None) -> str:
        return await why_unknown(self._store, self._tools, url, within)
