"""The laws of `decide` and `request_for`; test_cases.py holds one example per row of DESIGN §3."""

from dataclasses import replace
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import (
    empty_pages,
    gone,
    held_pages,
    law,
    looks,
    moved,
    not_modified,
    pages,
    policies,
    reads,
    times,
    troubles,
    validators,
    wanted,
)

from afresh.crawl.decide import decide, is_stale, request_for
from afresh.model.fetch import Failed, Gone, Moved, NotModified, Outcome, ReadDocument, Refused, Seen, Validators
from afresh.model.records import Claim, ContentAction, CrawlId, LinkAction, Page, PageStatus, Policy, RunId, Visit
from afresh.schedule.change_rate import ChangeStats
from afresh.store.content import only_checked


def without_check_times(page: Page) -> Page:
    return replace(page, checked_at=None, last_scraped=None, observed_at=None, rhythm=ChangeStats())


@law
@given(held_pages, troubles, policies, times)
def test_law_1_problems_touches_nothing_of_a_held_page(
    page: Page, seen: Refused | Failed, policy: Policy, now: datetime
) -> None:
    """P4, F32, F41: a failure or refusal keeps content, hashes, validators, title, language and status."""
    decision = decide(page, seen, policy, now)
    assert decision.content is ContentAction.KEEP
    assert replace(decision.page, failures=page.failures, checked_at=page.checked_at) == page
    assert decision.page.checked_at == now


@law
@given(empty_pages, troubles, policies, times)
def test_law_1_problems_with_an_empty_page_only_marks_a_pending_one(
    page: Page, seen: Refused | Failed, policy: Policy, now: datetime
) -> None:
    decision = decide(page, seen, policy, now)
    marked = PageStatus.ERROR if page.status is PageStatus.PENDING else page.status
    assert decision.content is ContentAction.KEEP
    assert replace(decision.page, failures=page.failures, checked_at=page.checked_at) == replace(page, status=marked)


@law
@given(pages, looks, policies, times)
def test_law_2_content_is_replaced_only_by_a_read_that_differs(
    page: Page, seen: Seen, policy: Policy, now: datetime
) -> None:
    """A4, A5, F44, F46: the hash decides, not the validators; otherwise nothing is made or paid."""
    differs = (
        isinstance(seen, ReadDocument)
        and wanted(seen, policy)
        and (page.content_hash != seen.document.content_hash or page.recipe != policy.recipe)
    )
    assert (decide(page, seen, policy, now).content is ContentAction.REPLACE) == differs


@law
@given(held_pages, not_modified, policies, times)
def test_law_3_not_modified_keeps_content_and_follows_stored_links(
    page: Page, seen: NotModified, policy: Policy, now: datetime
) -> None:
    """A4, A12, G4."""
    decision = decide(page, seen, policy, now)
    assert (decision.content, decision.follow) == (ContentAction.KEEP, LinkAction.STORED)
    assert decision.outcome is Outcome.NOT_MODIFIED
    assert decision.page == replace(
        page,
        validators=decision.page.validators,
        failures=0,
        gone_count=0,
        doomed_by=None,
        moved_to=None,
        checked_at=now,
        observed_at=now,
        rhythm=page.rhythm.seen(False, (now - page.observed_at).total_seconds()) if page.observed_at else ChangeStats(),
    )


@law
@given(held_pages, not_modified, policies, times)
def test_F48_a_304_renews_the_validators_it_names_and_keeps_the_others(
    page: Page, seen: NotModified, policy: Policy, now: datetime
) -> None:
    """RFC 9111 §4.3.4: a 304 usually leaves Last-Modified out, which does not unsay it."""
    after = decide(page, seen, policy, now).page.validators
    for name in ("etag", "last_modified", "size", "mtime_ns"):
        old, new = getattr(page.validators, name), getattr(seen.validators, name)
        expected = old if new is None or not seen.validators else new
        assert getattr(after, name) == expected, name


@law
@given(empty_pages, not_modified, policies, times)
def test_law_3_not_modified_without_content_fails_and_forgets_validators(
    page: Page, seen: NotModified, policy: Policy, now: datetime
) -> None:
    """F48: a 304 is never believed while no content is stored."""
    decision = decide(page, seen, policy, now)
    assert (decision.outcome, decision.content) == (Outcome.FAILED, ContentAction.KEEP)
    assert decision.follow is LinkAction.NONE
    assert decision.page.validators == Validators()
    assert decision.page.failures == page.failures + 1


