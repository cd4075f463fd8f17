from typing import Protocol

from afresh.model.fetch import Failed, Fetched, Refused, Request


class Web(Protocol):
    """Looks at addresses, obeying robots.txt."""

    async def fetch(self, request: Request) -> Fetched: ...

    async def refusal(self, url: str) -> Refused | Failed | None:
        """Why robots.txt keeps us from a page, or None if it does not."""
        ...

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests that a site asks for; None while nobody can know."""
        ...

    def state(self, origin: str) -> str:
        """What is known of the robots.txt of an origin; "unreachable" stops a run."""
        ...
