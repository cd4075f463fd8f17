"""Trouble of the store that passes: how long it is waited out, and what is said about it."""

import asyncio

import pytest

from afresh.errors import StoreBusy, StoreDamaged, StoreError, StoreFull
from afresh.events import Event, Notice
from afresh.store import repository as module
from afresh.store.repository import BUSY, FOREVER, FULL, GOING_ON, Repository, RetryPolicy, not_retried


class Troubled(Repository):
    """A repository whose calls fail some times before they go well; each try takes a second of a made-up clock."""

    def __init__(self, *troubles: StoreError) -> None:  # it has no database
        self.retry = None
        self.troubles = list(troubles)
        self.now = 0.0
        self.notices: list[str] = []

    def clock(self) -> float:
        """The time of this test."""
        return self.now

    def listen(self, event: Event) -> None:
        """Notes what is said."""
        assert isinstance(event, Notice)
        self.notices.append(event.text)

    async def commit(self, visits: str, *, worker: str) -> str:
        """What was given, once there is no trouble left."""
        return await self._once(visits, worker)

    async def _once(self, what: str, worker: str = "w") -> str:
        self.now += 1
        if self.troubles:
            raise self.troubles.pop(0)
        return f"{what} by {worker}"

    async def claim_again(self) -> str:
        """What a claim took whose answer was lost."""
        return await self._once("held")

    async def claim(self) -> str:
        """As a worker does; its answer is lost with the trouble."""
        return await self._once("taken")

    @not_retried
    async def beat(self) -> str:
        """As the heart does."""
        return await self._once("beat")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setattr(module, "PAUSE_BUSY", 0.0)


def _run(store: Troubled, stopping: asyncio.Event | None = None) -> Troubled:
    """The store as a run sees it: patient without end, unless it is stopped."""
    store.retry = RetryPolicy(
        busy_seconds=FOREVER,
        full_seconds=FOREVER,
        listener=store.listen,
        clock=store.clock,
        stopping=stopping or asyncio.Event(),
    )
    return store


async def test_F12_a_run_waits_for_room_and_says_so_once() -> None:
    store = Troubled(*(StoreFull("full") for _ in range(50)))
    assert await _run(store).commit("visits", worker="w1") == "visits by w1"
    assert store.notices == [FULL, GOING_ON]


async def test_F14_a_run_waits_for_a_lock_of_a_minute_and_more() -> None:
    store = Troubled(*(StoreBusy("busy") for _ in range(70)))
    assert await _run(store).commit("visits", worker="w1") == "visits by w1"
    assert store.notices == [BUSY, GOING_ON]


async def test_F14_a_lock_of_a_few_seconds_is_not_worth_a_word() -> None:
    store = Troubled(*(StoreBusy("busy") for _ in range(3)))
    await _run(store).commit("visits", worker="w1")
    assert store.notices == []


async def test_F12_each_kind_of_problem_is_reported() -> None:
    store = Troubled(*(StoreBusy("busy") for _ in range(10)), StoreFull("full"), StoreFull("full"))
    await _run(store).commit("visits", worker="w1")
    assert store.notices == [BUSY, FULL, GOING_ON]


async def test_F12_a_stop_ends_the_waiting_for_room() -> None:
    store, stopping = Troubled(*(StoreFull("full") for _ in range(50))), asyncio.Event()
    call = asyncio.create_task(_run(store, stopping).commit("visits", worker="w1"))
    while not store.notices:  # noqa: ASYNC110 - it is heard in a few steps of the loop
        await asyncio.sleep(0)
    stopping.set()
    with pytest.raises(StoreFull):
        await call
    assert len(store.troubles) > 40


async def test_F14_a_stop_still_gives_a_lock_a_moment_to_go() -> None:
    stopping = asyncio.Event()
    stopping.set()
    store = Troubled(StoreBusy("busy"), StoreBusy("busy"))
    assert await _run(store, stopping).commit("visits", worker="w1") == "visits by w1"
    with pytest.raises(StoreBusy):
        await _run(Troubled(*(StoreBusy("busy") for _ in range(9))), stopping).commit("v", worker="w1")


async def test_F14_a_command_waits_for_a_lock_half_a_minute_and_for_room_not_at_all() -> None:
    busy = Troubled(*(StoreBusy("busy") for _ in range(60)))
    busy.retry = RetryPolicy(clock=busy.clock)
    with pytest.raises(StoreBusy):
        await busy.commit("visits", worker="w1")
    assert len(busy.troubles) == 60 - 31
    full = Troubled(StoreFull("full"))
    full.retry = RetryPolicy(clock=full.clock)
    with pytest.raises(StoreFull):
        await full.commit("visits", worker="w1")


async def test_F17_what_does_not_pass_is_not_waited_for() -> None:
    store = Troubled(StoreDamaged("damaged"))
    with pytest.raises(StoreDamaged):
        await _run(store).commit("visits", worker="w1")


async def test_F14_a_heartbeat_never_waits() -> None:
    store = Troubled(StoreBusy("busy"))
    with pytest.raises(StoreBusy):
        await _run(store).beat()


async def test_F20_a_claim_whose_answer_may_be_lost_asks_for_what_it_took() -> None:
    assert await _run(Troubled()).claim() == "taken by w"
    assert await _run(Troubled(StoreBusy("locked"), StoreBusy("locked"))).claim() == "held by w"
