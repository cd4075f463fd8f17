"""Sending messages: what was sent is counted and noted, and trouble of one target is its own."""

import asyncio
from datetime import datetime
from pathlib import Path

import pytest
from tests.e2e.library import opened

from afresh.core.ending import Ending
from afresh.core.errors import StoreBusy
from afresh.core.model import RunMode, RunState
from afresh.core.outbox import Letter, LetterState, Target
from afresh.engine.carriers import Outcome, Told
from afresh.engine.postman import Postman
from afresh.ports import Library
from afresh.store.store import SqlStore
from afresh.testing import FrozenClock, MemoryStore

TARGETS = ("ops", "cms", "gone")


class Held:
    """Brings messages when it is let, or falls."""

    def __init__(self, name: str, may: asyncio.Event | None = None) -> None:
        self.target = Target(name=name)
        self.may = may
        self.brought: list[str] = []

    async def carry(self, letter: Letter, told: Told, now: datetime) -> Outcome:
        if self.may is None:
            raise ValueError("no such thing")
        await self.may.wait()
        self.brought.append(letter.event)
        return None, False


async def filled(store: Library, now: datetime) -> None:
    source = await store.add_source(
        name="docs", version=None, kind="web", url="https://x.example/", rules={}, policy={}, now=now
    )
    run, _ = await store.start_run(source.id, RunMode.CRAWL, full=False, worker="me", now=now)
    letters = [(name, "run.finished") for name in TARGETS]
    await store.finish_run(run, Ending(state=RunState.COMPLETED, counts={}, letters=letters), now)


async def test_F101_what_was_sent_is_counted_and_a_target_that_falls_leaves_nobody_running() -> None:
    store, clock, may = MemoryStore(), FrozenClock(), asyncio.Event()
    await filled(store, clock())
    slow = Held("ops", may)
    postman = Postman(store=store, carriers={"ops": slow, "cms": Held("cms")}, clock=clock)
    asyncio.get_running_loop().call_later(0.05, may.set)
    with pytest.raises(ValueError, match="no such"):
        await postman.deliver()
    assert slow.brought == ["run.finished"], "it was waited for"
    states = {letter.target: letter.state for letter in await store.letters()}
    assert states == {"ops": LetterState.SENT, "cms": LetterState.WAITING, "gone": LetterState.DEAD}
    clock.advance(121)
    postman.carriers = {"cms": Held("cms", may)}
    assert await postman.deliver() == 1
    clock.advance(121)
    assert await postman.deliver() == 0


async def test_F101_nothing_that_is_not_sent_counts_as_sent() -> None:
    store, clock = MemoryStore(), FrozenClock()
    await filled(store, clock())
    assert await Postman(store=store, carriers={}, clock=clock).deliver() == 0


async def test_F101_a_lock_after_a_message_was_sent_does_not_send_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, locked = SqlStore.settle_letter, [True]

    async def busy(*args: object, **more: object) -> None:
        if locked:
            locked.clear()
            raise StoreBusy("another process writes")
        await settle(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(SqlStore, "settle_letter", busy)
    clock = FrozenClock()
    async with opened(tmp_path / "kb.db", {"embedding.provider": "none"}, clock=clock) as kb:
        await filled(kb._store, clock())
        assert await kb.send_letters() == 0
        states = [letter.state for letter in await kb.letters()]
        assert (states, locked) == ([LetterState.DEAD] * 3, [])
