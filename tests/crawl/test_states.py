"""The life of a page: transition tables, and laws over whole sequences of looks (8, 9, 11)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import FAILING_OUTCOMES, NOON, law, looks, pages, policies, wanted
from tests.transitions import PAGE, RUN, may_become

from afresh.crawl.decide import decide, request_for
from afresh.model.fetch import Failed, NotModified, Outcome, ReadDocument, Refused, Seen, Validators
from afresh.model.records import LIFE, ContentAction, Decision, Page, PageId, PageStatus, Policy, RunState, SourceId

# ---- the tables ---------------------------------------------------------------------------------


def test_nothing_returns_to_pending() -> None:
    assert all(PageStatus.PENDING not in targets for targets in PAGE.values())


def test_P4_a_live_page_never_becomes_an_error() -> None:
    assert PAGE[PageStatus.ACTIVE] == {PageStatus.DELETED, PageStatus.REDIRECT}


def test_every_status_that_can_be_reached_has_a_row_and_a_way_back_to_active() -> None:
    """F36: found again after a 404, a redirect or an error."""
    reached = frozenset[PageStatus]().union(*PAGE.values())
    assert reached <= PAGE.keys()
    for status in PAGE.keys() - {PageStatus.ACTIVE}:
        assert PageStatus.ACTIVE in PAGE[status]


def test_D2_D3_the_life_of_a_page_with_stores_is_the_one_that_is_drawn() -> None:
    drawn = LIFE
    assert drawn.keys() == set(PageStatus)
    assert all(PageStatus.PENDING not in targets for targets in drawn.values())
    leads_to = {new: {old for old in drawn if new in drawn[old]} for new in PageStatus}
    assert leads_to[PageStatus.ACTIVE] == {PageStatus.PROCESSING}  # D13: only the store says so
    assert leads_to[PageStatus.PROCESSING] == {PageStatus.READY_FOR_INDEXING}  # D19: only the indexer
    assert all({PageStatus.DELETED, PageStatus.REDIRECT} - {old} <= drawn[old] for old in drawn)


def test_a_run_ends_once_and_only_a_cancelled_or_braked_one_goes_on() -> None:
    """P5: one call confirms a braked run; G2: a stopped run is resumed."""
    assert RUN.keys() == set(RunState)
    assert RUN[RunState.RUNNING] == set(RunState) - {RunState.RUNNING}
    assert {state for state, targets in RUN.items() if targets} == {
        RunState.QUEUED,
        RunState.RUNNING,
        RunState.CANCELLED,
        RunState.NEEDS_CONFIRMATION,
    }


# ---- sequences of looks -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One look, and whether a sweep carries out what it dooms."""

    seen: Seen
    sweep: bool


@dataclass(frozen=True, slots=True)
class Reported:
    """What one step of a life did."""

    before: Page
    step: Step
    decision: Decision


steps = st.builds(Step, seen=looks, sweep=st.booleans())
lives = st.lists(steps, min_size=1, max_size=8)
NEWBORN = Page(id=PageId(7), source_id=SourceId(1), url="https://docs.test/a", depth=3)


def swept(decision: Decision) -> Page:
    """The page after its run was allowed to drop it."""
    status = PageStatus.REDIRECT if decision.outcome is Outcome.MOVED else PageStatus.DELETED
    return replace(decision.page, status=status, content_hash=None, validators=Validators(), recipe=None)


def live(page: Page, life: Sequence[Step], policy: Policy) -> Iterator[Reported]:
    for hour, step in enumerate(life):
        decision = decide(page, step.seen, policy, NOON + timedelta(hours=hour))
        yield Reported(before=page, step=step, decision=decision)
        dropped = step.sweep and decision.content is ContentAction.DROP
        page = swept(decision) if dropped else decision.page


def trailing(history: Sequence[Outcome], counted: frozenset[Outcome]) -> int:
    count = 0
    for outcome in reversed(history):
        if outcome not in counted:
            break
        count += 1
    return count


@law
@given(pages, looks, policies)
def test_law_8_every_change_of_status_is_in_the_table(page: Page, seen: Seen, policy: Policy) -> None:
    assert may_become(page.status, decide(page, seen, policy, NOON).page.status)


