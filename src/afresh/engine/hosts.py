"""Politeness within one process: how many looks at a host at once, how far apart, and when it rests."""

import asyncio
from collections import defaultdict

FAILURES_OF_A_DEAD_HOST = 10  # in a row, with no answer in between


class Hosts:
    """Lets looks at each host pass as its rules allow."""

    def __init__(self, concurrency: int, patience: float = 300.0) -> None:
        self._gates: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(concurrency))
        self._patience = patience
        self._pace: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._next: dict[str, float] = {}
        self._failures: dict[str, int] = defaultdict(int)
        self._delays: dict[str, float] = {}

    def is_known(self, domain: str) -> bool:
        """Whether it is known how far apart looks at a host must be."""
        return domain in self._delays

    def learn(self, domain: str, delay: float) -> None:
        """Note how far apart looks at a host must be, in seconds."""
        self._delays[domain] = delay

    async def enter(self, domain: str) -> bool:
        """Wait for a turn at a host; False if it rests for longer than anybody waits. Who enters leaves."""
        await self._gates[domain].acquire()
        delay = self._delays.get(domain, 0.0)
        if delay == 0 and domain not in self._next:
            return True
        entered = False
        try:
            entered = await self._wait(domain, delay)
        finally:
            if not entered:
                self._gates[domain].release()
        return entered

    def leave(self, domain: str) -> None:
        """End a turn."""
        self._gates[domain].release()

    async def _wait(self, domain: str, delay: float) -> bool:
        loop = asyncio.get_running_loop()
        async with self._pace[domain]:
            while (pause := self._next.get(domain, 0.0) - loop.time()) > 0:
                if pause > max(self._patience, delay):
                    return False
                await asyncio.sleep(min(pause, 1.0))  # a look under way may ask for a longer rest
            if delay > 0:
                self._next[domain] = loop.time() + delay
            else:
                self._next.pop(domain, None)
        return True

    def pause(self, domain: str, seconds: float) -> None:
        """Let a host rest."""
        until = asyncio.get_running_loop().time() + seconds
        self._next[domain] = max(until, self._next.get(domain, 0.0))

    def answered(self, domain: str) -> None:
        """Note that a host gave an answer, whatever it said."""
        self._failures.pop(domain, None)

    def failed(self, domain: str) -> None:
        """Note that a host gave none."""
        self._failures[domain] += 1

    def is_dead(self, domain: str) -> bool:
        """Whether a host has not answered for so long that asking on is pointless."""
        return self._failures.get(domain, 0) >= FAILURES_OF_A_DEAD_HOST
