"""What is due: every store takes the pages that `schedule/due.py` names, and no others."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from tests.store.crawler import ManualCrawler, at, read

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


async def listing(crawler: ManualCrawler, *paths: str, recheck: float = DAY) -> None:
    """What a run of what is due does with the listing of a source that tells all by it."""
    listed = [ListedUrl(at(path)) for path in paths]
    await crawler.store.queue.schedule(crawler.run, listed, crawler.limits, recheck, crawler.clock())
    await crawler.store.listings.record(crawler.source.id, listed)


async def take(crawler: ManualCrawler, budget: int | None = None, max_age: float | None = None) -> list[str]:
    """The addresses that a run of what is due gets to look at."""
    limits = replace(crawler.limits, budget=budget)
    await crawler.store.queue.enqueue_due(crawler.run, limits, crawler.clock(), max_age=max_age)
    return sorted(claim.page.url for claim in await crawler.claim())


async def look_at_what_is_due(
    crawler: ManualCrawler, site: dict[str, Seen], budget: int | None = None, max_age: float | None = None
) -> list[str]:
    """One run of what is due, from its start to its end."""
    await crawler.begin(RunMode.DUE)
    crawler.limits = replace(crawler.limits, budget=budget)
    await crawler.store.queue.enqueue_due(crawler.run, crawler.limits, crawler.clock(), max_age=max_age)
    seen = await crawler.look(site)
    await crawler.finish()
    return sorted(seen)


async def looks(
    crawler: ManualCrawler, now: datetime, max_age: float | None, limit: int, *, everything: bool = False
) -> list[WaitingPage]:
    """The pages that wait, asked for in parts."""
    found, after = list[WaitingPage](), None
    while part := await crawler.store.due.next_checks(
        crawler.source.id, now, max_age, everything=everything, after=after, limit=limit
    ):
        found += part
        after = CheckCursor(part[-1].next_at, part[-1].url)
    return found


async def one_by_one(crawler: ManualCrawler, *paths: str, apart: float = 60.0) -> None:
    """Pages that were looked at one after the other, so that the first is due first."""
    for path in paths:
        await crawler.begin(RunMode.DUE)
        await crawler.enqueue(path)
        await crawler.look({path: read(f"Page {path}")})
        await crawler.finish()
        crawler.clock.advance(apart)


async def test_E20_the_most_overdue_are_taken_within_the_budget_and_the_rest_stays_scheduled(
    crawler: ManualCrawler,
) -> None:
    await one_by_one(crawler, "c", "a", "d", "b")
    crawler.clock.advance(days=2)
    site: dict[str, Seen] = {path: NotModified() for path in PATHS}
    assert await look_at_what_is_due(crawler, site, budget=3) == urls("a", "c", "d")
    assert await look_at_what_is_due(crawler, site, budget=3) == urls("b")
    assert await look_at_what_is_due(crawler, site, budget=3) == []


async def test_E20_ties_go_by_address(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("c", "a", "b")
    await crawler.look({path: read(f"Page {path}") for path in "abc"})
    await crawler.finish()
    crawler.clock.advance(days=2)
    await crawler.begin(RunMode.DUE)
    assert await take(crawler, budget=2) == urls("a", "b")


async def test_E20_a_run_that_goes_on_does_not_get_its_budget_twice(crawler: ManualCrawler) -> None:
    await one_by_one(crawler, *PATHS)
    crawler.clock.advance(days=2)
    await crawler.begin(RunMode.DUE)
    first = await take(crawler, budget=3)
    await crawler.store.queue.enqueue_due(crawler.run, replace(crawler.limits, budget=3), crawler.clock())
    assert (len(first), await crawler.claim()) == (3, [])
    assert (await crawler.reload()).queued == 3


async def test_E20_new_links_count_against_the_budget_and_wait_for_their_turn(crawler: ManualCrawler) -> None:
    await one_by_one(crawler, "a")
    crawler.clock.advance(days=2)
    site: dict[str, Seen] = {"a": read("Page a, later", "x", "y", "z")}
    site |= {path: read(f"Page {path}") for path in "xyz"}
    assert await look_at_what_is_due(crawler, site, budget=2) == urls("a", "x")
    assert (await crawler.page("y")).status is PageStatus.PENDING
    crawler.clock.advance(60)
    assert await look_at_what_is_due(crawler, site, budget=2) == urls("y", "z")


async def test_E20_a_page_that_moved_is_kept_until_the_budget_lets_its_target_be_read(crawler: ManualCrawler) -> None:
    await one_by_one(crawler, "a")
    crawler.clock.advance(days=2)
    await crawler.begin(RunMode.DUE)
    crawler.limits = replace(crawler.limits, budget=1)
    await crawler.store.queue.enqueue_due(crawler.run, crawler.limits, crawler.clock())
    assert await crawler.look({"a": Moved(to=at("z"))}) == urls("a")
    await crawler.sweep()
    assert await crawler.urls() == urls("a")


async def test_E20_a_known_page_that_is_linked_again_keeps_its_time_when_the_budget_is_spent(
    crawler: ManualCrawler,
) -> None:
    await one_by_one(crawler, "a", "b", apart=12 * HOUR)
    [*_, before] = await crawler.attempts("b")
    crawler.clock.advance(hours=1)
    assert await look_at_what_is_due(crawler, {"a": read("Page a, later", "b")}, budget=1) == urls("a")
    [*_, after] = await crawler.attempts("b")
    assert (after.run_id, after.scheduled_for) == (None, before.scheduled_for)


async def test_E25_a_page_older_than_the_greatest_age_is_due_however_long_it_is_to_wait(crawler: ManualCrawler) -> None:
    crawler.policy = replace(crawler.policy, backoff_base_seconds=30 * DAY, backoff_max_seconds=300 * DAY)
    await one_by_one(crawler, "a")
    crawler.clock.advance(days=2)
    assert await look_at_what_is_due(crawler, {"a": DOWN}) == urls("a")
    crawler.clock.advance(days=2)
    assert await look_at_what_is_due(crawler, {"a": DOWN}) == []
    assert await look_at_what_is_due(crawler, {"a": DOWN}, max_age=5 * DAY) == []
    assert await look_at_what_is_due(crawler, {"a": DOWN}, max_age=4 * DAY) == urls("a")


async def test_E25_a_page_that_never_answered_has_no_age(crawler: ManualCrawler) -> None:
    crawler.policy = replace(crawler.policy, backoff_base_seconds=30 * DAY, backoff_max_seconds=300 * DAY)
    await crawler.begin()
    await crawler.enqueue("a")
    await crawler.look({"a": DOWN})
    await crawler.finish()
    crawler.clock.advance(days=20)
    assert await look_at_what_is_due(crawler, {}, max_age=HOUR) == []


# ---- sources that tell all by a listing


async def test_E29_what_is_listed_for_the_first_time_is_due_at_once(crawler: ManualCrawler) -> None:
    await crawler.begin(RunMode.DUE)
    await listing(crawler, "a", "b")
    assert await take(crawler) == urls("a", "b")


async def test_E29_what_is_listed_again_is_due_at_once(crawler: ManualCrawler) -> None:
    site: dict[str, Seen] = {"a": read("Page a"), "b": read("Page b")}
    await crawler.begin(RunMode.DUE)
    await listing(crawler, "a", "b")
    await look_at_what_is_due(crawler, site)
    crawler.clock.advance(60)
    await crawler.begin(RunMode.DUE)
    await listing(crawler, "a")
    await crawler.enqueue("b")
    await crawler.look({"b": Gone()})
    await crawler.sweep()
    assert (await crawler.page("b")).status is PageStatus.DELETED
    crawler.clock.advance(60)
    await crawler.begin(RunMode.DUE)
    await listing(crawler, "a", "b")
    assert await take(crawler) == urls("b")


async def test_E22_what_stays_listed_keeps_its_time(crawler: ManualCrawler) -> None:
    await crawler.begin(RunMode.DUE)
    await listing(crawler, "a")
    await look_at_what_is_due(crawler, {"a": read("Page a")})
    crawler.clock.advance(hours=23)
    await crawler.begin(RunMode.DUE)
    await listing(crawler, "a")
    assert await take(crawler) == []
    crawler.clock.advance(hours=1)
    assert await take(crawler) == urls("a")


async def test_a_listed_page_that_is_gone_is_asked_again_in_its_turn(crawler: ManualCrawler) -> None:
    """It stays on the list, so it may come back; but not in every run."""
    await crawler.begin(RunMode.DUE)
    await listing(crawler, "a")
    assert await look_at_what_is_due(crawler, {"a": Gone()}) == urls("a")
    crawler.clock.advance(hours=23)
    await crawler.begin(RunMode.DUE)
    await listing(crawler, "a")
    assert await take(crawler) == []
    await crawler.finish()
    crawler.clock.advance(hours=2)
    await crawler.begin(RunMode.DUE)
    await listing(crawler, "a")
    assert await take(crawler) == urls("a")


async def test_E20_what_the_budget_leaves_of_a_new_list_comes_before_what_was_looked_at(crawler: ManualCrawler) -> None:
    site: dict[str, Seen] = {path: read(f"Page {path}") for path in PATHS}
    seen = []
    for _ in range(4):
        await crawler.begin(RunMode.DUE)
        await listing(crawler, *PATHS)
        seen += await look_at_what_is_due(crawler, site, budget=2)
        crawler.clock.advance(days=2)
    assert sorted(seen) == urls(*PATHS)


async def test_P13_a_list_is_scheduled_within_max_pages(crawler: ManualCrawler) -> None:
    crawler.limits = RunLimits(max_pages=3, max_depth=20)
    await crawler.begin(RunMode.DUE)
    await listing(crawler, *PATHS)
    assert await take(crawler) == urls("a", "b", "c")


async def test_a_page_that_a_run_took_up_is_due_until_it_was_looked_at(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("a", "b", "c", "d")
    site: dict[str, Seen] = {"a": read("Page a"), "b": read("Page b"), "c": read("Page c"), "d": DOWN}
    await crawler.look(site)
    await crawler.finish()

    async def counts() -> DueCounts:
        tally = await crawler.store.stats.due_tally(crawler.source.id, crawler.clock(), None)
        assert await crawler.store.stats.due_tallies(crawler.clock()) == {crawler.source.id: tally}
        assert (await crawler.store.stats.checks_by_hour(crawler.source.id, crawler.clock()))[0] == tally.due
        assert len(await looks(crawler, crawler.clock(), None, 3)) == tally.due
        return tally

    assert (await counts()).due == 0
    crawler.clock.advance(days=8)
    assert await counts() == DueCounts(due=4, stale=3)  # the one that never answered is not in the index
    await crawler.begin(RunMode.REFRESH)
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    assert await counts() == DueCounts(due=4, stale=3)
    first, *others = await crawler.claim()
    assert await counts() == DueCounts(due=4, stale=3)  # while they are looked at
    await crawler.commit(crawler.visit(first, read("Page a")))
    assert (first.page.url, (await counts())[:2]) == (at("a"), (3, 2))
    await crawler.store.queue.give_back(others, crawler.worker, crawler.clock())
    await crawler.store.runs.cancel(crawler.run, crawler.clock())
    assert (await counts())[:2] == (3, 2)


# ---- the specification


async def _history(crawler: ManualCrawler, dice: Random) -> None:
    """Pages that were looked at at different times, answered or not, and some that are only listed."""
    crawler.policy = replace(crawler.policy, backoff_base_seconds=DAY, backoff_max_seconds=40 * DAY, retries=0)
    await crawler.begin(RunMode.DUE)
    await listing(crawler, *dice.sample(PATHS, dice.randint(0, 8)))
    await crawler.finish()
    for _ in range(dice.randint(1, 6)):
        crawler.clock.advance(dice.choice([0, 60, 6 * HOUR, DAY, 3 * DAY]))
        await crawler.begin(RunMode.DUE)
        await crawler.enqueue(*dice.sample(PATHS, dice.randint(1, 4)))
        answers: list[Seen] = [read("Text"), NotModified(), DOWN, Gone(), read("Text", "a", "b")]
        await crawler.look({path: dice.choice(answers) for path in PATHS})
        await crawler.finish()
    if dice.random() < 0.2:
        crawler.clock.advance(days=-2)


@pytest.mark.parametrize("seed", range(24))
async def test_E20_E25_a_store_takes_exactly_what_the_schedule_says(
    crawler: ManualCrawler, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.store.schedules.FEW", (0, 1_000)[seed % 2])  # as if it were large, or small
    dice = Random(seed)
    await _history(crawler, dice)
    crawler.clock.set(crawler.clock() + timedelta(hours=dice.choice([0, 1, 30, 100])))
    max_age = dice.choice([None, HOUR, 2 * DAY, 4 * DAY])
    budget = dice.choice([None, 0, 1, 2, 3, 5, 100])
    waiting, now = await crawler.store.due.waiting(crawler.source.id), crawler.clock()
    moments = [due_at(each, now, max_age) for each in waiting]
    coming = min((moment for moment in moments if moment > now), default=None)
    tally = await crawler.store.stats.due_tally(crawler.source.id, now, max_age)
    assert (tally.due, tally.next_at) == (sum(moment <= now for moment in moments), coming)
    held = {
        page.url for page in await crawler.store.pages.of_source(crawler.source.id) if page.status is PageStatus.ACTIVE
    }
    overdue = [page.url for page, moment in zip(waiting, moments, strict=True) if moment <= now]
    assert tally.stale == len(held.intersection(overdue))
    turns = sorted(waiting, key=lambda page: (page.next_at, page.url))
    ready = [page for page in turns if due_at(page, now, max_age) <= now]
    assert await looks(crawler, now, max_age, 100) == await looks(crawler, now, max_age, 2) == ready
    assert await looks(crawler, now, max_age, 3, everything=True) == turns
    await crawler.begin(RunMode.DUE)
    expected = due(waiting, crawler.clock(), max_age=max_age, budget=budget)
    assert await take(crawler, budget, max_age) == sorted(expected)
    left = {page.url for page in await crawler.store.due.waiting(crawler.source.id)}
    assert left == {page.url for page in waiting} - set(expected)
