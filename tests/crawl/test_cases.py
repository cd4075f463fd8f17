"""One example per row of the case table in DESIGN §3, named after the requirement it shows."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.strategies import NOON

from afresh.crawl.decide import decide, request_for
from afresh.model.fetch import Document, Failed, Gone, Moved, NotModified, Outcome, ReadDocument, Refused, Validators
from afresh.model.records import ContentAction, LinkAction, Page, PageId, PageStatus, Policy, RunId, SourceId

A, B = "a" * 64, "b" * 64
POLICY = Policy(recipe="r1", recheck_seconds=3600.0, backoff_base_seconds=60.0, backoff_max_seconds=600.0)
ETAG = Validators(etag='"v1"', last_modified="Sat, 29 Oct 1994 19:43:31 GMT")
NEW_PAGE = Page(id=PageId(1), source_id=SourceId(1), url="https://docs.test/a", depth=2)
LATER = NOON + timedelta(hours=1)


def a_read(content: str = A, links: str = A, held: Validators = ETAG) -> ReadDocument:
    document = Document(title="T", markdown="# T", language="en", content_hash=content, links_hash=links)
    return ReadDocument(document=document, validators=held, media_type="text/html")


LIVE = decide(NEW_PAGE, a_read(), POLICY, NOON).page


def test_A1_first_crawl_replaces_and_follows_new_links() -> None:
    decision = decide(NEW_PAGE, a_read(), POLICY, NOON)
    assert (decision.content, decision.follow, decision.outcome) == (
        ContentAction.REPLACE,
        LinkAction.NEW,
        Outcome.SUCCESS,
    )
    assert (LIVE.status, LIVE.content_hash, LIVE.validators, LIVE.depth) == (PageStatus.ACTIVE, A, ETAG, 2)
    assert (decision.next_at, decision.reason) == (LATER, "200, first content")


def test_A4_A12_304_makes_nothing_and_follows_stored_links() -> None:
    decision = decide(LIVE, NotModified(), POLICY, LATER)
    assert (decision.content, decision.follow) == (ContentAction.KEEP, LinkAction.STORED)
    assert decision.page == replace(LIVE, checked_at=LATER, observed_at=LATER, rhythm=decision.page.rhythm)
    assert decision.reason == '304 by ETag "v1"'


def test_A18_same_size_and_mtime_of_a_file_is_not_modified_and_an_edit_is_a_change() -> None:
    stat = Validators(size=3, mtime_ns=0)
    page = replace(LIVE, validators=stat)
    assert request_for(page, POLICY, LATER).validators == stat
    same = decide(page, NotModified(status_code=None), POLICY, LATER)
    assert (same.content, same.reason) == (ContentAction.KEEP, "same size and modification time")
    edited = decide(page, a_read(B, A, Validators(size=4, mtime_ns=1)), POLICY, LATER)
    assert (edited.content, edited.page.validators.size) == (ContentAction.REPLACE, 4)


def test_F46_200_with_the_same_hash_keeps_content_and_takes_the_new_validators() -> None:
    decision = decide(LIVE, a_read(held=Validators(etag='"v2"')), POLICY, LATER)
    assert (decision.content, decision.follow) == (ContentAction.KEEP, LinkAction.STORED)
    assert (decision.page.validators, decision.page.changed_at) == (Validators(etag='"v2"'), NOON)
    assert decision.reason == "200, same content hash " + A[:12]


def test_A5_F44_200_with_another_hash_replaces_even_under_the_same_etag() -> None:
    decision = decide(LIVE, a_read(B, B), POLICY, LATER)
    assert (decision.content, decision.follow) == (ContentAction.REPLACE, LinkAction.NEW)
    assert (decision.page.id, decision.page.content_hash, decision.page.changed_at) == (LIVE.id, B, LATER)
    assert decision.reason == f"200, content hash changed from {A[:12]} to {B[:12]}"


def test_another_recipe_makes_the_page_again_although_its_hash_is_the_same() -> None:
    policy = replace(POLICY, recipe="r2")
    assert request_for(LIVE, policy, LATER).validators is None
    assert decide(LIVE, a_read(), policy, LATER).content is ContentAction.REPLACE


@pytest.mark.parametrize("code", [404, 410])
def test_A7_F37_F38_404_and_410_drop_at_once(code: int) -> None:
    decision = decide(LIVE, Gone(status_code=code), POLICY, LATER)
    assert (decision.content, decision.follow, decision.next_at) == (ContentAction.DROP, LinkAction.NONE, None)
    assert (decision.page.content_hash, decision.reason) == (A, str(code))  # the sweep takes it, not the look


def test_F36_flapping_404_never_deletes_with_gone_after_3() -> None:
    policy, page = replace(POLICY, gone_after=3), LIVE
    for _ in range(3):
        for seen in (Gone(), Gone(), a_read()):
            decision = decide(page, seen, policy, LATER)
            assert decision.content is ContentAction.KEEP
            page = decision.page


@pytest.mark.parametrize(
    ("seen", "pause"),
    [
        (Failed(outcome=Outcome.TIMEOUT, reason="timed out"), 60),
        (Failed(outcome=Outcome.BLOCKED_5XX, reason="503", status_code=503), 60),
        (Failed(outcome=Outcome.BLOCKED_4XX, reason="429", status_code=429, retry_after=900.0), 900),
    ],
)
def test_F32_G5_timeout_5xx_and_429_keep_and_back_off(seen: Failed, pause: int) -> None:
    decision = decide(LIVE, seen, POLICY, LATER)
    assert (decision.content, decision.outcome, decision.retry) == (ContentAction.KEEP, seen.outcome, True)
    assert decision.next_at == LATER + timedelta(seconds=pause)
    assert (decision.status_code, decision.error_message) == (seen.status_code, seen.reason)


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (Refused(outcome=Outcome.BLOCKED_ROBOTS, reason="robots.txt line 12"), "not fetched: robots.txt line 12"),
        (Refused(outcome=Outcome.BLOCKED_4XX, reason="403 Forbidden", status_code=403), "403 Forbidden"),
    ],
)
def test_F41_robots_401_and_403_keep_and_are_reported(seen: Refused, reason: str) -> None:
    decision = decide(LIVE, seen, POLICY, LATER)
    assert (decision.content, decision.outcome, decision.retry) == (ContentAction.KEEP, seen.outcome, False)
    assert (decision.reason, decision.error_message, decision.next_at) == (
        reason,
        seen.reason,
        LATER + timedelta(hours=1),
    )


def test_G13_embedder_down_keeps_old_content_and_old_validators() -> None:
    down = Failed(outcome=Outcome.FAILED, reason="the embedder could not be reached")
    after = decide(LIVE, down, POLICY, LATER).page
    assert (after.content_hash, after.validators, after.status) == (A, ETAG, PageStatus.ACTIVE)
    assert decide(after, a_read(B), POLICY, LATER).content is ContentAction.REPLACE


def test_G12_a_permanent_redirect_points_to_the_new_address() -> None:
    decision = decide(replace(LIVE, doomed_by=RunId(4)), Moved(to="https://docs.test/b"), POLICY, LATER)
    assert (decision.content, decision.page.moved_to) == (ContentAction.DROP, "https://docs.test/b")
    assert (decision.page.content_hash, decision.page.doomed_by) == (A, RunId(4))


@pytest.mark.parametrize(("page", "status"), [(NEW_PAGE, PageStatus.DELETED), (LIVE, PageStatus.ACTIVE)])
def test_noindex_drops_content_forgets_validators_and_still_follows_links(page: Page, status: PageStatus) -> None:
    """A page that asks to be left out leaves with the sweep; its links count, and it is asked in full."""
    seen = replace(a_read(B), document=replace(a_read(B).document, index=False))
    decision = decide(page, seen, POLICY, LATER)
    assert (decision.content, decision.follow) == (ContentAction.DROP, LinkAction.NEW)
    assert (decision.page.status, decision.page.content_hash) == (status, page.content_hash)
    assert request_for(decision.page, POLICY, LATER).validators is None


def test_G10_a_language_once_known_is_not_overruled_by_new_content() -> None:
    page = replace(LIVE, language="de")
    assert decide(page, a_read(B), POLICY, LATER).page.language == "de"
    assert LIVE.language == "en"
