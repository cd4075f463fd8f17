"""The history is the queue: what is put in, once, within the limits, and with which depth."""

from dataclasses import replace

import pytest
from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.model.fetch import NotModified, Outcome
from afresh.model.records import ListedUrl, PageStatus, RunLimits, RunMode

SITE = {"": read("Root", "a", "b"), "a": read("Page a", "c"), "b": read("Page b"), "c": read("Page c")}


async def test_B1_B12_a_discovered_page_is_an_open_row(crawler: ManualCrawler) -> None:
    """discovered → pending → in flight → done, told by the columns of one row."""
    await crawler.begin()
    assert await crawler.enqueue("a") == 1
    assert (await crawler.page("a")).status is PageStatus.PENDING
    [row] = await crawler.attempts("a")
    assert (row.outcome, row.locked_at, row.completed_at) == (None, None, None)
    assert (row.domain, row.priority, row.url) == ("docs.example.org", 0, at("a"))
    assert row.scheduled_for == row.created_at == row.updated_at == crawler.clock()

    locked_at = crawler.clock.advance(1)
    [claim] = await crawler.claim()
    [row] = await crawler.attempts("a")
    assert (row.locked_at, row.locked_by, row.outcome) == (locked_at, "w1", None)

    done_at = crawler.clock.advance(1)
    await crawler.commit(crawler.visit(claim, read("Page a")))
    row, following = await crawler.attempts("a")
    assert (row.completed_at, row.outcome, row.status_code) == (done_at, Outcome.SUCCESS, 200)
    assert (row.locked_at, row.locked_by) == (None, None)
    assert following.outcome is None


async def test_B16_the_domain_is_set_when_the_row_is_made(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("https://other.example.org:8443/x")
    [row] = await crawler.store.history.of_url("https://other.example.org:8443/x")
    assert row.domain == "other.example.org:8443"


async def test_B19_times_are_aware(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    [page, *_] = await crawler.store.pages.of_source(crawler.source.id)
    [row, *_] = await crawler.attempts("")
    times = (page.checked_at, page.changed_at, page.crawl_time, row.created_at, row.completed_at)
    assert all(time is not None and time.utcoffset() is not None for time in times)


async def test_A13_the_root_is_in_the_queue_once(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "", "a"), "a": read("Page a", "")})
    await crawler.begin(RunMode.REFRESH)
    assert await crawler.enqueue("") == 1
    assert await crawler.enqueue("", "") == 0
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    assert [claim.page.url for claim in await crawler.claim()].count(ROOT) == 1


async def test_A21_an_address_is_visited_once_per_run(crawler: ManualCrawler) -> None:
    """However many pages link to it, in whatever batches they are committed."""
    everywhere = ("", "a", "b", "c")
    site = {path: read(f"Page {path}", *everywhere) for path in everywhere}
    await crawler.begin()
    await crawler.enqueue("")
    seen = await crawler.look(site, batch=1)
    assert sorted(seen) == sorted(at(path) for path in everywhere)
    assert await crawler.enqueue(*everywhere) == 0
    assert (await crawler.reload()).queued == 4


