"""Simulate claims and rate limits for a million hosts: are delays kept, lanes busy, and no host left waiting?

The rules are those of `store/queue.py`, `crawl/hosts.py` and `crawl/worker.py`. A worker claims batches in
the order of the queue, from hosts that are free or its own. Only one worker uses a host; it requests one page at a
time, one delay after the last response. Pages of a host that asks for a pause go back to the queue. A worker
without work gets half of the hosts of other workers. Nothing is fetched or stored: this simulates the design, not
the database.
"""

import argparse
import heapq
import random
import resource
import time
from array import array
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

FREE = -1
MAX_WAIT_SECONDS = 1.0  # that a lane waits at a host that rests
BATCH, AHEAD = 256, 1.0  # rows of a claim at most, and seconds of work it is to hold
ANSWER, SILENCE = 0.2, 10.0  # seconds until a host answers, and until one that is dead is given up
DEAD_AFTER = 10  # failures
REST = 60.0  # seconds that a host asks for in a Retry-After


@dataclass
class Worker:
    """A worker: its lanes, its claimed pages and its hosts."""

    number: int
    idle: int
    claimed: deque[int] = field(default_factory=deque)
    own: list[tuple[int, int]] = field(default_factory=list)  # heap: first waiting row and host
    turns: dict[int, deque[float]] = field(default_factory=dict)  # lanes that wait for their turn, since when
    held: int = 0  # hosts, until it ends
    done: int = 0


class Simulation:
    """A run over many hosts with many workers."""

    def __init__(self, given: argparse.Namespace) -> None:
        chance = random.Random(given.seed)
        hosts = given.hosts
        self.given = given
        self.now = 0.0
        self.left = array("l", (min(given.most, int(chance.paretovariate(1.2))) for _ in range(hosts)))
        self.rank = array("l", bytes(8 * hosts))  # how many rows of a host were claimed
        self.owner = array("h", [FREE]) * hosts
        self.next_at = array("d", bytes(8 * hosts))
        self.first_at = array("d", [-1.0]) * hosts
        self.answered_at = array("d", [-1e9]) * hosts
        self.failures = array("h", bytes(2 * hosts))
        self.dead = bytearray(chance.random() < given.dead for _ in range(hosts))
        self.slow = bytearray(chance.random() < given.resting for _ in range(hosts))
        self.listed = bytearray(b"\1") * hosts  # waits in one of the heaps
        self.pages = sum(self.left)
        self.max_pages = max(self.left)
        self.free = [(self.key(host), host) for host in range(hosts)]
        heapq.heapify(self.free)
        self.resting: list[tuple[float, int]] = []
        self.workers = [Worker(number, given.lanes) for number in range(given.workers)]
        self.events: list[tuple[float, int, int, int]] = []  # when, which, worker, host
        self.event_count = 0
        self.claims = self.names = self.most_names = self.returned = self.moved = 0
        self.haste = 0.0
        self.busy = self.waited = 0.0  # seconds of lanes: at work, and in front of a host

    def key(self, host: int) -> int:
        """Return the position of the next row of a host in the queue: by depth, or site by site."""
        rank = self.rank[host]
        return host * 10**6 + rank if self.given.order == "sites" else rank * 10**8 + host

    # ---- claims

    def claim(self, worker: Worker) -> bool:
        """Claim rows in order, from hosts that are free or belong to the worker."""
        self.wake()
        self.claims += 1
        others = sum(each.held for each in self.workers) - worker.held
        self.names += others
        self.most_names = max(self.most_names, others)
        rate = worker.done / max(0.1, self.now)
        batch = int(min(BATCH, max(2 * self.given.lanes, rate * AHEAD)))
        taken = self.take(worker, batch)
        if not taken and self.share(worker):
            taken = self.take(worker, batch)
        return taken > 0

    def take(self, worker: Worker, batch: int) -> int:
        """Yield rows in order; with --per-host, at most that many of one host are claimed at a time."""
        taken, aside = 0, list[int]()
        held = Counter(worker.claimed)
        while taken < batch and (worker.own or self.free):
            mine = bool(worker.own) and (not self.free or worker.own[0] < self.free[0])
            _, host = heapq.heappop(worker.own if mine else self.free)
            self.listed[host] = 0
            if self.owner[host] == FREE:
                self.owner[host] = worker.number
                worker.held += 1
            if self.next_at[host] - self.now > max(MAX_WAIT_SECONDS, self.given.delay):
                self.list(host, self.next_at[host])
            elif held[host] + (host in worker.turns) >= self.given.per_host:
                aside.append(host)
            else:
                self.rank[host] += 1
                self.left[host] -= 1
                held[host] += 1
                worker.claimed.append(host)
                taken += 1
                self.list(host)
        for host in aside:
            self.list(host)
        return taken

    def list(self, host: int, rests_until: float | None = None) -> None:
        """Put a host with rows into the waiting list of its worker."""
        if self.listed[host] or not self.left[host]:
            return
        self.listed[host] = 1
        if rests_until is not None:
            heapq.heappush(self.resting, (rests_until, host))
        else:
            heapq.heappush(self.workers[self.owner[host]].own, (self.key(host), host))

    def share(self, worker: Worker) -> bool:
        """Take half of the waiting hosts of each other worker; each first waits for one delay."""
        got = False
        for other in self.workers:
            if other is worker or not other.own:
                continue
            waiting = [(key, h) for key, h in other.own if h not in other.turns and h not in other.claimed]
            for item in sorted(waiting)[::2]:
                host = item[1]
                self.owner[host] = worker.number
                self.next_at[host] = max(self.next_at[host], self.now + self.given.delay)
                heapq.heappush(worker.own, item)
                other.held, worker.held = other.held - 1, worker.held + 1
                self.moved += 1
                got = True
            if waiting:
                other.own = [item for item in other.own if self.owner[item[1]] == other.number]
                heapq.heapify(other.own)
        return got

    def wake(self) -> None:
        """Make hosts whose pause is over claimable again, by the worker that holds them."""
        while self.resting and self.resting[0][0] <= self.now:
            _, host = heapq.heappop(self.resting)
            self.listed[host] = 0
            self.list(host)

    def give_back(self, host: int) -> None:
        """Put back a page of a host that pauses; none of its pages is claimed before the pause ends."""
        self.returned += 1
        self.rank[host] -= 1
        self.left[host] += 1
        self.list(host, self.next_at[host])

    # ---- lanes

    def feed(self, worker: Worker) -> None:
        """Give claimed pages to idle lanes, and claim more if few are left."""
        while worker.idle:
            if len(worker.claimed) < self.given.lanes:
                self.claim(worker)
            if not worker.claimed:
                return
            host = worker.claimed.popleft()
            worker.idle -= 1
            if host in worker.turns:
                worker.turns[host].append(self.now)
            elif not self.enter(worker, host):
                worker.idle += 1

    def enter(self, worker: Worker, host: int) -> bool:
        """Start a check, now or after the delay of the host; return False if the host pauses for longer."""
        pause = self.next_at[host] - self.now
        if pause > max(MAX_WAIT_SECONDS, self.given.delay):
            self.give_back(host)
            return False
        worker.turns[host] = deque()
        begins = self.now + max(0.0, pause)
        self.waited += begins - self.now
        self.haste = max(self.haste, self.answered_at[host] + self.given.delay - begins)
        if self.first_at[host] < 0:
            self.first_at[host] = begins
        given_up = self.dead[host] and self.failures[host] >= DEAD_AFTER
        takes = 0.0 if given_up else SILENCE if self.dead[host] else ANSWER
        self.busy += takes
        self.event_count += 1
        heapq.heappush(self.events, (begins + takes, self.event_count, worker.number, host))
        return True

    def answered(self, worker: Worker, host: int) -> None:
        """End a check; the next lane that waits for this host continues."""
        worker.done += 1
        worker.idle += 1
        self.failures[host] += self.dead[host]
        self.answered_at[host] = self.now
        rests = self.slow[host] == 1
        self.slow[host] = 0
        self.next_at[host] = self.now + (REST if rests else self.given.delay)
        waiting = worker.turns.pop(host)
        while waiting:
            self.waited += self.now - waiting.popleft()
            if self.enter(worker, host):
                worker.turns[host] = waiting
                return
            worker.idle += 1

    def run(self) -> None:
        """Run until every page was checked."""
        done = 0
        for worker in self.workers:
            self.feed(worker)
        while done < self.pages:
            if self.events and (not self.resting or self.events[0][0] <= self.resting[0][0]):
                self.now, _, number, host = heapq.heappop(self.events)
                worker = self.workers[number]
                self.answered(worker, host)
                done += 1
                self.feed(worker)
            else:
                self.now = max(self.now, self.resting[0][0])
                self.wake()
                for worker in self.workers:
                    self.feed(worker)


