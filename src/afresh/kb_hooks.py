"""The use cases of webhooks: hearing that something changed, and looking at it, many messages at once."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import Any

from afresh.core.errors import AfreshError, RunBusy, StoreError, UsageError
from afresh.core.events import Listener, ignore
from afresh.core.git_address import parse_git
from afresh.core.github_address import github_address
from afresh.core.hooks import Heard, Push, Wish, concerns_git, concerns_github
from afresh.core.model import Listed, RunMode, Source, SourceId
from afresh.core.outbox import Letter, LetterState
from afresh.core.views import RunReport
from afresh.engine.pause import heard
from afresh.engine.tools import Tools
from afresh.kb_work import Work
from afresh.ports import Clock, Library

log = logging.getLogger(__name__)

QUIET = timedelta(seconds=1)  # more may follow what came just now
LONGEST_WAIT = timedelta(seconds=10)  # but nobody waits for longer than that
POLL = 2.0  # seconds between looks at what another server heard
MOST_PAGES = 500  # a source of which more is wished for is looked at as a whole

Concerns = Callable[[str], bool]


class Hooks(Work):
    """What others say has changed."""

    _store: Library
    _tools: Tools
    _clock: Clock
    _stopping: asyncio.Event
    _run: Callable[..., Coroutine[Any, Any, RunReport]]

    async def hear_push(self, delivery: str, push: Push, concerns: Concerns) -> Heard:
        """Have the sources of a repository looked at; only what changed of them is read."""
        known = [source for source in await self._store.sources() if concerns(source.label)]
        of_repository = [source for source in known if self._is_of(source, push.web)]
        through_git = [source for source in known if source.kind == "git"]
        changed = [each for each in of_repository if _concerns_github(push, each)]
        changed += [each for each in through_git if concerns_git(push, parse_git(each.url))]
        if not changed and not of_repository:
            raise UsageError(f"no source reads {push.web}")
        return await self._heard("github", delivery, [(source, "") for source in changed])

    def _is_of(self, source: Source, web: str) -> bool:
        if source.kind != "github":
            return False
        root = self._tools.recognise_from_afar(web)[1].lower()
        url = source.url.lower()
        return url == root or url.startswith((f"{root}/", f"{root}@"))

    async def hear_urls(self, hook: str, delivery: str, urls: Sequence[str], concerns: Concerns) -> Heard:
        """Have pages looked at: those on record, and those that are new in a site."""
        sources = {source.id: source for source in await self._store.sources() if concerns(source.label)}
        wishes: list[tuple[Source, str]] = []
        unknown = 0
        for url in urls:
            found = await self._places(url, sources)
            wishes += found
            unknown += not found
        if not wishes:
            raise UsageError("none of these addresses belongs to a source")
        return await self._heard(hook, delivery, wishes, unknown)

    async def _places(self, typed: str, sources: dict[SourceId, Source]) -> list[tuple[Source, str]]:
        """The sources that an address is, or may become, a page of."""
        try:
            url = self._tools.web_address(typed)
        except AfreshError:
            return []
        pages = await self._store.find_pages(url)
        known = [(sources[page.source_id], url) for page, *_ in pages if page.source_id in sources]
        if known:
            return known
        sites = [source for source in sources.values() if source.kind == "web"]
        return [(site, url) for site in sites if self._tools.bounds(site)[0].refusal(url, 1) is None]

    async def _heard(
        self, hook: str, delivery: str, wishes: Sequence[tuple[Source, str]], unknown: int = 0
    ) -> Heard:
        asked = list({(source.id, url) for source, url in wishes})
        if not await self._store.take_delivery(hook, delivery, asked, self._clock()):
            return Heard(state="known")
        labels = tuple(dict.fromkeys(source.label for source, _ in wishes))
        pages = len({url for _, url in asked if url})
        return Heard(state="taken" if asked else "nothing", sources=labels, pages=pages, unknown=unknown)

    async def keep_promises(self, *, listener: Listener = ignore) -> None:
        """Look at what messages wish for, and send what others are to know, until `stop`."""
        async with self._tools.post_office() as postman:
            while not self._stopping.is_set():
                for work in (partial(self.look_as_wished, listener=listener), postman.deliver):
                    try:
                        await work()
                    except AfreshError as error:  # trouble with one is no reason to leave the other alone
                        log.warning("webhooks wait: %s", error)
                await heard(self._stopping, POLL)

    async def send_letters(self) -> int:
        """Send what is due to be sent now; how many messages got there."""
        async with self._tools.post_office() as postman:
            return await postman.deliver()

    async def letters(self, *, state: LetterState | None = None, limit: int = 100) -> list[Letter]:
        """Messages to others and what became of them, newest first."""
        return list(await self._store.letters(state=state, limit=limit))

    async def look_as_wished(self, *, listener: Listener = ignore) -> list[RunReport]:
        """Look at what is wished for and has come to rest: one run for each source, however many messages."""
        reports = []
        wishes = sorted(await self._store.wishes(), key=lambda wish: wish.source_id)
        for number, group in groupby(wishes, key=lambda wish: wish.source_id):
            own, source = list(group), await self._store.source_by_id(number)
            if source is None or not self._is_ripe(own) or self._stopping.is_set():
                continue
            try:
                report = await self._fulfilled(source, own, listener)
            except RunBusy as busy:  # what it looks at may be older than the wish
                log.info("what webhooks wish of %s waits: %s", source.label, busy)
                continue
            except StoreError:
                raise
            except AfreshError as error:  # the sources behind it are no worse for it
                log.warning("what webhooks wish of %s waits: %s", source.label, error)
                continue
            reports.append(report)
            await self._store.fulfil(own)
        return reports

    def _is_ripe(self, wishes: Sequence[Wish]) -> bool:
        now, times = self._clock(), [wish.at for wish in wishes]
        return max(times) <= now - QUIET or min(times) <= now - LONGEST_WAIT

    async def _fulfilled(self, source: Source, wishes: Sequence[Wish], listener: Listener) -> RunReport:
        urls = [wish.url for wish in wishes]
        if "" in urls or len(urls) > MOST_PAGES:
            return await self._queue(source, RunMode.REFRESH, False)
        return await self.look_at(source, urls, listener=listener)

    async def look_at(self, source: Source, urls: Sequence[str], *, listener: Listener = ignore) -> RunReport:
        """Look at some pages of a source now."""
        known = {item.url: item for item in await self._store.on_record_at(source.id, list(urls))}
        pages = [known.get(url) or Listed(url, 1) for url in urls]
        return await self._run(source, RunMode.CHECK, False, False, False, listener, pages=pages)


def _concerns_github(push: Push, source: Source) -> bool:
    web = "/".join(source.url.split("/")[:3])
    address = github_address(source.url, [web])
    return address is None or concerns_github(push, address)
