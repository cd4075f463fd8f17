"""What is due, within a budget and a greatest age, on a web site."""

from pathlib import Path

from tests.e2e.inprocess import InProcess
from tests.e2e.library import EVERY_STORE, counts, found, opened
from tests.e2e.sites import lay, looks, star, word

from afresh.testing import FrozenClock, TinySite

HOUR = 3600
DAY = 24 * HOUR


@EVERY_STORE
async def test_E20_a_budget_shares_what_is_due_among_runs_and_the_root_shows_that_the_site_is_well(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(6))
    clock = FrozenClock()
    async with opened(store, {"policy.budget_per_run": 2}, clock=clock) as kb:
        assert counts(await kb.runs.crawl(tiny.url, name="docs")) == {"new": 7}, "a crawl reads everything"
        clock.advance(2 * DAY)
        assert ((await kb.sources.plan("docs")).due, (await kb.sources.plan("docs")).budget) == (7, 2)
        seen: list[str] = []
        for left in (5, 3, 1):
            tiny.requests.clear()
            (report,) = await kb.runs.refresh(due=True)
            assert (report.state, (await kb.sources.plan("docs")).due) == ("completed", left)
            assert len(set(looks(tiny)) - {"/"}) <= 2
            seen += set(looks(tiny)) - {"/"}
        await kb.runs.refresh(due=True)
        assert (await kb.sources.plan("docs")).due == 0
        assert len(seen) == len(set(seen)), "nobody is asked twice while others wait"


async def test_E20_a_flag_takes_the_place_of_the_budget_in_the_settings(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(6))
    clock = FrozenClock()
    async with opened(store, {"policy.budget_per_run": 1}, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        clock.advance(2 * DAY)
        await kb.runs.refresh(due=True, budget=5)
        assert (await kb.sources.plan("docs")).due == 2


async def test_E20_new_pages_count_against_the_budget_and_are_found_in_the_end(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(1))
    clock = FrozenClock()
    async with opened(store, {"policy.budget_per_run": 2}, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        lay(tiny, star(5))
        clock.advance(2 * DAY)
        news = []
        for _ in range(4):
            tiny.requests.clear()
            (report,) = await kb.runs.refresh(due=True)
            news.append(report.new)
            assert len(set(looks(tiny)) - {"/"}) <= 2
            clock.advance(60)
        assert sum(news) == 4
        assert max(news) <= 2
        assert await found(kb, word("/p4")) == {f"{tiny.url}p4"}


async def test_E25_a_page_that_fails_for_long_is_asked_again_at_the_greatest_age(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(20))
    clock = FrozenClock()
    slow = {"policy.backoff_base_seconds": DAY, "policy.backoff_max_seconds": 300 * DAY}
    flags = {**slow, "policy.retries": 0, "policy.recheck_seconds": 300 * DAY}
    async with opened(store, flags, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.fail("/p3", 503)
        for _ in range(4):
            clock.advance(HOUR)
            await kb.runs.refresh(["docs"])
        tiny.restore("/p3")
        clock.advance(5 * DAY)
        await kb.runs.refresh(due=True)
        assert (await kb.sources.plan("docs")).due == 0, "its pause of eight days is not over"
    async with opened(store, {**flags, "policy.max_age_seconds": 5 * DAY + HOUR}, clock=clock) as kb:
        assert (await kb.sources.plan("docs")).due == 1
        tiny.requests.clear()
        (report,) = await kb.runs.refresh(due=True)
        assert report.state == "completed"
        assert set(looks(tiny)) == {"/", "/p3"}
        assert (await kb.sources.plan("docs")).due == 0
