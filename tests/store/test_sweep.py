"""The end of a run: absence counts, proof deletes, moves wait for their target, history stays."""

from dataclasses import replace

import pytest
from tests.store.asking import search
from tests.store.desk import ROOT, Desk, at, read

from afresh.model.fetch import Failed, Gone, Moved, NotModified, Outcome, Seen
from afresh.model.filters import ALL_PAGES, PageFilter
from afresh.model.records import ChangeKind, ListedUrl, PageStatus, RunMode, RunState

SITE: dict[str, Seen] = {
    "": read("Root", "a", "b"),
    "a": read("Page a", "child"),
    "b": read("Page b"),
    "child": read("Child", "grandchild"),
    "grandchild": read("Grandchild"),
}
WITHOUT_A: dict[str, Seen] = {**SITE, "": read("Root, edited", "b")}


async def _looked(desk: Desk, site: dict[str, Seen]) -> None:
    """A run up to its sweep."""
    desk.clock.advance(60)
    await desk.begin(RunMode.REFRESH)
    await desk.enqueue("")
    await desk.store.queue.enqueue_known(desk.run, desk.limits, desk.clock())
    await desk.look(site)


async def _unreached(desk: Desk) -> list[str]:
    return sorted(page.url for page in await desk.store.pages.unreached(desk.source.id, ROOT, 20))


async def _missing(desk: Desk) -> dict[str, int]:
    pages = await desk.store.pages.of_source(desk.source.id)
    return {page.url: page.missing_count for page in pages if page.missing_count}


# ---- what is not reached


async def test_A16_pages_that_no_way_leads_to_are_unreached_with_all_behind_them(desk: Desk) -> None:
    """Even where they still answer 200, and even where they link to each other."""
    await desk.crawl(SITE)
    site = {**WITHOUT_A, "grandchild": read("Grandchild", "a")}
    await _looked(desk, site)
    assert await _unreached(desk) == [at("a"), at("child"), at("grandchild")]


async def test_a_page_that_the_source_lists_is_reached(desk: Desk) -> None:
    await desk.crawl(SITE)
    await _looked(desk, WITHOUT_A)
    await desk.store.listings.record(desk.source.id, [ListedUrl(at("child"))])
    assert await _unreached(desk) == [at("a")]
    await desk.store.listings.record(desk.source.id, [])
    assert await _unreached(desk) == [at("a"), at("child"), at("grandchild")]


async def test_a_link_that_may_not_be_followed_reaches_nothing(desk: Desk) -> None:
    await desk.crawl(SITE)
    await _looked(desk, {**SITE, "": read("Root, edited", "a", "b", nofollow=["a"])})
    assert at("a") in await _unreached(desk)


