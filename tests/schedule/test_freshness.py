"""What a look is worth: the laws of rates that are learned and of looks that are planned (A28)."""

from dataclasses import replace
from datetime import timedelta
from math import exp, log
from random import Random

import pytest
from bench.freshness import MIXES, fresh_share
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import NOON, law

from afresh.crawl.decide import decide
from afresh.model.fetch import Failed, NotModified, Outcome, Seen
from afresh.model.records import Page, PageId, PageStatus, Policy, SourceId
from afresh.schedule.change_rate import (
    DAY,
    UNKNOWN,
    ChangeRate,
    ChangeStats,
    HintAccuracy,
    host_rate,
    learned,
    plan_checks,
)

HOUR = 3_600.0
lengths = st.floats(60.0, 400 * DAY)
rates = st.builds(lambda shape, mean: ChangeRate(shape, shape / mean), st.floats(0.1, 100), st.floats(1e-8, 1e-3))
rhythms = st.lists(st.tuples(st.booleans(), lengths), max_size=12).map(lambda seen: _after(ChangeStats(), seen))
worths = st.floats(0.01, 1e8)


def _after(rhythm: ChangeStats, seen: list[tuple[bool, float]]) -> ChangeStats:
    for changed, seconds in seen:
        rhythm = rhythm.seen(changed, seconds)
    return rhythm


@law
@given(rates, lengths, lengths)
def test_A28_a_look_is_worth_more_the_longer_it_is_waited_for(rate: ChangeRate, one: float, other: float) -> None:
    assert rate.worth(min(one, other)) <= rate.worth(max(one, other)) * (1 + 1e-9) + 1e-6
    assert -1e-6 <= rate.worth(one) <= one


@given(st.floats(1e-8, 1e-3), lengths)
def test_A28_a_rate_that_is_known_has_the_worth_of_the_textbook(rate: float, interval: float) -> None:
    expected = (1 - (1 + rate * interval) * exp(-rate * interval)) / rate
    assert ChangeRate(1e9, 1e9 / rate).worth(interval) == pytest.approx(expected, rel=1e-3, abs=1e-3 * interval)


@law
@given(rates, worths)
def test_A28_a_page_waits_until_its_look_is_worth_the_price(rate: ChangeRate, price: float) -> None:
    wait = rate.interval(price, 60.0, 400 * DAY)
    assert 60.0 <= wait <= 400 * DAY * (1 + 1e-9)
    assert wait <= 60.0 or rate.worth(wait * 0.999) <= price * (1 + 1e-6)
    assert wait >= 399 * DAY or rate.worth(wait * 1.001) >= price * (1 - 1e-6)


@law
@given(rhythms, lengths, rates)
def test_A28_a_change_makes_the_rate_higher_and_a_quiet_look_lower(
    rhythm: ChangeStats, seconds: float, prior: ChangeRate
) -> None:
    before = learned(rhythm, prior)
    assert learned(rhythm.seen(False, seconds), prior).mean <= before.mean * 1.001
    if rhythm.spans == 0:
        assert learned(rhythm.seen(True, seconds), prior).mean >= before.mean * 0.999
    assert before.shape >= prior.shape * 0.99
    assert rhythm.seen(True, 0.0) == rhythm.seen(False, -5.0) == rhythm


def test_A28_a_rate_is_found_again_from_irregular_looks_and_the_host_helps_a_new_page() -> None:
    random = Random(7)
    pages: dict[ChangeStats, int] = {}
    for true in (1 / DAY, 1 / (20 * DAY)):
        rhythm = ChangeStats()
        for _ in range(4_000):
            seconds = random.expovariate(1 / (2 * DAY))
            rhythm = rhythm.seen(random.random() > exp(-true * seconds), seconds)
        assert learned(rhythm, UNKNOWN).mean == pytest.approx(true, rel=0.35)
        assert learned(rhythm, UNKNOWN).shape > 50
    for _ in range(60):
        true, rhythm = exp(random.gauss(log(1 / (3 * HOUR)), 0.3)), ChangeStats()
        for _ in range(10):
            rhythm = rhythm.seen(random.random() > exp(-true * 2 * HOUR), 2 * HOUR)
        pages[rhythm] = pages.get(rhythm, 0) + 1
    host = host_rate(pages)
    assert host.mean == pytest.approx(1 / (3 * HOUR), rel=0.3)
    assert learned(ChangeStats(), host).mean > 20 * learned(ChangeStats(), UNKNOWN).mean
    few = host_rate({ChangeStats().seen(True, HOUR): 1})
    assert UNKNOWN.mean < few.mean < host.mean, "one page does not speak for its host"