async def test_A2_A11_a_refresh_starts_from_every_known_page_and_the_root(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.begin(RunMode.REFRESH)
    await crawler.enqueue("")
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    assert {claim.page.url for claim in await crawler.claim()} == {at(path) for path in SITE}


async def test_B15_the_links_of_a_page_are_queued_when_it_is_committed(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("")
    [claim] = await crawler.claim()
    await crawler.commit(crawler.visit(claim, read("Root", "a", "b", "https://elsewhere.example/x", nofollow=["b"])))
    assert [each.page.url for each in await crawler.claim()] == [at("a")]


async def test_filling_the_queue_again_counts_no_page_twice(crawler: ManualCrawler) -> None:
    """A run that is resumed is filled again; what it had queued already must not eat up `max_pages`."""
    await crawler.crawl(SITE)
    await crawler.begin(RunMode.REFRESH)
    for _ in range(3):
        await crawler.enqueue("")
        await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    assert (await crawler.reload()).queued == len(SITE)


async def test_due_pages_are_counted_once(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    crawler.clock.advance(days=2)
    await crawler.begin(RunMode.DUE)
    await crawler.store.queue.enqueue_due(crawler.run, crawler.limits, crawler.clock())
    await crawler.store.queue.enqueue_due(crawler.run, crawler.limits, crawler.clock())
    assert (await crawler.reload()).queued == len(SITE)
    assert len(await crawler.claim()) == len(SITE)


async def test_A28_only_what_is_due_is_queued(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    crawler.clock.advance(hours=12)
    await crawler.begin(RunMode.DUE)
    await crawler.enqueue("new")
    await crawler.look({"new": read("New")})
    await crawler.finish()
    crawler.clock.advance(hours=13)
    await crawler.begin(RunMode.DUE)
    await crawler.store.queue.enqueue_due(crawler.run, crawler.limits, crawler.clock())
    assert {claim.page.url for claim in await crawler.claim()} == {at(path) for path in SITE}


async def test_an_address_listed_twice_has_its_smaller_depth(crawler: ManualCrawler) -> None:
    await crawler.begin()
    twice = [ListedUrl(at("a"), 3), ListedUrl(at("a"), 1), ListedUrl(at("a"), 2)]
    assert await crawler.store.queue.enqueue(crawler.run, twice, crawler.limits, crawler.clock()) == 1
    assert (await crawler.page("a")).depth == 1


# ---- limits


async def test_P13_max_pages_keeps_the_first_that_were_listed(crawler: ManualCrawler) -> None:
    crawler.limits = RunLimits(max_pages=3, max_depth=20)
    await crawler.begin()
    assert await crawler.enqueue("", "a", "b", "c", "d") == 3
    assert {claim.page.url for claim in await crawler.claim()} == {at(""), at("a"), at("b")}
    assert await crawler.store.links.frontier_is_open(crawler.source.id, "") == (True, False)


async def test_P13_max_pages_holds_over_the_commits_of_a_run(crawler: ManualCrawler) -> None:
    crawler.limits = RunLimits(max_pages=5, max_depth=20)
    await crawler.begin()
    await crawler.enqueue("")
    chain = {"": read("Root", *(f"p{n}" for n in range(9)))}
    seen = await crawler.look({**chain, **{f"p{n}": read(f"Page {n}", f"q{n}") for n in range(9)}}, batch=2)
    assert seen == [at(""), *(at(f"p{n}") for n in range(4))]
    frontier = await crawler.store.queue.frontier(crawler.source.id)
    assert {item.url for item in frontier} == {at(f"p{n}") for n in range(4, 9)} | {at(f"q{n}") for n in range(4)}


async def test_max_pages_does_not_shut_out_pages_that_are_known(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    crawler.limits = RunLimits(max_pages=2, max_depth=20)
    assert len(await crawler.crawl(SITE)) == 4


async def test_links_beyond_a_limit_are_found_nearest_first(crawler: ManualCrawler) -> None:
    """The frontier is what a later run with more room goes on with."""
    crawler.limits = RunLimits(max_pages=2, max_depth=20)
    await crawler.crawl({"": read("Root", "a", "near"), "a": read("Page a", "far", "near")})
    frontier = await crawler.store.queue.frontier(crawler.source.id)
    assert frontier == [ListedUrl(at("near"), 1), ListedUrl(at("far"), 2)]
    crawler.limits = RunLimits(max_pages=3, max_depth=20)
    await crawler.begin()
    await crawler.enqueue("")
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    await crawler.store.queue.enqueue(crawler.run, frontier, crawler.limits, crawler.clock())
    assert {claim.page.url for claim in await crawler.claim()} == {at(""), at("a"), at("near")}


async def test_the_frontier_closes_under_its_rules(crawler: ManualCrawler) -> None:
    source = crawler.source.id
    await crawler.store.links.close_frontier(source, "rules 1", 20)
    assert await crawler.store.links.frontier_is_open(source, "rules 1") == (False, False)
    assert await crawler.store.links.frontier_is_open(source, "rules 2") == (False, True)


async def test_new_rules_judge_the_links_on_record_without_a_look(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a", "https://cdn.example.org/x")})
    await crawler.store.links.judge(crawler.source.id, lambda url, _: "cdn" in url)
    assert [item.url for item in await crawler.store.queue.frontier(crawler.source.id)] == ["https://cdn.example.org/x"]
    await crawler.store.links.judge(crawler.source.id, lambda url, _: False)
    assert await crawler.store.queue.frontier(crawler.source.id) == []


# ---- depth


async def test_A15_a_new_page_lies_one_deeper_than_its_parent(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    pages = await crawler.store.pages.of_source(crawler.source.id)
    assert [(page.url, page.depth) for page in pages] == [(at(""), 0), (at("a"), 1), (at("b"), 1), (at("c"), 2)]


async def test_A14_max_depth_cuts_off_and_holds_during_a_refresh(crawler: ManualCrawler) -> None:
    crawler.limits = RunLimits(max_pages=1000, max_depth=2)
    chain = {"": read("Root", "a"), "a": read("Page a", "b"), "b": read("Page b", "c"), "c": read("Page c")}
    assert await crawler.crawl(chain) == [at(""), at("a"), at("b")]
    chain["b"] = read("Page b, edited", "c", "d")
    assert sorted(await crawler.crawl(chain)) == [at(""), at("a"), at("b")]
    assert await crawler.urls() == [at(""), at("a"), at("b")]


async def test_A14_the_stored_depth_is_kept_on_refresh(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    site = {**SITE, "": read("Root, edited", "a", "b", "c")}
    await crawler.crawl(site)
    assert (await crawler.page("c")).depth == 2


async def test_a_shorter_way_found_later_in_the_run_lowers_the_depth_of_a_page_and_its_children(
    crawler: ManualCrawler,
) -> None:
    """The long way is walked first; the children that max_depth cut off come in by the short one."""
    crawler.limits = RunLimits(max_pages=1000, max_depth=3)
    await crawler.begin()
    await crawler.enqueue("")
    site = {
        "": read("Root", "long", "late"),
        "long": read("Long", "longer"),
        "longer": read("Longer", "target"),
        "target": read("Target", "child"),
        "child": read("Child", "grandchild"),
        "late": read("Late", "target"),
        "grandchild": read("Grandchild"),
    }
    late = None
    seen: list[str] = []
    while claims := [each for each in await crawler.claim() if each.page.url != at("late") or not (late := each)]:
        for claim in claims:
            path = claim.page.url.removeprefix(ROOT)
            seen += await crawler.commit(crawler.visit(claim, site[path]))
    assert at("child") not in seen
    assert late is not None
    await crawler.commit(crawler.visit(late, site["late"]))
    assert (await crawler.page("target")).depth == 2
    assert await crawler.look(site) == [at("child")]
    assert (await crawler.page("child")).depth == 3


async def test_a_page_in_flight_whose_depth_is_lowered_passes_the_lower_one_on(crawler: ManualCrawler) -> None:
    """The claim remembers the depth of its time; the store knows better."""
    crawler.limits = RunLimits(max_pages=1000, max_depth=2)
    await crawler.begin()
    await crawler.enqueue("")
    await crawler.enqueue("target", depth=2)
    root, target = await crawler.claim()
    await crawler.commit(crawler.visit(root, read("Root", "target")))
    assert (await crawler.page("target")).depth == 1
    await crawler.commit(crawler.visit(target, read("Target", "child")))
    assert (await crawler.page("target")).depth == 1
    assert [claim.page.url for claim in await crawler.claim()] == [at("child")]


async def test_a_page_of_an_earlier_run_is_not_lowered_nor_its_children(crawler: ManualCrawler) -> None:
    crawler.limits = RunLimits(max_pages=1000, max_depth=2)
    chain = {"": read("Root", "a"), "a": read("Page a", "b"), "b": read("Page b", "c")}
    await crawler.crawl(chain)
    seen = await crawler.crawl({**chain, "": read("Root, edited", "a", "b")})
    assert at("c") not in seen


async def test_dead_pages_that_are_still_linked_are_asked_again(crawler: ManualCrawler) -> None:
    """A 404 today may be a page tomorrow, as long as somebody links to it."""
    await crawler.crawl({"": read("Root", "dead", "left"), "left": read("Left")})
    assert (await crawler.page("dead")).status is PageStatus.DELETED
    site = {"": read("Root, edited", "dead"), "left": read("Left")}
    crawler.policy = replace(crawler.policy, missing_after=1)
    assert at("dead") in await crawler.crawl(site)
    assert (await crawler.page("left")).status is PageStatus.DELETED
    seen = await crawler.crawl({**site, "": NotModified(), "dead": read("Alive")})
    assert sorted(seen) == [at(""), at("dead")]
    assert (await crawler.page("dead")).status is PageStatus.ACTIVE


async def test_dead_pages_that_the_source_lists_are_asked_again(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("", "listed")
    await crawler.store.listings.record(crawler.source.id, [ListedUrl(at("listed"))])
    await crawler.look({"": read("Root")})
    await crawler.finish()
    assert (await crawler.page("listed")).status is PageStatus.DELETED
    assert at("listed") in await crawler.crawl({"": read("Root")})


async def test_U4_what_was_found_and_not_read_leaves_the_queue_of_a_run_that_may_read_fewer(
    crawler: ManualCrawler,
) -> None:
    await crawler.begin()
    await crawler.enqueue("", "a", "b", "c", "d")
    (root,) = await crawler.claim(1)
    await crawler.commit(crawler.visit(root, read("Root")))
    await crawler.store.queue.keep_within(crawler.run, 3)
    run = await crawler.reload()
    assert (run.queued, (await crawler.store.queue.backlog(run.id)).open) == (3, 2)
    await crawler.store.queue.keep_within(crawler.run, 10)
    assert (await crawler.reload()).queued == 3
    await crawler.enqueue("c", "d")
    assert (await crawler.reload()).queued == 5


@pytest.mark.parametrize("is_read", [False, True])
async def test_F185_the_root_counts_once_in_a_run_that_goes_on(crawler: ManualCrawler, is_read: bool) -> None:
    crawler.limits = RunLimits(max_pages=3, max_depth=20)
    await crawler.begin()
    await crawler.enqueue("")
    if is_read:
        (root,) = await crawler.claim(1)
        await crawler.commit(crawler.visit(root, read("Root")))
    assert await crawler.begin()
    assert crawler.run.queued == (0 if is_read else 1)
    await crawler.enqueue("")
    assert (await crawler.reload()).queued == 1
    assert await crawler.enqueue("a", "b", "c") == 2
    assert (await crawler.store.queue.backlog(crawler.run.id)).open == 3
