"""Receive messages about changes, check the changed pages, and send messages to other systems."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from importlib.util import find_spec
from itertools import groupby
from typing import TYPE_CHECKING

from afresh.aio import gather_limited, run_until_stopped, wait_event
from afresh.backoff import next_wait
from afresh.config import Config
from afresh.crawl.factory import NOTIFY, RunToolFactory, settings_or_none
from afresh.crawl.heartbeat import release_dead_processes
from afresh.crawl.report import report_of
from afresh.crawl.tools import RunOptions
from afresh.dataclass import replace
from afresh.errors import AfreshError, ConfigError, RunBusy, StoreError, UsageError
from afresh.events import Listener, ignore
from afresh.model.records import UNFINISHED, ListedUrl, Run, RunMode, RunState, Source, SourceId
from afresh.model.reports import RunReport
from afresh.notify import sender
from afresh.notify.incoming import Push, ReceivedMessage, RefreshRequest, concerns_git, concerns_github, is_pushed
from afresh.notify.outbox import MessageState, MessageTarget, OutboxMessage
from afresh.services.context import Service
from afresh.sources.detect import web_address
from afresh.sources.git.address import parse_git
from afresh.sources.github.address import github_address
from afresh.store.repository import RetryPolicy
from afresh.urls.scope import Rules

if TYPE_CHECKING:
    from afresh.sources.web.api_client import ApiClient

log = logging.getLogger(__name__)
QUIET = timedelta(seconds=1)  # wait after the last message of a source, because more may follow
MAX_WAIT = timedelta(seconds=10)  # longest wait after its first message
POLL_SECONDS = 2.0  # seconds between checks for messages that another server received
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 5.0, 300.0  # seconds before a failed source is retried
SENDING_GRACE_SECONDS = 0.5  # for messages in flight at shutdown
MAX_PAGES = 500  # with more requested pages, the whole source is refreshed
Concerns = Callable[[str], bool]
PutOff = dict[SourceId, tuple[datetime, float]]  # by source: when to retry, and the pause in seconds
MAX_ANSWER_BYTES = 65_536  # of the response to an outgoing message


class WebhookService(Service):
    async def receive_push(self, delivery: str, push: Push, concerns: Concerns) -> ReceivedMessage:
        """Store refresh requests for the sources that a push changed, and return these sources.

        `concerns` returns whether the webhook may refresh the source with a label. A `delivery` is accepted only once.
        """
        known = await self._sources_of_hook(concerns)
        root = self._tools.recognise(push.web, remote=True)[1].lower()
        of_github = [  # the whole repository or a part of it
            source
            for source in known
            if source.kind == "github" and f"{source.url.lower()}/".startswith((f"{root}/", f"{root}@"))
        ]
        in_git = [(source, parse_git(source.url)) for source in known if source.kind == "git"]
        through_git = [(source, address) for source, address in in_git if is_pushed(push, address)]
        if not of_github and not through_git:
            raise UsageError(f"no source of this server reads the repository {push.web}")
        changed = [source for source in of_github if _concerns_github(push, source)]
        changed += [source for source, address in through_git if concerns_git(push, address)]
        return await self._store_requests("github", delivery, [(source, "") for source in changed])

    async def _sources_of_hook(self, concerns: Concerns) -> list[Source]:
        """Return the sources that a webhook may refresh, which never include those of `init-kb`."""
        return [
            source for source in await self._store.sources.all() if not source.is_of_digest and concerns(source.label)
        ]

    async def receive_urls(self, hook: str, delivery: str, urls: Sequence[str], concerns: Concerns) -> ReceivedMessage:
        """Store requests to check those URLs that belong to sources; return how many were accepted."""
        sources = {source.id: source for source in await self._sources_of_hook(concerns)}
        bounds = {
            each.id: settings_or_none(self._tools.bounds, each) for each in sources.values() if each.kind == "web"
        }
        sites = [(sources[number], each[0]) for number, each in bounds.items() if each is not None]
        requests: list[tuple[Source, str]] = []
        unknown = 0
        for url in urls:
            found = await self._requested_pages(url, sources, sites)
            requests += found
            unknown += not found
        if not requests:
            raise UsageError("none of these URLs belongs to a source")
        return await self._store_requests(hook, delivery, requests, unknown)

    async def _requested_pages(
        self, typed: str, sources: Mapping[SourceId, Source], sites: Sequence[tuple[Source, Rules]]
    ) -> list[tuple[Source, str]]:
        """Return the sources that store a URL, each with the URL; if there are none, the web sources that allow it."""
        try:
            url = web_address(typed)
        except AfreshError:
            return []
        pages = await self._store.pages.find(url)
        known = [(sources[page.source_id], url) for page, *_ in pages if page.source_id in sources]
        return known or [(site, url) for site, rules in sites if rules.refusal(url, 1) is None]

    async def _store_requests(
        self, hook: str, delivery: str, requests: Sequence[tuple[Source, str]], unknown: int = 0
    ) -> ReceivedMessage:
        asked = list({(source.id, url) for source, url in requests})
        if not await self._store.messages.take_delivery(hook, delivery, asked, self._clock()):
            return ReceivedMessage(state="known")
        labels = tuple(dict.fromkeys(source.label for source, _ in requests))
        pages = len({url for _, url in asked if url})
        return ReceivedMessage(state="taken" if asked else "nothing", sources=labels, pages=pages, unknown=unknown)

    async def keep(self, *, listener: Listener = ignore) -> None:
        """Run the checks that webhooks request, until `stop`."""
        put_off: PutOff = {}
        await self._repeat(lambda: self.check_requested(listener=listener, put_off=put_off))

    async def keep_sending(self) -> None:
        async with open_sender(self._tools) as sender:
            await self._repeat(lambda: run_until_stopped(sender.deliver(), self._stopping, SENDING_GRACE_SECONDS))

    async def _repeat(self, work: Callable[[], Awaitable[object]]) -> None:
        while not self._stopping.is_set():
            try:
                await work()
            except AfreshError as error:
                log.warning("work on webhooks failed and will be tried again: %s", error)
            await wait_event(self._stopping, POLL_SECONDS)

    async def send(self) -> int:
        """Send the due messages and return how many were delivered."""
        async with open_sender(self._tools) as sender:
            return await sender.deliver()

    async def messages(self, *, state: MessageState | None = None, limit: int = 100) -> list[OutboxMessage]:
        return list(await self._store.messages.outbox(state=state, limit=limit))

    async def check_requested(self, *, listener: Listener = ignore, put_off: PutOff | None = None) -> list[RunReport]:
        """Run the requested checks that are due, one run per source; `put_off` holds failed sources and retry times."""
        requests = sorted(
            await self._store.messages.refresh_requests(), key=lambda request: (request.source_id, request.at)
        )
        groups = [(number, list(each)) for number, each in groupby(requests, key=lambda request: request.source_id)]
        now = self._clock()
        ripe = [(number, own) for number, own in groups if own[-1].at <= now - QUIET or own[0].at <= now - MAX_WAIT]
        if not ripe:
            return []
        runs = {  # a new run would wait for this run or resume it
            run.source_id: run
            for run in await self._store.runs.live()
            if run.state in UNFINISHED and run.mode is not RunMode.CHECK
        }
        resting = {} if put_off is None else put_off
        reports = await gather_limited(
            [
                partial(self._run_requests, number, own, runs.get(number), resting, listener)
                for number, own in ripe
                if number not in resting or resting[number][0] <= now
            ]
        )
        return [report for report in reports if report is not None]

    async def _run_requests(
        self, number: SourceId, requests: Sequence[RefreshRequest], run: Run | None, put_off: PutOff, listener: Listener
    ) -> RunReport | None:
        """Run the requested checks of a source and return the report; None if they have to wait."""
        if (source := await self._store.sources.get(number)) is None or self._stopping.is_set():
            return None
        try:
            report = await self._run_or_queue(source, requests, run, listener)
        except RunBusy as busy:  # the open run may have fetched before the request
            log.info("checks of %s, requested by webhooks, are postponed: %s", source.label, busy)
            return None
        except StoreError:
            raise
        except AfreshError as error:  # the other sources are unaffected
            pause = next_wait(put_off.get(number, (None, 0.0))[1], FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
            put_off[number] = (self._clock() + timedelta(seconds=pause), pause)
            log.warning("checks of %s, requested by webhooks, are postponed by %.0f s: %s", source.label, pause, error)
            return None
        put_off.pop(number, None)
        if report is not None:
            await self._store.messages.fulfil(requests)
        return report

    async def _run_or_queue(
        self, source: Source, requests: Sequence[RefreshRequest], run: Run | None, listener: Listener
    ) -> RunReport | None:
        """Check a source or queue its refresh, and return the report; None if an open run has to end first."""
        urls = [request.url for request in requests]
        whole = "" in urls or len(urls) > MAX_PAGES
        if run is None:
            return await (self._refresh(source) if whole else self.check(source, urls, listener=listener))
        if run.state is RunState.CANCELLED and run.finished_at and run.finished_at < requests[-1].at:
            report = await self._refresh(source)  # the pages are checked when this run is over
            return report if whole else None
        is_new = run.state is RunState.QUEUED and not _has_begun(run)
        return await self._refresh(source) if whole and is_new else None

    async def _refresh(self, source: Source) -> RunReport | None:
        """Queue a refresh and return its report; None if it resumes an unfinished run, which may have read old text."""
        now = self._clock()
        await release_dead_processes(self._store, self._tools.identity()[0], now)
        run, resumed = await self._store.runs.start(source.id, RunMode.REFRESH, full=False, worker=None, now=now)
        return None if resumed and _has_begun(run) else replace(report_of(run, source), seconds=0.0)

    async def check(self, source: Source, urls: Sequence[str], *, listener: Listener = ignore) -> RunReport:
        known = {item.url: item for item in await self._store.listings.stored_below(source.id, list(urls))}
        pages = [known.get(url) or ListedUrl(url, 1) for url in urls]
        return await self._runner.run(source, RunOptions(mode=RunMode.CHECK, pages=pages), listener)


def _has_begun(run: Run) -> bool:
    return bool(run.queued or run.counts)


def _concerns_github(push: Push, source: Source) -> bool:
    address = github_address(source.url, ["/".join(source.url.split("/")[:3])])
    return address is None or concerns_github(push, address)


@asynccontextmanager
async def open_sender(tools: RunToolFactory) -> AsyncIterator[sender.MessageSender]:
    """Yield a sender of messages; it reaches public URLs, and private ones only if network.allow lists them."""
    from afresh.sources.web.api_client import ApiClient

    tools.check_everywhere()
    config = tools.config
    check_notify(config)
    hooks, network = config.webhooks, config.network
    client = ApiClient(
        [each.url for each in hooks.values() if each.url],
        user_agent=network.agent,
        largest_answer=MAX_ANSWER_BYTES,
        allow=network.allow,
    )
    transports = {target.name: _transport(config, target, client) for target in tools.targets()}
    try:
        yield sender.MessageSender(
            store=tools.store.with_retries(RetryPolicy()), transports=transports, clock=tools.clock
        )
    finally:
        await client.close()


def _transport(config: Config, target: MessageTarget, client: "ApiClient") -> sender.Transport:
    if target.name.startswith(NOTIFY):
        place = config.notify[target.name.removeprefix(NOTIFY)]
        return sender.AppriseTransport(target=target, url=place.url, allow=config.network.allow)
    hook = config.webhooks[target.name]
    return sender.WebhookTransport(target=target, url=hook.url or "", secret=hook.secret, client=client)


def check_notify(config: Config) -> None:
    """Raise ConfigError if `notify` is configured and apprise is not installed."""
    if config.notify and find_spec("apprise") is None:
        name = next(iter(config.notify))
        raise ConfigError(f"notify.{name} needs apprise: pip install 'afresh[notify]', or remove the setting")


def check_targets(config: Config) -> None:
    """Raise ConfigError for the first target that no message could reach."""
    check_notify(config)
    for name, hook in config.webhooks.items():
        if hook.url and (why := sender.why_not_posted(hook.url, config.network.allow)):
            raise ConfigError(f"webhooks.{name}.url: {why}")
    for name, place in config.notify.items():
        if why := sender.why_not_notified(place.url):
            raise ConfigError(f"notify.{name}.url: {why}")
