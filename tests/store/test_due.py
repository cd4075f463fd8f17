"""What is due: every store takes the pages that `schedule/due.py` names, and no others."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from tests.store.desk import Desk, at, read

from afresh.model.fetch import Failed, Gone, Moved, NotModified, Outcome, Seen
from afresh.model.filters import CheckCursor
from afresh.model.records import ListedUrl, PageStatus, RunLimits, RunMode
from afresh.schedule.due import DueCounts, WaitingPage, due, due_at

PATHS = tuple("abcdefgh")
HOUR = 3600.0
DAY = 24 * HOUR
DOWN = Failed(outcome=Outcome.TIMEOUT, reason="no answer")


def urls(*paths: str) -> list[str]:
    return [at(path) for path in paths]


async def listing(desk: Desk, *paths: str, recheck: float = DAY) -> None:
    """What a run of what is due does with the listing of a source that tells all by it."""
    listed = [ListedUrl(at(path)) for path in paths]
    await desk.store.queue.schedule(desk.run, listed, desk.limits, recheck, desk.clock())
    await desk.store.listings.record(desk.source.id, listed)


async def take(desk: Desk, budget: int | None = None, max_age: float | None = None) -> list[str]:
    """The addresses that a run of what is due gets to look at."""
    limits = replace(desk.limits, budget=budget)
    await desk.store.queue.enqueue_due(desk.run, limits, desk.clock(), max_age=max_age)
    return sorted(claim.page.url for claim in await desk.claim())


async def look_at_what_is_due(
    desk: Desk, site: dict[str, Seen], budget: int | None = None, max_age: float | None = None
) -> list[str]:
    """One run of what is due, from its start to its end."""
    await desk.begin(RunMode.DUE)
    desk.limits = replace(desk.limits, budget=budget)
    await desk.store.queue.enqueue_due(desk.run, desk.limits, desk.clock(), max_age=max_age)
    seen = await desk.look(site)
    await desk.finish()
    return sorted(seen)


async def looks(
    desk: Desk, now: datetime, max_age: float | None, limit: int, *, everything: bool = False
) -> list[WaitingPage]:
    """The pages that wait, asked for in parts."""
    found, after = list[WaitingPage](), None
    while part := await desk.store.due.next_checks(
        desk.source.id, now, max_age, everything=everything, after=after, limit=limit
    ):
        found += part
        after = CheckCursor(part[-1].next_at, part[-1].url)
    return found


async def one_by_one(desk: Desk, *paths: str, apart: float = 60.0) -> None:
    """Pages that were looked at one after the other, so that the first is due first."""
    for path in paths:
        await desk.begin(RunMode.DUE)
        await desk.enqueue(path)
        await desk.look({path: read(f"Page {path}")})
        await desk.finish()
        desk.clock.advance(apart)


async def test_E20_the_longest_due_are_taken_within_the_budget_and_the_rest_stays_scheduled(
    desk: Desk,
) -> None:
    await one_by_one(desk, "c", "a", "d", "b")
    desk.clock.advance(days=2)
    site: dict[str, Seen] = {path: NotModified() for path in PATHS}
    assert await look_at_what_is_due(desk, site, budget=3) == urls("a", "c", "d")
    assert await look_at_what_is_due(desk, site, budget=3) == urls("b")
    assert await look_at_what_is_due(desk, site, budget=3) == []


async def test_E20_ties_go_by_address(desk: Desk) -> None:
    await desk.begin()
    await desk.enqueue("c", "a", "b")
    await desk.look({path: read(f"Page {path}") for path in "abc"})
    await desk.finish()
    desk.clock.advance(days=2)
    await desk.begin(RunMode.DUE)
    assert await take(desk, budget=2) == urls("a", "b")


async def test_E20_a_run_that_goes_on_does_not_get_its_budget_twice(desk: Desk) -> None:
    await one_by_one(desk, *PATHS)
    desk.clock.advance(days=2)
    await desk.begin(RunMode.DUE)
    first = await take(desk, budget=3)
    await desk.store.queue.enqueue_due(desk.run, replace(desk.limits, budget=3), desk.clock())
    assert (len(first), await desk.claim()) == (3, [])
    assert (await desk.reload()).queued == 3


async def test_E20_new_links_count_against_the_budget_and_wait_for_their_turn(desk: Desk) -> None:
    await one_by_one(desk, "a")
    desk.clock.advance(days=2)
    site: dict[str, Seen] = {"a": read("Page a, later", "x", "y", "z")}
    site |= {path: read(f"Page {path}") for path in "xyz"}
    assert await look_at_what_is_due(desk, site, budget=2) == urls("a", "x")
    assert (await desk.page("y")).status is PageStatus.PENDING
    desk.clock.advance(60)
    assert await look_at_what_is_due(desk, site, budget=2) == urls("y", "z")


async def test_E20_a_page_that_moved_is_kept_until_the_budget_lets_its_target_be_read(desk: Desk) -> None:
    await one_by_one(desk, "a")
    desk.clock.advance(days=2)
    await desk.begin(RunMode.DUE)
    desk.limits = replace(desk.limits, budget=1)
    await desk.store.queue.enqueue_due(desk.run, desk.limits, desk.clock())
    assert await desk.look({"a": Moved(to=at("z"))}) == urls("a")
    await desk.sweep()
    assert await desk.urls() == urls("a")


async def test_E20_a_known_page_that_is_linked_anew_keeps_its_time_when_the_budget_is_spent(
    desk: Desk,
) -> None:
    await one_by_one(desk, "a", "b", apart=12 * HOUR)
    [*_, before] = await desk.attempts("b")
    desk.clock.advance(hours=1)
    assert await look_at_what_is_due(desk, {"a": read("Page a, later", "b")}, budget=1) == urls("a")
    [*_, after] = await desk.attempts("b")
    assert (after.run_id, after.scheduled_for) == (None, before.scheduled_for)


async def test_E25_a_page_older_than_the_greatest_age_is_due_however_long_it_is_to_wait(desk: Desk) -> None:
    desk.policy = replace(desk.policy, backoff_base_seconds=30 * DAY, backoff_max_seconds=300 * DAY)
    await one_by_one(desk, "a")
    desk.clock.advance(days=2)
    assert await look_at_what_is_due(desk, {"a": DOWN}) == urls("a")
    desk.clock.advance(days=2)
    assert await look_at_what_is_due(desk, {"a": DOWN}) == []
    assert await look_at_what_is_due(desk, {"a": DOWN}, max_age=5 * DAY) == []
    assert await look_at_what_is_due(desk, {"a": DOWN}, max_age=4 * DAY) == urls("a")


async def test_E25_a_page_that_never_answered_has_no_age(desk: Desk) -> None:
    desk.policy = replace(desk.policy, backoff_base_seconds=30 * DAY, backoff_max_seconds=300 * DAY)
    await desk.begin()
    await desk.enqueue("a")
    await desk.look({"a": DOWN})
    await desk.finish()
    desk.clock.advance(days=20)
    assert await look_at_what_is_due(desk, {}, max_age=HOUR) == []


# ---- sources that tell all by a listing


async def test_E29_what_is_listed_for_the_first_time_is_due_at_once(desk: Desk) -> None:
    await desk.begin(RunMode.DUE)
    await listing(desk, "a", "b")
    assert await take(desk) == urls("a", "b")


async def test_E29_what_is_listed_again_is_due_at_once(desk: Desk) -> None:
    site: dict[str, Seen] = {"a": read("Page a"), "b": read("Page b")}
    await desk.begin(RunMode.DUE)
    await listing(desk, "a", "b")
    await look_at_what_is_due(desk, site)
    desk.clock.advance(60)
    await desk.begin(RunMode.DUE)
    await listing(desk, "a")
    await desk.enqueue("b")
    await desk.look({"b": Gone()})
    await desk.sweep()
    assert (await desk.page("b")).status is PageStatus.DELETED
    desk.clock.advance(60)
    await desk.begin(RunMode.DUE)
    await listing(desk, "a", "b")
    assert await take(desk) == urls("b")


async def test_E22_what_stays_listed_keeps_its_time(desk: Desk) -> None:
    await desk.begin(RunMode.DUE)
    await listing(desk, "a")
    await look_at_what_is_due(desk, {"a": read("Page a")})
    desk.clock.advance(hours=23)
    await desk.begin(RunMode.DUE)
    await listing(desk, "a")
    assert await take(desk) == []
    desk.clock.advance(hours=1)
    assert await take(desk) == urls("a")


async def test_a_listed_page_that_is_gone_is_asked_again_in_its_turn(desk: Desk) -> None:
    """It stays on the list, so it may come back; but not in every run."""
    await desk.begin(RunMode.DUE)
    await listing(desk, "a")
    assert await look_at_what_is_due(desk, {"a": Gone()}) == urls("a")
    desk.clock.advance(hours=23)
    await desk.begin(RunMode.DUE)
    await listing(desk, "a")
    assert await take(desk) == []
    await desk.finish()
    desk.clock.advance(hours=2)
    await desk.begin(RunMode.DUE)
    await listing(desk, "a")
    assert await take(desk) == urls("a")


async def test_E20_what_the_budget_leaves_of_a_new_list_comes_before_what_was_looked_at(desk: Desk) -> None:
    site: dict[str, Seen] = {path: read(f"Page {path}") for path in PATHS}
    seen = []
    for _ in range(4):
        await desk.begin(RunMode.DUE)
        await listing(desk, *PATHS)
        seen += await look_at_what_is_due(desk, site, budget=2)
        desk.clock.advance(days=2)
    assert sorted(seen) == urls(*PATHS)


async def test_P13_a_list_is_scheduled_within_max_pages(desk: Desk) -> None:
    desk.limits = RunLimits(max_pages=3, max_depth=20)
    await desk.begin(RunMode.DUE)
    await listing(desk, *PATHS)
    assert await take(desk) == urls("a", "b", "c")


async def test_a_page_that_a_run_took_up_is_due_until_it_was_looked_at(desk: Desk) -> None:
    await desk.begin()
    await desk.enqueue("a", "b", "c", "d")
    site: dict[str, Seen] = {"a": read("Page a"), "b": read("Page b"), "c": read("Page c"), "d": DOWN}
    await desk.look(site)
    await desk.finish()

    async def told() -> DueCounts:
        tally = await desk.store.stats.due_tally(desk.source.id, desk.clock(), None)
        assert await desk.store.stats.due_tallies(desk.clock()) == {desk.source.id: tally}
        assert (await desk.store.stats.checks_by_hour(desk.source.id, desk.clock()))[0] == tally.due
        assert len(await looks(desk, desk.clock(), None, 3)) == tally.due
        return tally

    assert (await told()).due == 0
    desk.clock.advance(days=8)
    assert await told() == DueCounts(due=4, stale=3)  # the one that never answered is not in the index
    await desk.begin(RunMode.REFRESH)
    await desk.store.queue.enqueue_known(desk.run, desk.limits, desk.clock())
    assert await told() == DueCounts(due=4, stale=3)
    first, *others = await desk.claim()
    assert await told() == DueCounts(due=4, stale=3)  # while they are looked at
    await desk.commit(desk.visit(first, read("Page a")))
    assert (first.page.url, (await told())[:2]) == (at("a"), (3, 2))
    await desk.store.queue.give_back(others, desk.worker, desk.clock())
    await desk.store.runs.cancel(desk.run, desk.clock())
    assert (await told())[:2] == (3, 2)


# ---- the specification


async def _history(desk: Desk, dice: Random) -> None:
    """Pages that were looked at at different times, answered or not, and some that are only listed."""
    desk.policy = replace(desk.policy, backoff_base_seconds=DAY, backoff_max_seconds=40 * DAY, retries=0)
    await desk.begin(RunMode.DUE)
    await listing(desk, *dice.sample(PATHS, dice.randint(0, 8)))
    await desk.finish()
    for _ in range(dice.randint(1, 6)):
        desk.clock.advance(dice.choice([0, 60, 6 * HOUR, DAY, 3 * DAY]))
        await desk.begin(RunMode.DUE)
        await desk.enqueue(*dice.sample(PATHS, dice.randint(1, 4)))
        answers: list[Seen] = [read("Text"), NotModified(), DOWN, Gone(), read("Text", "a", "b")]
        await desk.look({path: dice.choice(answers) for path in PATHS})
        await desk.finish()
    if dice.random() < 0.2:
        desk.clock.advance(days=-2)


@pytest.mark.parametrize("seed", range(24))
async def test_E20_E25_a_store_takes_exactly_what_the_schedule_says(
    desk: Desk, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.store.schedules.FEW", (0, 1_000)[seed % 2])  # as if it were large, or small
    dice = Random(seed)
    await _history(desk, dice)
    desk.clock.set(desk.clock() + timedelta(hours=dice.choice([0, 1, 30, 100])))
    max_age = dice.choice([None, HOUR, 2 * DAY, 4 * DAY])
    budget = dice.choice([None, 0, 1, 2, 3, 5, 100])
    waiting, now = await desk.store.due.waiting(desk.source.id), desk.clock()
    moments = [due_at(each, now, max_age) for each in waiting]
    coming = min((moment for moment in moments if moment > now), default=None)
    tally = await desk.store.stats.due_tally(desk.source.id, now, max_age)
    assert (tally.due, tally.next_at) == (sum(moment <= now for moment in moments), coming)
    held = {
        page.url
        for page in await desk.store.pages.of_source(desk.source.id)
        if page.status is PageStatus.ACTIVE
    }
    overdue = [page.url for page, moment in zip(waiting, moments, strict=True) if moment <= now]
    assert tally.stale == len(held.intersection(overdue))
    turns = sorted(waiting, key=lambda page: (page.next_at, page.url))
    ready = [page for page in turns if due_at(page, now, max_age) <= now]
    assert await looks(desk, now, max_age, 100) == await looks(desk, now, max_age, 2) == ready
    assert await looks(desk, now, max_age, 3, everything=True) == turns
    await desk.begin(RunMode.DUE)
    expected = due(waiting, desk.clock(), max_age=max_age, budget=budget)
    assert await take(desk, budget, max_age) == sorted(expected)
    left = {page.url for page in await desk.store.due.waiting(desk.source.id)}
    assert left == {page.url for page in waiting} - set(expected)
