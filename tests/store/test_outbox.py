"""Messages to others: written with what makes them true, sent by one, and what became of them."""

from datetime import timedelta

import pytest
from tests.store.conftest import Open
from tests.store.crawler import ManualCrawler, read

from afresh.crawl.run_verdict import RunEnding
from afresh.errors import RunBusy
from afresh.model.records import RunState
from afresh.notify.outbox import MessageState

MESSAGES = (("ops", "run.finished"), ("cms", "pages"))


async def test_F101_messages_come_with_the_end_of_a_run_or_not_at_all(crawler: ManualCrawler) -> None:
    await crawler.join()
    await crawler.begin()
    ending = RunEnding(state=RunState.COMPLETED, counts={}, messages=MESSAGES)
    await crawler.store.runs.finish(crawler.run, ending, crawler.clock())
    with pytest.raises(RunBusy):  # it is over
        await crawler.store.runs.finish(crawler.run, ending, crawler.clock())
    found = list(await crawler.store.messages.outbox())
    assert [(each.target, each.event, each.run_id, each.attempts) for each in reversed(found)] == [
        ("ops", "run.finished", crawler.run.id, 0),
        ("cms", "pages", crawler.run.id, 0),
    ]
    assert await crawler.store.messages.count_outbox() == {"waiting": 2}
    await crawler.store.sources.remove(crawler.source.id, crawler.clock())
    assert list(await crawler.store.messages.outbox()) == []


async def test_F101_one_sends_a_message(crawler: ManualCrawler, open_another: Open) -> None:
    store, clock = crawler.store, crawler.clock
    await crawler.join()
    await crawler.begin()
    await store.runs.finish(crawler.run, RunEnding(state=RunState.COMPLETED, counts={}, messages=MESSAGES), clock())
    first, second = await store.messages.due(clock())
    assert list(await store.messages.due(clock(), limit=1)) == [first, second], "one of each target"
    lease = clock() + timedelta(minutes=2)
    assert await store.messages.reserve(first, lease)
    assert not await (await open_another()).messages.reserve(first, lease)
    assert [each.id for each in await store.messages.due(clock())] == [second.id]
    (again, _) = await store.messages.due(lease)  # who took it may have died
    assert (again.id, again.attempts) == (first.id, 1)

    await store.messages.record_attempt(first, MessageState.SENT, clock(), again=None, error=None)
    later = clock() + timedelta(hours=1)
    assert await store.messages.reserve(second, lease)
    await store.messages.record_attempt(second, MessageState.WAITING, clock(), again=later, error="no connection")
    (waiting,) = await store.messages.outbox(state=MessageState.WAITING)
    assert (waiting.error, waiting.next_try_at, waiting.ended_at) == ("no connection", later, None)
    (again,) = await store.messages.outbox(state=MessageState.WAITING)
    assert await store.messages.reserve(again, lease)
    await store.messages.record_attempt(second, MessageState.SENT, clock(), again=None, error="late")
    assert (await store.messages.count_outbox())["waiting"] == 1, "another has begun to send it"
    await store.messages.record_attempt(again, MessageState.DEAD, clock(), again=None, error="a day old")
    assert await store.messages.count_outbox() == {"sent": 1, "dead": 1}
    assert not await store.messages.reserve(second, lease)


async def test_runs_and_copies_are_counted_by_state(crawler: ManualCrawler) -> None:
    store = crawler.store
    await crawler.join()
    await crawler.crawl({"": read("Root", "a"), "a": read("Page a")})
    first = crawler.run.id
    await crawler.begin()
    assert await store.stats.runs_by_state() == {"completed": 1, "running": 1}
    found = list(await store.stats.counts_of_runs(0))
    assert [(number, state) for number, state, _ in found] == [
        (first, RunState.COMPLETED),
        (crawler.run.id, RunState.RUNNING),
    ]
    assert found[0][2]["new"] == 2
    assert [number for number, *_ in await store.stats.counts_of_runs(first)] == [crawler.run.id]
    assert len(await store.stats.counts_of_runs(0, 1)) == 1
    await store.copies.take_sink("out", "there", crawler.worker)
    await store.copies.add("out", crawler.worker, [crawler.source.id], crawler.clock())
    assert await store.stats.copies_by_state() == {("out", "ready_for_indexing"): 2}
