"""The end of a run: absence counts, proof deletes, moves wait for their target, history stays."""

from dataclasses import replace

import pytest
from tests.store.asking import search
from tests.store.crawler import ROOT, ManualCrawler, at, read

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


async def _looked(crawler: ManualCrawler, site: dict[str, Seen]) -> None:
    """A run up to its sweep."""
    crawler.clock.advance(60)
    await crawler.begin(RunMode.REFRESH)
    await crawler.enqueue("")
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    await crawler.look(site)


async def _unreached(crawler: ManualCrawler) -> list[str]:
    return sorted(page.url for page in await crawler.store.pages.unreached(crawler.source.id, ROOT, 20))


async def _missing(crawler: ManualCrawler) -> dict[str, int]:
    pages = await crawler.store.pages.of_source(crawler.source.id)
    return {page.url: page.missing_count for page in pages if page.missing_count}


# ---- what is not reached


async def test_A16_pages_that_no_way_leads_to_are_unreached_with_all_behind_them(crawler: ManualCrawler) -> None:
    """Even where they still answer 200, and even where they link to each other."""
    await crawler.crawl(SITE)
    site = {**WITHOUT_A, "grandchild": read("Grandchild", "a")}
    await _looked(crawler, site)
    assert await _unreached(crawler) == [at("a"), at("child"), at("grandchild")]


