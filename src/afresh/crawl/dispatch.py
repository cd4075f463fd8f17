"""Dispatch claimed pages by host, and wait for new work.

Each host gets only as many concurrent requests as it allows, so a slow host never blocks the others.
"""

import asyncio
from collections import Counter, deque

from afresh.backoff import next_wait
from afresh.crawl.politeness import TURN_SECONDS, HostLimiter
from afresh.model.records import Claim
from afresh.store.store import Store

Ticket = tuple[int, Claim]  # a claim, and how often the worker's lease had run out when it was made


class HostDispatcher:
    """Queues claims by host, and hands out those whose host may be requested now."""

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
        pause = self._hosts.rest_of(domain)
        if domain in self._queued and 0 < pause <= max(TURN_SECONDS, self._hosts.delays.get(domain, 0.0)):
            asyncio.get_running_loop().call_later(pause, self._release_next, domain)
        else:  # after a long pause the next claim goes back to the store
            self._release_next(domain)

    def take_next(self, domain: str) -> Ticket | None:
        """End a request, and return the next claim of its host for the caller to process at once.

        Return None if the host has no claim or may not be requested yet, or if claims of other hosts wait.
        """
        queued, others_wait = self._queued.get(domain), not self._ready.empty()
        crowded = self._in_flight[domain] > self._hosts.room(domain)  # it allows fewer requests than before
        if not queued or others_wait or crowded or self._hosts.rest_of(domain):
            self.done(domain)
            return None
        ticket = queued.popleft()
        self._waiting -= 1
        if not queued:
            del self._queued[domain]
        return ticket

    def _release_next(self, domain: str) -> None:
        queued = self._queued.get(domain)
        if queued and self._in_flight[domain] <= self._hosts.room(domain):
            self._ready.put_nowait(queued.popleft())
            self._waiting -= 1
        else:
            self._in_flight[domain] -= 1
        if not queued:
            self._queued.pop(domain, None)
        if not self._in_flight[domain]:
            del self._in_flight[domain]

    def clear(self) -> int:
        number = len(self)
        self._queued.clear()
        self._waiting = 0
        while not self._ready.empty():
            self._ready.get_nowait()
        return number


FIRST_MUTE_SECONDS, MAX_MUTE_SECONDS = 0.05, 1.0  # pause after a wake-up that brought no work


class WakeupListener:
    """Waits for notifications of new work; waits longer after notifications that brought no work."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since = store.db.news.count
        self.mute_seconds = 0.0  # set to 0 by a caller that found work

    def mark(self) -> None:
        """Note the number of notifications so far; call this before the queue is read, so that `wait` misses none."""
        self._since = self._store.db.news.count

    async def wait(self, seconds: float, *ends: asyncio.Event) -> None:
        """Wait for a notification or for one of the events `ends`, at most for some seconds."""
        waits: list[asyncio.Task[object]] = [asyncio.create_task(end.wait()) for end in ends]
        waits.append(asyncio.create_task(self._wait_for_news(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _wait_for_news(self, seconds: float) -> None:
        mute = min(self.mute_seconds, seconds)
        await asyncio.sleep(mute)
        await self._store.db.news.wait(self._since, seconds - mute)
        woken = self._store.db.news.count != self._since
        self.mute_seconds = next_wait(self.mute_seconds, FIRST_MUTE_SECONDS, MAX_MUTE_SECONDS) if woken else 0.0
