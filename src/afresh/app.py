"""Putting it together: the only file that names concrete classes."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from afresh.bounds import pace_for, policy_for, rules_at_root, rules_for, weighing_for
from afresh.config import Config, kb_paths
from afresh.config.kb import KbSettings
from afresh.config.retention import retention_of
from afresh.crawl.clock import Steady
from afresh.crawl.heartbeat import Vigil, at_work
from afresh.crawl.judge import brake_holds
from afresh.crawl.plausibility import PROBE
from afresh.crawl.politeness import Hosts
from afresh.crawl.run_log import unfailing
from afresh.crawl.soft_404 import Probe
from afresh.crawl.tools import Kit, Pace, RunOptions
from afresh.crawl.url_patterns import Patterns
from afresh.digest.records import FILES as FILES_OF_KB
from afresh.digest.records import LINKS as LINKS_OF_KB
from afresh.digest.summaries import Telling
from afresh.digest.update import KINDS, Desk
from afresh.errors import AfreshError, ConfigError
from afresh.events import Listener, Notice
from afresh.extract.pool.lazy import CHUNK, DIFF, EXTRACT, EXTRACT_VISIBLE
from afresh.extract.pool.pool import Offload
from afresh.kb import KnowledgeBase
from afresh.links.scoring import LinkScoring
from afresh.model.charts import Politeness
from afresh.model.fetch import Body
from afresh.model.overview import Contents
from afresh.model.records import Policy, Source, Worker
from afresh.model.retention import Retention
from afresh.model.store_reports import Finding
from afresh.ops.failpoints import arm
from afresh.ports import Access, Clock, Lister, Lookout
from afresh.ports.web import Web
from afresh.schedule.plan import with_plan
from afresh.services.context import Context
from afresh.services.model_provider import Modelling
from afresh.services.sink_registry import Outlets
from afresh.services.targets import Naming
from afresh.site_tools import aim, fit
from afresh.sources.linklist.parse import LINKS
from afresh.sources.registry import Looking, lookout_for
from afresh.store.open import open_store
from afresh.store.retry import FOREVER, RetryPolicy
from afresh.store.store import Store
from afresh.urls.files import file_url, is_file_url, path_of
from afresh.urls.scope import Rules

if TYPE_CHECKING:
    from afresh.crawl.fetched_page import Glimpse
    from afresh.schedule.rules import Schedule
    from afresh.sources.web.guard import AddressPolicy

# What a person wrote down is read whatever it says of itself; `Policy.holds` makes it believed, too.
LISTED_BY_HAND = {"respect_noindex": False, "probe": False}
GLANCES = 4  # looks at addresses of no run at once: each may need a process, and a browser
TRY_SECONDS = 1.0  # how long one try to write waits, so that a stop is heard in between


def utc_now() -> datetime:
    """The time, aware of its zone."""
    return datetime.now(UTC)


async def build(config: Config, *, clock: Clock = utc_now, access: Access = Access.CREATE) -> KnowledgeBase:
    """The knowledge base that a configuration describes, its store open."""
    arm()
    one_thread()
    store = await open_store(config.store.url, access, wait_seconds=TRY_SECONDS)
    models = Modelling(config, store.with_retries(RetryPolicy()), clock)
    tools, store = Workshop(config, store, models, clock), store.with_retries(RetryPolicy())
    return KnowledgeBase(Context(store=store, tools=tools, models=models, clock=clock))


def one_thread() -> None:
    """Keep numpy to one thread, unless it is loaded: its others wait by spinning, which slows all else."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class Workshop(Outlets, Naming):
    """Makes the tools of each run from the settings of its source."""

    def __init__(self, config: Config, store: Store, models: Modelling, clock: Clock) -> None:
        self.config = config
        self.store = store
        self.models = models
        self.clock = clock
        self._warm: Offload | None = None  # processes that outlive a run
        self._warmed = 0  # by how many
        self._glances = asyncio.Semaphore(GLANCES)
        self._hosts = Hosts(GLANCES)  # that were glanced at

    def bounds(self, source: Source) -> tuple[Rules, Policy]:
        """What belongs to a source and the numbers that govern it."""
        own = self._own(source)
        return rules_for(source, own), self._policy(source, own)

    def why_left_out(self, source: Source, url: str) -> str | None:
        """Why a file is no part of a folder, or None if it is, or stands elsewhere."""
        from afresh.sources.registry import why_left_out

        own = self._own(source)
        return why_left_out(own, rules_for(source, own), source.kind, url)

    def keeps_text(self, source: Source) -> bool:
        """Whether the text of its pages is stored."""
        return self._own(source).storage.body == "markdown"

    def keywords(self, source: Source) -> Mapping[str, float]:
        """What its links are scored by, with weights."""
        return self._own(source).links.keywords

    def manners(self, source: Source | None) -> Politeness:
        """How hosts are asked for a source, or where none is named."""
        crawl = (self._own(source) if source else self.config).crawl
        return Politeness(crawl.delay_seconds, crawl.respect_robots, crawl.concurrency)

    def schedule(self, source: Source) -> "Schedule | None":
        """When a source is looked at by itself, if its settings name times."""
        from afresh.config.schedule import schedule_of

        return schedule_of(self._own(source).policy)

    def retention(self) -> Retention:
        """How long records stay that nothing needs any more."""
        return retention_of(self.config.retention)

    def identity(self) -> tuple[Worker, float]:
        """Who this process is as a worker, and how long a silent one counts as alive."""
        return _worker(self.clock()), self.config.policy.lease_seconds

    def standing(self, listener: Listener, stopping: asyncio.Event) -> tuple[Store, Vigil]:
        """The store and the life of a process that works until it is told to stop."""
        retry = RetryPolicy(busy_seconds=FOREVER, full_seconds=FOREVER, listener=listener, stopping=stopping)
        store = self.store.with_retries(retry)
        return store, _vigil(store, pace_for(self.config), Steady(self.clock))

    def sees(self, source: Source) -> bool:
        """Whether a source can be read from this machine: files can be where their root is."""
        return not is_file_url(source.url) or Path(path_of(source.url)).exists()

    async def examine(self) -> list[Finding]:
        """What is well and what is not."""
        from afresh.services.doctor import examine

        return await examine(self.config, self.store, *self.identity(), self.clock())

    @asynccontextmanager
    async def open(
        self, source: Source, options: RunOptions, listener: Listener, stopping: asyncio.Event
    ) -> AsyncIterator[tuple[Kit, Rules]]:
        """The tools for one run of a source; this process is a worker while they are open."""
        own = self._own(source)
        own = own.with_overrides({"doubt": False}) if options.trust else own
        listener = unfailing(listener)
        clock = Steady(self.clock)
        retry = RetryPolicy(busy_seconds=FOREVER, full_seconds=FOREVER, listener=listener, stopping=stopping)
        store = self.store.with_retries(retry)
        offload = self._warm or Offload()
        current = await store.sources.get(source.id)
        mark = current.mark if current is not None else None
        for_kb, rules = source.name in KINDS, await rules_at_root(source, own, store)
        reach = await self._reach(rules.root)
        anonymous = not self._lends_keys(source)
        looking = Looking(
            own, rules, clock, offload, mark, reach, anonymous=anonymous, full=options.full, for_kb=for_kb
        )
        listed = source.kind in ("web", LINKS) and await store.listings.lists_pages(source.id)
        if source.name == LINKS_OF_KB:  # the cache may know links that no list named in this store
            listed = listed or bool(await store.digest.pages(source.id))
        web, lister = looking.at(source.kind, listed=listed)
        patterns = Patterns(store, source.id, rules)
        kit = self._kit(
            own,
            store,
            rules,
            web,
            lister,
            patterns,
            offload,
            clock,
            options.full or options.redetect,
            listener,
        )
        policy = replace(self._policy(source, own), redetect=options.redetect)
        kit.policy = await with_plan(policy, store, source, self.schedule(source))
        if source.name == LINKS_OF_KB:  # in the order in which they are due
            kit.hosts = Hosts(1)
        kit.mark, kit.targets, webs = mark, self.targets(), [web]
        fit(kit, looking, rules)
        if source.kind == "web":
            site = partial(
                Looking, own, clock=clock, offload=offload, mark=None, policy=reach, full=options.full
            )
            kit.aim = partial(aim, kit, webs, source, site)
        try:
            async with self.models.for_run(own.storage.body, store) as (kit.embedding, notes):
                for note in notes:
                    listener(Notice(text=note))
                texts = self.models.for_texts(own.links, summaries=for_kb)
                async with at_work(kit.vigil, stopping), texts as (summarizer, scorer):
                    kit.telling = Telling(store, summarizer) if summarizer else None
                    if scorer is not None:
                        kit.best_first = own.crawl.order == "score"
                        guesser = self.models.guesser(scorer) if kit.best_first else None
                        kit.scoring = LinkScoring(store, scorer, weighing_for(own), clock, stopping, guesser)
                    elif "score" in (source.policy.get("order"), source.rules.get("order")):
                        listener(Notice(text="--crawl-order score needs --keywords: the nearest come first"))
                    yield kit, rules
        finally:
            if offload is not self._warm:
                await offload.close()
            for each in webs:
                await each.close()

    async def glance(self, url: str) -> "Glimpse":
        """The text at a web address as it is now, through the same guarded client as a run."""
        from afresh.crawl.fetch_once import Manners, glance

        manners = Manners(self._hosts, self.config.crawl.delay_seconds)
        async with self._glances, self._borrowed() as offload:
            reach = await self._reach(url)
            web = Looking(self.config, Rules(root=url), self.clock, offload, None, reach).anywhere(
                paced=False
            )
            extract = partial(offload.call, EXTRACT)
            try:
                return await glance(web, extract, url, self.clock, manners)
            finally:
                await web.close()

    async def contents(self, source: Source) -> Contents:
        """What a source of files, links or a repository lists now; no page is made of it."""
        own = self._own(source)
        turn = self._glances if source.kind in ("git", "github") else nullcontext()  # others are quick
        async with turn, self._borrowed() as offload:
            rules, reach = rules_for(source, own), await self._reach(source.url)
            anonymous = not self._lends_keys(source)
            looking = Looking(own, rules, self.clock, offload, None, reach, anonymous=anonymous)
            web, lister = looking.at(source.kind)
            try:
                urls = tuple([each.url async for each in lister.list()])
            finally:
                await web.close()
        errors, notes = tuple(lister.listing_errors), tuple(lister.notes)
        return Contents(urls=urls, dropped=dict(lister.dropped), errors=errors, notes=notes)

    def lookout(self, source: Source) -> Lookout:
        """What hears of changes at the root of a source on this machine."""
        return lookout_for(self._own(source), self.bounds(source)[0], source.kind)

    @asynccontextmanager
    async def kept_warm(self) -> AsyncIterator[None]:
        """Start what a run needs beforehand, and keep it from one run to the next."""
        warm = self._warm = self._warm or Offload()
        self._warmed += 1
        warming = asyncio.create_task(self._warm_up(warm)) if self._warmed == 1 else None
        try:
            yield
        finally:
            if warming is not None:
                warming.cancel()
                await asyncio.wait({warming})
            await self._let_go(warm)

    @asynccontextmanager
    async def _borrowed(self) -> AsyncIterator[Offload]:
        """The processes that are warm, which do not end before we are done; else one of our own."""
        warm = self._warm
        if warm is not None:
            self._warmed += 1
        own = warm or Offload(1)
        try:
            yield own
        finally:
            await (own.close() if warm is None else self._let_go(own))

    async def _let_go(self, warm: Offload) -> None:
        self._warmed -= 1
        if not self._warmed:
            self._warm = None
            await warm.close()

    async def _warm_up(self, offload: Offload) -> None:
        """Trouble is no matter here: whoever needs what cannot be started is told."""
        body = Body(url="file:///warm.md", data=b"# Warm", media_type="text/markdown")
        with suppress(AfreshError):
            await offload.everywhere(EXTRACT, body)
            document = await offload.call(EXTRACT, body)
            await offload.everywhere(CHUNK, document)
            await self.models.warm_up()

    async def _reach(self, root: str) -> "AddressPolicy":
        """Where requests for a source may lead that starts at this URL."""
        from afresh.sources.web.reach import policy_at

        network = self.config.network
        return await policy_at(network.allow, root, seconds=network.connect_seconds)

    def _own(self, source: Source) -> Config:
        own = self.config.with_overrides(source.rules, source.policy)
        return own.with_overrides(LISTED_BY_HAND) if source.name == LINKS_OF_KB else own

    def _policy(self, source: Source, own: Config) -> Policy:
        """The numbers for a source; those of the knowledge base's links are its own."""
        policy, kb = policy_for(own), self.config.kb
        if source.name != LINKS_OF_KB:
            return policy
        return replace(
            policy,
            holds=False,
            refusals_back_off=True,
            retries=0,
            recheck_seconds=kb.url_refresh_min_interval_seconds,
            max_age_seconds=kb.url_refresh_max_age_seconds,
            backoff_base_seconds=kb.url_refresh_fail_backoff_base_seconds,
            backoff_max_seconds=kb.url_refresh_fail_backoff_max_seconds,
            budget_per_run=kb.url_refresh_budget_per_init,
            reread_seconds=0.0,
            adapt=False,
        )

    def desk(self) -> tuple[Desk, KbSettings]:
        """Where the knowledge base of files and links is, and its settings."""
        from afresh.digest.files import KbFiles
        from afresh.sources.linklist.digest_links import is_filled, typed_links

        settings = self.config.kb
        if not settings.in_use:
            raise ConfigError("there is no knowledge base: set kb.sources_dir, kb.links_file_path or both")
        paths = kb_paths(self.config, Path.cwd())
        places = {FILES_OF_KB: paths.sources_dir, LINKS_OF_KB: paths.links_file}
        desk = Desk(
            roots={name: file_url(str(path)) for name, path in places.items() if path is not None},
            cache=str(paths.cache),
            index=str(paths.index),
            shelf=KbFiles(index=paths.index, cache=paths.cache, lock=paths.lock),
            is_filled=lambda name: is_filled(places[name], name),
            typed=partial(typed_links, paths.links_file),
            brake=partial(brake_holds, policy=policy_for(self.config)),
        )
        return desk, settings

    def _kit(
        self,
        own: Config,
        store: Store,
        rules: Rules,
        web: Web,
        lister: Lister,
        patterns: Patterns,
        offload: Offload,
        clock: Clock,
        full: bool,
        listener: Listener,
    ) -> Kit:
        pace = pace_for(own)
        return Kit(
            store=store,
            web=web,
            lister=lister,
            trim=rules.trim,
            patterns=patterns,
            extract=EXTRACT if own.crawl.hidden_links else EXTRACT_VISIBLE,
            chunk=CHUNK,
            diff=DIFF,
            offload=offload,
            hosts=Hosts(own.crawl.concurrency),
            policy=policy_for(own),
            pace=pace,
            keep_body=own.storage.body == "markdown",
            vigil=_vigil(store, pace, clock),
            clock=clock,
            full=full,
            probe=Probe(rules.root, PROBE + os.urandom(6).hex()) if own.crawl.probe else None,
            listener=listener,
            retention=self.retention(),
        )


def _worker(now: datetime) -> Worker:
    host, pid = socket.gethostname(), os.getpid()
    return Worker(name=f"{host}:{pid}:{os.urandom(4).hex()}", host=host, pid=pid, heartbeat_at=now)


def _vigil(store: Store, pace: Pace, clock: Clock) -> Vigil:
    return Vigil(
        store=store,
        me=_worker(clock()),
        lease_seconds=pace.lease_seconds,
        heartbeat_seconds=pace.heartbeat_seconds,
        clock=clock,
    )
