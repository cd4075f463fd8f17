"""Gates to the web for URLs that are each a root of their own, as those of a list are."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from afresh.model.fetch import Failed, Fetched, Refused, Request
from afresh.sources.linklist.lister import Gate

Place = TypeVar("Place", bound=Hashable)


class RootedGate(Generic[Place]):
    """Asks for each URL through a client that reaches no more than that URL may; made when first needed.

    Clients are not shared between places: a connection that is kept open is not checked again.
    """

    def __init__(self, place_of: Callable[[str], Awaitable[Place]], make: Callable[[Place], Gate]) -> None:
        self._place_of = place_of
        self._make = make
        self._gates: dict[Place, Gate] = {}

    async def fetch(self, request: Request) -> Fetched:
        """Look at a page, or at where a root moved to."""
        return await (await self._gate(request.root or request.url)).fetch(request)

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Why robots.txt keeps us from a page, or None if it does not."""
        return await (await self._gate(url)).refusal(url)

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests that a site asks for."""
        return await (await self._gate(url)).crawl_delay(url)

    def state(self, origin: str) -> str:
        """What is known of the robots.txt of an origin: nothing, where nothing was asked."""
        known = (gate.state(origin) for gate in self._gates.values())
        return next((state for state in known if state != "unknown"), "unknown")

    async def close(self) -> None:
        """Close all clients."""
        for gate in self._gates.values():
            await gate.close()

    async def _gate(self, root: str) -> Gate:
        place = await self._place_of(root)
        if place not in self._gates:
            self._gates[place] = self._make(place)
        return self._gates[place]
