"""What is on record of links that were left out, and of addresses that count."""

from dataclasses import replace

from tests.store.desk import ROOT, Desk, at, read

from afresh.model.fetch import Moved, NotModified
from afresh.model.records import ListedUrl, RunLimits, RunMode

FOREIGN = "https://other.example.org/x"


async def test_F67_addresses_are_pages_and_links_that_wait_to_be_some(desk: Desk) -> None:
    desk.limits = RunLimits(max_pages=2, max_depth=20)
    await desk.begin()
    await desk.enqueue("")
    site = {"": read("Root", "a", "b", "c", FOREIGN, nofollow=["c"]), "a": read("A")}
    await desk.look(site)
    await desk.store.listings.record(desk.source.id, [ListedUrl(at("a"))])
    found = dict(await desk.store.links.urls(desk.source.id))
    assert found == {ROOT: False, at("a"): True, at("b"): False}


async def test_F67_links_that_were_left_out_are_those_that_could_be_followed(desk: Desk) -> None:
    other = "https://other.example.org/y"
    await desk.crawl({"": read("Root", "a", FOREIGN, other, nofollow=[other]), "a": read("A")})
    assert await desk.store.links.left_out(desk.source.id) == [FOREIGN]


async def test_F67_a_link_that_was_left_out_is_judged_with_the_nearest_page_it_is_on(desk: Desk) -> None:
    other = "https://other.example.org/y"
    await desk.crawl({"": read("Root", "a", FOREIGN), "a": read("A", FOREIGN, other, nofollow=[other])})
    asked: dict[str, str | None] = {}

    def admits(url: str, found_on: str | None) -> bool:
        asked[url] = found_on
        return url in (FOREIGN, at("a"))

    await desk.store.links.judge(desk.source.id, admits)
    assert asked == {at("a"): None, FOREIGN: ROOT, other: None}
    assert [item.url for item in await desk.store.queue.frontier(desk.source.id)] == [FOREIGN]


async def test_why_knows_whether_a_link_belongs(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a", FOREIGN), "a": read("A")})
    for url, belongs in ((at("a"), True), (FOREIGN, False)):
        found = await desk.store.links.leading_to(url)
        assert found is not None
        assert found[1:] == (ROOT, 0, True, belongs)


async def test_F76_an_incomplete_listing_takes_no_page_off_the_list(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a", "b"), "a": read("A"), "b": read("B")})
    source = desk.source.id
    await desk.store.listings.record(source, [ListedUrl(at("a"))])
    await desk.store.listings.record(source, [ListedUrl(at("b"))], complete=False)
    assert dict(await desk.store.links.urls(source)) == {ROOT: False, at("a"): True, at("b"): True}
    await desk.store.listings.record(source, [ListedUrl(at("b"))])
    assert dict(await desk.store.links.urls(source)) == {ROOT: False, at("a"): False, at("b"): True}


async def test_F64_a_page_remembers_that_links_were_left_out(desk: Desk) -> None:
    full = read("Root", "a")
    cut = replace(full, document=replace(full.document, links_left_out=7, content_hash="c" * 64))
    await desk.crawl({"": cut, "a": read("A")})
    assert (await desk.page("")).links_left_out == 7
    await desk.crawl({"": NotModified(), "a": NotModified()})
    assert (await desk.page("")).links_left_out == 7
    assert (await desk.reload()).counts["cut_links"] == 7
    await desk.crawl({"": Moved(to=at("a")), "a": NotModified()})
    assert (await desk.page("")).links_left_out == 0


async def test_P13_a_due_run_leaves_room_for_what_it_does_not_look_at(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a", "b"), "a": read("A"), "b": read("B")})
    desk.limits = RunLimits(max_pages=4, max_depth=20)
    desk.clock.advance(1)
    await desk.begin(RunMode.DUE)
    await desk.enqueue("")
    [claim] = await desk.claim()
    await desk.commit(desk.visit(claim, read("Root, edited", "c", "d")))
    assert [claim.page.url for claim in await desk.claim()] == [at("c")]
