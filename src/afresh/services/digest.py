"""Update the knowledge base folder (`afresh init-kb`), once or continuously."""

from pathlib import Path

from afresh.config import kb_paths
from afresh.config.kb import KbSettings
from afresh.crawl.bounds import policy_for
from afresh.digest.files import DigestFiles
from afresh.digest.update import DigestUpdater, DigestWatcher
from afresh.errors import ConfigError
from afresh.events import Listener, ignore
from afresh.model.reports import KbReport
from afresh.services.context import Service
from afresh.watch.watcher import WatchListener


class DigestService(Service):
    async def update(self, *, listener: Listener = ignore) -> KbReport:
        """Update `index.txt` and its cache: check all files of the knowledge base, and its links that are due."""
        update, settings = self._kb_update(listener)
        return await update.whole(settings.url_refresh_budget_per_init)

    async def watch(self, *, on_report: WatchListener = ignore, listener: Listener = ignore) -> KbReport:
        """Update `index.txt`; with `kb.runtime_refresh_enabled`, keep it up to date until the service is stopped."""
        update, settings = self._kb_update(listener)
        async with self._tools.keep_warm():
            report = await update.whole(settings.url_refresh_budget_per_init)
            for run in (report.files, report.links):
                if run is not None:
                    on_report(run)
            if settings.runtime_refresh_enabled:
                await DigestWatcher(update, settings, self._tools.change_feed, self._stopping, on_report).keep()
        return report

    def _kb_update(self, listener: Listener) -> tuple[DigestUpdater, KbSettings]:
        self._tools.check_everywhere()
        config = self._tools.config
        if not config.kb.in_use:
            raise ConfigError(
                "no knowledge base is configured: set kb.sources_dir to a folder of notes, kb.links_file_path to a "
                "list of links, or both (in the environment: AFRESH_KB__SOURCES_DIR, AFRESH_KB__LINKS_FILE_PATH)"
            )
        paths = kb_paths(config, Path.cwd())
        update = DigestUpdater(
            store=self._store,
            paths=paths,
            policy=policy_for(config),
            files=DigestFiles(index=paths.index, cache=paths.cache),
            runner=self._runner,
            clock=self._clock,
            listener=listener,
        )
        return update, config.kb
