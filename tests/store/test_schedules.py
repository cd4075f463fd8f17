"""The next time of each source: one worker uses it, on every store."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from tests.store.conftest import Open
from tests.store.crawler import ManualCrawler

from afresh.model.records import RunId, SourceId, WorkerRecord
from afresh.schedule.rules import ScheduledRun


def at_noon(crawler: ManualCrawler, rule: str = "0 12 * * *") -> ScheduledRun:
    now = crawler.clock()
    slot = now + timedelta(hours=3)
    return ScheduledRun(
        source=crawler.source.id, rule=rule, slot=slot, next_at=slot + timedelta(seconds=7), planned_at=now
    )


async def join(crawler: ManualCrawler, *names: str) -> None:
    for name in names:
        await crawler.store.workers.join(WorkerRecord(name=name, host="here", pid=1, heartbeat_at=crawler.clock()))


async def test_F25_a_time_is_used_by_one_of_many_and_goes_to_another_only_when_that_one_is_dead(
    crawler: ManualCrawler, open_another: Open
) -> None:
    planned = at_noon(crawler)
    names = ("one", "two", "three")
    await join(crawler, *names)
    await crawler.store.schedules.plan(planned)
    stores = [await open_another() for _ in names]
    held = await asyncio.gather(
        *(
            store.schedules.hold(planned.source, planned.next_at, name)
            for store, name in zip(stores, names, strict=True)
        )
    )
    assert sum(held) == 1
    winner = names[held.index(True)]
    assert await stores[0].schedules.hold(planned.source, planned.next_at, winner), "it may try again"
    heir = next(name for name in names if name != winner)
    assert [each.held_by for each in await crawler.store.schedules.appointments()] == [winner]
    await crawler.store.schedules.plan(at_noon(crawler, "@daily"))
    assert [each.rule for each in await crawler.store.schedules.appointments()] == [planned.rule], "it is in use"
    await crawler.store.workers.release(winner, crawler.clock())
    assert await crawler.store.schedules.hold(planned.source, planned.next_at, heir)
    after = replace(
        planned,
        slot=planned.slot + timedelta(days=1),
        next_at=planned.next_at + timedelta(days=1),
        planned_at=crawler.clock.advance(60),
        run=RunId(4),
        outcome="completed",
        fired_at=planned.next_at,
    )
    assert not await crawler.store.schedules.settle(after, winner), "who lost it writes nothing"
    assert await crawler.store.schedules.settle(after, heir)
    assert await crawler.store.schedules.appointments() == [after]
    assert not await crawler.store.schedules.hold(planned.source, planned.next_at, heir), "it was used"


async def test_a_time_stays_until_its_rule_changes_or_its_clock_was_wrong(crawler: ManualCrawler) -> None:
    planned, store = at_noon(crawler), crawler.store
    later = replace(planned, slot=planned.slot + timedelta(hours=1), next_at=planned.next_at + timedelta(1))
    await store.schedules.plan(planned)
    await store.schedules.plan(replace(later, planned_at=crawler.clock.advance(60)))
    assert await store.schedules.appointments() == [planned]
    other = replace(later, rule="@hourly", planned_at=crawler.clock())
    await store.schedules.plan(other)
    assert await store.schedules.appointments() == [other]
    earlier = replace(other, planned_at=crawler.clock.advance(-3600), slot=planned.slot)
    await store.schedules.plan(earlier)
    assert await store.schedules.appointments() == [earlier], "planned by a clock that ran ahead"
    await join(crawler, "one")
    assert await store.schedules.hold(earlier.source, earlier.next_at, "one")
    await store.schedules.let_go(earlier.source, "two")
    assert [each.held_by for each in await store.schedules.appointments()] == ["one"]
    await store.schedules.let_go(earlier.source, "one")
    assert await store.schedules.appointments() == [earlier]
    assert not await store.schedules.hold(SourceId(999_999_999), earlier.next_at, "one")
    await store.schedules.drop([earlier.source, SourceId(999_999_999)])
    assert await store.schedules.appointments() == []
    await store.schedules.plan(planned)
    await store.sources.remove(crawler.source.id, crawler.clock())
    assert await store.schedules.appointments() == []
