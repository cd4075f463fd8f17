"""A request with a name of its own: its turn is renewed while it is answered; no answer is lost."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.stores import new_store

from afresh.access import idempotency
from afresh.access.idempotency import GIVEN_UP, RequestClaim, StoredResponse, begin
from afresh.store.access import AccessRepository
from afresh.store.dialect import Database
from afresh.store.store import Store
from afresh.testing import FrozenClock

ANSWER = StoredResponse("asked", 201, None, "{}")


class RenewedAccess(AccessRepository):
    """A repository that says when a turn was renewed, and answers when it is let."""

    def __init__(self, inner: AccessRepository) -> None:
        super().__init__(inner.db, inner.caches, inner.retry)
        self.begun = self.renewed = 0  # numbers of renewals
        self.open = asyncio.Event()

    async def is_renewed(self) -> None:
        """Go on when a turn was renewed once more, by a renewal that begins from now on."""
        before = self.begun
        async with asyncio.timeout(30):
            while self.renewed <= before:  # noqa: ASYNC110 - another task of ours
                await asyncio.sleep(0.001)

    async def renew_answer(self, caller: str, name: str, began: datetime, now: datetime) -> bool:
        self.begun += 1
        number = self.begun
        ours = await super().renew_answer(caller, name, began, now)
        self.renewed = number
        await self.open.wait()
        return ours


class Renewed(Store):
    """A store with such a repository."""

    access: RenewedAccess

    def __init__(self, db: Database, url: str) -> None:
        super().__init__(db, url)
        self.access = RenewedAccess(self.access)


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Renewed]:
    """One whose turns are renewed as often as can be."""
    monkeypatch.setattr(idempotency, "RENEWED", timedelta(0))
    async with new_store(tmp_path, Renewed) as store:
        yield store


async def begun(store: Renewed, clock: FrozenClock) -> RequestClaim:
    turn = await begin(store, clock, "me", "key", "asked")
    assert isinstance(turn, RequestClaim)
    clock.advance(seconds=1)
    return turn


async def turns(number: int = 50) -> None:
    """Let everybody else have some turns of the loop."""
    for _ in range(number):
        await asyncio.sleep(0)


async def test_a_turn_is_renewed_while_it_is_answered(store: Renewed) -> None:
    clock = FrozenClock()
    store.access.open.set()
    async with await begun(store, clock):
        clock.advance(seconds=GIVEN_UP.total_seconds() - 1)
        await store.access.is_renewed()
        clock.advance(seconds=GIVEN_UP.total_seconds() - 1)
        assert await begin(store, clock, "me", "key", "asked") == StoredResponse("asked"), "it goes on"


async def test_an_answer_that_comes_during_a_renewal_is_kept(store: Renewed) -> None:
    clock = FrozenClock()
    async with await begun(store, clock) as turn:
        await store.access.is_renewed()
        keeping = asyncio.create_task(turn.keep(ANSWER))
        await turns()
        store.access.open.set()
        await keeping
    assert await begin(store, clock, "me", "key", "asked") == ANSWER


async def test_what_came_to_nothing_is_forgotten_however_often_it_was_cancelled(store: Renewed) -> None:
    clock = FrozenClock()

    async def answered() -> None:
        async with await begun(store, clock):
            await asyncio.Event().wait()

    asked = asyncio.create_task(answered())
    await store.access.is_renewed()
    for _ in range(3):
        asked.cancel()
        await turns()
    assert not asked.done(), "a renewal is under way"
    store.access.open.set()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert isinstance(await begin(store, clock, "me", "key", "asked"), RequestClaim), "it can be made again"
