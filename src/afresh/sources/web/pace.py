"""The distance between two requests to one host, whatever is asked for."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

Sleep = Callable[[float], Awaitable[None]]


class HostPace:
    """Lets requests to a host that wants a distance pass one by one; it counts from the answer."""

    def __init__(
        self,
        delay_seconds: float,
        *,
        sleep: Sleep = asyncio.sleep,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._least = delay_seconds
        self._sleep = sleep
        self._ticks = ticks
        self._delays: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def learn(self, domain: str, delay_seconds: float) -> None:
        """Note what a host asks for, which may be more than we keep in any case."""
        self._delays[domain] = delay_seconds

    def delay_of(self, domain: str) -> float:
        """Seconds between an answer and the next request."""
        return max(self._least, self._delays.get(domain, 0.0))

    async def enter(self, domain: str) -> asyncio.Lock | None:
        """Wait until the host may be asked; who enters leaves, with what this gives."""
        if not self.delay_of(domain):
            return None
        turn = self._turns[domain]
        await turn.acquire()
        try:
            while (wait := self._next_at(domain) - self._ticks()) > 0:
                await self._sleep(wait)
        except BaseException:
            turn.release()
            raise
        return turn

    def leave(self, domain: str, turn: asyncio.Lock | None) -> None:
        """Note that the host has answered: robots.txt may ask for a distance with this very answer."""
        self._answered[domain] = self._ticks()
        if turn is not None:
            turn.release()

    def _next_at(self, domain: str) -> float:
        answered = self._answered.get(domain)
        return self._ticks() if answered is None else answered + self.delay_of(domain)
