"""Build the tools of each run from the settings of its source."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from copy import copy
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from afresh.access.permissions import EVERYTHING, Permissions
from afresh.config import Config, PolicySettings
from afresh.config.sources import retention_from
from afresh.crawl.bounds import own_settings_of, policy_for, rules_at_root, rules_for, schedule_of
from afresh.crawl.heartbeat import Heartbeat, MonotonicClock, registered_worker
from afresh.crawl.hosts import HostLimiter
from afresh.crawl.plausibility import PROBE
from afresh.crawl.run_log import unfailing
from afresh.crawl.soft_404 import Soft404Probe
from afresh.crawl.tools import RunOptions, RunTools
from afresh.crawl.url_patterns import UrlPatternCounter
from afresh.dataclass import dataclass, replace
from afresh.digest.summaries import DigestSummaries
from afresh.errors import AfreshError, ConfigError, NotFound
from afresh.events import Listener, Notice, WithoutSteps, ignore
from afresh.extract.pool.pool import ParserPool
from afresh.extract.pool.wire import EXTRACT, EXTRACT_VISIBLE, READ
from afresh.links.score import KeywordWeights
from afresh.links.scoring import LinkScoring
from afresh.model.fetch import Body
from afresh.model.labels import is_among
from afresh.model.overview import SourceListing
from afresh.model.records import Policy, Source, WorkerRecord
from afresh.model.retention import Retention
from afresh.notify.outbox import MessageTarget
from afresh.ops.tracing import get_recorder
from afresh.plugins import EXTRACTORS, installed_plugins
from afresh.ports import ChangeFeed, Clock
from afresh.schedule.plan import with_plan
from afresh.search.model_provider import ModelProvider
from afresh.sources.linklist.parse import LINKS
from afresh.sources.registry import SourceContext
from afresh.store.repository import FOREVER, RetryPolicy
from afresh.store.store import Store
from afresh.urls.canonical import directory_of
from afresh.urls.scope import Rules

if TYPE_CHECKING:
    from afresh.config.server import NotifySettings, WebhookSettings
    from afresh.model.overview import FetchedPage
    from afresh.schedule.rules import Schedule
    from afresh.sources.web.guard import AddressPolicy

MAX_SINGLE_FETCHES = 4  # concurrent fetches of one page: each may need a process and a browser
NOTIFY = "notify."  # prefix of targets that are notified through apprise

T = TypeVar("T")


class RunToolFactory:
    def __init__(self, config: Config, store: Store, models: ModelProvider, clock: Clock) -> None:
        self.config = config
        self.store = store
        self.models = models
        self.clock = clock
        self._allowed = EVERYTHING
        self._visible = store
        self._processes = _Processes(models)
        self._single_fetches = asyncio.Semaphore(MAX_SINGLE_FETCHES)
        self._hosts = HostLimiter(MAX_SINGLE_FETCHES)  # hosts of single-page fetches

    def scoped_to(self, allowed: Permissions, visible: Store) -> "RunToolFactory":
        """Return a factory with the permissions `allowed`; `visible` is the store limited to the allowed sources."""
        scoped = copy(self)
        scoped._allowed, scoped._visible = allowed, visible
        return scoped

    def check_everywhere(self) -> None:
        self._allowed.check_everywhere()

    def recognise(self, target: str, *, remote: bool = False, on_the_web: bool = False) -> tuple[str, str]:
        """Return kind and root of a target; `remote`: files only in `server.allowed_roots`, `on_the_web`: no files."""
        from afresh.sources import detect

        github_urls = self.config.github.web_urls
        if on_the_web:
            return detect.recognise_on_the_web(target, github_urls)
        if not remote:
            return detect.recognise(target, github_urls)
        roots, credentials = self.config.server.allowed_roots, self.config.access.credentials_for
        return detect.recognise_remote(target, roots, github_urls, credentials)

    def settings_of(self, source: Source) -> Config:
        return own_settings_of(self.config, source)

    def bounds(self, source: Source) -> tuple[Rules, Policy]:
        own = self.settings_of(source)
        return rules_for(source, own), policy_for(own, source)

    def why_left_out(self, source: Source, url: str) -> str | None:
        """Return why a folder source excludes a file; None if the file is included or not in the folder."""
        from afresh.sources.folder.filter import why_left_out

        own = self.settings_of(source)
        return why_left_out(own, rules_for(source, own), source.kind, url)

    def schedule(self, source: Source) -> "Schedule | None":
        return schedule_of(self.settings_of(source).policy)

    def retention(self) -> Retention:
        return retention_from(self.config.retention)

    def sinks_of(self, source: Source) -> dict[str, str]:
        """Return the kind of each sink of a source, by the name of the sink."""
        sinks = sorted(self.config.sinks.items())
        return {name: sink.kind for name, sink in sinks if is_among(source.label, sink.sources)}

    def targets(self) -> list[MessageTarget]:
        hooks = {name: hook for name, hook in self.config.webhooks.items() if hook.url is not None}
        people = {f"{NOTIFY}{name}": place for name, place in self.config.notify.items()}
        targets: dict[str, WebhookSettings | NotifySettings] = {**hooks, **people}
        return [
            MessageTarget(name=name, events=frozenset(each.events), sources=frozenset(each.sources))
            for name, each in targets.items()
        ]

    def identity(self) -> tuple[WorkerRecord, float]:
        """Return this process as a worker, and after how many seconds without a heartbeat it counts as dead."""
        return _worker(self.clock()), self.config.policy.lease_seconds

    def standing(self, listener: Listener, stopping: asyncio.Event) -> tuple[Store, Heartbeat]:
        """Return a heartbeat, and a store that retries without limit, for a process that runs until it is stopped."""
        self.check_everywhere()
        store = self._retrying_store(listener, stopping)
        return store, _heartbeat(store, self.config.policy, MonotonicClock(self.clock))

    def change_feed(self, source: Source) -> ChangeFeed:
        from afresh.sources.folder.change_feed import change_feed_of

        self.check_everywhere()
        return change_feed_of(self.settings_of(source), self.bounds(source)[0], source.kind)

    @asynccontextmanager
    async def open(
        self, source: Source, options: RunOptions, listener: Listener, stopping: asyncio.Event
    ) -> AsyncIterator[tuple[RunTools, Rules]]:
        """Yield the tools and rules for one run of a source; this process is registered as a worker until the exit."""
        if installed_plugins(EXTRACTORS):
            from afresh.extract.registry import plugin_formats

            plugin_formats()  # a format that cannot be loaded ends the run before pages are read without it
        own = self.settings_of(source)
        own = own.with_overrides({"doubt": False}) if options.trust else own
        wants_steps = listener is not ignore and not isinstance(listener, WithoutSteps)
        listener, clock = unfailing(listener), MonotonicClock(self.clock)
        store = self._retrying_store(listener, stopping)
        rules, policy = await _bounds_of_run(source, own, options, store)
        heartbeat = _heartbeat(store, own.policy, clock)
        async with (
            self._site_tools(source, own, options, rules, store, clock) as site,
            self.models.for_run(own.storage.body, store, site["parsers"]) as (embedding, model_notes),
            registered_worker(heartbeat, stopping),
            self.models.for_texts(own.links, summaries=options.for_digest) as (summarizer, scorer),
        ):
            notes, scoring = list(model_notes), None
            best_first = scorer is not None and own.crawl.order == "score"
            if scorer is not None:
                weighing = KeywordWeights(weights=own.links.keywords, unknown=own.links.unknown_keyword_weight)
                guesser = self.models.guesser(scorer) if best_first else None
                scoring = LinkScoring(store, scorer, weighing, clock, stopping, guesser)
            elif "score" in (source.policy.get("order"), source.rules.get("order")):
                notes.append("--crawl-order score needs --keywords; pages are crawled by depth instead")
            for note in notes:
                listener(Notice(text=note))
            tools = RunTools(
                **site,
                store=store,
                extract=EXTRACT if own.crawl.hidden_links else EXTRACT_VISIBLE,
                hosts=HostLimiter(own.crawl.concurrency),
                policy=policy,
                settings=own.crawl,
                keep_body=own.storage.body == "markdown",
                heartbeat=heartbeat,
                clock=clock,
                embedding=embedding,
                summaries=DigestSummaries(store, summarizer) if summarizer else None,
                scoring=scoring,
                best_first=best_first,
                full=options.full or options.redetect,
                probe=Soft404Probe(directory_of(rules.root), PROBE + os.urandom(6).hex()) if own.crawl.probe else None,
                listener=listener,
                wants_steps=wants_steps,
                traced=get_recorder() is not None,
                targets=self.targets(),
                retention=self.retention(),
            )
            yield tools, rules

    @asynccontextmanager
    async def _site_tools(
        self, source: Source, own: Config, options: RunOptions, rules: Rules, store: Store, clock: Clock
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the fields of RunTools that depend on the root; `aim` returns the tools for another root."""
        current = await store.sources.get(source.id)
        mark = current.mark if current is not None else None
        listed = source.kind in ("web", LINKS) and await store.listings.lists_pages(source.id)
        if source.kind == LINKS and not listed:  # a cache may know links that the list does not name
            listed = bool(await store.digest.pages(source.id))
        async with AsyncExitStack() as opened:
            parsers = self._processes.warm
            if parsers is None:
                parsers = ParserPool()
                opened.push_async_callback(parsers.close)
            reach = await self._reach(rules.root)
            at = partial(SourceContext, own, clock=clock, parsers=parsers, policy=reach, full=options.full)

            def site(context: SourceContext, *, listed: bool) -> dict[str, Any]:
                web, lister = context.open(source.kind, listed=listed)
                opened.push_async_callback(web.close)
                return {
                    "web": web,
                    "lister": lister,
                    "patterns": UrlPatternCounter(store, source.id, context.rules),
                    "trim": context.trim,
                    "modified": context.modified,
                    "notes": context.notes,
                    "has_change_dates": context.has_change_dates,
                    "was_ours": context.rules.was_ours,
                }

            def aim(tools: RunTools, rules: Rules) -> RunTools:
                return replace(tools, **site(at(rules, last_mark=None), listed=False))

            at_root = at(
                rules,
                last_mark=None if rules.may_move else mark,
                anonymous=not self._uses_keys(source),
                for_kb=options.for_digest,
            )
            tools = site(at_root, listed=listed and not rules.may_move)
            yield tools | {"parsers": parsers, "mark": mark, "aim": aim if source.kind == "web" else None}

    async def fetch_once(self, url: str) -> "FetchedPage":
        """Return the current text of a web page; a read-only or bound token reaches only URLs of sources."""
        from afresh.crawl.fetch_once import fetch_once

        await self._check_may_fetch(url)
        delay = self.config.crawl.delay_seconds
        async with self._single_fetches, self._processes.borrowed() as parsers:
            reach = await self._reach(url)
            context = SourceContext(self.config, Rules(root=url), self.clock, parsers, None, reach)
            web = context.client(paced=False)
            try:
                page = await fetch_once(web, partial(parsers.call, EXTRACT), url, self.clock, self._hosts, delay)
            finally:
                await web.close()
        await self._check_may_fetch(page.url)
        return page

    async def _check_may_fetch(self, url: str) -> None:
        if (self._allowed.everywhere and self._allowed.may_write) or await self._visible.pages.find(url):
            return
        for source in await self._visible.sources.all():
            bounds = settings_or_none(self.bounds, source) if source.kind == "web" else None
            if bounds is not None and bounds[0].refusal(url, 0) is None:
                return
        if self._allowed.everywhere:
            raise NotFound(f"{url} belongs to no source, and this token may only read sources")
        raise NotFound(f"{url} does not belong to the sources of this token")

    async def contents(self, source: Source) -> SourceListing:
        """List the URLs of a source now, without storing any page."""
        self.check_everywhere()
        own = self.settings_of(source)
        turn = self._single_fetches if source.kind in ("git", "github") else nullcontext()  # the other kinds are quick
        async with turn, self._processes.borrowed() as parsers:
            rules, reach = rules_for(source, own), await self._reach(source.url)
            anonymous = not self._uses_keys(source)
            context = SourceContext(own, rules, self.clock, parsers, None, reach, anonymous=anonymous)
            web, lister = context.open(source.kind)
            try:
                urls = tuple([each.url async for each in lister.list()])
            finally:
                await web.close()
        errors, notes = tuple(lister.listing_errors), tuple(lister.notes)
        return SourceListing(urls=urls, dropped=dict(lister.dropped), errors=errors, notes=notes)

    @asynccontextmanager
    async def keep_warm(self) -> AsyncIterator[None]:
        """Start parser processes and load models in advance, and keep them between runs."""
        self.check_everywhere()
        async with self._processes.kept():
            yield

    def _retrying_store(self, listener: Listener, stopping: asyncio.Event) -> Store:
        retry = RetryPolicy(busy_seconds=FOREVER, full_seconds=FOREVER, listener=listener, stopping=stopping)
        return self.store.with_retries(retry)

    async def _reach(self, root: str) -> "AddressPolicy":
        """Return the policy for the IP addresses that requests for a source may connect to."""
        from afresh.sources.web.guard import AddressPolicies

        network = self.config.network
        return await AddressPolicies(network.allow, seconds=network.connect_seconds).policy_at(root)

    def _uses_keys(self, source: Source) -> bool:
        from afresh.sources.detect import may_use_keys

        places, github_urls = self.config.access.credentials_for, self.config.github.web_urls
        return source.is_operators or may_use_keys(source.kind, source.url, places, github_urls)


