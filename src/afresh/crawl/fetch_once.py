"""Fetch and read one page that belongs to no run; nothing is stored."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from afresh.crawl.hosts import HostLimiter
from afresh.errors import SourceError
from afresh.model.fetch import Body, Document, Failed, Gone, Moved, NotModified, Refused, Request
from afresh.model.overview import FetchedPage
from afresh.ports import Clock, Web
from afresh.urls.canonical import domain_of

_MAX_MOVES = 5
_MAX_TURN_SECONDS = 5.0  # how long a fetch waits for its turn at a host
_MAX_TOTAL_SECONDS = 30.0  # how long it waits in all if the page moved


@asynccontextmanager
async def _turn(
    hosts: HostLimiter, delay_seconds: float, web: Web, url: str, max_wait: float, then: str
) -> AsyncIterator[None]:
    """Wait until a host may be requested; raise SourceError, with the hint `then`, if that takes over `max_wait` s."""
    domain = domain_of(url)
    delay = max(delay_seconds, await web.crawl_delay(url) or 0.0)
    if not delay:  # keep no state of hosts without a delay
        yield
        return
    hosts.learn(domain, delay)
    rest = hosts.rest_of(domain)
    if rest > max_wait or not await hosts.enter(domain, max_wait):
        raise SourceError(f"{domain} accepts one request every {delay:g} s: try {then} in {max(1, round(rest))} s")
    try:
        yield
    finally:
        hosts.leave(domain)


async def fetch_once(
    web: Web, extract: Callable[[Body], Awaitable[Document]], asked: str, clock: Clock, hosts: HostLimiter, delay: float
) -> FetchedPage:
    """Fetch a URL, follow redirects, and return the page; raise SourceError if it cannot be read."""
    url, max_wait, then = asked, _MAX_TURN_SECONDS, "again"
    until = asyncio.get_running_loop().time() + _MAX_TOTAL_SECONDS
    for _ in range(_MAX_MOVES + 1):
        async with _turn(hosts, delay, web, url, max_wait, then):
            seen = await web.fetch(Request(url=url))
        match seen:
            case Moved(to=to):
                url, then = to, to
                max_wait = max(_MAX_TURN_SECONDS, until - asyncio.get_running_loop().time())
            case Body():
                document = await extract(seen)
                return FetchedPage(
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
                raise SourceError(f"there is nothing at {url} ({code}): check the URL")
            case Refused(reason=reason) | Failed(reason=reason):
                raise SourceError(f"{url} cannot be read: {reason}")
            case NotModified():
                raise SourceError(f"{url} cannot be read: it answered 304 to an unconditional request")
    raise SourceError(f"{asked} redirects more than {_MAX_MOVES} times; the last URL was {url}")
