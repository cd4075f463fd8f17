"""Who is next: the laws of `due`, which the stores are held to."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import NOON, law, policies

from afresh.crawl.decide import decide, next_check_after_answer, next_regular_look
from afresh.model.fetch import Failed, NotModified, Outcome
from afresh.model.records import Page, PageId, PageStatus, Policy, SourceId
from afresh.schedule.due import WaitingPage, due, due_at

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
moments = st.integers(-300, 300).map(lambda minutes: NOON + minutes * MINUTE)
past = st.integers(-300, 0).map(lambda minutes: NOON + minutes * MINUTE)
ages = st.none() | st.integers(1, 400).map(lambda minutes: minutes * 60.0)
budgets = st.none() | st.integers(0, 12)


@st.composite
def _waiting(draw: st.DrawFn) -> list[WaitingPage]:
    """Pages whose clocks were right; times fall together often, so that ties are met."""
    number = draw(st.integers(0, 10))
    return [
        WaitingPage(
            url=f"https://docs.test/{index}",
            next_at=draw(moments),
            written_at=draw(past),
            answered_at=draw(st.none() | past),
        )
        for index in draw(st.permutations(range(number)))
    ]


waitings = _waiting()


@law
@given(waitings, ages)
def test_E20_E25_all_and_only_those_are_due_whose_time_or_age_has_come(
    pages: list[WaitingPage], max_age: float | None
) -> None:
    for page in pages:
        waited = page.next_at <= NOON
        aged = (
            max_age is not None
            and page.answered_at is not None
            and (NOON - page.answered_at).total_seconds() >= max_age
        )
        assert (page.url in due(pages, NOON, max_age=max_age)) == (waited or aged)


@law
@given(waitings, ages, budgets)
def test_E20_the_earliest_next_look_comes_first_and_a_budget_takes_no_one_out_of_turn(
    pages: list[WaitingPage], max_age: float | None, budget: int | None
) -> None:
    times = {page.url: (page.next_at, page.url) for page in pages}
    everyone = due(pages, NOON, max_age=max_age)
    chosen = due(pages, NOON, max_age=max_age, budget=budget)
    assert [times[url] for url in everyone] == sorted(times[url] for url in everyone)
    assert chosen == everyone[:budget]
    assert len(set(everyone)) == len(everyone)


@law
@given(waitings, ages, budgets, st.randoms(use_true_random=False))
def test_E20_the_order_of_pages_does_not_matter(
    pages: list[WaitingPage], max_age: float | None, budget: int | None, dice: Random
) -> None:
    mixed = list(pages)
    dice.shuffle(mixed)
    assert due(mixed, NOON, max_age=max_age, budget=budget) == due(pages, NOON, max_age=max_age, budget=budget)


@law
@given(waitings, ages, st.integers(1, 4), st.booleans())
def test_E20_E25_nobody_is_passed_over_for_ever(
    pages: list[WaitingPage], max_age: float | None, budget: int, answers: bool
) -> None:
    """Run after run, those looked at wait, whether they answered or failed: everyone has a turn."""
    waiting, now, seen = {page.url: page for page in pages}, NOON, set[str]()
    for _ in range(len(pages)):
        now += timedelta(days=1)
        for url in due(waiting.values(), now, max_age=max_age, budget=budget):
            seen.add(url)
            answered = now if answers else waiting[url].answered_at
            waiting[url] = WaitingPage(url=url, next_at=now + MINUTE, written_at=now, answered_at=answered)
    assert seen == {page.url for page in pages}


def test_E20_E25_a_page_that_never_answers_again_leaves_others_their_turn() -> None:
    """Its age makes it due for ever; who is due by time comes first all the same."""
    dead = WaitingPage(url="dead", next_at=NOON + MINUTE, written_at=NOON, answered_at=NOON - 9 * DAY)
    live = WaitingPage(url="live", next_at=NOON - MINUTE, written_at=NOON - DAY, answered_at=NOON - DAY)
    assert due([dead, live], NOON, max_age=7 * DAY.total_seconds(), budget=1) == ["live"]
    assert due([dead, live], NOON, max_age=7 * DAY.total_seconds()) == ["live", "dead"]


@law
@given(waitings, ages)
def test_E25_an_age_makes_no_one_wait_longer(pages: list[WaitingPage], max_age: float | None) -> None:
    for page in pages:
        assert due_at(page, NOON, max_age) <= page.next_at


@law
@given(waitings, ages)
def test_F28_what_a_clock_that_ran_ahead_decided_is_due_at_once(
    pages: list[WaitingPage], max_age: float | None
) -> None:
    ahead = [replace(page, written_at=NOON + MINUTE) for page in pages]
    assert set(due(ahead, NOON, max_age=max_age)) == {page.url for page in ahead}


@law
@given(policies, st.integers(1, 12), st.integers(1, 10_000))
def test_E24_E25_failures_back_off_until_the_age_is_reached(policy: Policy, failures: int, max_age: int) -> None:
    page = Page(
        id=PageId(1), source_id=SourceId(1), url="https://docs.test/a", status=PageStatus.ACTIVE, last_seen=NOON
    )
    now = NOON
    for _ in range(failures):
        decision = decide(page, Failed(outcome=Outcome.TIMEOUT, reason="no answer"), policy, now)
        page = decision.page
    assert decision.next_at is not None
    waiting = WaitingPage(url=page.url, next_at=decision.next_at, written_at=now, answered_at=page.last_seen)
    limit = NOON + timedelta(seconds=max_age)
    assert due_at(waiting, now, float(max_age)) == min(decision.next_at, limit)


@law
@given(policies, moments)
def test_E22_a_page_that_answered_is_due_after_the_interval_and_not_before(policy: Policy, now: datetime) -> None:
    held = Page(
        id=PageId(1),
        source_id=SourceId(1),
        url="https://docs.test/a",
        status=PageStatus.ACTIVE,
        content_hash="a" * 64,
        failures=3,
    )
    decision = decide(held, NotModified(), policy, now)
    assert decision.next_at is not None
    assert decision.page.failures == 0
    waiting = WaitingPage(url=held.url, next_at=decision.next_at, written_at=now, answered_at=now)
    interval = timedelta(seconds=policy.recheck_seconds)
    assert due([waiting], now + interval) == [held.url]
    assert due([waiting], now + interval - timedelta(microseconds=1)) == []


# ---- an interval that is learned

learning = st.builds(
    Policy, adapt=st.just(True), recheck_seconds=st.floats(1.0, 1e6), adapt_max_seconds=st.floats(1.0, 1e7)
)


def page_of(changed_at: datetime | None) -> Page:
    return Page(id=PageId(1), source_id=SourceId(1), url="https://docs.test/", changed_at=changed_at)


def interval(changed_at: datetime | None, policy: Policy) -> float:
    return (next_check_after_answer(NOON, page_of(changed_at), policy) - NOON).total_seconds()


@law
@given(learning, past)
def test_A28_a_learned_interval_stays_within_its_bounds(policy: Policy, changed_at: datetime) -> None:
    max_gap = max(policy.recheck_seconds, policy.adapt_max_seconds)
    assert policy.recheck_seconds - 1e-3 <= interval(changed_at, policy) <= max_gap + 1e-3


@law
@given(learning, past, st.integers(0, 10**6))
def test_A28_a_learned_interval_grows_while_nothing_changes(policy: Policy, changed_at: datetime, minutes: int) -> None:
    assert interval(changed_at - minutes * MINUTE, policy) >= interval(changed_at, policy)


@law
@given(learning, st.integers(0, 300))
def test_A28_a_change_brings_the_learned_interval_back_to_the_shortest(policy: Policy, minutes: int) -> None:
    """So does a date in the future, by a clock that ran ahead."""
    ahead = page_of(NOON + minutes * MINUTE)
    assert next_check_after_answer(NOON, ahead, policy) == next_regular_look(NOON, policy)
    assert next_check_after_answer(NOON, page_of(None), policy) == next_regular_look(NOON, policy)


def test_A28_a_page_that_stays_the_same_is_looked_at_ever_more_rarely_until_it_changes() -> None:
    policy = Policy(adapt=True, recheck_seconds=3600, adapt_max_seconds=30 * 86_400)
    page = Page(
        id=PageId(1),
        source_id=SourceId(1),
        url="https://docs.test/a",
        status=PageStatus.ACTIVE,
        content_hash="a" * 64,
        changed_at=NOON,
    )
    now, hours = NOON, []
    for _ in range(8):
        decision = decide(page, NotModified(), policy, now)
        assert decision.next_at is not None
        hours.append((decision.next_at - now).total_seconds() / 3600)
        page, now = decision.page, decision.next_at
    assert hours == [1, 1, 1, 1.5, 2.25, 3.375, 5.0625, 7.59375]
    assert decide(replace(page, changed_at=now), NotModified(), policy, now).next_at == now + timedelta(hours=1)
