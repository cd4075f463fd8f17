"""A look at one address that belongs to no run: fetched, read, and not kept."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from afresh.crawl.fetched_page import Glimpse
from afresh.crawl.politeness import Hosts
from afresh.errors import SourceError
from afresh.model.fetch import Body, Document, Failed, Gone, Moved, NotModified, Refused, Request
from afresh.ports import Clock
from afresh.ports.web import Web
from afresh.urls.canonical import domain_of

_MAX_MOVES = 5
_PATIENCE_SECONDS = 5.0  # that a glance waits for its turn at a host
_LONGER_SECONDS = 30.0  # that it waits in all where an address moved, which nobody could know before


@dataclass(frozen=True, slots=True)
class Manners:
    """How far apart glances at a host are: as far as the settings or the host itself say."""

    hosts: Hosts
    delay_seconds: float

    @asynccontextmanager
    async def turn(self, web: Web, url: str, patience: float, then: str) -> AsyncIterator[None]:
        """A turn at the host of an address; SourceError says what to try `then` if it rests for longer."""
        domain = domain_of(url)
        delay = max(self.delay_seconds, await web.crawl_delay(url) or 0.0)
        if not delay:  # nothing is remembered of hosts that ask for nothing
            yield
            return
        self.hosts.learn(domain, delay)
        rest = self.hosts.rest_of(domain)
        if rest > patience or not await self.hosts.enter(domain, patience):
            raise SourceError(f"{domain} is asked once in {delay:g} s: try {then} in {max(1, round(rest))} s")
        try:
            yield
        finally:
            self.hosts.leave(domain)


async def glance(
    web: Web, extract: Callable[[Body], Awaitable[Document]], asked: str, clock: Clock, manners: Manners
) -> Glimpse:
    """The text at an address, wherever it moved to; SourceError says why there is none."""
    url, patience, then = asked, _PATIENCE_SECONDS, "again"
    until = asyncio.get_running_loop().time() + _LONGER_SECONDS
    for _ in range(_MAX_MOVES + 1):
        async with manners.turn(web, url, patience, then):
            seen = await web.fetch(Request(url=url))
        match seen:
            case Moved(to=to):
                url, then = to, to
                patience = max(_PATIENCE_SECONDS, until - asyncio.get_running_loop().time())
            case Body():
                document = await extract(seen)
                return Glimpse(
                    url=seen.url,
                    asked=asked,
                    title=document.title,
                    markdown=document.markdown,
                    language=document.language,
                    media_type=seen.media_type,
                    content_hash=document.content_hash,
                    looked_at=clock(),
                    links=tuple(dict.fromkeys(link.url for link in document.links)),
                )
            case Gone(status_code=code):
                raise SourceError(f"there is nothing at {url} ({code}): check the address")
            case Refused(reason=reason) | Failed(reason=reason):
                raise SourceError(f"{url} cannot be read: {reason}")
            case NotModified():
                raise SourceError(f"{url} cannot be read: it answered 304 though nothing was known of it")
    raise SourceError(f"{asked} moves on and on; the last address was {url}")