def main(arguments: Sequence[str]) -> int:
    """Simulate and print the results; return 1 if a host was requested too early or never."""
    parser = argparse.ArgumentParser(prog="python -m soak simulate", description=__doc__)
    parser.add_argument("--hosts", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--lanes", type=int, default=32)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--most", type=int, default=2_000, help="pages of the largest host")
    parser.add_argument("--dead", type=float, default=0.005, help="share of hosts that never answer")
    parser.add_argument("--resting", type=float, default=0.001, help="share of hosts that ask for a pause once")
    parser.add_argument("--order", choices=("depth", "sites"), default="depth")
    parser.add_argument("--per-host", type=int, default=10**9, help="rows of one host that a worker may claim")
    parser.add_argument("--seed", type=int, default=8)
    began = time.monotonic()
    world = Simulation(parser.parse_args(arguments))
    world.run()
    first = sorted(world.first_at)
    _report(world, first)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{memory:,.0f} MB, {time.monotonic() - began:.0f} s")
    return int(world.haste > 1e-6 or first[0] < 0)


def _report(world: Simulation, first: Sequence[float]) -> None:
    given, took = world.given, world.now
    lanes = given.workers * given.lanes
    shortest = max(world.busy / lanes, world.max_pages * (given.delay + ANSWER))
    at_work, waiting = world.busy / lanes / took, world.waited / lanes / took
    print(f"{given.hosts:,} hosts, {world.pages:,} pages, {given.workers} workers of {given.lanes} lanes")
    print(f"took {took:,.0f} s; without any queue at least {shortest:,.0f} s")
    print(f"lanes: {at_work:.0%} at work, {waiting:.0%} in front of a host")
    print(f"first looks: half of the hosts after {first[len(first) // 2]:,.0f} s, all after {first[-1]:,.0f} s")
    print(f"spacing: at most {max(0.0, world.haste):.6f} s too soon; never asked: {sum(at < 0 for at in first)}")
    print(f"{world.claims:,} claims; pages given back {world.returned:,}; hosts handed over {world.moved:,}")
    print(f"hosts of others at a claim: {world.names / world.claims:,.0f}, at most {world.most_names:,}")
