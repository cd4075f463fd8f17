"""The use cases of many workers: leaving runs to them, and being one of them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.errors import ConfigError, RunBusy, UsageError
from afresh.core.events import Listener, Notice, ignore
from afresh.core.model import RunMode, Source
from afresh.core.views import RunReport
from afresh.engine.adding import add_source
from afresh.engine.crew import AT_ONCE, Crew
from afresh.engine.kb_update import KINDS
from afresh.engine.lifetime import release_gone
from afresh.engine.report import report_of
from afresh.engine.timetable import next_time
from afresh.engine.tools import Tools
from afresh.engine.which import exact_sources
from afresh.kb_runs import RunsOnRecord
from afresh.ports import Clock
from afresh.store.store import Store


def _nobody(report: RunReport) -> None:
    """Nobody looks on."""


class Work(RunsOnRecord):
    """Runs that wait in the store, and who works on them."""

    _store: Store
    _tools: Tools
    _clock: Clock
    _stopping: asyncio.Event

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
        return await self._queue(source, RunMode.CRAWL, full)

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
                    reports.append(await self._queue(source, mode, full, slot))
            except (RunBusy, ConfigError) as why:
                if len(chosen) == 1 and not (due and isinstance(why, RunBusy)):
                    raise
                listener(Notice(text=f"{source.label} is left out: {why}"))
        return reports

    async def _next_time(self, source: Source) -> datetime | None:
        """When the schedule of a source wants its next look, if it has one."""
        return await next_time(self._store, source, self._tools.schedule(source), self._clock())

    async def _queue(
        self, source: Source, mode: RunMode, full: bool, slot: datetime | None = None
    ) -> RunReport:
        if source.name in KINDS:  # no worker takes it: a run of it is part of an update that writes files
            raise UsageError(f"{source.label} is read by `afresh init-kb`, as the settings of kb say")
        now = self._clock()
        await release_gone(self._store, self._tools.identity()[0], now)
        run, _ = await self._store.runs.start(source.id, mode, full=full, worker=None, now=now, slot=slot)
        return replace(report_of(run, source), seconds=0.0)

    async def work(
        self,
        labels: Sequence[str] = (),
        *,
        at_once: int = AT_ONCE,
        once: bool = False,
        tell: Callable[[RunReport], None] = _nobody,
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