@law
@given(pages, policies, st.booleans(), times)
def test_law_3_requests_are_conditional_only_for_held_content_of_the_same_recipe(
    page: Page, policy: Policy, full: bool, now: datetime
) -> None:
    request = request_for(page, policy, now, full=full)
    held = page.content_hash is not None and page.moved_to is None
    may_ask = held and page.recipe == policy.recipe and not full and not is_stale(page, policy, now)
    can_ask = bool(page.validators.etag or page.validators.last_modified) or (page.validators.mtime_ns is not None)
    assert request.url == page.url
    assert request.validators == (page.validators if may_ask and can_ask else None)


@law
@given(pages, gone, policies, times)
def test_law_4_gone_drops_exactly_when_gone_after_is_reached(
    page: Page, seen: Gone, policy: Policy, now: datetime
) -> None:
    """G2, A7, F36, F37, F38."""
    decision = decide(page, seen, policy, now)
    proven = page.content_hash is None or page.gone_count + 1 >= policy.gone_after
    assert decision.content is (ContentAction.DROP if proven else ContentAction.KEEP)
    assert (decision.next_at is None) == proven
    assert decision.follow is LinkAction.NONE
    assert (decision.outcome, decision.page.gone_count) == (Outcome.GONE, page.gone_count + 1)


@law
@given(pages, looks, policies, times)
def test_law_4_content_is_dropped_only_on_proof(page: Page, seen: Seen, policy: Policy, now: datetime) -> None:
    """G2: only 404/410, a permanent redirect or the page's own noindex end its content."""
    if decide(page, seen, policy, now).content is ContentAction.DROP:
        assert isinstance(seen, Gone | Moved) or (isinstance(seen, ReadDocument) and not wanted(seen, policy))


@law
@given(pages, reads, policies, times, times)
def test_law_5_the_same_read_twice_changes_nothing_more(
    page: Page, seen: ReadDocument, policy: Policy, first: datetime, later: datetime
) -> None:
    once = decide(page, seen, policy, first)
    twice = decide(once.page, seen, policy, later)
    assert twice.content is (ContentAction.KEEP if wanted(seen, policy) else ContentAction.DROP)
    assert without_check_times(twice.page) == without_check_times(once.page)
    assert twice.page.checked_at == later


@law
@given(pages, looks, policies, times)
def test_law_6_changed_at_moves_iff_other_content_takes_its_place(
    page: Page, seen: Seen, policy: Policy, now: datetime
) -> None:
    decision = decide(page, seen, policy, now)
    replaced = decision.content is ContentAction.REPLACE
    other = replaced and decision.page.content_hash != page.content_hash  # else it is made by another recipe
    assert decision.page.changed_at == (now if other else page.changed_at)
    if not replaced:
        assert (decision.page.content_hash, decision.page.recipe) == (page.content_hash, page.recipe)


@law
@given(pages, reads, policies, times)
def test_law_6_validators_change_together_with_the_content_A24(
    page: Page, seen: ReadDocument, policy: Policy, now: datetime
) -> None:
    after = decide(page, seen, policy, now).page
    if wanted(seen, policy):
        assert after.validators == seen.validators
        followed = seen.document.follow or not policy.respect_nofollow
        assert (after.content_hash, after.links_hash) == (
            seen.document.content_hash,
            seen.document.links_hash if followed else None,
        )
        assert (after.title, after.content_type) == (seen.document.title, seen.media_type)
        assert (after.recipe, after.last_scraped) == (policy.recipe, now)
    else:
        assert after.validators == Validators()  # or a 304 could hide that the noindex was lifted


@law
@given(pages, looks, policies, times)
def test_law_10_identity_and_depth_stay(page: Page, seen: Seen, policy: Policy, now: datetime) -> None:
    """A14."""
    after = decide(page, seen, policy, now).page
    assert (after.id, after.source_id, after.url, after.depth) == (page.id, page.source_id, page.url, page.depth)
    assert isinstance(seen, ReadDocument) or after.language == page.language


