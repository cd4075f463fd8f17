"""The life of a page: transition tables, and laws over whole sequences of looks (8, 9, 11)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import FAILING_OUTCOMES, NOON, law, looks, pages, policies, wanted

from afresh.crawl.decide import decide, request_for
from afresh.model import transitions
from afresh.model.fetch import Failed, NotModified, Outcome, ReadDocument, Refused, Seen, Validators
from afresh.model.records import ContentAction, Decision, Page, PageId, PageStatus, Policy, RunState, SourceId

# ---- the tables ---------------------------------------------------------------------------------


def test_nothing_returns_to_pending() -> None:
    assert all(PageStatus.PENDING not in targets for targets in transitions.PAGE.values())


def test_P4_a_live_page_never_becomes_an_error() -> None:
    assert transitions.PAGE[PageStatus.ACTIVE] == {PageStatus.DELETED, PageStatus.REDIRECT}


def test_every_status_that_can_be_reached_has_a_row_and_a_way_back_to_active() -> None:
    """F36: found again after a 404, a redirect or an error."""
    reached = frozenset[PageStatus]().union(*transitions.PAGE.values())
    assert reached <= transitions.PAGE.keys()
    for status in transitions.PAGE.keys() - {PageStatus.ACTIVE}:
        assert PageStatus.ACTIVE in transitions.PAGE[status]


@pytest.mark.parametrize("old", PageStatus)
@pytest.mark.parametrize("new", PageStatus)
def test_D3_may_become_is_staying_or_a_row_of_the_table(old: PageStatus, new: PageStatus) -> None:
    assert transitions.may_become(old, new) == (old is new or new in transitions.PAGE.get(old, ()))


def test_D2_D3_the_life_of_a_page_with_stores_is_the_one_that_is_drawn() -> None:
    drawn = transitions.LIFE
    assert drawn.keys() == set(PageStatus)
    assert all(PageStatus.PENDING not in targets for targets in drawn.values())
    leads_to = {new: {old for old in drawn if new in drawn[old]} for new in PageStatus}
    assert leads_to[PageStatus.ACTIVE] == {PageStatus.PROCESSING}  # D13: only the store says so
    assert leads_to[PageStatus.PROCESSING] == {PageStatus.READY_FOR_INDEXING}  # D19: only the indexer
    assert all({PageStatus.DELETED, PageStatus.REDIRECT} - {old} <= drawn[old] for old in drawn)


def test_a_run_ends_once_and_only_a_cancelled_or_braked_one_goes_on() -> None:
    """P5: one call confirms a braked run; G2: a stopped run is resumed."""
    assert transitions.RUN.keys() == set(RunState)
    assert transitions.RUN[RunState.RUNNING] == set(RunState) - {RunState.RUNNING}
    assert {state for state, targets in transitions.RUN.items() if targets} == {
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
class Told:
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


def live(page: Page, life: Sequence[Step], policy: Policy) -> Iterator[Told]:
    for hour, step in enumerate(life):
        decision = decide(page, step.seen, policy, NOON + timedelta(hours=hour))
        yield Told(before=page, step=step, decision=decision)
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
    assert transitions.may_become(page.status, decide(page, seen, policy, NOON).page.status)


@law
@given(lives, policies)
def test_law_8_over_a_life_no_status_leaves_the_table_or_returns_to_pending(
    life: list[Step], policy: Policy
) -> None:
    for told in live(NEWBORN, life, policy):
        assert transitions.may_become(told.before.status, told.decision.page.status)
        assert told.decision.page.status is not PageStatus.PENDING


@law
@given(lives, policies)
def test_law_9_a_page_is_active_exactly_while_content_is_held(life: list[Step], policy: Policy) -> None:
    for told in live(NEWBORN, life, policy):
        after = told.decision.page
        assert (after.status is PageStatus.ACTIVE) == (after.content_hash is not None)


@law
@given(lives, policies)
def test_law_11_G5_the_counters_are_folds_of_the_history(life: list[Step], policy: Policy) -> None:
    """Failures show nothing, so they neither count as a 404 nor interrupt a row of them.

    A server that asks us to wait did not fail at all (F75).
    """
    history: list[Outcome] = []
    for told in live(NEWBORN, life, policy):
        seen = told.step.seen
        if not isinstance(seen, Failed) or seen.retry_after is None:
            history.append(told.decision.outcome)
        answers = [outcome for outcome in history if outcome not in FAILING_OUTCOMES]
        assert told.decision.page.failures == trailing(history, FAILING_OUTCOMES)
        assert told.decision.page.gone_count == trailing(answers, frozenset({Outcome.GONE}))


@law
@given(lives, policies)
def test_A24_held_content_is_that_of_the_last_read_and_its_validators_never_older(
    life: list[Step], policy: Policy
) -> None:
    """The content on record is what the last indexed read showed, whatever happened since."""
    last: ReadDocument | None = None
    for told in live(NEWBORN, life, policy):
        seen, after = told.step.seen, told.decision.page
        if isinstance(seen, ReadDocument) and wanted(seen, policy):
            last = seen
            assert after.validators == seen.validators
        if after.content_hash is not None:
            assert last is not None
            assert (after.content_hash, after.title) == (last.document.content_hash, last.document.title)


@law
@given(lives, policies)
def test_P4_trouble_in_between_leaves_no_trace_in_the_content(life: list[Step], policy: Policy) -> None:
    """F30, F32, F41: a life with outages ends with the page that the same life without them has."""
    page, calm = NEWBORN, NEWBORN
    for hour, step in enumerate(life):
        now = NOON + timedelta(hours=hour)
        page = decide(page, step.seen, policy, now).page
        if not isinstance(step.seen, Failed | Refused):
            calm = decide(calm, step.seen, policy, now).page
    assert shown(page) == shown(calm)


def shown(page: Page) -> Page:
    status = PageStatus.PENDING if page.status is PageStatus.ERROR else page.status
    return replace(page, failures=0, checked_at=None, status=status)


@law
@given(lives, policies)
def test_F48_a_304_that_was_asked_for_is_always_believed(life: list[Step], policy: Policy) -> None:
    """A4: over a life, a conditional request is only sent where its 304 can be honoured."""
    for told in live(NEWBORN, life, policy):
        after = told.decision.page
        if request_for(after, policy, NOON).validators is not None:
            answer = decide(after, NotModified(), policy, NOON)
            assert (answer.outcome, answer.page.content_hash) == (Outcome.NOT_MODIFIED, after.content_hash)


@law
@given(lives, policies)
def test_law_2_over_a_life_each_content_is_made_once(life: list[Step], policy: Policy) -> None:
    """A4, F46: work is done when the hash moves or after a sweep, never for the same content twice."""
    made: str | None = None
    for told in live(NEWBORN, life, policy):
        if told.decision.content is ContentAction.REPLACE:
            assert made != told.decision.page.content_hash
            made = told.decision.page.content_hash
        if told.step.sweep and told.decision.content is ContentAction.DROP:
            made = None


@law
@given(lives, policies)
def test_every_decision_says_why(life: list[Step], policy: Policy) -> None:
    """`afresh why` prints the reason, so there always is one."""
    for told in live(NEWBORN, life, policy):
        trouble = told.decision.outcome in FAILING_OUTCOMES
        assert told.decision.reason
        assert (told.decision.error_message is not None) == trouble
