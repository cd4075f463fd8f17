"""A gate to the web that is made when something is first asked of it."""

from collections.abc import Callable

from afresh.core.looks import Failed, Fetched, Refused, Request
from afresh.sources.links import Gate


class LaterGate:
    """Spares a list of which nothing is due the start of an HTTP client."""

    def __init__(self, make: Callable[[], Gate]) -> None:
        self._make = make
        self._gate: Gate | None = None

    async def fetch(self, request: Request) -> Fetched:
        """Look at a page."""
        return await self._made().fetch(request)

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Why robots.txt keeps us from a page, or None if it does not."""
        return await self._made().refusal(url)

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests that a site asks for."""
        return await self._made().crawl_delay(url)

    def state(self, origin: str) -> str:
        """What is known of the robots.txt of an origin: nothing, where nothing was asked."""
        return self._gate.state(origin) if self._gate is not None else "unknown"

    async def close(self) -> None:
        """Close the gate if there is one."""
        if self._gate is not None:
            await self._gate.close()

    def _made(self) -> Gate:
        if self._gate is None:
            self._gate = self._make()
        return self._gate
