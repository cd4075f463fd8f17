"""The external stores that the settings name, made when they are needed."""

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path

from afresh.config import Config
from afresh.config.sinks import SinkSettings
from afresh.core.copies import Replace
from afresh.core.errors import ConfigError, UsageError
from afresh.core.events import Listener
from afresh.core.model import Source
from afresh.core.outbox import Target
from afresh.core.reconcile import Times
from afresh.engine.lifetime import Vigil
from afresh.engine.postman import Address, Postman
from afresh.engine.sync import Syncs, is_attached
from afresh.engine.sync_work import Outlet
from afresh.ports import Clock, Library
from afresh.ports.sinks import Sink
from afresh.store.store import SqlStore

# Each has `open_sink`; one with a BASE_URL is reached by an API and is given the client that asks it.
MODULES = {
    "folder": "afresh.sinks.folder",
    "gemini": "afresh.sinks.gemini",
    "openai": "afresh.sinks.openai_store",
}
LARGEST_ANSWER = 65_536  # bytes that anyone says to a webhook


class Outlets(ABC):
    """Opens external stores; part of the workshop."""

    config: Config
    store: SqlStore
    clock: Clock

    @abstractmethod
    def standing(self, listener: Listener, stopping: asyncio.Event) -> tuple[Library, Vigil]:
        """The store and the life of a process that works until it is told to stop."""

    def sinks_of(self, source: Source) -> dict[str, str]:
        """The stores that are to hold a source, with their kinds."""
        sinks = self.config.sinks
        return {name: sinks[name].kind for name in sorted(sinks) if is_attached(sinks[name].sources, source)}

    def targets(self) -> list[Target]:
        """Who is told of events."""
        return [
            Target(name=name, events=frozenset(each.events), sources=frozenset(each.sources))
            for name, each in self.config.webhooks.items()
            if each.url is not None
        ]

    @asynccontextmanager
    async def post_office(self) -> AsyncIterator[Postman]:
        """What sends messages to them: to public addresses, and to what network.allow names."""
        from afresh.fetchers.api import ApiClient

        hooks, network = self.config.webhooks, self.config.network
        addresses = {
            target.name: Address(
                target=target, url=hooks[target.name].url or "", secret=hooks[target.name].secret
            )
            for target in self.targets()
        }
        client = ApiClient(
            [each.url for each in addresses.values()],
            user_agent=network.user_agent,
            largest_answer=LARGEST_ANSWER,
            allow=network.allow,
        )
        try:
            yield Postman(store=self.store, client=client, addresses=addresses, clock=self.clock)
        finally:
            await client.close()

    @asynccontextmanager
    async def syncing(
        self, names: Sequence[str], listener: Listener, stopping: asyncio.Event
    ) -> AsyncIterator[tuple[Syncs, list[Outlet]]]:
        """What syncs, and the stores of these names, or all."""
        chosen = self._chosen(names)
        store, vigil = self.standing(listener, stopping)
        async with AsyncExitStack() as opened:
            outlets = []
            for name, settings in chosen.items():
                sink = open_sink(name, settings, self.config.network.user_agent)
                opened.push_async_callback(sink.close)
                outlets.append(outlet(name, settings, sink))
            new_id = secrets.token_hex(16)
            yield (
                Syncs(store=store, vigil=vigil, stopping=stopping, listener=listener, new_id=new_id),
                outlets,
            )

    def _chosen(self, names: Sequence[str]) -> dict[str, SinkSettings]:
        sinks = self.config.sinks
        if not sinks:
            raise UsageError(
                "no external store is set: name one under `sinks:` in the settings (docs/sinks.md)"
            )
        for name in names:
            if name not in sinks:
                raise UsageError(f"there is no sink {name}; there are: {', '.join(sorted(sinks))}")
        return {name: self._placed(sinks[name]) for name in sorted(sinks) if not names or name in names}

    def _placed(self, settings: SinkSettings) -> SinkSettings:
        """The same wherever the command is given: a folder is meant as seen from the settings file."""
        if settings.path is None:
            return settings
        start = self.config.file.parent if self.config.file else Path()
        return replace(settings, path=str((start / Path(settings.path).expanduser()).absolute()))


def open_sink(name: str, settings: SinkSettings, user_agent: str) -> Sink:
    """The store that settings describe; its library is imported only now."""
    try:
        module = import_module(MODULES[settings.kind])
    except ImportError as missing:
        raise ConfigError(f"sinks.{name}: kind: {settings.kind} is not installed ({missing})") from None
    sink: Sink
    if base_url := getattr(module, "BASE_URL", None):
        from afresh.fetchers.api import ApiClient

        address = settings.base_url or base_url
        client = ApiClient([address], user_agent=user_agent, connections=settings.at_once)
        sink = module.open_sink(name, settings, client)
    else:
        sink = module.open_sink(name, settings)
    return sink


def outlet(name: str, settings: SinkSettings, sink: Sink) -> Outlet:
    """A store with what a sync has to know of it."""
    return Outlet(
        name=name,
        kind=settings.kind,
        place=settings.place,
        sink=sink,
        sources=settings.sources,
        order=Replace(settings.replace),
        wait_seconds=settings.wait_seconds,
        times=Times(
            recheck=timedelta(seconds=settings.recheck_seconds),
            deadline=timedelta(seconds=settings.deadline_seconds),
        ),
        secrets=(settings.api_key,) if settings.api_key else (),
    )
