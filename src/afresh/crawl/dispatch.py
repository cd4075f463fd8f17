"""Claims in line, host by host: no more of a host are let through at once than may be asked of it.

So those who look never wait at a host that is slow, dead or resting while others could be looked at.
"""

import asyncio
from collections import Counter, deque

from afresh.crawl.politeness import PATIENCE_SECONDS, Hosts
from afresh.model.records import Claim

Ticket = tuple[int, Claim]  # with the lapses of our lease when it was claimed


class Lineup:
    """Hands out claims of hosts that can be asked now."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._ready: asyncio.Queue[Ticket] = asyncio.Queue()
        self._behind: dict[str, deque[Ticket]] = {}  # those that wait for their host
        self._waiting = 0  # how many those are together
        self._inside: Counter[str] = Counter()  # looks at a host that are ready or under way

    def __len__(self) -> int:
        return self._ready.qsize() + self._waiting

    @property
    def near(self) -> float:
        """How many have their turn now or next."""
        rooms = ((len(behind), self._hosts.room(domain)) for domain, behind in self._behind.items())
        return self._ready.qsize() + sum(min(each) for each in rooms)

    def crowded(self, most: int) -> frozenset[str]:
        """The hosts behind which so many wait."""
        return frozenset(domain for domain, behind in self._behind.items() if len(behind) >= most)

    def put(self, ticket: Ticket) -> None:
        """Let a claim wait for its turn."""
        domain = ticket[1].domain
        if self._inside[domain] < self._hosts.room(domain):
            self._inside[domain] += 1
            self._ready.put_nowait(ticket)
        else:
            self._behind.setdefault(domain, deque()).append(ticket)
            self._waiting += 1

    async def get(self) -> Ticket:
        """The next claim; who takes it says `done` when the look is over."""
        return await self._ready.get()

    def done(self, domain: str) -> None:
        """The look is over: the next one of the host may follow when it has rested."""
        rest = self._hosts.rest_of(domain)
        if domain in self._behind and 0 < rest <= max(PATIENCE_SECONDS, self._hosts.delay_of(domain)):
            asyncio.get_running_loop().call_later(rest, self._follow, domain)
        else:  # if it rests for long, who is next is told so and given back
            self._follow(domain)

    def _follow(self, domain: str) -> None:
        behind = self._behind.get(domain)
        if behind and self._inside[domain] <= self._hosts.room(domain):
            self._ready.put_nowait(behind.popleft())
            self._waiting -= 1
        else:
            self._inside[domain] -= 1
        if not behind:
            self._behind.pop(domain, None)
        if not self._inside[domain]:
            del self._inside[domain]

    def dismiss(self) -> int:
        """Send home all who wait; how many they were."""
        number = len(self)
        self._behind.clear()
        self._waiting = 0
        while not self._ready.empty():
            self._ready.get_nowait()
        return number