@law
@given(pages, reads, policies, times)
def test_law_10_G10_a_language_once_known_is_kept(
    page: Page, seen: ReadDocument, policy: Policy, now: datetime
) -> None:
    found = seen.document.language if wanted(seen, policy) else None
    assert decide(page, seen, policy, now).page.language == (page.language or found)


@law
@given(held_pages, reads | not_modified, policies, times)
def test_law_12_an_answer_lifts_the_doom(
    page: Page, seen: ReadDocument | NotModified, policy: Policy, now: datetime
) -> None:
    """F36: a page that is there again is neither doomed nor nearly gone, nor moved."""
    after = decide(page, seen, policy, now).page
    assert (after.doomed_by, after.gone_count, after.failures, after.moved_to) == (None, 0, 0, None)


@law
@given(pages, moved, policies, times)
def test_law_13_moved_points_there_and_keeps_content_until_the_sweep(
    page: Page, seen: Moved, policy: Policy, now: datetime
) -> None:
    """G12; its links give way to the target, so that nothing vouches for them until it is read again."""
    decision = decide(page, seen, policy, now)
    status = PageStatus.REDIRECT if page.content_hash is None else page.status
    assert (decision.outcome, decision.follow) == (Outcome.MOVED, LinkAction.NONE)
    assert decision.page == replace(
        page,
        status=status,
        moved_to=seen.to,
        validators=Validators(),
        links_hash=None,
        failures=0,
        gone_count=0,
        checked_at=now,
    )


@law
@given(pages, moved, gone, policies, times)
def test_G12_a_page_that_is_gone_no_longer_points_anywhere(
    page: Page, first: Moved, then: Gone, policy: Policy, now: datetime
) -> None:
    """A 404 after a redirect is the newer truth: the sweep must not call the page a redirect."""
    after = decide(decide(page, first, policy, now).page, then, policy, now).page
    assert after.moved_to is None


@law
@given(pages, reads, policies, times)
def test_A12_links_are_followed_unless_the_page_forbids_it(
    page: Page, seen: ReadDocument, policy: Policy, now: datetime
) -> None:
    """C11: followed whether or not the content changed; read anew where the list of links did."""
    follow = decide(page, seen, policy, now).follow
    if policy.respect_nofollow and not seen.document.follow:
        assert follow is LinkAction.NONE
    elif page.content_hash is None or page.moved_to or page.links_hash != seen.document.links_hash:
        assert follow is LinkAction.NEW
    else:
        assert follow is not LinkAction.NONE


@law
@given(held_pages, reads, troubles, validators, policies, times)
def test_G13_problems_after_a_change_leaves_the_change_to_be_seen_again(
    page: Page, read: ReadDocument, problems: Failed | Refused, held: Validators, policy: Policy, now: datetime
) -> None:
    """The embedder was down: the next look asks as before, and decides as it would have."""
    page = replace(page, validators=held)
    after = decide(page, problems, policy, now).page
    assert request_for(after, policy, now) == request_for(page, policy, now)
    assert decide(after, read, policy, now) == decide(page, read, policy, now)


flagged_pages = st.builds(
    replace,
    held_pages,
    moved_to=st.sampled_from((None, None, None, "https://docs.test/b")),
    doubt=st.sampled_from((None, None, "it shrank")),
    doubt_hash=st.sampled_from((None, None, "h1")),
    doubt_run=st.sampled_from((None, None, RunId(3))),
    crashes=st.sampled_from((0, 0, 2)),
)


unchanged = st.builds(NotModified) | not_modified | st.just(NotModified(status_code=None, skip_reason="not requested"))


@law
@given(flagged_pages, unchanged, policies, times)
def test_A4_what_a_304_writes_is_all_that_was_decided(
    page: Page, seen: NotModified, policy: Policy, now: datetime
) -> None:
    """The short write of a page that was only checked, `check_page`, leaves the page that `decide` returned."""
    claim = Claim(crawl_id=CrawlId(1), page=page, run_id=RunId(1), domain="docs.test")
    after = decide(page, seen, policy, now)
    if after.outcome is Outcome.NOT_MODIFIED and only_checked(Visit(claim=claim, decision=after)):
        written = replace(page, checked_at=after.page.checked_at, observed_at=after.page.observed_at)
        rhythm = replace(page.rhythm, quiet=after.page.rhythm.quiet)
        assert after.page == replace(written, failures=0, gone_count=0, doomed_by=None, rhythm=rhythm)
