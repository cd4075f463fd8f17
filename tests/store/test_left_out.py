"""What is on record of links that were left out, and of addresses that count."""

from dataclasses import replace

from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.model.fetch import Moved, NotModified
from afresh.model.records import ListedUrl, RunLimits, RunMode

FOREIGN = "https://other.example.org/x"


async def test_F67_addresses_are_pages_and_links_that_wait_to_be_some(crawler: ManualCrawler) -> None:
    crawler.limits = RunLimits(max_pages=2, max_depth=20)
    await crawler.begin()
    await crawler.enqueue("")
    site = {"": read("Root", "a", "b", "c", FOREIGN, nofollow=["c"]), "a": read("A")}
    await crawler.look(site)
    await crawler.store.listings.record(crawler.source.id, [ListedUrl(at("a"))])
    found = dict(await crawler.store.links.urls(crawler.source.id))
    assert found == {ROOT: False, at("a"): True, at("b"): False}


async def test_F67_links_that_were_left_out_are_those_that_could_be_followed(crawler: ManualCrawler) -> None:
    other = "https://other.example.org/y"
    await crawler.crawl({"": read("Root", "a", FOREIGN, other, nofollow=[other]), "a": read("A")})
    assert await crawler.store.links.left_out(crawler.source.id) == [FOREIGN]


async def test_F67_a_link_that_was_left_out_is_judged_with_the_nearest_page_it_is_on(crawler: ManualCrawler) -> None:
    other = "https://other.example.org/y"
    await crawler.crawl({"": read("Root", "a", FOREIGN), "a": read("A", FOREIGN, other, nofollow=[other])})
    asked: dict[str, str | None] = {}

    def admits(url: str, found_on: str | None) -> bool:
        asked[url] = found_on
        return url in (FOREIGN, at("a"))

    await crawler.store.links.judge(crawler.source.id, admits)
    assert asked == {at("a"): None, FOREIGN: ROOT, other: None}
    assert [item.url for item in await crawler.store.queue.frontier(crawler.source.id)] == [FOREIGN]


async def test_why_knows_whether_a_link_belongs(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a", FOREIGN), "a": read("A")})
    for url, belongs in ((at("a"), True), (FOREIGN, False)):
        found = await crawler.store.links.leading_to(url)
        assert found is not None
        assert found[1:] == (ROOT, 0, True, belongs)


async def test_F76_an_incomplete_listing_takes_no_page_off_the_list(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a", "b"), "a": read("A"), "b": read("B")})
    source = crawler.source.id
    await crawler.store.listings.record(source, [ListedUrl(at("a"))])
    await crawler.store.listings.record(source, [ListedUrl(at("b"))], complete=False)
    assert dict(await crawler.store.links.urls(source)) == {ROOT: False, at("a"): True, at("b"): True}
    await crawler.store.listings.record(source, [ListedUrl(at("b"))])
    assert dict(await crawler.store.links.urls(source)) == {ROOT: False, at("a"): False, at("b"): True}


async def test_F64_a_page_remembers_that_links_were_left_out(crawler: ManualCrawler) -> None:
    full = read("Root", "a")
    cut = replace(full, document=replace(full.document, links_left_out=7, content_hash="c" * 64))
    await crawler.crawl({"": cut, "a": read("A")})
    assert (await crawler.page("")).links_left_out == 7
    await crawler.crawl({"": NotModified(), "a": NotModified()})
    assert (await crawler.page("")).links_left_out == 7
    assert (await crawler.reload()).counts["cut_links"] == 7
    await crawler.crawl({"": Moved(to=at("a")), "a": NotModified()})
    assert (await crawler.page("")).links_left_out == 0


async def test_P13_a_due_run_leaves_room_for_what_it_does_not_look_at(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a", "b"), "a": read("A"), "b": read("B")})
    crawler.limits = RunLimits(max_pages=4, max_depth=20)
    crawler.clock.advance(1)
    await crawler.begin(RunMode.DUE)
    await crawler.enqueue("")
    [claim] = await crawler.claim()
    await crawler.commit(crawler.visit(claim, read("Root, edited", "c", "d")))
    assert [claim.page.url for claim in await crawler.claim()] == [at("c")]
