"""Open the configured external stores on demand."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from afresh.config import Config
from afresh.config.server import SinkSettings
from afresh.crawl.factory import RunToolFactory
from afresh.errors import ConfigError, UsageError
from afresh.events import Listener
from afresh.plugins import SINKS, load_plugin
from afresh.ports import Sink, SinkKind
from afresh.sync.copy import ReplaceOrder
from afresh.sync.reconcile import SyncTimes
from afresh.sync.sync import SyncRunner
from afresh.sync.sync_pass import ConfiguredSink


@asynccontextmanager
async def syncing(
    tools: RunToolFactory, names: Sequence[str], listener: Listener, stopping: asyncio.Event
) -> AsyncIterator[tuple[SyncRunner, list[ConfiguredSink]]]:
    """Yield a sync runner and the named stores, or all; raise UsageError if there are none."""
    tools.check_everywhere()
    chosen = _chosen(tools.config, names)
    store, heartbeat = tools.standing(listener, stopping)
    async with AsyncExitStack() as opened:
        outlets = []
        for name, settings in chosen.items():
            sink = open_sink(name, settings, tools.config.network.agent)
            opened.push_async_callback(sink.close)
            outlets.append(outlet(name, settings, sink))
        new_id = secrets.token_hex(16)
        yield (
            SyncRunner(store=store, heartbeat=heartbeat, stopping=stopping, listener=listener, new_id=new_id),
            outlets,
        )


def _chosen(config: Config, names: Sequence[str]) -> dict[str, SinkSettings]:
    sinks = config.sinks
    if not sinks:
        raise UsageError(
            "no external store is set: name one under `sinks:` in the settings (docs/howto/sinks.md)"
        )
    for name in names:
        if name not in sinks:
            raise UsageError(f"there is no sink {name}; there are: {', '.join(sorted(sinks))}")
    start = config.file.parent if config.file else Path()  # where relative paths start
    chosen = {name: sinks[name] for name in sorted(sinks) if not names or name in names}
    return {
        name: replace(each, path=str((start / Path(each.path).expanduser()).absolute()))
        if each.path
        else each
        for name, each in chosen.items()
    }


def open_sink(name: str, settings: SinkSettings, user_agent: str) -> Sink:
    """Return the external store that settings describe; import its library only now."""
    try:
        kind = load_plugin(SINKS, settings.kind, SinkKind)
    except ImportError as missing:
        raise ConfigError(f"sinks.{name}: kind: {settings.kind} is not installed ({missing})") from None
    if kind is None:
        raise ConfigError(f"sinks.{name}: kind: {settings.kind} is not installed")
    if kind.base_url is None:
        return kind.open(name, settings)
    from afresh.sources.web.api_client import ApiClient

    address = settings.base_url or kind.base_url
    return kind.open(
        name, settings, ApiClient([address], user_agent=user_agent, connections=settings.at_once)
    )


def outlet(name: str, settings: SinkSettings, sink: Sink) -> ConfiguredSink:
    """Return an external store with its sync settings."""
    return ConfiguredSink(
        name=name,
        kind=settings.kind,
        place=settings.place,
        sink=sink,
        sources=settings.sources,
        order=ReplaceOrder(settings.replace),
        wait_seconds=settings.wait_seconds,
        times=SyncTimes(
            recheck=timedelta(seconds=settings.recheck_seconds),
            deadline=timedelta(seconds=settings.deadline_seconds),
        ),
        secrets=(settings.api_key,) if settings.api_key else (),
    )
