"""How a run ends: when it may delete, when absence counts, and when the brake holds (law 15)."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import transitions
from tests.strategies import brakes, held_pages, law

from afresh.crawl.run_verdict import RunEvidence, decide_missing, exceeds_deletion_limit, final_status, judge, may_drop
from afresh.model.records import Page, PageId, PageStatus, Policy, RunId, RunState, SourceId


@st.composite
def _evidence(draw: st.DrawFn) -> RunEvidence:
    known = draw(st.integers(0, 60))
    known_failed = draw(st.integers(0, known // 10) | st.integers(0, known))
    return RunEvidence(
        root_failed=draw(st.sampled_from((None, None, None, "404", "connection refused"))),
        robots_unreachable=draw(st.sampled_from((False, False, False, True))),
        listing_complete=draw(st.booleans()),
        stopped=draw(st.sampled_from((False, False, False, True))),
        known=known,
        known_failed=known_failed,
        failed=known_failed + draw(st.sampled_from((0, 0, 1, 7))),
    )


evidences = _evidence()
CALM = RunEvidence(
    root_failed=None,
    robots_unreachable=False,
    listing_complete=True,
    stopped=False,
    known=100,
    known_failed=0,
    failed=0,
)


def is_outage(evidence: RunEvidence) -> bool:
    return (
        evidence.root_failed is not None or evidence.robots_unreachable or evidence.known_failed * 10 > evidence.known
    )


@law
@given(evidences)
def test_law_15_P4_a_run_may_delete_unless_it_was_stopped_or_met_an_outage(evidence: RunEvidence) -> None:
    assert judge(evidence).may_delete == (not evidence.stopped and not is_outage(evidence))


@law
@given(evidences)
def test_law_15_G2_absence_counts_only_in_a_completed_run_with_a_complete_listing(evidence: RunEvidence) -> None:
    verdict = judge(evidence)
    complete = verdict.state is RunState.COMPLETED and evidence.listing_complete
    assert verdict.may_miss == complete
    assert verdict.may_delete or not verdict.may_miss


@law
@given(evidences)
def test_law_15_a_run_is_completed_only_if_nothing_went_wrong(evidence: RunEvidence) -> None:
    clean = not (evidence.stopped or is_outage(evidence) or evidence.failed)
    assert (judge(evidence).state is RunState.COMPLETED) == clean


@law
@given(evidences)
def test_a_verdict_is_a_legal_end_and_says_what_is_wrong(evidence: RunEvidence) -> None:
    verdict = judge(evidence)
    assert verdict.state in transitions.RUN[RunState.RUNNING]
    assert bool(verdict.error) == (verdict.state in {RunState.FAILED, RunState.PARTIAL})


@law
@given(evidences, st.integers(1, 20))
def test_law_15_more_failures_never_allow_more(evidence: RunEvidence, more: int) -> None:
    """P4: trouble is monotone, so an outage can only take permissions away."""
    failed = min(evidence.known, evidence.known_failed + more)
    worse = judge(replace(evidence, known_failed=failed, failed=evidence.failed + more))
    better = judge(evidence)
    assert worse.may_delete <= better.may_delete
    assert worse.may_miss <= better.may_miss


@pytest.mark.parametrize(
    ("evidence", "state", "may_delete"),
    [
        pytest.param(CALM, RunState.COMPLETED, True, id="F37 few 404 in a calm run"),
        pytest.param(
            replace(CALM, root_failed="connection refused", known_failed=100, failed=100),
            RunState.FAILED,
            False,
            id="F30 server down",
        ),
        pytest.param(replace(CALM, known_failed=100, failed=100), RunState.FAILED, False, id="F32 all 5xx"),
        pytest.param(replace(CALM, known_failed=99, failed=99), RunState.PARTIAL, False, id="R11 all but one"),
        pytest.param(replace(CALM, known_failed=30, failed=30), RunState.PARTIAL, False, id="F33 30 % of 503"),
        pytest.param(replace(CALM, root_failed="404"), RunState.FAILED, False, id="F35 root 404"),
        pytest.param(replace(CALM, root_failed="403 Forbidden"), RunState.FAILED, False, id="F41 403"),
        pytest.param(replace(CALM, robots_unreachable=True), RunState.FAILED, False, id="P4 robots.txt"),
        pytest.param(replace(CALM, known_failed=10, failed=10), RunState.PARTIAL, True, id="P4 just 10 %"),
        pytest.param(replace(CALM, known_failed=11, failed=11), RunState.PARTIAL, False, id="P4 over 10 %"),
        pytest.param(replace(CALM, known_doubtful=30), RunState.PARTIAL, False, id="R11 30 % in doubt"),
        pytest.param(replace(CALM, known_doubtful=100), RunState.FAILED, False, id="R11 all in doubt"),
        pytest.param(replace(CALM, stopped=True), RunState.CANCELLED, False, id="G2 unfinished"),
        pytest.param(replace(CALM, known=0, failed=3), RunState.PARTIAL, True, id="first crawl, 3 failed"),
    ],
)
def test_P4_cases(evidence: RunEvidence, state: RunState, may_delete: bool) -> None:
    verdict = judge(evidence)
    assert (verdict.state, verdict.may_delete) == (state, may_delete)
    assert verdict.may_miss == (state is RunState.COMPLETED)


@law
@given(evidences)
def test_R11_a_run_has_failed_only_if_root_robots_or_all_known_pages_did(evidence: RunEvidence) -> None:
    whole = evidence.root_failed is not None or evidence.robots_unreachable
    every = 0 < evidence.known <= evidence.known_failed
    assert (judge(evidence).state is RunState.FAILED) == (not evidence.stopped and (whole or every))


def test_F35_the_error_names_the_root_and_why() -> None:
    error = judge(replace(CALM, root_failed="404 Not Found")).error
    assert error == "the start page could not be read: 404 Not Found"


@pytest.mark.parametrize(("failed", "start"), [(1, "1 page "), (2, "2 pages ")])
def test_F33_a_partial_run_counts_what_is_left(failed: int, start: str) -> None:
    assert str(judge(replace(CALM, failed=failed)).error).startswith(start)


def test_G2_an_unread_sitemap_lets_proof_delete_but_absence_not_count() -> None:
    verdict = judge(replace(CALM, listing_complete=False))
    assert (verdict.state, verdict.may_delete, verdict.may_miss) == (RunState.COMPLETED, True, False)


# ---- the brake ----------------------------------------------------------------------------------

lives = st.integers(0, 400)
dooms = st.integers(0, 60)


@law
@given(lives, dooms, brakes)
def test_law_15_P5_the_brake_needs_both_the_count_and_the_share(live: int, doomed: int, policy: Policy) -> None:
    many = doomed > policy.brake_pages
    large = doomed * 100 > live * int(policy.brake_percent)
    assert exceeds_deletion_limit(live, doomed, policy) == (many and large)


@law
@given(lives, dooms, st.integers(0, 60), brakes)
def test_law_15_P5_a_held_brake_holds_for_more_deletions_and_for_fewer_pages(
    live: int, doomed: int, more: int, policy: Policy
) -> None:
    if exceeds_deletion_limit(live, doomed, policy):
        assert exceeds_deletion_limit(live, doomed + more, policy)
        assert exceeds_deletion_limit(max(0, live - more), doomed, policy)


@pytest.mark.parametrize(
    ("live", "doomed", "holds"),
    [
        pytest.param(526, 525, True, id="F34 all 404 but the root"),
        pytest.param(526, 12, False, id="F37 few pages"),
        pytest.param(12, 10, False, id="P5 not more than 10 pages"),
        pytest.param(12, 11, True, id="P5 11 of 12"),
        pytest.param(110, 11, False, id="P5 just 10 %"),
        pytest.param(109, 11, True, id="P5 over 10 %"),
        pytest.param(0, 0, False, id="nothing to delete"),
    ],
)
def test_P5_cases_with_the_default_policy(live: int, doomed: int, holds: bool) -> None:
    assert exceeds_deletion_limit(live, doomed, Policy()) == holds


# ---- absence and what may go --------------------------------------------------------------------

RUN = RunId(9)
PAGE = Page(id=PageId(1), source_id=SourceId(1), url="https://docs.test/a", content_hash="a" * 64)


@law
@given(held_pages, st.integers(1, 4))
def test_D10_D11_absence_counts_up_and_dooms_exactly_at_missing_after(page: Page, missing_after: int) -> None:
    after = decide_missing(page, RUN, Policy(missing_after=missing_after))
    reached = page.missing_count + 1 >= missing_after
    assert after == replace(page, missing_count=page.missing_count + 1, doomed_by=RUN if reached else page.doomed_by)


@pytest.mark.parametrize("missing_after", [1, 3])
def test_G2_C14_a_page_is_doomed_by_the_run_that_misses_it_for_the_last_time(missing_after: int) -> None:
    page, dooms_of = PAGE, []
    for run in range(1, 4):
        page = decide_missing(page, RunId(run), Policy(missing_after=missing_after))
        dooms_of.append(page.doomed_by is not None)
    assert dooms_of == [run >= missing_after for run in range(1, 4)]


@pytest.mark.parametrize("target", [None, *PageStatus])
def test_A7_a_page_that_did_not_move_may_go_at_once(target: PageStatus | None) -> None:
    assert may_drop(replace(PAGE, doomed_by=RunId(7)), target, RunId(7))


@pytest.mark.parametrize(
    ("target", "may"),
    [
        (None, True),
        (PageStatus.ACTIVE, True),
        (PageStatus.PENDING, False),
        (PageStatus.ERROR, False),
        (PageStatus.DELETED, True),  # 301 and then 404: together they prove that the content is gone
    ],
)
def test_G12_a_page_that_moved_stays_until_its_new_address_has_content(target: PageStatus | None, may: bool) -> None:
    """Nothing is deleted before its replacement exists; None is an address outside the source."""
    moved = replace(PAGE, moved_to="https://docs.test/b", doomed_by=RunId(7))
    assert may_drop(moved, target, RunId(7)) == may


def test_P4_a_run_drops_only_what_it_proved_itself() -> None:
    """A mark of another run, an outage perhaps, is no proof."""
    doomed = replace(PAGE, doomed_by=RunId(7))
    assert may_drop(doomed, None, RunId(7))
    assert not may_drop(doomed, None, RunId(8))
    assert not may_drop(PAGE, None, RunId(8))


MOVES: dict[str, tuple[PageStatus, str | None]] = {
    "a": (PageStatus.ACTIVE, "b"),
    "b": (PageStatus.REDIRECT, "c"),
    "c": (PageStatus.ACTIVE, None),
    "x": (PageStatus.REDIRECT, "y"),
    "y": (PageStatus.ACTIVE, "x"),
    "out": (PageStatus.REDIRECT, "https://elsewhere.test/"),
}


@pytest.mark.parametrize(
    ("start", "end"),
    [("c", PageStatus.ACTIVE), ("a", PageStatus.ACTIVE), ("x", PageStatus.PENDING), ("out", None), ("unknown", None)],
)
def test_F49_a_chain_of_moves_is_followed_to_its_end(start: str, end: PageStatus | None) -> None:
    """A circle has no end, so nothing is dropped for it."""
    assert final_status(start, MOVES) is end


def test_F93_what_the_embedder_left_undone_is_named_beside_what_could_not_be_read() -> None:
    down = "api.example answered 500"
    verdict = judge(replace(CALM, failed=3, unembedded=2, embedder=down))
    assert (verdict.state, verdict.may_delete, verdict.may_miss) == (RunState.PARTIAL, True, False)
    assert verdict.error == (
        "1 page could not be read and will be tried again with the next run; "
        f"2 pages could not be embedded and will be tried again ({down})"
    )
    later = datetime(2026, 3, 4, 12, 5, tzinfo=UTC)
    backs_off = judge(replace(CALM, failed=1, next_try=later))
    assert backs_off.error == (
        "1 page could not be read and will be tried again by the first run after 2026-03-04 12:05 UTC"
    )
    only = judge(replace(CALM, failed=1, unembedded=1))
    assert only.error == "1 page could not be embedded and will be tried again"
    first = judge(replace(CALM, root_failed=f"not embedded: {down}", failed=1, unembedded=1))
    assert (first.state, first.error) == (RunState.FAILED, f"the start page was not embedded: {down}")


# ---- pages of many hosts


@pytest.mark.parametrize(
    ("problems", "state", "may_delete"),
    [
        ({"known_failed": 99, "failed": 99}, RunState.PARTIAL, True),
        ({"known_failed": 100, "failed": 100}, RunState.FAILED, False),
        ({"known_barred": 50}, RunState.COMPLETED, True),
        ({"known_barred": 100}, RunState.PARTIAL, False),
        ({"known_doubtful": 50}, RunState.COMPLETED, True),
        ({"known_doubtful": 60, "known_failed": 40, "failed": 40}, RunState.FAILED, False),
        ({"unlisted": "links.txt is not there"}, RunState.FAILED, False),
    ],
)
def test_P4_problems_of_some_hosts_say_nothing_about_the_pages_of_others(
    problems: dict[str, object], state: RunState, may_delete: bool
) -> None:
    verdict = judge(replace(CALM, many_hosts=True, **problems))  # type: ignore[arg-type]
    assert (verdict.state, verdict.may_delete) == (state, may_delete)


def test_a_list_of_which_nothing_was_known_is_no_outage() -> None:
    verdict = judge(replace(CALM, many_hosts=True, known=0, failed=3))
    assert (verdict.state, verdict.may_delete) == (RunState.PARTIAL, True)
