"""Politeness within one process: how many looks at a host at once, how far apart, and when it rests."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

FAILURES_OF_A_DEAD_HOST = 10  # in a row, with no answer in between
FIRST_TRIAL_SECONDS = 5.0  # after which a dead host is tried again, each time twice as long
LAST_TRIAL_SECONDS = 300.0
MOST_WAITS = 5  # times that a page is told to wait before that counts as a failure
PATIENCE_SECONDS = 1.0  # how long a turn at a resting host is waited for, so that other hosts have theirs


@dataclass(slots=True)
class _Silence:
    """A dead host: when it is tried next, and the pause before that."""

    until: float
    pause: float = FIRST_TRIAL_SECONDS


class Hosts:
    """Lets looks at each host pass as its rules allow."""

    def __init__(self, concurrency: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._concurrency = concurrency
        self._gates: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(concurrency))
        self._clock = clock
        self._pace: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._next: dict[str, float] = {}
        self._failures: dict[str, int] = defaultdict(int)
        self._silent: dict[str, _Silence] = {}
        self._waits: dict[str, int] = defaultdict(int)
        self._delays: dict[str, float] = {}
        self._arrived: dict[str, float] = {}

    def is_known(self, domain: str) -> bool:
        """Whether it is known how far apart looks at a host must be."""
        return domain in self._delays

    def learn(self, domain: str, delay: float) -> None:
        """Note how far apart looks at a host must be, in seconds; if they must, it is asked one by one.

        A request reaches the host at some time between its turn and its answer: the distance counts from the
        answer.
        """
        self._delays[domain] = delay
        if delay > 0 and domain not in self._gates:
            self._gates[domain] = asyncio.Semaphore(1)

    def delay_of(self, domain: str) -> float:
        """How far apart looks at a host must be, in seconds, as far as that is known."""
        return self._delays.get(domain, 0.0)

    def room(self, domain: str) -> float:
        """How many looks at a host may be under way at once."""
        if not domain:  # a file: nobody is bothered
            return float("inf")
        return 1 if self._delays.get(domain) else self._concurrency

    def arrived(self, domain: str) -> None:
        """Note that a host comes from another worker, who may have asked it a moment ago."""
        self._arrived[domain] = asyncio.get_running_loop().time()

    async def enter(self, domain: str, patience: float = PATIENCE_SECONDS) -> bool:
        """Wait for a turn at a host; False if it rests for longer than `patience`. Who enters leaves."""
        await self._gates[domain].acquire()
        delay = self._delays.get(domain, 0.0)
        since = self._arrived.pop(domain, None)
        if delay == 0 and domain not in self._next:
            return True
        if since is not None:
            self._next[domain] = max(since + delay, self._next.get(domain, 0.0))
        entered = False
        try:
            entered = await self._wait(domain, delay, patience)
        finally:
            if not entered:
                self._gates[domain].release()
        return entered

    def leave(self, domain: str) -> None:
        """End a turn, answered or not."""
        if delay := self._delays.get(domain, 0.0):
            self._next[domain] = max(asyncio.get_running_loop().time() + delay, self._next.get(domain, 0.0))
        self._gates[domain].release()

    async def _wait(self, domain: str, delay: float, patience: float) -> bool:
        loop = asyncio.get_running_loop()
        async with self._pace[domain]:
            while (pause := self._next.get(domain, 0.0) - loop.time()) > 0:
                if pause > max(patience, delay):
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

    def rest_of(self, domain: str) -> float:
        """Seconds until a host may be asked again."""
        return max(0.0, self._next.get(domain, 0.0) - asyncio.get_running_loop().time())

    def puts_off(self, url: str) -> bool:
        """Note that a host told us to come back later for a page; False once that happened too often."""
        self._waits[url] += 1
        return self._waits[url] <= MOST_WAITS

    def answered(self, domain: str) -> None:
        """Note that a host gave an answer, whatever it said."""
        if self._failures.pop(domain, None):
            self._silent.pop(domain, None)

    def failed(self, domain: str) -> None:
        """Note that a host gave none."""
        self._failures[domain] += 1
        if self._failures[domain] == FAILURES_OF_A_DEAD_HOST:
            self._silent[domain] = _Silence(self._clock() + FIRST_TRIAL_SECONDS)

    def is_dead(self, domain: str) -> bool:
        """Whether a host has not answered for so long that asking now is pointless."""
        silence = self._silent.get(domain)
        return silence is not None and self._clock() < silence.until

    def may_try(self, domain: str) -> bool:
        """Whether a look may be taken: of a dead host one at a time, after a pause that grows."""
        silence = self._silent.get(domain)
        if silence is None:
            return True
        if self._clock() < silence.until:
            return False
        silence.pause = min(2 * silence.pause, LAST_TRIAL_SECONDS)
        silence.until = self._clock() + silence.pause
        return True
