"""Who is alive, and how hosts are treated with care."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from tests.stores import execute

from afresh.crawl.heartbeat import Heartbeat, MonotonicClock, is_alive, process_exists
from afresh.crawl.hosts import FAILURES_OF_A_DEAD_HOST, HostLimiter
from afresh.model.records import WorkerRecord
from afresh.store.store import Store
from afresh.testing import FrozenClock

NOW = FrozenClock()()


def worker(name: str, *, host: str = "here", pid: int = 1, silent: float = 0.0) -> WorkerRecord:
    """A worker whose heart beat some seconds ago."""
    return WorkerRecord(name=name, host=host, pid=pid, heartbeat_at=NOW - timedelta(seconds=silent))


def _ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("other", "alive"),
    [
        pytest.param(worker("b", pid=os.getpid()), True, id="its-process-is-there"),
        pytest.param(worker("b", pid=_ended_pid()), False, id="B7-its-process-is-gone"),
        pytest.param(worker("b", host="there", pid=_ended_pid()), True, id="elsewhere-the-heart-counts"),
        pytest.param(worker("b", host="there", silent=61), False, id="P3-silent-past-its-lease"),
        pytest.param(worker("b", pid=os.getpid(), silent=61), False, id="F24-asleep-past-its-lease"),
        pytest.param(worker("me", silent=10_000), True, id="I-am"),
    ],
)
def test_B7_a_worker_is_alive_by_heartbeat_and_process(other: WorkerRecord, alive: bool) -> None:
    assert is_alive(other, worker("me"), 60.0, NOW) is alive


def test_a_process_exists_or_not() -> None:
    assert process_exists(os.getpid())
    assert not process_exists(_ended_pid())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="zombies are told apart by /proc")
def test_B7_R0_a_killed_process_that_its_parent_has_not_waited_for_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not process_exists(process.pid)
    finally:
        process.wait()


class Ward:
    """A vigil over one other worker, with clocks that move when told."""

    def __init__(self, store: Store, other: WorkerRecord) -> None:
        self.store, self.clock, self.seconds = store, FrozenClock(), 0.0
        self.other = other
        self.heartbeat = Heartbeat(
            store=self.store,
            me=worker("me"),
            lease_seconds=60,
            heartbeat_seconds=10,
            clock=self.clock,
            monotonic=lambda: self.seconds,
        )

    async def known(self) -> set[str]:
        """Who is left after a look at everybody."""
        await self.heartbeat.reclaim()
        return {each.name for each in await self.store.workers.all()}


JUMPS = pytest.mark.parametrize("days", [1, -1, 3650], ids=["a-day-on", "a-day-back", "ten-years-on"])
HERE, THERE = worker("b", pid=os.getpid()), worker("b", host="there")


@JUMPS
@pytest.mark.parametrize("other", [HERE, THERE], ids=["here", "there"])
async def test_F28_a_living_worker_keeps_its_claims_when_the_clock_jumps(
    store: Store, other: WorkerRecord, days: int
) -> None:
    ward = Ward(store, other)
    await ward.store.workers.join(other)
    ward.clock.advance(days=days)
    for beat in range(1, 6):  # its heart goes on by a clock that differs from ours
        assert await ward.known() == {"b"}
        ward.seconds += 10
        await ward.store.workers.beat(replace(other, heartbeat_at=NOW + timedelta(seconds=10 * beat)))


@JUMPS
@pytest.mark.parametrize("other", [HERE, THERE], ids=["asleep-here", "gone-there"])
async def test_F28_F24_a_heartbeat_that_stands_still_is_stopped_whatever_the_clock_says(
    store: Store, other: WorkerRecord, days: int
) -> None:
    ward = Ward(store, other)
    await ward.store.workers.join(other)
    ward.clock.advance(days=days)
    assert await ward.known() == {"b"}
    ward.seconds += 14
    assert await ward.known() == {"b"}
    ward.seconds += 2
    assert await ward.known() == set()


async def test_F19_P10_a_worker_that_was_cut_off_gives_the_others_time_to_come_back(store: Store) -> None:
    """The database was away for longer than a lease: nobody loses its pages to who reconnects first."""
    ward = Ward(store, THERE)
    await ward.store.workers.join(THERE)
    ward.seconds, _ = 61, ward.clock.advance(61)
    await ward.heartbeat.send()
    assert await ward.known() >= {"b"}
    ward.seconds += 59
    assert await ward.known() >= {"b"}
    ward.seconds += 2
    assert "b" not in await ward.known(), "it did not come back"


async def test_B7_a_process_that_is_gone_from_this_machine_is_not_waited_for(store: Store) -> None:
    ward = Ward(store, worker("b", pid=_ended_pid()))
    await ward.store.workers.join(ward.other)
    assert await ward.known() == set()


def test_F28_a_steady_clock_goes_forward_and_never_back() -> None:
    wall = FrozenClock()
    steady = MonotonicClock(wall)
    assert steady() == NOW
    wall.advance(days=-1)
    assert steady() == NOW
    wall.advance(5)
    assert steady() == NOW + timedelta(seconds=5)
    wall.advance(days=1)
    assert steady() == NOW + timedelta(days=1, seconds=5)
    wall.advance(days=-3650)
    assert steady() == NOW + timedelta(days=1, seconds=5)


async def test_A20_no_more_looks_at_once_than_allowed_and_each_host_by_itself() -> None:
    hosts, now, most = HostLimiter(2), {"a": 0, "b": 0}, {"a": 0, "b": 0}

    async def look(host: str) -> None:
        await hosts.enter(host)
        now[host] += 1
        most[host] = max(most[host], now[host])
        await asyncio.sleep(0)
        now[host] -= 1
        hosts.leave(host)

    await asyncio.gather(*(look(host) for host in "ab" * 10))
    assert most == {"a": 2, "b": 2}


async def test_B16_a_delay_stands_between_two_looks() -> None:
    hosts, at = HostLimiter(3), []
    hosts.learn("a", 0.05)
    loop = asyncio.get_running_loop()

    async def look() -> None:
        await hosts.enter("a")
        at.append(loop.time())
        hosts.leave("a")

    await asyncio.gather(*(look() for _ in range(4)))
    assert all(later - earlier >= 0.045 for earlier, later in pairwise(at))


async def test_B16_a_host_that_comes_from_another_worker_rests_as_long_as_between_two_looks() -> None:
    hosts, loop = HostLimiter(3), asyncio.get_running_loop()
    hosts.learn("a", 0.05)
    hosts.arrived("a")
    hosts.arrived("b")
    began = loop.time()
    assert await hosts.enter("b"), "who asks for no distance is asked at once"
    assert await hosts.enter("a")
    assert loop.time() - began >= 0.045


async def test_F24_a_worker_silent_for_a_lease_knows_that_its_claims_are_lost(store: Store) -> None:
    ward = Ward(store, THERE)
    await ward.store.workers.join(ward.heartbeat.me)
    for _ in range(3):
        ward.seconds += 59
        assert ward.heartbeat.lapses == 0
        await ward.heartbeat.send()
    ward.seconds += 61
    assert ward.heartbeat.lapses == 1, "also before the heart beats again"
    await ward.heartbeat.ensure_lease()  # before it claims again: others still take it for dead
    assert [each.heartbeat_at for each in await ward.store.workers.all()] == [ward.clock()]
    ward.seconds += 30
    assert ward.heartbeat.lapses == 1, "and what was claimed before stays lost"
    ward.seconds += 30
    assert ward.heartbeat.lapses == 1


async def test_F24_a_worker_taken_for_dead_learns_it_with_its_next_beat(store: Store) -> None:
    ward = Ward(store, THERE)
    await ward.store.workers.join(ward.heartbeat.me)
    await ward.heartbeat.send()
    assert ward.heartbeat.lapses == 0
    await ward.store.workers.reclaim(["me"], ward.clock())
    await ward.heartbeat.send()
    await ward.heartbeat.send()
    assert ward.heartbeat.lapses == 1


async def test_F24_a_worker_that_was_silent_and_then_taken_for_dead_loses_what_it_claimed_in_between(
    store: Store,
) -> None:
    ward = Ward(store, THERE)
    await ward.store.workers.join(ward.heartbeat.me)
    ward.seconds += 61
    claimed = ward.heartbeat.lapses
    await ward.store.workers.reclaim(["me"], ward.clock())
    await ward.heartbeat.send()
    assert ward.heartbeat.lapses > claimed


async def test_F24_a_beat_that_takes_longer_than_a_lease_gives_none(store: Store) -> None:
    ward = Ward(store, THERE)
    await ward.store.workers.join(ward.heartbeat.me)
    slow, beat = [61.0], ward.store.workers.beat

    async def slowly(worker: WorkerRecord) -> bool:
        ward.seconds += slow.pop() if slow else 0.0
        return await beat(worker)

    ward.store.workers.beat = slowly  # type: ignore[method-assign]
    ward.seconds += 61
    await ward.heartbeat.ensure_lease()
    claimed = ward.heartbeat.lapses
    ward.seconds += 61
    assert ward.heartbeat.lapses > claimed, "what was claimed after it is lost with the next silence"


async def test_F24_a_worker_that_joins_and_claims_while_others_look_round_is_no_orphan(store: Store) -> None:
    ward = Ward(store, THERE)
    workers = ward.store.workers.all

    async def joined_meanwhile() -> list[WorkerRecord]:
        before = await workers()
        await ward.store.workers.join(THERE)
        execute(store, "insert into hosts (domain, locked_by) values ('a', 'b')")
        return before

    ward.store.workers.all = joined_meanwhile  # type: ignore[method-assign]
    await ward.heartbeat.reclaim()
    assert await ward.store.workers.lock_owners() == {"b"}


async def test_F75_a_pause_holds_one_host_and_not_the_others() -> None:
    hosts = HostLimiter(3)
    loop = asyncio.get_running_loop()
    hosts.pause("a", 0.1)
    began = loop.time()
    entered: list[str] = []

    async def rest() -> None:
        await hosts.enter("a")
        entered.append("a")

    resting = asyncio.create_task(rest())
    await hosts.enter("b")
    assert "a" not in entered  # b did not wait behind a
    await resting
    assert loop.time() - began >= 0.095


def test_F30_a_host_is_given_up_after_failures_in_a_row_only() -> None:
    hosts = HostLimiter(3)
    for _ in range(FAILURES_OF_A_DEAD_HOST - 1):
        hosts.failed("a")
    hosts.answered("a")
    hosts.failed("a")
    assert not hosts.is_dead("a")
    for _ in range(FAILURES_OF_A_DEAD_HOST):
        hosts.failed("a")
    assert hosts.is_dead("a")
    assert not hosts.may_try("a")
    assert not hosts.is_dead("b")


def test_F30_a_dead_host_is_tried_by_one_look_after_pauses_that_grow() -> None:
    now = 0.0
    hosts = HostLimiter(3, clock=lambda: now)
    for _ in range(FAILURES_OF_A_DEAD_HOST + 5):  # those under way fail as well
        hosts.failed("a")
    tried: list[float] = []
    while now < 2_000:
        if hosts.may_try("a"):
            tried.append(now)
            assert not hosts.may_try("a")  # nobody else meanwhile
            hosts.failed("a")
        now += 1.0
    assert tried == [5, 15, 35, 75, 155, 315, 615, 915, 1215, 1515, 1815]


def test_F30_a_dead_host_that_answers_is_as_good_as_any() -> None:
    now = 0.0
    hosts = HostLimiter(3, clock=lambda: now)
    for _ in range(FAILURES_OF_A_DEAD_HOST):
        hosts.failed("a")
    now = 5.0
    assert hosts.may_try("a")
    assert hosts.is_dead("a")  # for all others, until the trial has come back
    hosts.answered("a")
    assert not hosts.is_dead("a")
    assert hosts.may_try("a")
    hosts.failed("a")
    assert hosts.may_try("a")


async def test_F75_nobody_stands_in_the_way_of_others_at_a_host_that_rests() -> None:
    hosts = HostLimiter(1)
    hosts.pause("a", 30)
    assert not await hosts.enter("a")
    assert not await hosts.enter("a")  # the turn was given back
    assert await hosts.enter("b")


async def test_F28_a_heartbeat_that_moves_is_alive_however_far_its_clock_is_ahead(store: Store) -> None:
    """The clock was set back by a day: nobody waits for the one who still beats in the future."""
    ward = Ward(store, worker("other", host="elsewhere"))
    ahead = replace(ward.other, heartbeat_at=ward.clock() + timedelta(days=1))
    await ward.store.workers.join(ahead)
    assert not await ward.heartbeat.reclaim(), "once seen, nobody knows yet"
    later = replace(ahead, heartbeat_at=ahead.heartbeat_at + timedelta(seconds=10))
    await ward.store.workers.beat(later)
    assert await ward.heartbeat.reclaim()
    assert "other" in await ward.known()


async def test_P12_a_stopped_worker_does_not_wait_for_a_worker_in_doubt(store: Store) -> None:
    ward = Ward(store, worker("other", host="elsewhere"))
    await ward.store.workers.join(replace(ward.other, heartbeat_at=ward.clock() - timedelta(days=1)))
    stopping = asyncio.Event()
    stopping.set()
    await asyncio.wait_for(ward.heartbeat.wait_until_certain(stopping), 10)
    assert "other" in {each.name for each in await ward.store.workers.all()}
