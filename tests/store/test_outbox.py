"""Messages to others: written with what makes them true, sent by one, and what became of them."""

from datetime import timedelta

import pytest
from tests.store.conftest import Open
from tests.store.desk import Desk, read

from afresh.crawl.judge import RunEnding
from afresh.errors import RunBusy
from afresh.model.records import RunState
from afresh.notify.outbox import MessageState

LETTERS = (("ops", "run.finished"), ("cms", "pages"))


async def test_F101_messages_come_with_the_end_of_a_run_or_not_at_all(desk: Desk) -> None:
    await desk.join()
    await desk.begin()
    ending = RunEnding(state=RunState.COMPLETED, counts={}, letters=LETTERS)
    await desk.store.runs.finish(desk.run, ending, desk.clock())
    with pytest.raises(RunBusy):  # it is over
        await desk.store.runs.finish(desk.run, ending, desk.clock())
    found = list(await desk.store.messages.letters())
    assert [(each.target, each.event, each.run_id, each.attempts) for each in reversed(found)] == [
        ("ops", "run.finished", desk.run.id, 0),
        ("cms", "pages", desk.run.id, 0),
    ]
    assert await desk.store.messages.count_letters() == {"waiting": 2}
    await desk.store.sources.remove(desk.source.id, desk.clock())
    assert list(await desk.store.messages.letters()) == []


async def test_F101_one_sends_a_message(desk: Desk, open_another: Open) -> None:
    store, clock = desk.store, desk.clock
    await desk.join()
    await desk.begin()
    await store.runs.finish(
        desk.run, RunEnding(state=RunState.COMPLETED, counts={}, letters=LETTERS), clock()
    )
    first, second = await store.messages.letters_due(clock())
    assert list(await store.messages.letters_due(clock(), limit=1)) == [first, second], "one of each target"
    lease = clock() + timedelta(minutes=2)
    assert await store.messages.take_letter(first, lease)
    assert not await (await open_another()).messages.take_letter(first, lease)
    assert [each.id for each in await store.messages.letters_due(clock())] == [second.id]
    (again, _) = await store.messages.letters_due(lease)  # who took it may have died
    assert (again.id, again.attempts) == (first.id, 1)

    await store.messages.settle_letter(first, MessageState.SENT, clock(), again=None, error=None)
    later = clock() + timedelta(hours=1)
    assert await store.messages.take_letter(second, lease)
    await store.messages.settle_letter(
        second, MessageState.WAITING, clock(), again=later, error="no connection"
    )
    (waiting,) = await store.messages.letters(state=MessageState.WAITING)
    assert (waiting.error, waiting.next_try_at, waiting.ended_at) == ("no connection", later, None)
    (again,) = await store.messages.letters(state=MessageState.WAITING)
    assert await store.messages.take_letter(again, lease)
    await store.messages.settle_letter(second, MessageState.SENT, clock(), again=None, error="late")
    assert (await store.messages.count_letters())["waiting"] == 1, "another has begun to send it"
    await store.messages.settle_letter(again, MessageState.DEAD, clock(), again=None, error="a day old")
    assert await store.messages.count_letters() == {"sent": 1, "dead": 1}
    assert not await store.messages.take_letter(second, lease)


async def test_runs_and_copies_are_counted_for_those_who_watch(desk: Desk) -> None:
    store = desk.store
    await desk.join()
    await desk.crawl({"": read("Root", "a"), "a": read("Page a")})
    first = desk.run.id
    await desk.begin()
    assert await store.stats.runs_by_state() == {"completed": 1, "running": 1}
    found = list(await store.stats.counts_of_runs(0))
    assert [(number, state) for number, state, _ in found] == [
        (first, RunState.COMPLETED),
        (desk.run.id, RunState.RUNNING),
    ]
    assert found[0][2]["new"] == 2
    assert [number for number, *_ in await store.stats.counts_of_runs(first)] == [desk.run.id]
    assert len(await store.stats.counts_of_runs(0, 1)) == 1
    await store.copies.take_sink("out", "there", desk.worker)
    await store.copies.add("out", desk.worker, [desk.source.id], desk.clock())
    assert await store.stats.copies_by_state() == {("out", "ready_for_indexing"): 2}