async def _bounds_of_run(source: Source, own: Config, options: RunOptions, store: Store) -> tuple[Rules, Policy]:
    rules = await rules_at_root(source, own, store)
    if options.follow_move and source.kind == "web":
        rules = replace(rules, may_move=True)
    policy = replace(policy_for(own, source), redetect=options.redetect)
    policy = await with_plan(policy, store, source, schedule_of(own.policy))
    return rules, policy if options.budget is None else replace(policy, budget_per_run=options.budget)


@dataclass(slots=True)
class _Processes:
    """Parser processes that several runs share; they end when no run uses them any more."""

    models: ModelProvider
    warm: ParserPool | None = None
    _users: int = 0

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        warm = self.warm = self.warm or ParserPool()
        self._users += 1
        warming = asyncio.create_task(self._warm_up(warm)) if self._users == 1 else None
        try:
            yield
        finally:
            if warming is not None:
                warming.cancel()
                await asyncio.wait({warming})
            await self._release(warm)

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[ParserPool]:
        """Yield the shared parser processes if there are any, else a process that is closed afterwards."""
        warm = self.warm
        if warm is not None:
            self._users += 1
        own = warm or ParserPool(1)
        try:
            yield own
        finally:
            await (own.close() if warm is None else self._release(own))

    async def _release(self, warm: ParserPool) -> None:
        self._users -= 1
        if not self._users:
            self.warm = None
            await warm.close()

    async def _warm_up(self, parsers: ParserPool) -> None:
        """Start processes and load models; ignore errors, because the first real use reports them."""
        body = Body(url="file:///warm.md", data=b"# Warm", media_type="text/markdown")
        with suppress(AfreshError):
            await parsers.everywhere(READ, EXTRACT, body, None, None, False)
            await self.models.warm_up(parsers)


def _worker(now: datetime) -> WorkerRecord:
    host, pid = socket.gethostname(), os.getpid()
    return WorkerRecord(name=f"{host}:{pid}:{os.urandom(4).hex()}", host=host, pid=pid, heartbeat_at=now)


def _heartbeat(store: Store, policy: PolicySettings, clock: Clock) -> Heartbeat:
    return Heartbeat(
        store=store,
        me=_worker(clock()),
        lease_seconds=policy.lease_seconds,
        heartbeat_seconds=policy.heartbeat_seconds,
        clock=clock,
    )


def settings_or_none(ask: Callable[[Source], T], source: Source) -> T | None:
    try:
        return ask(source)
    except ConfigError:
        return None


def settings_problem(tools: RunToolFactory, source: Source) -> str | None:
    try:
        tools.bounds(source)
    except ConfigError as wrong:
        return str(wrong)
    return None


def max_age_of(tools: RunToolFactory, source: Source) -> float | None:
    """Return the age in seconds at which a page of a source is due in any case; None for no limit."""
    bounds = settings_or_none(tools.bounds, source)
    return bounds[1].max_age_seconds if bounds else None
