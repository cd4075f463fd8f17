"""The use cases of the digest of files and links (init-kb): bring it up to date once, or keep it so."""

from collections.abc import Sequence

from afresh.config.kb import KbSettings
from afresh.crawl.tools import RunOptions
from afresh.digest.update import KbUpdate
from afresh.digest.watch import KbWatch
from afresh.events import Listener, ignore
from afresh.model.records import Listed, RunMode, Source
from afresh.model.reports import (
    KbReport,
    RunReport,
)
from afresh.services.context import Context, Service
from afresh.services.runs import RunService
from afresh.watch.options import Sights, ignore_sight


class DigestService(Service):
    """index.txt and its cache."""

    def __init__(self, context: Context, runs: RunService) -> None:
        super().__init__(context)
        self._runs = runs

    async def update(self, *, listener: Listener = ignore) -> KbReport:
        """Bring index and cache of the knowledge base up to date: files, and links that are due."""
        update, settings = self._kb_update(listener)
        return await update.whole(settings.url_refresh_budget_per_init)

    async def watch(self, *, tell: Sights = ignore_sight, listener: Listener = ignore) -> KbReport:
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
            return await self._runs.run_now(
                source, RunOptions(mode=mode, pages=pages, budget=budget), listener
            )

        return KbUpdate(self._store, desk, look, self._clock), settings
