"""A look at one address that belongs to no run: fetched, read, and not kept."""

from collections.abc import Awaitable, Callable

from afresh.core.errors import SourceError
from afresh.core.glimpse import Glimpse
from afresh.core.looks import Body, Document, Failed, Gone, Moved, NotModified, Refused, Request
from afresh.ports import Clock, Fetcher

_MAX_MOVES = 5


async def glance(
    web: Fetcher, extract: Callable[[Body], Awaitable[Document]], asked: str, clock: Clock
) -> Glimpse:
    """The text at an address, wherever it moved to; SourceError says why there is none."""
    url = asked
    for _ in range(_MAX_MOVES + 1):
        seen = await web.fetch(Request(url=url))
        match seen:
            case Moved(to=to):
                url = to
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