async def test_a_page_that_the_source_lists_is_reached(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await _looked(crawler, WITHOUT_A)
    await crawler.store.listings.record(crawler.source.id, [ListedUrl(at("child"))])
    assert await _unreached(crawler) == [at("a")]
    await crawler.store.listings.record(crawler.source.id, [])
    assert await _unreached(crawler) == [at("a"), at("child"), at("grandchild")]


async def test_a_link_that_may_not_be_followed_reaches_nothing(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await _looked(crawler, {**SITE, "": read("Root, edited", "a", "b", nofollow=["a"])})
    assert at("a") in await _unreached(crawler)


async def test_rules_that_no_longer_admit_a_link_close_its_way(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.store.links.judge(crawler.source.id, lambda url, _: url != at("child"))
    assert await _unreached(crawler) == [at("child"), at("grandchild")]
    await crawler.store.links.judge(crawler.source.id, lambda url, _: True)
    assert await _unreached(crawler) == []


async def test_G2_an_unreached_page_goes_after_so_many_complete_runs(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    for count in (1, 2):
        await crawler.crawl({**WITHOUT_A, "": NotModified()} if count > 1 else WITHOUT_A)
        assert await _missing(crawler) == {at("a"): count, at("child"): count, at("grandchild"): count}
        assert at("a") in await crawler.urls()
    await crawler.crawl({**WITHOUT_A, "": NotModified()})
    assert await crawler.urls() == [at(""), at("b")]
    kinds = {(change.url, change.kind) for change in await crawler.changes(run=crawler.run.id)}
    assert kinds == {(at(path), ChangeKind.DELETED) for path in ("a", "child", "grandchild")}


async def test_C14_with_missing_after_one_it_goes_at_once(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    crawler.policy = replace(crawler.policy, missing_after=1)
    await crawler.crawl(WITHOUT_A)
    assert await crawler.urls() == [at(""), at("b")]


async def test_G2_a_page_that_is_linked_again_starts_from_zero(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.crawl(WITHOUT_A)
    await crawler.crawl({**SITE, "": read("Root, as it was", "a", "b")})
    assert await _missing(crawler) == {}
    await crawler.crawl(WITHOUT_A)
    assert set((await _missing(crawler)).values()) == {1}


async def test_G2_a_run_that_says_nothing_about_absence_counts_nothing(crawler: ManualCrawler) -> None:
    """A partial run skips the count; what it saw is not lost for the next complete one."""
    await crawler.crawl(SITE)
    await _looked(crawler, WITHOUT_A)
    await crawler.finish(RunState.PARTIAL)
    assert await _missing(crawler) == {}
    await crawler.crawl({**WITHOUT_A, "": NotModified()})
    assert set(await _missing(crawler)) == {at("a"), at("child"), at("grandchild")}


async def test_asking_twice_counts_nothing(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await _looked(crawler, WITHOUT_A)
    assert await _unreached(crawler) == await _unreached(crawler)
    assert await _missing(crawler) == {}


async def test_a_page_behind_one_that_is_gone_is_unreached_in_the_same_run(crawler: ManualCrawler) -> None:
    """The page that linked to it answers 404 now; nothing else changed."""
    await crawler.crawl(SITE)
    await crawler.crawl(SITE)
    unchanged: dict[str, Seen] = dict.fromkeys(SITE, NotModified())
    await _looked(crawler, {**unchanged, "a": Gone()})
    assert await _unreached(crawler) == [at("child"), at("grandchild")]


async def test_A16_a_page_behind_one_that_came_back_is_reached_again(crawler: ManualCrawler) -> None:
    """A bad deploy that the brake held is taken back: nothing behind it may go on being missed."""
    await crawler.crawl(SITE)
    await _looked(crawler, {**SITE, "a": Gone(), "b": read("Page b, edited", "elsewhere")})
    missed = await crawler.store.pages.unreached(crawler.source.id, ROOT, 20)
    assert at("child") in {page.url for page in missed}
    await crawler.finish(RunState.NEEDS_CONFIRMATION, missing=await crawler.missing())
    await _looked(crawler, dict.fromkeys(SITE, NotModified()))
    assert await _unreached(crawler) == []


async def test_a_page_that_was_dropped_and_came_back_has_not_been_missed(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    crawler.policy = replace(crawler.policy, missing_after=1)
    await crawler.crawl(WITHOUT_A)
    await _looked(crawler, {**SITE, "": read("Root again", "a", "b")})
    page = await crawler.page("a")
    assert (page.status, page.missing_count) == (PageStatus.ACTIVE, 0)


async def test_A14_a_page_that_lies_too_deep_for_the_rules_is_not_reached(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.store.links.judge(crawler.source.id, lambda url, _: True)
    pages = await crawler.store.pages.unreached(crawler.source.id, ROOT, 1)
    assert sorted(page.url for page in pages) == [at("child"), at("grandchild")]


# ---- what is to go


async def test_A7_F37_a_page_that_is_gone_is_doomed_and_stays_until_it_is_dropped(crawler: ManualCrawler) -> None:
    """In between the brake can hold it, so it is still found."""
    await crawler.crawl(SITE)
    await _looked(crawler, {**SITE, "b": Gone()})
    [(page, target)] = await crawler.store.pages.doomed(crawler.source.id)
    assert (page.url, page.doomed_by, target) == (at("b"), crawler.run.id, None)
    assert await crawler.store.pages.live_count(crawler.source.id) == 5
    assert [hit.url for hit in await search(crawler.store, "page b")][:1] == [at("b")]
    await crawler.finish(dropped=[page])
    assert await crawler.store.pages.live_count(crawler.source.id) == 4
    assert await crawler.store.pages.doomed(crawler.source.id) == []
    assert at("b") not in [hit.url for hit in await search(crawler.store, "page b")]


async def test_F36_a_doomed_page_that_answers_again_is_spared(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await _looked(crawler, {**SITE, "b": Gone()})
    await crawler.finish(RunState.NEEDS_CONFIRMATION)
    await _looked(crawler, {**SITE, "b": NotModified()})
    assert await crawler.store.pages.doomed(crawler.source.id) == []


async def test_an_outage_spares_nobody_and_dooms_nobody(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    down = Failed(outcome=Outcome.BLOCKED_5XX, reason="503", status_code=503)
    await _looked(crawler, dict.fromkeys(SITE, down))
    assert await crawler.store.pages.doomed(crawler.source.id) == []
    assert len(await crawler.urls()) == 5


async def test_G3_a_dropped_page_keeps_its_history(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    before = await crawler.page("b")
    await crawler.crawl({**SITE, "b": Gone(status_code=410)})
    after = await crawler.page("b")
    assert after.id == before.id
    assert after.status is PageStatus.DELETED
    assert (after.content_hash, after.links_hash, after.recipe, after.doomed_by) == (None, None, None, None)
    assert not after.validators
    assert after.changed_at == crawler.clock()
    rows = await crawler.attempts("b")
    assert [row.outcome for row in rows] == [Outcome.SUCCESS, Outcome.GONE]
    assert {(row.page_id, row.url) for row in rows} == {(before.id, at("b"))}
    assert [each.id for each in await crawler.store.history.of_url(at("b"))] == [row.id for row in rows[::-1]]
    [change] = await crawler.changes(run=crawler.run.id)
    assert (change.kind, change.old_hash, change.new_hash) == (ChangeKind.DELETED, before.content_hash, None)


async def test_a_dropped_page_is_left_out_of_lists_unless_asked_for(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.crawl({**SITE, "b": Gone()})
    assert at("b") not in [page.url for page in await crawler.store.pages.of_source(crawler.source.id)]
    assert at("b") in [page.url for page in await crawler.store.pages.of_source(crawler.source.id, ALL_PAGES)]
    [gone] = await crawler.store.pages.of_source(crawler.source.id, PageFilter(status=PageStatus.DELETED))
    assert gone.url == at("b")


async def test_a_page_dropped_for_absence_is_not_looked_at_again_by_itself(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    crawler.policy = replace(crawler.policy, missing_after=1)
    await crawler.crawl(WITHOUT_A)
    [*_, last] = await crawler.attempts("a")
    assert (last.outcome, last.completed_at) == (Outcome.CANCELLED, crawler.clock())
    crawler.clock.advance(days=30)
    await crawler.begin(RunMode.DUE)
    await crawler.store.queue.enqueue_due(crawler.run, crawler.limits, crawler.clock())
    assert at("a") not in {claim.page.url for claim in await crawler.claim()}


async def test_F36_a_dropped_page_that_comes_back_is_new_under_its_old_number(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    before = await crawler.page("b")
    await crawler.crawl({**SITE, "b": Gone()})
    await crawler.crawl(SITE)
    after = await crawler.page("b")
    assert (after.id, after.status, after.content_hash) == (before.id, PageStatus.ACTIVE, before.content_hash)
    [change] = await crawler.changes(run=crawler.run.id)
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
    crawler: ManualCrawler, target: Seen, status: PageStatus | None
) -> None:
    await crawler.crawl(SITE)
    await _looked(crawler, {**SITE, "a": Moved(to=at("a2")), "a2": target})
    [(page, found)] = await crawler.store.pages.doomed(crawler.source.id)
    assert (page.url, page.moved_to, found) == (at("a"), at("a2"), status)


async def test_a_page_that_moved_out_of_the_source_has_no_target(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await _looked(crawler, {**SITE, "a": Moved(to="https://elsewhere.example/")})
    assert [(page.url, target) for page, target in await crawler.store.pages.doomed(crawler.source.id)] == [
        (at("a"), None)
    ]


async def test_what_lies_behind_a_moved_page_is_reached_by_its_new_address(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    site = {**SITE, "a": Moved(to=at("a2")), "a2": read("Page a", "child")}
    await crawler.crawl(site)
    assert await _missing(crawler) == {}
    assert await crawler.urls() == [at(path) for path in ("", "a2", "b", "child", "grandchild")]
    await crawler.crawl(site)
    assert await _missing(crawler) == {}
    [old] = await crawler.store.pages.of_source(crawler.source.id, PageFilter(status=PageStatus.REDIRECT))
    assert (old.url, old.moved_to) == (at("a"), at("a2"))


async def test_U4_redirects_are_listed_on_request_only(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.crawl({**SITE, "a": Moved(to=at("a2")), "a2": read("Page a", "child")})
    sources = [crawler.source.id]
    for which, listed in ((PageFilter(), False), (ALL_PAGES, True)):
        assert (
            at("a") in {view.url for view in await crawler.store.pages.of_source(crawler.source.id, which)}
        ) is listed
        found = await crawler.store.pages.records(sources, which, limit=100)
        assert (at("a") in {view.url for view in found}) is listed
        held = await crawler.store.copies.pages_by_state(["out"], sources, which, after=0, limit=100)
        assert (at("a") in {view.url for view in held}) is listed


async def test_G12_the_address_that_moved_is_asked_again(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    site = {**SITE, "a": Moved(to=at("a2")), "a2": read("Page a", "child")}
    await crawler.crawl(site)
    assert at("a") in await crawler.crawl(site)
    await crawler.crawl({**site, "a": read("Page a is back", "child")})
    back = await crawler.page("a")
    assert (back.status, back.moved_to) == (PageStatus.ACTIVE, None)


async def test_an_address_that_moved_and_that_nothing_links_to_rests(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    site = {**SITE, "": read("Root, edited", "a2", "b"), "a": Moved(to=at("a2")), "a2": read("Page a", "child")}
    await crawler.crawl(site)
    assert at("a") not in await crawler.crawl(site)
    assert (await crawler.page("a")).status is PageStatus.REDIRECT


# ---- the root


async def test_the_root_and_its_last_finished_attempt(crawler: ManualCrawler) -> None:
    assert await crawler.store.history.root_attempt(crawler.source.id, ROOT) == (None, None)
    await crawler.begin()
    await crawler.enqueue("")
    page, attempt = await crawler.store.history.root_attempt(crawler.source.id, ROOT)
    assert page is not None
    assert (page.url, attempt) == (ROOT, None)
    await crawler.look({"": Failed(outcome=Outcome.TIMEOUT, reason="no answer")})
    _, attempt = await crawler.store.history.root_attempt(crawler.source.id, ROOT)
    assert attempt is not None
    assert attempt.outcome is Outcome.TIMEOUT
