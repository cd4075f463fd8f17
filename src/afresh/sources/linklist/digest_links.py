"""Links of the knowledge base: every check is one answer or one failure, and nothing else."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from afresh.config.small_file import read_small_file
from afresh.digest.records import FILES
from afresh.model.fetch import Failed, Fetched, Gone, Outcome, Refused, Request
from afresh.sources.linklist.lister import LinkedWeb
from afresh.sources.linklist.parse import parse_links

MAX_LIST_BYTES = 16 * 1024 * 1024


class KbWeb:
    """Looks at links that stay sources as long as they are listed, whatever a server says of them."""

    def __init__(self, web: LinkedWeb) -> None:
        self._web = web

    async def fetch(self, request: Request) -> Fetched:
        """One check; a 404 is a failure like others, and a wish to be left alone sets no other time."""
        seen = await self._web.fetch(request)
        match seen:
            case Gone(status_code=int(code)):
                reason = seen.reason or f"{code}: there is nothing at this address"
                return Failed(outcome=Outcome.FAILED, reason=reason, status_code=code)
            case Failed():
                return replace(seen, retry_after=None)
        return seen

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Why robots.txt keeps us from a page, or None if it does not."""
        return await self._web.refusal(url)

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests that a site asks for."""
        return await self._web.crawl_delay(url)

    def state(self, origin: str) -> str:
        """What is known of the robots.txt of an origin."""
        return self._web.state(origin)

    async def close(self) -> None:
        """Close the wrapped web."""
        await self._web.close()


def is_filled(place: Path | None, name: str) -> bool:
    """Whether a folder holds anything, or a list an address."""
    with suppress(OSError):
        if place is not None:
            return any(place.iterdir()) if name == FILES else bool(typed_links(place))
    return False


def typed_links(links: Path | None) -> Mapping[str, str]:
    """Listed addresses, each as the list of links writes it; none where it cannot be read."""
    with suppress(OSError):
        return parse_links(read_small_file(links, MAX_LIST_BYTES)).typed if links is not None else {}
    return {}