@law
@given(lives, policies)
def test_law_8_over_a_life_no_status_leaves_the_table_or_returns_to_pending(life: list[Step], policy: Policy) -> None:
    for reported in live(NEWBORN, life, policy):
        assert may_become(reported.before.status, reported.decision.page.status)
        assert reported.decision.page.status is not PageStatus.PENDING


@law
@given(lives, policies)
def test_law_9_a_page_is_active_exactly_while_content_is_held(life: list[Step], policy: Policy) -> None:
    for reported in live(NEWBORN, life, policy):
        after = reported.decision.page
        assert (after.status is PageStatus.ACTIVE) == (after.content_hash is not None)


@law
@given(lives, policies)
def test_law_11_G5_the_counters_are_folds_of_the_history(life: list[Step], policy: Policy) -> None:
    """Failures show nothing, so they neither count as a 404 nor interrupt a row of them.

    A server that asks us to wait did not fail at all (F75).
    """
    history: list[Outcome] = []
    for reported in live(NEWBORN, life, policy):
        seen = reported.step.seen
        if not isinstance(seen, Failed) or seen.retry_after is None:
            history.append(reported.decision.outcome)
        answers = [outcome for outcome in history if outcome not in FAILING_OUTCOMES]
        assert reported.decision.page.failures == trailing(history, FAILING_OUTCOMES)
        assert reported.decision.page.gone_count == trailing(answers, frozenset({Outcome.GONE}))


@law
@given(lives, policies)
def test_A24_held_content_is_that_of_the_last_read_and_its_validators_never_older(
    life: list[Step], policy: Policy
) -> None:
    """The content on record is what the last indexed read showed, whatever happened since."""
    last: ReadDocument | None = None
    for reported in live(NEWBORN, life, policy):
        seen, after = reported.step.seen, reported.decision.page
        if isinstance(seen, ReadDocument) and wanted(seen, policy):
            last = seen
            assert after.validators == seen.validators
        if after.content_hash is not None:
            assert last is not None
            assert (after.content_hash, after.title) == (last.document.content_hash, last.document.title)


@law
@given(lives, policies)
def test_P4_problems_in_between_leave_no_trace_in_the_content(life: list[Step], policy: Policy) -> None:
    """F30, F32, F41: a life with outages ends with the page that the same life without them has."""
    page, calm = NEWBORN, NEWBORN
    for hour, step in enumerate(life):
        now = NOON + timedelta(hours=hour)
        page = decide(page, step.seen, policy, now).page
        if not isinstance(step.seen, Failed | Refused):
            calm = decide(calm, step.seen, policy, now).page
    assert displayed(page) == displayed(calm)


def displayed(page: Page) -> Page:
    status = PageStatus.PENDING if page.status is PageStatus.ERROR else page.status
    return replace(page, failures=0, checked_at=None, status=status)


@law
@given(lives, policies)
def test_F48_a_304_that_was_asked_for_is_always_believed(life: list[Step], policy: Policy) -> None:
    """A4: over a life, a conditional request is only sent where its 304 can be honoured."""
    for reported in live(NEWBORN, life, policy):
        after = reported.decision.page
        if request_for(after, policy, NOON).validators is not None:
            answer = decide(after, NotModified(), policy, NOON)
            assert (answer.outcome, answer.page.content_hash) == (Outcome.NOT_MODIFIED, after.content_hash)


@law
@given(lives, policies)
def test_law_2_over_a_life_each_content_is_made_once(life: list[Step], policy: Policy) -> None:
    """A4, F46: work is done when the hash moves or after a sweep, never for the same content twice."""
    made: str | None = None
    for reported in live(NEWBORN, life, policy):
        if reported.decision.content is ContentAction.REPLACE:
            assert made != reported.decision.page.content_hash
            made = reported.decision.page.content_hash
        if reported.step.sweep and reported.decision.content is ContentAction.DROP:
            made = None


@law
@given(lives, policies)
def test_every_decision_says_why(life: list[Step], policy: Policy) -> None:
    """`afresh why` prints the reason, so there always is one."""
    for reported in live(NEWBORN, life, policy):
        problems = reported.decision.outcome in FAILING_OUTCOMES
        assert reported.decision.reason
        assert (reported.decision.error_message is not None) == problems
