"""When to look again: laws 7 and 14, and the figures of back-off."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import (
    NOON,
    failed,
    gone,
    held_pages,
    law,
    looks,
    moved,
    not_modified,
    pages,
    policies,
    reads,
    refused,
    times,
)

from afresh.backoff import backoff_seconds, next_wait, wait_to_retry
from afresh.crawl.decide import decide, next_check_after_failure, next_regular_look
from afresh.model.fetch import Failed, Gone, Outcome, Seen
from afresh.model.records import Page, PageId, Policy, SourceId

failure_counts = st.integers(1, 10_000)
bases = st.floats(0.1, 3600.0)
max_gap = st.floats(0.1, 1e6)


@law
@given(pages, looks, policies, times)
def test_law_7_the_next_look_lies_in_the_future(page: Page, seen: Seen, policy: Policy, now: datetime) -> None:
    """B19: and it is as time-zone aware as the clock that was passed in."""
    next_at = decide(page, seen, policy, now).next_at
    assert next_at is None or (next_at > now and next_at.tzinfo is now.tzinfo)


@law
@given(pages, st.floats(0.0, 1e-5), times)
def test_law_7_a_wait_too_short_to_count_still_lies_in_the_future(page: Page, wait: float, now: datetime) -> None:
    seen = Failed(outcome=Outcome.FAILED, reason="503 from the server", retry_after=wait)
    next_at = decide(page, seen, Policy(), now).next_at
    assert next_at is not None
    assert next_at > now


@law
@given(pages, looks, policies, times)
def test_law_7_only_a_page_proven_gone_is_not_looked_at_again(
    page: Page, seen: Seen, policy: Policy, now: datetime
) -> None:
    if decide(page, seen, policy, now).next_at is None:
        assert isinstance(seen, Gone)


@law
@given(pages, failed, policies, times)
def test_law_7_never_before_retry_after(page: Page, seen: Failed, policy: Policy, now: datetime) -> None:
    """G5: Retry-After is obeyed even where it is longer than the max_gap back-off."""
    next_at = decide(page, seen, policy, now).next_at
    assert next_at is not None
    assert next_at >= now + timedelta(seconds=seen.retry_after or 0.0)


@law
@given(pages, failed, policies, times)
def test_law_7_a_failure_waits_no_longer_than_the_cap_or_retry_after(
    page: Page, seen: Failed, policy: Policy, now: datetime
) -> None:
    next_at = decide(page, seen, policy, now).next_at
    assert next_at is not None
    assert next_at <= now + timedelta(seconds=max(policy.backoff_max_seconds, seen.retry_after or 0.0))


@law
@given(held_pages, gone, policies, times)
def test_law_7_an_unproven_404_waits_as_a_failure_does(page: Page, seen: Gone, policy: Policy, now: datetime) -> None:
    next_at = decide(page, seen, policy, now).next_at
    assert next_at is None or next_at <= now + timedelta(seconds=policy.backoff_max_seconds)


@law
@given(held_pages, reads | not_modified | moved | refused, policies, times)
def test_law_7_every_other_look_waits_the_ordinary_interval(
    page: Page, seen: Seen, policy: Policy, now: datetime
) -> None:
    """G5: what is permanent (robots, 403) is not tried again any sooner."""
    decision = decide(page, seen, policy, now)
    assert decision.next_at == next_regular_look(now, policy) == now + timedelta(seconds=policy.recheck_seconds)


@law
@given(failure_counts, bases, max_gap)
def test_law_7_backoff_is_monotone_positive_and_capped(failures: int, base: float, cap: float) -> None:
    pause, longer = backoff_seconds(failures, base, cap), backoff_seconds(failures + 1, base, cap)
    assert 0 < pause <= longer <= cap
    assert longer == pytest.approx(min(cap, 2 * pause))  # E24: doubled, unless the cap is reached


@law
@given(st.lists(failure_counts, min_size=2, max_size=12), bases, max_gap)
def test_law_7_backoff_never_shrinks_however_many_failures(counts: list[int], base: float, cap: float) -> None:
    pauses = [backoff_seconds(failures, base, cap) for failures in sorted(counts)]
    assert pauses == sorted(pauses)


@law
@given(st.integers(1, 50), st.floats(0.01, 60), st.floats(0.01, 3600))
def test_E24_waits_step_by_step_are_those_by_the_number_of_failures(
    failures: int, first: float, max_gap: float
) -> None:
    wait = 0.0
    for _ in range(failures):
        wait = next_wait(wait, first, max_gap)
    assert wait == pytest.approx(backoff_seconds(failures, first, max_gap))


@law
@given(st.integers(1, 10), st.integers(1, 10), st.none() | st.floats(0, 1e6), st.floats(0.01, 60), max_gap)
def test_E24_a_server_that_asks_for_a_wait_gets_it_or_no_other_try(
    failures: int, tries: int, asked: float | None, first: float, cap: float
) -> None:
    wait = wait_to_retry(failures, asked, tries=tries, first=first, max_seconds=cap)
    if wait is None:
        assert failures >= tries or (backoff_seconds(failures, first, 1e9) if asked is None else asked) > cap
    else:
        assert failures < tries
        assert wait <= cap
        assert asked is None or wait == asked


@law
@given(failure_counts, policies, times, st.none() | st.floats(0.0, 1e6))
def test_law_7_one_more_failure_is_never_tried_sooner(
    failures: int, policy: Policy, now: datetime, retry_after: float | None
) -> None:
    sooner = next_check_after_failure(now, failures, policy, retry_after)
    assert now < sooner <= next_check_after_failure(now, failures + 1, policy, retry_after)


@law
@given(pages, looks, policies, times)
def test_law_14_only_a_failure_is_tried_again_within_the_run(
    page: Page, seen: Seen, policy: Policy, now: datetime
) -> None:
    """A23, G5: a 404, a redirect or a refusal never is; a 304 without content counts as a failure (F48)."""
    decision = decide(page, seen, policy, now)
    if decision.retry:
        impossible = decision.outcome is Outcome.FAILED and page.content_hash is None
        assert isinstance(seen, Failed) or impossible
        assert decision.next_at is not None


@law
@given(st.lists(failed, min_size=6, max_size=8), policies)
def test_law_14_a_fresh_page_is_tried_again_exactly_as_often_as_the_policy_says(
    failures: list[Failed], policy: Policy
) -> None:
    page = Page(id=PageId(1), source_id=SourceId(1), url="https://docs.test/a")
    retries: list[bool] = []
    for seen in failures:
        decision = decide(page, seen, policy, NOON)
        retries.append(decision.retry)
        page = decision.page
    strikes = [seen.retry_after is None for seen in failures]
    assert retries == [sum(strikes[: n + 1]) <= policy.retries for n in range(len(failures))]


@law
@given(pages, failed, policies, times)
def test_F75_a_server_that_asks_us_to_wait_gives_no_strike_and_is_waited_for_exactly(
    page: Page, seen: Failed, policy: Policy, now: datetime
) -> None:
    decision = decide(replace(page, failures=0), seen, policy, now)
    assert decision.page.failures == int(seen.retry_after is None)
    assert decision.next_at is not None
    if wait := timedelta(seconds=seen.retry_after or 0):  # none if shorter than the clock can tell
        assert decision.next_at == now + wait


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (1, 60), (2, 120), (3, 240), (6, 1920), (7, 3600), (61, 3600), (62, 3600), (10**9, 3600)],
)
def test_E24_backoff_doubles_from_the_base_to_the_cap(failures: int, seconds: float) -> None:
    assert backoff_seconds(failures, 60.0, 3600.0) == seconds


def test_E24_a_base_above_the_cap_is_cut_to_it() -> None:
    assert backoff_seconds(1, 600.0, 30.0) == 30.0


@pytest.mark.parametrize(("retry_after", "seconds"), [(None, 4), (0.0, 4), (3.0, 4), (4.5, 4.5), (7200.0, 7200)])
def test_G5_the_longer_of_backoff_and_retry_after_counts(retry_after: float | None, seconds: float) -> None:
    policy = Policy(backoff_base_seconds=2.0, backoff_max_seconds=60.0)
    assert next_check_after_failure(NOON, 2, policy, retry_after) == NOON + timedelta(seconds=seconds)
