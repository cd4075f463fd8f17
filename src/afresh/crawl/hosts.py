"""Limit requests to each host within one process: concurrency, delay, pauses and dead hosts."""

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from afresh.dataclass import dataclass
from afresh.model.fetch import Failed, Fetched, Moved, Outcome, Request
from afresh.model.records import Claim

if TYPE_CHECKING:
    from afresh.crawl.tools import RunTools

HOST_PAUSE_SECONDS = 300.0  # how long a run waits for a host that asked for a pause
FAILURES_OF_A_DEAD_HOST = 10  # failures in a row after which a host counts as dead
FIRST_TRIAL_SECONDS = 5.0  # before the first attempt at a dead host; doubles each time
LAST_TRIAL_SECONDS = 300.0
MOST_WAITS = 5  # deferrals of a page before it counts as failed
TURN_SECONDS = 1.0  # how long to wait for one host before another host is requested
Ticket = tuple[int, Claim]  # a claim, and how often the worker's lease had run out when it was made


@dataclass(slots=True)
class _Silence:
    """A dead host: the time of the next attempt to reach it, and the pause before that attempt."""

    until: float
    pause: float = FIRST_TRIAL_SECONDS


class HostLimiter:
    def __init__(self, concurrency: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._concurrency = concurrency
        self._gates: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(concurrency))
        self._clock = clock
        self._pace: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.rests: dict[str, float] = {}  # until when a host is not requested, if it has a delay or asked for a pause
        self._failures: dict[str, int] = {}  # in a row
        self.silent: dict[str, _Silence] = {}  # the dead hosts
        self._waits: dict[str, int] = defaultdict(int)
        self.delays: dict[str, float] = {}  # seconds between requests to a host, if known
        self._arrived: dict[str, float] = {}

    def learn(self, domain: str, delay: float) -> None:
        """Set the delay between requests to a host in seconds; with a delay, only one request is sent at a time.

        The delay begins with the answer, because it is unknown when exactly a request reaches the host.
        """
        self.delays[domain] = delay
        if delay > 0 and domain not in self._gates:
            self._gates[domain] = asyncio.Semaphore(1)

    def room(self, domain: str) -> float:
        """Return how many requests to a host may be in progress at once."""
        if not domain:  # a file: no host
            return float("inf")
        return 1 if self.delays.get(domain) else self._concurrency

    def arrived(self, domain: str) -> None:
        """Start the delay of a host now, because another worker may have just sent a request to it."""
        self._arrived[domain] = asyncio.get_running_loop().time()

    async def enter(self, domain: str, max_wait: float = TURN_SECONDS) -> bool:
        """Wait until a host may be requested; return False after `max_wait`. After True, call `leave` at the end."""
        await self._gates[domain].acquire()
        delay, since = self.delays.get(domain, 0.0), self._arrived.pop(domain, None)
        if delay == 0 and domain not in self.rests:
            return True
        if since is not None:
            self.rests[domain] = max(since + delay, self.rests.get(domain, 0.0))
        entered, loop = False, asyncio.get_running_loop()
        try:
            async with self._pace[domain]:
                while (pause := self.rests.get(domain, 0.0) - loop.time()) > 0:
                    if pause > max(max_wait, delay):
                        return False
                    await asyncio.sleep(min(pause, 1.0))  # an active request may ask for a longer pause
                if delay > 0:
                    self.rests[domain] = loop.time() + delay
                else:
                    self.rests.pop(domain, None)
            entered = True
        finally:
            if not entered:
                self._gates[domain].release()
        return True

    def leave(self, domain: str, fetched: Fetched | None = None) -> None:
        """End a request, and note how the host responded."""
        if delay := self.delays.get(domain, 0.0):
            self.rests[domain] = max(asyncio.get_running_loop().time() + delay, self.rests.get(domain, 0.0))
        self._gates[domain].release()
        if isinstance(fetched, Failed) and fetched.status_code is None:
            self.failed(domain)
        elif fetched is not None and domain in self._failures:
            self.answered(domain)
        if isinstance(fetched, Failed | Moved) and fetched.retry_after:
            self.pause(domain, fetched.retry_after)

    def pause(self, domain: str, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        self.rests[domain] = max(until, self.rests.get(domain, 0.0))

    def rest_of(self, domain: str) -> float:
        """Return the seconds until a host may be requested again."""
        return max(0.0, self.rests.get(domain, 0.0) - asyncio.get_running_loop().time())

    def may_defer(self, url: str) -> bool:
        """Count one more deferral of a page; return False if it was deferred too often."""
        self._waits[url] += 1
        return self._waits[url] <= MOST_WAITS

    def answered(self, domain: str) -> None:
        self._failures.pop(domain, None)
        self.silent.pop(domain, None)

    def failed(self, domain: str) -> None:
        self._failures[domain] = self._failures.get(domain, 0) + 1
        if self._failures[domain] == FAILURES_OF_A_DEAD_HOST:
            self.silent[domain] = _Silence(self._clock() + FIRST_TRIAL_SECONDS)

    def is_dead(self, domain: str) -> bool:
        """Return whether a host is dead and not due for another attempt."""
        silence = self.silent.get(domain)
        return silence is not None and self._clock() < silence.until

    def may_try(self, domain: str) -> bool:
        """Return whether a host may be requested; a dead host gets single requests, at growing intervals."""
        silence = self.silent.get(domain)
        if silence is None:
            return True
        if self._clock() < silence.until:
            return False
        silence.pause = min(2 * silence.pause, LAST_TRIAL_SECONDS)
        silence.until = self._clock() + silence.pause
        return True


async def fetch_politely(
    domain: str, request: Request, tools: "RunTools", max_wait: float = TURN_SECONDS
) -> Fetched | None:
    """Fetch a URL when its host may be requested; return None if that takes too long or the worker lost its lease."""
    if not domain:  # a file: no host
        return await tools.web.fetch(request)
    hosts, lapses = tools.hosts, tools.heartbeat.lapses
    if domain not in hosts.delays and not hosts.is_dead(domain):
        asked = await tools.web.crawl_delay(request.url)
        if asked is not None:  # else robots.txt is unavailable, and requested again with the next page
            hosts.learn(domain, max(tools.settings.delay_seconds, asked))
    if not await hosts.enter(domain, max_wait):
        return None
    fetched: Fetched | None = None
    try:
        if tools.heartbeat.lapses != lapses:  # the lease ran out meanwhile: other workers took over
            return None
        if domain in hosts.silent and not hosts.may_try(domain):
            return Failed(outcome=Outcome.FAILED, reason=f"{domain} has stopped answering")
        fetched = await tools.web.fetch(request)
    finally:
        hosts.leave(domain, fetched)
    return fetched


class HostDispatcher:
    """Queues claims by host, and hands out those whose host may be requested now: no slow host blocks others."""

    def __init__(self, hosts: HostLimiter) -> None:
        self._hosts = hosts
        self._ready: asyncio.Queue[Ticket] = asyncio.Queue()
        self.get = self._ready.get  # the caller calls `done` after the request
        self._queued: dict[str, deque[Ticket]] = {}  # claims that wait for their host
        self._waiting = 0  # how many of them
        self._in_flight: Counter[str] = Counter()  # requests to a host, ready or in progress

    def __len__(self) -> int:
        return self._ready.qsize() + self._waiting

    @property
    def ready_count(self) -> float:
        """Return how many claimed pages can be requested now, or as soon as a request to their host ends."""
        rooms = ((len(queued), self._hosts.room(domain)) for domain, queued in self._queued.items())
        return self._ready.qsize() + sum(min(each) for each in rooms)

    def crowded_hosts(self, limit: int) -> frozenset[str]:
        return frozenset(domain for domain, queued in self._queued.items() if len(queued) >= limit)

    def put(self, ticket: Ticket) -> None:
        domain = ticket[1].domain
        if self._in_flight[domain] < self._hosts.room(domain):
            self._in_flight[domain] += 1
            self._ready.put_nowait(ticket)
        else:
            self._queued.setdefault(domain, deque()).append(ticket)
            self._waiting += 1

    def done(self, domain: str) -> None:
        """End a request to a host; its next claim becomes ready after the delay between requests."""
        if domain in self._queued and domain in self._hosts.rests:
            pause = self._hosts.rest_of(domain)
            if 0 < pause <= max(TURN_SECONDS, self._hosts.delays.get(domain, 0.0)):
                asyncio.get_running_loop().call_later(pause, self.done, domain)
                return
        queued = self._queued.get(domain)  # of a host with a long pause: the next claim goes back to the store
        if queued and self._in_flight[domain] <= self._hosts.room(domain):
            self._ready.put_nowait(queued.popleft())
            self._waiting -= 1
        else:
            self._in_flight[domain] -= 1
        if not queued:
            self._queued.pop(domain, None)
        if not self._in_flight[domain]:
            del self._in_flight[domain]

    def take_next(self, domain: str) -> Ticket | None:
        """End a request to a host; return its next claim, or None if it has none, has to rest, or other hosts wait."""
        queued, others_wait = self._queued.get(domain), not self._ready.empty()
        crowded = self._in_flight[domain] > self._hosts.room(domain)  # it allows fewer requests than before
        if not queued or others_wait or crowded or (domain in self._hosts.rests and self._hosts.rest_of(domain)):
            self.done(domain)
            return None
        ticket = queued.popleft()
        self._waiting -= 1
        if not queued:
            del self._queued[domain]
        return ticket

    def clear(self) -> int:
        number = len(self)
        self._queued.clear()
        self._waiting = 0
        while not self._ready.empty():
            self._ready.get_nowait()
        return number
