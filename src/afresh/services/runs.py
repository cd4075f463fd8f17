"""The use cases of runs: crawl, refresh, watch, queue, confirm, cancel, and work on what is queued."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from afresh.aio import heard, side_by_side
from afresh.crawl import run_log
from afresh.crawl.heartbeat import release_gone
from afresh.crawl.judge import may_drop
from afresh.crawl.report import report_of
from afresh.crawl.run import run_source
from afresh.crawl.tools import RunOptions
from afresh.crawl.worker_pool import AT_ONCE, Crew
from afresh.digest.update import KINDS
from afresh.errors import ConfigError, RunBusy, UsageError
from afresh.events import Listener, Notice, ignore
from afresh.model.fetch import Outcome
from afresh.model.filters import AttemptPlace, Sources
from afresh.model.overview import Held, HeldPage
from afresh.model.records import Attempt, Listed, Policy, RunId, RunMode, RunState, Source
from afresh.model.reports import RunReport
from afresh.services.add_source import add_source
from afresh.services.confirm import confirm_run
from afresh.services.context import Context, Service, ignore_report
from afresh.services.records import check_idle
from afresh.services.resolve import exact_sources
from afresh.services.run_records import cancel_run, run_and_source, runs_of, waits_for_work
from afresh.services.sinks import SinkService
from afresh.services.status_views import awaited_report, live_report
from afresh.services.valid_settings import if_settled
from afresh.sync.reports import DocumentCounts, DocumentOutcome, SyncedDocument
from afresh.watch.options import USUAL, Sights, WatchTimes, ignore_sight
from afresh.watch.watcher import Watch, watched_of

MOST_HELD = 200  # pages that are named one by one
SHOWN = (RunState.QUEUED, RunState.RUNNING, RunState.NEEDS_CONFIRMATION)


class RunService(Service):
    """Runs."""

    def __init__(self, context: Context, sinks: SinkService) -> None:
        super().__init__(context)
        self._sinks = sinks

    async def stops_within(self, seconds: float) -> bool:
        """Wait for some seconds, or until `stop`: then it is True."""
        return await heard(self._stopping, seconds)

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
        options = RunOptions(
            mode=RunMode.CRAWL, full=full, trust=trust, redetect=redetect, follow_move=follow_move
        )
        return await self.run_now(source, options, listener)

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
                options = RunOptions(
                    mode=mode,
                    full=full,
                    trust=trust,
                    redetect=redetect,
                    follow_move=follow_move,
                    slot=slot,
                    budget=budget,
                )
                return await self.run_now(source, options, listener)
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
            return await self.run_now(source, RunOptions(mode=mode, pages=pages), listener)

        async with self._tools.kept_warm():
            watch = Watch(self._store, self._tools.lookout, look, self._stopping, times, tell)
            await watch.keep(sources)

    async def queue_crawl(
        self,
        target: str,
        *,
        name: str | None = None,
        version: str | None = None,
        rules: Mapping[str, object] | None = None,
        policy: Mapping[str, object] | None = None,
        full: bool = False,
        on_the_web: bool = False,
        keep: bool = True,
        again: bool = True,
    ) -> RunReport:
        """Add the source if it is new, and leave reading it to workers; `on_the_web`: only then.

        Without `keep` it is removed again if its first run reads nothing.
        """
        recognise = self._tools.recognise_on_the_web if on_the_web else self._tools.recognise
        kind, url = recognise(target)
        rules, policy, check, now = rules or {}, policy or {}, self._tools.check_settings, self._clock()
        own = {"by_operator": not on_the_web, "keep": keep, "again": again}
        source = await add_source(self._store, kind, url, name, version, rules, policy, check, now, **own)
        return await self.queue(source, RunMode.CRAWL, full)

    async def queue_refresh(
        self,
        labels: Sequence[str] = (),
        *,
        due: bool = False,
        full: bool = False,
        listener: Listener = ignore,
    ) -> list[RunReport]:
        """Leave another look at some sources or all, or at what is `due`, to workers."""
        meant = [await exact_sources(self._store, label) for label in dict.fromkeys(labels)]
        chosen = [source for sources in meant for source in sources] or [
            source for source in await self._store.sources.all() if source.name not in KINDS
        ]
        mode, reports = RunMode.DUE if due else RunMode.REFRESH, []
        for source in chosen:
            try:
                slot = await self._next_time(source) if due else None
                if slot is None or slot <= self._clock():
                    reports.append(await self.queue(source, mode, full, slot))
            except (RunBusy, ConfigError) as why:
                if len(chosen) == 1 and not (due and isinstance(why, RunBusy)):
                    raise
                listener(Notice(text=f"{source.label} is left out: {why}"))
        return reports

    async def queue(
        self, source: Source, mode: RunMode, full: bool, slot: datetime | None = None
    ) -> RunReport:
        if source.name in KINDS:  # no worker takes it: a run of it is part of an update that writes files
            raise UsageError(f"{source.label} is read by `afresh init-kb`, as the settings of kb say")
        now = self._clock()
        await release_gone(self._store, self._tools.identity()[0], now)
        run, _ = await self._store.runs.start(source.id, mode, full=full, worker=None, now=now, slot=slot)
        return replace(report_of(run, source), seconds=0.0)

    async def start(self, source: Source, mode: RunMode | None = None, *, full: bool = False) -> RunReport:
        """Queue a run of a source for whoever works, a refresh if it was read before; RunBusy names one that
        is open."""
        await check_idle(self._store, source, await self._alive())
        usual = RunMode.REFRESH if source.crawl_time else RunMode.CRAWL
        return await self.queue(source, mode or usual, full)

    async def work(
        self,
        labels: Sequence[str] = (),
        *,
        at_once: int = AT_ONCE,
        once: bool = False,
        tell: Callable[[RunReport], None] = ignore_report,
        listener: Listener = ignore,
    ) -> bool:
        """Work on the runs of the store, of some sources or all, until `stop`; whether all could be.

        With `once` it is over as soon as there is nothing to do.
        """
        crew = Crew(
            self._tools,
            self._stopping,
            tell=tell,
            listener=listener,
            labels=labels,
            at_once=at_once,
            once=once,
        )
        await crew.work()
        return not crew.failed

    async def has_work(self) -> bool:
        """Whether a run is open that no process works on."""
        return await waits_for_work(self._store, await self._alive())

    async def run_now(self, source: Source, options: RunOptions, listener: Listener = ignore) -> RunReport:
        """Run a source in this process and return its report."""
        opened = self._tools.open(source, options, listener, self._stopping)
        async with opened as (kit, rules):
            if options.follow_move and kit.aim is not None:
                rules = replace(rules, may_move=True)  # noqa: PLW2901
                kit.aim(rules)
            if options.budget is not None:
                kit.policy = replace(kit.policy, budget_per_run=options.budget)
            with run_log.run_span(source, options.mode) as ended:
                done = run_source(
                    kit, source, rules, options.mode, self._stopping, options.slot, options.pages
                )
                report = ended(await done)
        return await self._sinks.with_sinks(source, report)

    async def latest(self, label: str | None = None) -> list[RunReport]:
        """The latest runs of all sources, or of those a label means, newest first."""
        sources: Sequence[Source] = (
            await exact_sources(self._store, label) if label else await self._store.sources.all()
        )
        return await runs_of(self._store, sources, await self._alive(), self._clock())

    async def records(
        self, sources: Sources, *, state: RunState | None = None, below: int | None, limit: int
    ) -> list[RunReport]:
        """Runs as far as they are, newest first."""
        by_id = {source.id: source for source in await self._store.sources.all()}
        runs = await self._store.runs.records(sources, state=state, below=below, limit=limit)
        alive, now = await self._alive(), self._clock()
        owned = [(run, by_id.get(run.source_id)) for run in runs]
        return [live_report(run, source, alive, now) for run, source in owned if source is not None]

    async def get(self, number: int) -> RunReport:
        """One run, as far as it is."""
        run, source = await run_and_source(self._store, number)
        report = awaited_report(run, source, await self._alive(), self._clock())
        if report.documents is None or run.state is not RunState.RUNNING:
            return report
        return replace(report, documents=DocumentCounts(**await self._store.copies.count_documents(run.id)))

    async def source_of(self, number: int) -> Source:
        """The source of a run."""
        return (await run_and_source(self._store, number))[1]

    async def live(self, sees: Callable[[str], bool]) -> list[tuple[Source, RunReport]]:
        """What runs, waits for a worker or for a word, of the sources that somebody sees; newest first."""
        alive, now = await self._alive(), self._clock()
        found = []
        for run in await self._store.runs.live():
            source = await self._store.sources.get(run.source_id)
            if source is not None and sees(source.label):
                report = live_report(run, source, alive, now)
                found += [(source, report)] if report.state in SHOWN else []
        return found

    async def attempts(
        self,
        number: int,
        *,
        outcome: Outcome | None = None,
        after: AttemptPlace | None = None,
        limit: int,
    ) -> list[Attempt]:
        """What a run looked at so far, by outcome: those that went wrong first."""
        await self.source_of(number)
        if after is not None and outcome not in (None, after.outcome):
            raise UsageError(f"cursor: it is one of {after.outcome}: ask for that outcome, or leave it out")
        found = self._store.history.attempts_of_run(RunId(number), outcome=outcome, after=after, limit=limit)
        return list(await found)

    async def documents(
        self, number: int, *, outcome: DocumentOutcome | None = None, after: int = 0, limit: int
    ) -> list[SyncedDocument]:
        """What a sync did about documents, as it left each and as it is now."""
        await self.source_of(number)
        found = self._store.copies.documents_of_run(RunId(number), outcome=outcome, after=after, limit=limit)
        return list(await found)

    async def blocked_deletions(self, number: int) -> Held:
        """What a run that the brake holds would delete."""
        run, source = await run_and_source(self._store, number)
        settled = if_settled(self._tools.bounds, source)
        brake = settled[1] if settled else Policy()
        if run.state is not RunState.NEEDS_CONFIRMATION:
            return Held(pages=(), count=0, percent=brake.brake_percent, allowed=brake.brake_pages)
        doomed = await self._store.pages.doomed(source.id)
        pages = [page for page, target in doomed if may_drop(page, target, RunId(number))]
        shown = tuple(
            HeldPage(id=page.id, url=page.url, title=page.title, moved_to=page.moved_to)
            for page in pages[:MOST_HELD]
        )
        return Held(pages=shown, count=len(pages), percent=brake.brake_percent, allowed=brake.brake_pages)

    async def cancel(self, number: int) -> RunReport:
        """Stop a run, in whatever process; what it has read stays, and the next refresh goes on with it."""
        return await cancel_run(self._store, number, self._clock())

    async def confirm(self, run: int) -> RunReport:
        """Let a run that the brake holds delete what it found gone."""
        found, source = await run_and_source(self._store, run)
        return await confirm_run(self._store, found, source, self._clock(), self._tools.targets())
