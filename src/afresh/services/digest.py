"""Update the knowledge base folder (`afresh init-kb`), once or continuously."""

from functools import partial
from pathlib import Path

from afresh.config import Config, kb_paths
from afresh.config.kb import KbSettings
from afresh.crawl.bounds import policy_for
from afresh.crawl.judge import brake_holds
from afresh.digest.records import FILES, LINKS
from afresh.digest.update import DigestPaths, DigestUpdater, DigestWatcher
from afresh.errors import ConfigError
from afresh.events import Listener, ignore
from afresh.model.reports import KbReport
from afresh.services.context import Service, ignore_report
from afresh.urls.files import file_url
from afresh.watch.watcher import WatchListener


def digest_paths(config: Config) -> DigestPaths:
    """Return the paths of the knowledge base folder; raise ConfigError if none is configured."""
    from afresh.digest.files import DigestFiles
    from afresh.sources.linklist.lister import is_filled, typed_links

    if not config.kb.in_use:
        raise ConfigError(
            "no knowledge base is configured: set kb.sources_dir to a folder of notes, kb.links_file_path to a list of "
            "links, or both (in the environment: AFRESH_KB__SOURCES_DIR, AFRESH_KB__LINKS_FILE_PATH)"
        )
    paths = kb_paths(config, Path.cwd())
    places = {FILES: paths.sources_dir, LINKS: paths.links_file}
    return DigestPaths(
        roots={name: file_url(str(path)) for name, path in places.items() if path is not None},
        cache=str(paths.cache),
        index=str(paths.index),
        digest_files=DigestFiles(index=paths.index, cache=paths.cache, lock=paths.lock),
        is_filled=lambda name: is_filled(places[name], name),
        typed=partial(typed_links, paths.links_file),
        brake=partial(brake_holds, policy=policy_for(config)),
    )


class DigestService(Service):
    async def update(self, *, listener: Listener = ignore) -> KbReport:
        """Update index and cache of the knowledge base folder: check all files, and the links that are due."""
        update, settings = self._kb_update(listener)
        return await update.whole(settings.url_refresh_budget_per_init)

    async def watch(self, *, on_report: WatchListener = ignore_report, listener: Listener = ignore) -> KbReport:
        """Update the knowledge base folder and, if the settings say so, keep it up to date until `stop`."""
        update, settings = self._kb_update(listener)
        async with self._tools.keep_warm():
            report = await update.whole(settings.url_refresh_budget_per_init)
            for run in (report.files, report.links):
                if run is not None:
                    on_report(run)
            if settings.runtime_refresh_enabled:
                change_feed, stopping = self._tools.change_feed, self._stopping
                await DigestWatcher(update, settings, change_feed, stopping, on_report).keep()
        return report

    def _kb_update(self, listener: Listener) -> tuple[DigestUpdater, KbSettings]:
        self._tools.check_everywhere()
        config = self._tools.config
        return DigestUpdater(self._store, digest_paths(config), self._runner, self._clock, listener), config.kb
