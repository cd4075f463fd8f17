"""`afresh schedule`: sources are looked at when their time comes, once for each time."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, opened
from tests.e2e.program import Program
from tests.e2e.sites import BusySite, lay, looks, star
from tests.e2e.test_worker import STORES, leave, place, until
from tests.postgres import Postgres

from afresh.events import Event, Notice
from afresh.model.reports import RunReport
from afresh.testing import FrozenClock, TinySite

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@STORES
async def test_F25_two_schedulers_on_one_store_use_each_time_once_and_missed_times_become_one(
    dialect: str, store: Path, tiny: TinySite, postgres: Postgres, work: type[InProcess]
) -> None:
    lay(tiny, star(3))
    clock, reported = FrozenClock(NOON), list[RunReport]()
    flags = {"store.url": await place(dialect, store, postgres)}

    async with opened(store, flags, clock=clock) as one, opened(store, flags, clock=clock) as two:
        await one.runs.crawl(tiny.url, name="docs")
        await one.runs.crawl(f"{tiny.url}p1", name="other")
        await one.schedules.set_rule(await one.sources.labelled(["docs"]), "30 4 * * *", time_zone="Europe/Berlin")
        [view] = await one.schedules.records()
        first = datetime(2026, 3, 5, 3, 30, tzinfo=UTC)
        assert (view.source, view.schedule, view.time_zone, view.next_time) == (
            *("docs", "30 4 * * *", "Europe/Berlin"),
            first,
        )

        async def fire() -> int:
            before = len(reported)
            await asyncio.gather(*(kb.schedules.keep(once=True, on_report=reported.append) for kb in (one, two)))
            return len(reported) - before

        assert await fire() == 0, "its time has not come"
        clock.set(first - timedelta(seconds=1))
        assert await fire() == 0
        clock.set(first)
        assert [await fire(), await fire()] == [1, 0]
        clock.set(first + 5 * DAY + timedelta(hours=2))
        assert [await fire(), await fire()] == [1, 0], "five times were missed"
        [view] = await two.schedules.records()
        assert view.next_time == first + 6 * DAY
        assert (view.last_state, view.last_time, view.overdue, view.running) == (
            *("completed", clock()),
            *(False, False),
        )
        assert [(each.source, each.mode, each.not_modified) for each in reported] == [("docs", "refresh", 4)] * 2
        await one.schedules.set_rule(await one.sources.labelled(["docs"]), None)
        assert await one.schedules.records() == []
        clock.advance(30 * DAY.total_seconds())
        assert await fire() == 0


async def test_a_source_whose_run_is_open_is_not_started_again_and_waits_for_its_turn(
    store: Path, work: type[InProcess]
) -> None:
    clock, message, reported = FrozenClock(NOON), list[str](), list[RunReport]()

    def receive(event: Event) -> None:
        if isinstance(event, Notice):
            message.append(event.text)

    with BusySite() as site:
        lay(site, star(3))
        flags = {"policy.lease_seconds": DAY.total_seconds()}  # no heart is in doubt while hours pass
        async with opened(store, flags, clock=clock) as one, opened(store, flags, clock=clock) as two:
            await one.runs.crawl(site.url, name="docs")
            await one.schedules.set_rule(await one.sources.labelled([]), "every 6h")
            held = site.hold("/p1")
            clock.advance(hours=5)
            by_hand = asyncio.create_task(one.runs.refresh(["docs"]))
            await held.arrived()
            clock.advance(hours=1)
            await two.schedules.keep(once=True, on_report=reported.append, listener=receive)
            assert (reported, message) == ([], ["docs is due, but a run of it is still open"])
            site.release("/p1")
            await by_hand
            await two.schedules.keep(once=True, on_report=reported.append, listener=receive)
            assert [each.state for each in reported] == ["completed"]
            assert (await two.schedules.records())[0].next_time == NOON + timedelta(hours=12)


async def test_P12_a_stopped_scheduler_ends_soon_and_the_next_one_continues(store: Path, work: type[InProcess]) -> None:
    program = Program(store, in_process=True, grace=0.5)
    with BusySite() as site:
        lay(site, star(20))
        async with opened(store, clock=FrozenClock(datetime.now(UTC) - 2 * DAY)) as kb:
            await kb.runs.crawl(site.url, name="docs")
            await kb.schedules.set_rule(await kb.sources.labelled([]), "every 1d")
            assert not (await kb.schedules.records())[0].running
            held = site.hold("/p7")
            first = program.start("schedule", "--json")
            await held.arrived(timeout=120)
            assert (await kb.schedules.records())[0].running
            assert leave(first) == ""
            await until(kb, "cancelled")
            site.release("/p7")
            done = program.run("schedule", "--once", "--json")
            assert (done.code, done.report["state"], done.report["run"]) == (0, "completed", 2), done
            [view] = json.loads(program.run("schedule", "--list", "--json").out)
            assert (view["source"], view["last_run"], view["last_state"]) == ("docs", 2, "completed")
        assert max(looks(site).values()) <= 4
    assert_sound(store)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--set", "61 * * * *"], "--set: expected five cron fields"),
        (["--set", "auto", "--time-zone", "Mars/Base"], "--time-zone: expected a time zone"),
        (["--time-zone", "UTC"], "--time-zone needs --set"),
    ],
)
def test_F89_a_wrong_flag_of_schedule_is_named(store: Path, words: list[str], expected: str) -> None:
    done = Program(store, in_process=True).run("schedule", *words)
    assert (done.code, expected in done.err) == (2, True), done


async def test_A28_auto_looks_often_at_what_changes_and_seldom_at_what_does_not_within_its_budget(
    store: Path, work: type[InProcess]
) -> None:
    clock, reported = FrozenClock(NOON), list[RunReport]()
    flags = {"policy.budget": "20/d", "policy.lease_seconds": DAY.total_seconds()}
    with BusySite() as site:
        lay(site, star(12))
        async with opened(store, flags, clock=clock) as kb:
            await kb.runs.crawl(site.url, name="docs")
            await kb.schedules.set_rule(await kb.sources.labelled(["docs"]), "auto")
            [view] = await kb.schedules.records()
            assert (view.schedule, view.budget, view.next_time) == ("auto", "20/d", NOON + timedelta(hours=6))
            site.requests.clear()
            for number in range(28):
                clock.advance(hours=6)
                for path in ("/p0", "/p1"):
                    site.put(path, f"<h1>{path}</h1><p>It is edition {number} of the news in {path}.</p>")
                await kb.schedules.keep(once=True, on_report=reported.append)
            pages = {page.url.rpartition("/")[2]: page for page in await kb.pages.of_source("docs")}
        asked = looks(site)
        assert {each.mode for each in reported} == {"due"}
        assert all(each.state == "completed" and each.checked <= 6 for each in reported)
        still = [asked[f"/p{number}"] for number in range(2, 12)]
        assert min(asked["/p0"], asked["/p1"]) > 1.5 * max(still), asked
        assert min(still) >= 1
        assert pages["p0"].changed_at is not None