@law
@given(st.lists(st.tuples(st.sampled_from("ab"), rhythms), min_size=1, max_size=8), st.floats(1e-6, 1e-2))
@example([("a", ChangeStats(2, 0.0, 1399.0))], 1e-6)
@example([("a", ChangeStats(2, 0.0, 120.0))], 1e-6)
def test_A28_a_plan_spends_its_budget_and_no_more_unless_pages_would_wait_too_long(
    pages: list[tuple[str, ChangeStats]], looks: float
) -> None:
    plan = plan_checks(pages, looks, min_seconds=300.0, max_seconds=30 * DAY)
    spent = sum(1 / plan.wait(host, rhythm) for host, rhythm in pages)
    least, most = len(pages) / (30 * DAY), len(pages) / 300.0
    assert spent <= max(looks, least) * 1.25
    assert spent >= min(looks, most) * 0.75
    for host, rhythm in pages:
        wait = plan.wait(host, rhythm)
        assert plan.is_due(host, rhythm, wait * 1.001)
        assert wait >= 30 * DAY or not plan.is_due(host, rhythm, wait * 0.99)


def test_A28_a_signal_counts_for_what_it_was_worth() -> None:
    good, noise = HintAccuracy.of(200, 190, 4_000, 200), HintAccuracy.of(2_000, 40, 4_000, 80)
    pages = [("a", ChangeStats(1, 20 * DAY, DAY))] * 50
    for signals, is_due in ((good, True), (noise, False)):
        plan = plan_checks(pages, 50 / (2 * DAY), signals=signals)
        assert plan.is_due("a", pages[0][1], HOUR, hinted=1) == is_due
        assert not plan.is_due("a", pages[0][1], HOUR)


def test_A28_looks_are_learned_from_and_decide_the_next_one() -> None:
    page = Page(
        id=PageId(1),
        source_id=SourceId(1),
        url="https://docs.test/",
        status=PageStatus.ACTIVE,
        content_hash="a" * 64,
        checked_at=NOON,
        observed_at=NOON,
        recipe="r",
    )
    policy = Policy(recipe="r", check_plan=plan_checks([("docs.test", ChangeStats())] * 9, 9 / DAY))
    later = NOON + timedelta(days=2)

    def after(page: Page, seen: Seen, days: float) -> Page:
        return decide(page, seen, policy, NOON + timedelta(days=days)).page

    same = NotModified(status_code=304)
    assert after(page, same, 2).rhythm == ChangeStats(0, 2 * DAY, 0.0)
    assert after(after(page, same, 2), same, 2).rhythm == ChangeStats(0, 2 * DAY, 0.0), "the same look twice"
    failed = after(page, Failed(outcome=Outcome.TIMEOUT, reason="slow"), 1)
    assert failed.rhythm == ChangeStats()
    assert after(failed, same, 2).rhythm == ChangeStats(0, 2 * DAY, 0.0), "since the last answer"
    waits = [
        decide(replace(page, rhythm=rhythm), same, policy, later).next_at
        for rhythm in (ChangeStats(5, 5 * DAY, 5 * DAY), ChangeStats(0, 90 * DAY, 0.0))
    ]
    assert waits[0] is not None
    assert waits[1] is not None
    assert later < waits[0] < waits[1] <= later + timedelta(days=30)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 5, 8, 9])
def test_A28_a_learned_schedule_is_near_the_optimum_and_not_below_uniform(number: int) -> None:
    """The small version of `python -m bench.freshness`."""
    uniform, ours, optimum = (
        fresh_share(MIXES[number], rule, pages=120, warm_up=10, measured=8, seed=5)
        for rule in ("uniform", "ours", "optimum")
    )
    assert ours >= 0.95 * optimum
    assert ours >= uniform - 0.005
