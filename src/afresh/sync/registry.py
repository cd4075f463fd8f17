"""Open the configured external stores (sinks) and sync them."""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

from afresh.config import Config
from afresh.config.server import SinkSettings
from afresh.crawl.factory import RunToolFactory
from afresh.dataclass import dataclass, replace
from afresh.errors import ConfigError, UsageError
from afresh.events import Listener, ignore
from afresh.model.records import Source
from afresh.plugins import SINKS, load_plugin
from afresh.ports import Sink, SinkKind
from afresh.sync.reconcile import SyncTimes
from afresh.sync.reports import SyncReport
from afresh.sync.sync import SyncRunner
from afresh.sync.sync_pass import ConfiguredSink


@dataclass(frozen=True, slots=True)
class SinkSync:
    """Opens the sinks in the settings, and syncs or previews them."""

    tools: RunToolFactory
    stopping: asyncio.Event

    async def sync(
        self,
        names: Sequence[str] = (),
        only: Sequence[Source] | None = None,
        *,
        dry_run: bool = False,
        verify: bool = False,
        idle_runs: bool = True,
        listener: Listener = ignore,
    ) -> list[SyncReport]:
        """Sync the named sinks or all, with the pages of some sources or all; return a report for each sink.

        A run is stored for each source; without `idle_runs`, only for sources with changes or errors.
        """
        self.tools.check_everywhere()
        chosen = _chosen(self.tools.config, names)
        store, heartbeat = self.tools.standing(listener, self.stopping)
        async with AsyncExitStack() as opened:
            targets = []
            for name, settings in chosen.items():
                sink = open_sink(name, settings, self.tools.config.network.agent)
                opened.push_async_callback(sink.close)
                recheck, deadline = settings.recheck_seconds, settings.deadline_seconds
                times = SyncTimes(recheck=timedelta(seconds=recheck), deadline=timedelta(seconds=deadline))
                targets.append(ConfiguredSink(name=name, settings=settings, sink=sink, times=times))
            runner = SyncRunner(
                store=store,
                heartbeat=heartbeat,
                stopping=self.stopping,
                listener=listener,
                new_id=secrets.token_hex(16),
                idle_runs=idle_runs,
            )
            return await (runner.preview if dry_run else runner.sync)(targets, only, verify=verify)


def _chosen(config: Config, names: Sequence[str]) -> dict[str, SinkSettings]:
    sinks = config.sinks
    if not sinks:
        raise UsageError("no external store is configured: add one under `sinks:` (docs/howto/sinks.md)")
    for name in names:
        if name not in sinks:
            raise UsageError(f"there is no sink {name}; configured are: {', '.join(sorted(sinks))}")
    start = config.file.parent if config.file else Path()  # the base of relative paths
    chosen = {name: sinks[name] for name in sorted(sinks) if not names or name in names}
    return {
        name: replace(each, path=str((start / Path(each.path).expanduser()).absolute())) if each.path else each
        for name, each in chosen.items()
    }


def open_sink(name: str, settings: SinkSettings, user_agent: str) -> Sink:
    """Return the sink for these settings; its library is imported only here."""
    try:
        kind = load_plugin(SINKS, settings.kind, SinkKind)
    except ImportError as missing:
        raise ConfigError(f"sinks.{name}.kind: {settings.kind} is not installed ({missing})") from None
    if kind is None:
        raise ConfigError(f"sinks.{name}.kind: {settings.kind} is not installed: check the name or install its plug-in")
    if kind.base_url is None:
        return kind.open(name, settings)
    from afresh.sources.web.api_client import ApiClient

    address = settings.base_url or kind.base_url
    return kind.open(name, settings, ApiClient([address], user_agent=user_agent, connections=settings.at_once))
