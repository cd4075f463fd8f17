"""The external stores that the settings name, made when they are needed."""

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from afresh.config import Config
from afresh.config.notify import NotifySettings
from afresh.config.sinks import SinkSettings
from afresh.config.webhooks import WebhookSettings
from afresh.crawl.heartbeat import Vigil
from afresh.errors import ConfigError, UsageError
from afresh.events import Listener
from afresh.model.records import Source
from afresh.notify.outbox import Target
from afresh.notify.sender import Postman
from afresh.notify.transports import Carrier, PlainNotice, SignedPost
from afresh.ports import Clock
from afresh.ports.sinks import Sink
from afresh.store.retry import RetryPolicy
from afresh.store.store import Store
from afresh.sync.copy import Replace
from afresh.sync.reconcile import Times
from afresh.sync.sync import Syncs, is_attached
from afresh.sync.sync_pass import Outlet

if TYPE_CHECKING:
    from afresh.sources.web.api_client import ApiClient

# Each has `open_sink`; one with a BASE_URL is reached by an API and is given the client that asks it.
MODULES = {
    "folder": "afresh.sync.sinks.folder",
    "gemini": "afresh.sync.sinks.gemini",
    "openai": "afresh.sync.sinks.openai",
}
LARGEST_ANSWER = 65_536  # bytes that anyone says to a webhook
NOTIFY = "notify."  # before the names of those who are told through apprise


class Outlets(ABC):
    """Opens external stores; part of the workshop."""

    config: Config
    store: Store
    clock: Clock

    @abstractmethod
    def standing(self, listener: Listener, stopping: asyncio.Event) -> tuple[Store, Vigil]:
        """The store and the life of a process that works until it is told to stop."""

    def sinks_of(self, source: Source) -> dict[str, str]:
        """The stores that are to hold a source, with their kinds."""
        sinks = self.config.sinks
        return {name: sinks[name].kind for name in sorted(sinks) if is_attached(sinks[name].sources, source)}

    def targets(self) -> list[Target]:
        """Who is told of events."""
        hooks, people = self.config.webhooks.items(), self.config.notify.items()
        return [
            *(_target(name, each) for name, each in hooks if each.url is not None),
            *(_target(f"{NOTIFY}{name}", each) for name, each in people),
        ]

    @asynccontextmanager
    async def post_office(self) -> AsyncIterator[Postman]:
        """What sends messages to them: to public addresses, and to what network.allow names."""
        from afresh.sources.web.api_client import ApiClient

        check_notify(self.config)
        hooks, network = self.config.webhooks, self.config.network
        client = ApiClient(
            [each.url for each in hooks.values() if each.url],
            user_agent=network.agent,
            largest_answer=LARGEST_ANSWER,
            allow=network.allow,
        )
        carriers = {target.name: self._carrier(target, client) for target in self.targets()}
        try:
            yield Postman(store=self.store.with_retries(RetryPolicy()), carriers=carriers, clock=self.clock)
        finally:
            await client.close()

    def _carrier(self, target: Target, client: "ApiClient") -> Carrier:
        if target.name.startswith(NOTIFY):
            from afresh.notify.apprise import AppriseNotifier

            place = self.config.notify[target.name.removeprefix(NOTIFY)]
            notifier = AppriseNotifier(self.config.network.allow)
            return PlainNotice(target=target, url=place.url, notifier=notifier)
        hook = self.config.webhooks[target.name]
        return SignedPost(target=target, url=hook.url or "", secret=hook.secret, client=client)

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
                sink = open_sink(name, settings, self.config.network.agent)
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


def _target(name: str, settings: WebhookSettings | NotifySettings) -> Target:
    return Target(name=name, events=frozenset(settings.events), sources=frozenset(settings.sources))


def check_notify(config: Config) -> None:
    """ConfigError, if people are to be told and what tells them is not installed."""
    if config.notify and find_spec("apprise") is None:
        name = next(iter(config.notify))
        raise ConfigError(f"notify.{name} needs apprise: pip install 'afresh[notify]', or remove the setting")


def check_targets(config: Config) -> None:
    """ConfigError for the first place that no message would ever get to."""
    from afresh.notify.target_check import why_not_posted, why_not_told

    check_notify(config)
    for name, hook in config.webhooks.items():
        if hook.url and (why := why_not_posted(hook.url, config.network.allow)):
            raise ConfigError(f"webhooks.{name}.url: {why}")
    for name, place in config.notify.items():
        if why := why_not_told(place.url):
            raise ConfigError(f"notify.{name}.url: {why}")


def open_sink(name: str, settings: SinkSettings, user_agent: str) -> Sink:
    """The store that settings describe; its library is imported only now."""
    try:
        module = import_module(MODULES[settings.kind])
    except ImportError as missing:
        raise ConfigError(f"sinks.{name}: kind: {settings.kind} is not installed ({missing})") from None
    sink: Sink
    if base_url := getattr(module, "BASE_URL", None):
        from afresh.sources.web.api_client import ApiClient

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
