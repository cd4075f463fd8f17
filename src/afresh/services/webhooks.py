"""The use cases of webhooks: hear that something changed and check it, and send messages to others."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby

from afresh.aio import cancel_late, heard, side_by_side
from afresh.crawl.heartbeat import release_gone
from afresh.crawl.report import report_of
from afresh.crawl.tools import RunOptions
from afresh.digest.update import KINDS
from afresh.errors import AfreshError, RunBusy, StoreError, UsageError
from afresh.events import Listener, ignore
from afresh.model.records import Listed, Run, RunMode, RunState, Source, SourceId
from afresh.model.reports import RunReport
from afresh.model.transitions import UNFINISHED
from afresh.notify.incoming import Heard, Push, Wish, concerns_git, concerns_github, is_pushed
from afresh.notify.outbox import Letter, LetterState
from afresh.services.context import Context, Service
from afresh.services.runs import RunService
from afresh.services.valid_settings import if_settled
from afresh.sources.git.address import parse_git
from afresh.sources.github.address import github_address
from afresh.urls.scope import Rules

log = logging.getLogger(__name__)
QUIET = timedelta(seconds=1)  # more may follow what came just now
LONGEST_WAIT = timedelta(seconds=10)  # but nobody waits for longer than that
POLL = 2.0  # seconds between looks at what another server heard
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0  # seconds before a source that could not be looked at is tried again
SENDING_GRACE_SECONDS = 0.5  # that messages under way have at the end
MOST_PAGES = 500  # a source of which more is wished for is looked at as a whole
Concerns = Callable[[str], bool]
PutOff = dict[SourceId, tuple[datetime, float]]  # until when sources are left alone, and for how long


class WebhookService(Service):
    """Webhooks."""

    def __init__(self, context: Context, runs: RunService) -> None:
        super().__init__(context)
        self._runs = runs

    async def hear_push(self, delivery: str, push: Push, concerns: Concerns) -> Heard:
        """Have the sources of a repository looked at; only what changed of them is read."""
        known = await self._named(concerns)
        root = self._tools.recognise_from_afar(push.web)[1].lower()
        of_github = [source for source in known if source.kind == "github" and _is_of(source, root)]
        in_git = [(source, parse_git(source.url)) for source in known if source.kind == "git"]
        through_git = [(source, address) for source, address in in_git if is_pushed(push, address)]
        if not of_github and not through_git:
            raise UsageError(f"no source reads {push.web}")
        changed = [source for source in of_github if _concerns_github(push, source)]
        changed += [source for source, address in through_git if concerns_git(push, address)]
        return await self._heard("github", delivery, [(source, "") for source in changed])

    async def _named(self, concerns: Concerns) -> list[Source]:
        """The sources that a webhook is for; those of files and links are looked at by whoever keeps them."""
        return [
            source
            for source in await self._store.sources.all()
            if source.name not in KINDS and concerns(source.label)
        ]

    async def hear_urls(self, hook: str, delivery: str, urls: Sequence[str], concerns: Concerns) -> Heard:
        """Have pages looked at: those on record, and those that are new in a site."""
        sources = {source.id: source for source in await self._named(concerns)}
        bounds = {
            each.id: if_settled(self._tools.bounds, each) for each in sources.values() if each.kind == "web"
        }
        sites = [(sources[number], each[0]) for number, each in bounds.items() if each is not None]
        wishes: list[tuple[Source, str]] = []
        unknown = 0
        for url in urls:
            found = await self._places(url, sources, sites)
            wishes += found
            unknown += not found
        if not wishes:
            raise UsageError("none of these addresses belongs to a source")
        return await self._heard(hook, delivery, wishes, unknown)

    async def _places(
        self, typed: str, sources: Mapping[SourceId, Source], sites: Sequence[tuple[Source, Rules]]
    ) -> list[tuple[Source, str]]:
        """The sources that an address is, or may become, a page of."""
        try:
            url = self._tools.web_address(typed)
        except AfreshError:
            return []
        pages = await self._store.pages.find(url)
        known = [(sources[page.source_id], url) for page, *_ in pages if page.source_id in sources]
        return known or [(site, url) for site, rules in sites if rules.refusal(url, 1) is None]

    async def _heard(
        self, hook: str, delivery: str, wishes: Sequence[tuple[Source, str]], unknown: int = 0
    ) -> Heard:
        asked = list({(source.id, url) for source, url in wishes})
        if not await self._store.messages.take_delivery(hook, delivery, asked, self._clock()):
            return Heard(state="known")
        labels = tuple(dict.fromkeys(source.label for source, _ in wishes))
        pages = len({url for _, url in asked if url})
        return Heard(state="taken" if asked else "nothing", sources=labels, pages=pages, unknown=unknown)

    async def keep(self, *, listener: Listener = ignore) -> None:
        """Look at what messages wish for until `stop`."""
        put_off: PutOff = {}
        await self._again(lambda: self.check_requested(listener=listener, put_off=put_off))

    async def keep_sending(self) -> None:
        """Send what others are to know until `stop`."""
        async with self._tools.post_office() as postman:
            await self._again(lambda: cancel_late(postman.deliver(), self._stopping, SENDING_GRACE_SECONDS))

    async def _again(self, work: Callable[[], Awaitable[object]]) -> None:
        while not self._stopping.is_set():
            try:
                await work()
            except AfreshError as error:
                log.warning("webhooks wait: %s", error)
            await heard(self._stopping, POLL)

    async def send(self) -> int:
        """Send what is due to be sent now; how many messages got there."""
        async with self._tools.post_office() as postman:
            return await postman.deliver()

    async def messages(self, *, state: LetterState | None = None, limit: int = 100) -> list[Letter]:
        """Messages to others and what became of them, newest first."""
        return list(await self._store.messages.letters(state=state, limit=limit))

    async def check_requested(
        self, *, listener: Listener = ignore, put_off: PutOff | None = None
    ) -> list[RunReport]:
        """Look at what is wished for and has come to rest: one run for each source, however many messages.

        Who calls again and again hands on who is `put_off`: sources that cannot be looked at now.
        """
        wishes = sorted(await self._store.messages.wishes(), key=lambda wish: (wish.source_id, wish.at))
        groups = [(number, list(each)) for number, each in groupby(wishes, key=lambda wish: wish.source_id)]
        ripe = [(number, own) for number, own in groups if self._is_ripe(own)]
        if not ripe:
            return []
        runs = {run.source_id: run for run in await self._store.runs.live() if _is_open(run)}
        resting = {} if put_off is None else put_off
        reports = await side_by_side(
            [
                partial(self._grant, number, own, runs.get(number), resting, listener)
                for number, own in ripe
                if number not in resting or resting[number][0] <= self._clock()
            ]
        )
        return [report for report in reports if report is not None]

    def _is_ripe(self, wishes: Sequence[Wish]) -> bool:
        now, times = self._clock(), [wish.at for wish in wishes]
        return max(times) <= now - QUIET or min(times) <= now - LONGEST_WAIT

    async def _grant(
        self, number: SourceId, wishes: Sequence[Wish], run: Run | None, put_off: PutOff, listener: Listener
    ) -> RunReport | None:
        """Look at what is wished of a source; None: it waits."""
        source = await self._store.sources.get(number)
        if source is None or self._stopping.is_set():
            return None
        try:
            report = await self._fulfilled(source, wishes, run, listener)
        except RunBusy as busy:  # what it looks at may be older than the wish
            log.info("what webhooks wish of %s waits: %s", source.label, busy)
            return None
        except StoreError:
            raise
        except AfreshError as error:  # the other sources are no worse for it
            pause = min(LONGEST_PAUSE, 2 * put_off.get(number, (None, FIRST_PAUSE / 2))[1])
            put_off[number] = (self._clock() + timedelta(seconds=pause), pause)
            log.warning("what webhooks wish of %s waits for %.0f s: %s", source.label, pause, error)
            return None
        put_off.pop(number, None)
        if report is not None:
            await self._store.messages.fulfil(wishes)
        return report

    async def _fulfilled(
        self, source: Source, wishes: Sequence[Wish], run: Run | None, listener: Listener
    ) -> RunReport | None:
        """Look at a source, or leave that to workers; None: a run that is open has to end first."""
        urls = [wish.url for wish in wishes]
        whole = "" in urls or len(urls) > MOST_PAGES
        if run is None:
            return await (self._refresh(source) if whole else self.check(source, urls, listener=listener))
        if run.state is RunState.CANCELLED and run.finished_at and run.finished_at < wishes[-1].at:
            report = await self._refresh(source)  # pages are looked at when it is over
            return report if whole else None
        is_new = run.state is RunState.QUEUED and not _has_begun(run)
        return await self._refresh(source) if whole and is_new else None

    async def _refresh(self, source: Source) -> RunReport | None:
        """Leave a refresh to workers; None: it goes on with a run that may have looked before the message."""
        now = self._clock()
        await release_gone(self._store, self._tools.identity()[0], now)
        run, resumed = await self._store.runs.start(
            source.id, RunMode.REFRESH, full=False, worker=None, now=now
        )
        return None if resumed and _has_begun(run) else replace(report_of(run, source), seconds=0.0)

    async def check(self, source: Source, urls: Sequence[str], *, listener: Listener = ignore) -> RunReport:
        """Look at some pages of a source now."""
        known = {item.url: item for item in await self._store.listings.on_record_at(source.id, list(urls))}
        pages = [known.get(url) or Listed(url, 1) for url in urls]
        return await self._runs.run_now(source, RunOptions(mode=RunMode.CHECK, pages=pages), listener)


def _is_open(run: Run) -> bool:
    """Whether another run of its source would have to wait for it, or go on with it."""
    return run.state in UNFINISHED and run.mode is not RunMode.CHECK


def _has_begun(run: Run) -> bool:
    return bool(run.queued or run.counts)


def _is_of(source: Source, root: str) -> bool:
    """Whether a source is the repository with this root, or a part of it."""
    url = source.url.lower()
    return url == root or url.startswith((f"{root}/", f"{root}@"))


def _concerns_github(push: Push, source: Source) -> bool:
    web = "/".join(source.url.split("/")[:3])
    address = github_address(source.url, [web])
    return address is None or concerns_github(push, address)
