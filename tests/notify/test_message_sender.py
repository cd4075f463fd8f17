"""Sending messages: what was sent is counted and noted, and trouble of one target is its own."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import pytest

from afresh.crawl.run_verdict import RunEnding
from afresh.model.records import RunMode, RunState
from afresh.notify.outbox import MessageState, MessageTarget, OutboxMessage
from afresh.notify.sender import MessageBody, MessageSender, Outcome
from afresh.store.store import Store
from afresh.testing import FrozenClock

MESSAGES = [(name, "run.finished") for name in ("ops", "cms", "gone")]


class Held:
    """Brings messages when it is let, or falls."""

    def __init__(self, name: str, may: asyncio.Event | None = None) -> None:
        self.target = MessageTarget(name=name)
        self.may = may
        self.asked = asyncio.Event()
        self.brought: list[str] = []

    async def send(self, message: OutboxMessage, body: MessageBody, now: datetime) -> Outcome:
        self.asked.set()
        if self.may is None:
            raise ValueError("no such thing")
        await self.may.wait()
        self.brought.append(message.event)
        return None, False


class Down:
    """Brings messages unless it is down."""

    def __init__(self, name: str, *, down: bool = True) -> None:
        self.target = MessageTarget(name=name)
        self.down = down
        self.asked: list[str] = []

    async def send(self, message: OutboxMessage, body: MessageBody, now: datetime) -> Outcome:
        self.asked.append(message.event)
        return ("it is down", False) if self.down else (None, False)


async def filled(store: Store, now: datetime, messages: Sequence[tuple[str, str]] = MESSAGES) -> None:
    source = await store.sources.add(
        name="docs", version=None, kind="web", url="https://x.example/", rules={}, policy={}, now=now
    )
    run, _ = await store.runs.start(source.id, RunMode.CRAWL, full=False, worker="me", now=now)
    await store.runs.finish(run, RunEnding(state=RunState.COMPLETED, counts={}, messages=messages), now)


async def test_F101_what_was_sent_is_counted_and_a_target_that_falls_leaves_nobody_running(store: Store) -> None:
    clock, may = FrozenClock(), asyncio.Event()
    await filled(store, clock())
    slow = Held("ops", may)
    sender = MessageSender(store=store, transports={"ops": slow, "cms": Held("cms")}, clock=clock)
    asyncio.get_running_loop().call_later(0.05, may.set)
    with pytest.raises(ValueError, match="no such"):
        await sender.deliver()
    assert slow.brought == ["run.finished"], "it was waited for"
    states = {message.target: message.state for message in await store.messages.outbox()}
    assert states == {"ops": MessageState.SENT, "cms": MessageState.WAITING, "gone": MessageState.DEAD}
    clock.advance(121)
    sender.transports = {"cms": Held("cms", may)}
    assert await sender.deliver() == 1
    clock.advance(121)
    assert await sender.deliver() == 0


async def test_U4_F170_an_unfinished_message_is_sent_by_the_next_sender(store: Store) -> None:
    clock, never, may = FrozenClock(), asyncio.Event(), asyncio.Event()
    await filled(store, clock(), [("ops", "run.finished")])
    slow = Held("ops", never)
    sending = asyncio.create_task(MessageSender(store=store, transports={"ops": slow}, clock=clock).deliver())
    await slow.asked.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    may.set()
    assert await MessageSender(store=store, transports={"ops": Held("ops", may)}, clock=clock).deliver() == 1


async def test_F101_nothing_that_is_not_sent_counts_as_sent(store: Store) -> None:
    clock = FrozenClock()
    await filled(store, clock())
    assert await MessageSender(store=store, transports={}, clock=clock).deliver() == 0


async def test_F101_a_target_that_fails_is_sent_nothing_more_until_its_time_comes(store: Store) -> None:
    clock = FrozenClock()
    await filled(store, clock(), [("ops", "run.finished"), ("ops", "pages"), ("cms", "pages")])
    ops, cms = Down("ops"), Down("cms", down=False)
    sender = MessageSender(store=store, transports={"ops": ops, "cms": cms}, clock=clock)
    assert await sender.deliver() == 1
    assert (ops.asked, cms.asked) == (["run.finished"], ["pages"])
    clock.advance(3_600)
    ops.down = False
    assert await sender.deliver() == 2
    assert ops.asked == ["run.finished", "run.finished", "pages"]