async def test_rules_that_no_longer_admit_a_link_close_its_way(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.store.links.judge(desk.source.id, lambda url, _: url != at("child"))
    assert await _unreached(desk) == [at("child"), at("grandchild")]
    await desk.store.links.judge(desk.source.id, lambda url, _: True)
    assert await _unreached(desk) == []


async def test_G2_an_unreached_page_goes_after_so_many_complete_runs(desk: Desk) -> None:
    await desk.crawl(SITE)
    for count in (1, 2):
        await desk.crawl({**WITHOUT_A, "": NotModified()} if count > 1 else WITHOUT_A)
        assert await _missing(desk) == {at("a"): count, at("child"): count, at("grandchild"): count}
        assert at("a") in await desk.urls()
    await desk.crawl({**WITHOUT_A, "": NotModified()})
    assert await desk.urls() == [at(""), at("b")]
    kinds = {(change.url, change.kind) for change in await desk.changes(run=desk.run.id)}
    assert kinds == {(at(path), ChangeKind.DELETED) for path in ("a", "child", "grandchild")}


async def test_C14_with_missing_after_one_it_goes_at_once(desk: Desk) -> None:
    await desk.crawl(SITE)
    desk.policy = replace(desk.policy, missing_after=1)
    await desk.crawl(WITHOUT_A)
    assert await desk.urls() == [at(""), at("b")]


async def test_G2_a_page_that_is_linked_again_starts_from_zero(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.crawl(WITHOUT_A)
    await desk.crawl({**SITE, "": read("Root, as it was", "a", "b")})
    assert await _missing(desk) == {}
    await desk.crawl(WITHOUT_A)
    assert set((await _missing(desk)).values()) == {1}


async def test_G2_a_run_that_says_nothing_about_absence_counts_nothing(desk: Desk) -> None:
    """A partial run skips the count; what it saw is not lost for the next complete one."""
    await desk.crawl(SITE)
    await _looked(desk, WITHOUT_A)
    await desk.finish(RunState.PARTIAL)
    assert await _missing(desk) == {}
    await desk.crawl({**WITHOUT_A, "": NotModified()})
    assert set(await _missing(desk)) == {at("a"), at("child"), at("grandchild")}


async def test_asking_twice_counts_nothing(desk: Desk) -> None:
    await desk.crawl(SITE)
    await _looked(desk, WITHOUT_A)
    assert await _unreached(desk) == await _unreached(desk)
    assert await _missing(desk) == {}


async def test_a_page_behind_one_that_is_gone_is_unreached_in_the_same_run(desk: Desk) -> None:
    """The page that linked to it answers 404 now; nothing else changed."""
    await desk.crawl(SITE)
    await desk.crawl(SITE)
    unchanged: dict[str, Seen] = dict.fromkeys(SITE, NotModified())
    await _looked(desk, {**unchanged, "a": Gone()})
    assert await _unreached(desk) == [at("child"), at("grandchild")]


async def test_A16_a_page_behind_one_that_came_back_is_reached_again(desk: Desk) -> None:
    """A bad deploy that the brake held is taken back: nothing behind it may go on being missed."""
    await desk.crawl(SITE)
    await _looked(desk, {**SITE, "a": Gone(), "b": read("Page b, edited", "elsewhere")})
    missed = await desk.store.pages.unreached(desk.source.id, ROOT, 20)
    assert at("child") in {page.url for page in missed}
    await desk.finish(RunState.NEEDS_CONFIRMATION, missing=await desk.missing())
    await _looked(desk, dict.fromkeys(SITE, NotModified()))
    assert await _unreached(desk) == []


async def test_a_page_that_was_dropped_and_came_back_has_not_been_missed(desk: Desk) -> None:
    await desk.crawl(SITE)
    desk.policy = replace(desk.policy, missing_after=1)
    await desk.crawl(WITHOUT_A)
    await _looked(desk, {**SITE, "": read("Root again", "a", "b")})
    page = await desk.page("a")
    assert (page.status, page.missing_count) == (PageStatus.ACTIVE, 0)


async def test_A14_a_page_that_lies_too_deep_for_the_rules_is_not_reached(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.store.links.judge(desk.source.id, lambda url, _: True)
    pages = await desk.store.pages.unreached(desk.source.id, ROOT, 1)
    assert sorted(page.url for page in pages) == [at("child"), at("grandchild")]


# ---- what is to go


async def test_A7_F37_a_page_that_is_gone_is_doomed_and_stays_until_it_is_dropped(desk: Desk) -> None:
    """In between the brake can hold it, so it is still found."""
    await desk.crawl(SITE)
    await _looked(desk, {**SITE, "b": Gone()})
    [(page, target)] = await desk.store.pages.doomed(desk.source.id)
    assert (page.url, page.doomed_by, target) == (at("b"), desk.run.id, None)
    assert await desk.store.pages.live_count(desk.source.id) == 5
    assert [hit.url for hit in await search(desk.store, "page b")][:1] == [at("b")]
    await desk.finish(dropped=[page])
    assert await desk.store.pages.live_count(desk.source.id) == 4
    assert await desk.store.pages.doomed(desk.source.id) == []
    assert at("b") not in [hit.url for hit in await search(desk.store, "page b")]


async def test_F36_a_doomed_page_that_answers_again_is_spared(desk: Desk) -> None:
    await desk.crawl(SITE)
    await _looked(desk, {**SITE, "b": Gone()})
    await desk.finish(RunState.NEEDS_CONFIRMATION)
    await _looked(desk, {**SITE, "b": NotModified()})
    assert await desk.store.pages.doomed(desk.source.id) == []


async def test_an_outage_spares_nobody_and_dooms_nobody(desk: Desk) -> None:
    await desk.crawl(SITE)
    down = Failed(outcome=Outcome.BLOCKED_5XX, reason="503", status_code=503)
    await _looked(desk, dict.fromkeys(SITE, down))
    assert await desk.store.pages.doomed(desk.source.id) == []
    assert len(await desk.urls()) == 5


async def test_G3_a_dropped_page_keeps_its_history(desk: Desk) -> None:
    await desk.crawl(SITE)
    before = await desk.page("b")
    await desk.crawl({**SITE, "b": Gone(status_code=410)})
    after = await desk.page("b")
    assert after.id == before.id
    assert after.status is PageStatus.DELETED
    assert (after.content_hash, after.links_hash, after.recipe, after.doomed_by) == (None, None, None, None)
    assert not after.validators
    assert after.changed_at == desk.clock()
    rows = await desk.attempts("b")
    assert [row.outcome for row in rows] == [Outcome.SUCCESS, Outcome.GONE]
    assert {(row.page_id, row.url) for row in rows} == {(before.id, at("b"))}
    assert [each.id for each in await desk.store.history.of_url(at("b"))] == [row.id for row in rows[::-1]]
    [change] = await desk.changes(run=desk.run.id)
    assert (change.kind, change.old_hash, change.new_hash) == (ChangeKind.DELETED, before.content_hash, None)


async def test_a_dropped_page_is_left_out_of_lists_unless_asked_for(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.crawl({**SITE, "b": Gone()})
    assert at("b") not in [page.url for page in await desk.store.pages.of_source(desk.source.id)]
    assert at("b") in [page.url for page in await desk.store.pages.of_source(desk.source.id, ALL_PAGES)]
    [gone] = await desk.store.pages.of_source(desk.source.id, PageFilter(status=PageStatus.DELETED))
    assert gone.url == at("b")


async def test_a_page_dropped_for_absence_is_not_looked_at_again_by_itself(desk: Desk) -> None:
    await desk.crawl(SITE)
    desk.policy = replace(desk.policy, missing_after=1)
    await desk.crawl(WITHOUT_A)
    [*_, last] = await desk.attempts("a")
    assert (last.outcome, last.completed_at) == (Outcome.CANCELLED, desk.clock())
    desk.clock.advance(days=30)
    await desk.begin(RunMode.DUE)
    await desk.store.queue.enqueue_due(desk.run, desk.limits, desk.clock())
    assert at("a") not in {claim.page.url for claim in await desk.claim()}


async def test_F36_a_dropped_page_that_comes_back_is_new_under_its_old_number(desk: Desk) -> None:
    await desk.crawl(SITE)
    before = await desk.page("b")
    await desk.crawl({**SITE, "b": Gone()})
    await desk.crawl(SITE)
    after = await desk.page("b")
    assert (after.id, after.status, after.content_hash) == (before.id, PageStatus.ACTIVE, before.content_hash)
    [change] = await desk.changes(run=desk.run.id)
    assert change.kind is ChangeKind.NEW


# ---- what moved


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (read("Page a"), PageStatus.ACTIVE),
        (Failed(outcome=Outcome.TIMEOUT, reason="no answer"), PageStatus.ERROR),
        (Gone(), PageStatus.DELETED),
        (Moved(to=at("b")), PageStatus.ACTIVE),
        (Moved(to=at("a")), PageStatus.PENDING),
    ],
    ids=["active", "error", "deleted", "moved on", "in circles"],
)
async def test_G12_the_fate_of_a_moved_page_is_that_of_where_its_moves_end(
    desk: Desk, target: Seen, status: PageStatus | None
) -> None:
    await desk.crawl(SITE)
    await _looked(desk, {**SITE, "a": Moved(to=at("a2")), "a2": target})
    [(page, found)] = await desk.store.pages.doomed(desk.source.id)
    assert (page.url, page.moved_to, found) == (at("a"), at("a2"), status)


async def test_a_page_that_moved_out_of_the_source_has_no_target(desk: Desk) -> None:
    await desk.crawl(SITE)
    await _looked(desk, {**SITE, "a": Moved(to="https://elsewhere.example/")})
    assert [(page.url, target) for page, target in await desk.store.pages.doomed(desk.source.id)] == [
        (at("a"), None)
    ]


async def test_what_lies_behind_a_moved_page_is_reached_by_its_new_address(desk: Desk) -> None:
    await desk.crawl(SITE)
    site = {**SITE, "a": Moved(to=at("a2")), "a2": read("Page a", "child")}
    await desk.crawl(site)
    assert await _missing(desk) == {}
    assert await desk.urls() == [at(path) for path in ("", "a2", "b", "child", "grandchild")]
    await desk.crawl(site)
    assert await _missing(desk) == {}
    [old] = await desk.store.pages.of_source(desk.source.id, PageFilter(status=PageStatus.REDIRECT))
    assert (old.url, old.moved_to) == (at("a"), at("a2"))


async def test_U4_redirects_are_listed_on_request_only(desk: Desk) -> None:
    await desk.crawl(SITE)
    await desk.crawl({**SITE, "a": Moved(to=at("a2")), "a2": read("Page a", "child")})
    sources = [desk.source.id]
    for which, listed in ((PageFilter(), False), (ALL_PAGES, True)):
        assert (
            at("a") in {view.url for view in await desk.store.pages.of_source(desk.source.id, which)}
        ) is listed
        found = await desk.store.pages.records(sources, which, limit=100)
        assert (at("a") in {view.url for view in found}) is listed
        held = await desk.store.copies.pages_by_state(["out"], sources, which, after=0, limit=100)
        assert (at("a") in {view.url for view in held}) is listed


async def test_G12_the_address_that_moved_is_asked_again(desk: Desk) -> None:
    await desk.crawl(SITE)
    site = {**SITE, "a": Moved(to=at("a2")), "a2": read("Page a", "child")}
    await desk.crawl(site)
    assert at("a") in await desk.crawl(site)
    await desk.crawl({**site, "a": read("Page a is back", "child")})
    back = await desk.page("a")
    assert (back.status, back.moved_to) == (PageStatus.ACTIVE, None)


async def test_an_address_that_moved_and_that_nothing_links_to_rests(desk: Desk) -> None:
    await desk.crawl(SITE)
    site = {
        **SITE,
        "": read("Root, edited", "a2", "b"),
        "a": Moved(to=at("a2")),
        "a2": read("Page a", "child"),
    }
    await desk.crawl(site)
    assert at("a") not in await desk.crawl(site)
    assert (await desk.page("a")).status is PageStatus.REDIRECT


# ---- the root


async def test_the_root_and_its_last_finished_attempt(desk: Desk) -> None:
    assert await desk.store.history.root_attempt(desk.source.id, ROOT) == (None, None)
    await desk.begin()
    await desk.enqueue("")
    page, attempt = await desk.store.history.root_attempt(desk.source.id, ROOT)
    assert page is not None
    assert (page.url, attempt) == (ROOT, None)
    await desk.look({"": Failed(outcome=Outcome.TIMEOUT, reason="no answer")})
    _, attempt = await desk.store.history.root_attempt(desk.source.id, ROOT)
    assert attempt is not None
    assert attempt.outcome is Outcome.TIMEOUT
