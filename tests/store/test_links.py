"""Links: one row per target, edges with their text, and what belongs to the source."""

from dataclasses import replace

import pytest
from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.model.fetch import Link, Seen
from afresh.model.records import ListedUrl, Visit


async def test_C24_B18_one_row_per_target_with_edges_from_its_pages(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a", "b"), "a": read("A", "b", "https://x.example/"), "b": read("B", "")})
    links = {link.url: link for link in await crawler.store.links.of_source(crawler.source.id)}
    assert set(links) == {at("a"), at("b"), ROOT, "https://x.example/"}
    assert (links[at("b")].pages, links[at("b")].page_count) == ((ROOT, at("a")), 2)
    assert links["https://x.example/"].pages == (at("a"),)
    assert links[at("a")].text == "to a"
    assert (await crawler.store.stats.source_view(crawler.source)).links == 4


async def test_the_links_of_one_page(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a", "b"), "a": read("A", "b"), "b": read("B")})
    of_a = await crawler.store.links.of_source(crawler.source.id, page=at("a"))
    assert [(link.url, link.page_count) for link in of_a] == [(at("b"), 2)]
    assert await crawler.store.links.of_source(crawler.source.id, page=at("b")) == []
    assert len(await crawler.store.links.of_source(crawler.source.id, limit=1)) == 1


async def test_a_link_is_listed_with_the_text_that_has_most_characters(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("", "a")
    claims = await crawler.claim()
    texts = dict(zip((claim.page.url for claim in claims), ("here", "The whole guide"), strict=True))
    await crawler.commit(
        *[_linking(crawler, claim.page.url, crawler.visit(claim, read("Text")), texts) for claim in claims]
    )
    [link] = await crawler.store.links.of_source(crawler.source.id)
    assert (link.url, link.text) == (at("guide"), "The whole guide")


def _linking(crawler: ManualCrawler, url: str, visit: Visit, texts: dict[str, str]) -> Visit:
    links = (Link(at("guide"), texts[url]), Link(at("guide"), "again"))
    return replace(visit, content=replace(visit.content, links=links, children=frozenset({at("guide")})))


async def test_changed_links_replace_the_old_ones(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a", "b"), "a": read("A"), "b": read("B")})
    await crawler.crawl({"": read("Root", "b", "c"), "a": read("A"), "b": read("B"), "c": read("C")})
    assert [link.url for link in await crawler.store.links.of_source(crawler.source.id)] == [at("b"), at("c")]
    assert (await crawler.store.stats.source_view(crawler.source)).links == 2, (
        "a link that stands nowhere is cleaned up"
    )


async def test_C11_links_on_record_stay_when_content_is_kept(crawler: ManualCrawler) -> None:
    site: dict[str, Seen] = {"": read("Root", "a"), "a": read("A", "b"), "b": read("B")}
    await crawler.crawl(site)
    before = [(link.url, link.pages) for link in await crawler.store.links.of_source(crawler.source.id)]
    await crawler.crawl(site)
    assert [(link.url, link.pages) for link in await crawler.store.links.of_source(crawler.source.id)] == before


async def test_links_to_a_page_are_listed_without_the_page_itself(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a"), "a": read("A", "a", "")})
    _, _, linked_from, _ = await crawler.store.history.evidence(await crawler.page("a"))
    assert linked_from == (ROOT,)


async def test_two_sources_have_links_of_their_own(crawler: ManualCrawler) -> None:
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    await crawler.crawl({"": read("Root", "a")})
    await other.crawl({"": read("Root", "b")})
    assert [link.url for link in await crawler.store.links.of_source(crawler.source.id)] == [at("a")]
    assert [link.url for link in await crawler.store.links.of_source(other.source.id)] == [at("b")]


NOFOLLOW = read("A page whose links count for nothing", "target", follow=False)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("first", ["nofollow", "follow"])
async def test_A16_a_link_that_one_page_may_not_follow_still_leads_on_from_another(
    crawler: ManualCrawler, first: str, together: bool
) -> None:
    """Whichever of the two is committed first, alone or in one batch: the target is reached."""
    site: dict[str, Seen] = {"": read("Root", "nofollow", "follow"), "target": read("Target")}
    site |= {"nofollow": NOFOLLOW, "follow": read("A page that leads on", "target")}
    await crawler.begin()
    await crawler.enqueue("")
    [root] = await crawler.claim()
    await crawler.commit(crawler.visit(root, site[""]))
    claims = sorted(await crawler.claim(), key=lambda claim: claim.page.url != at(first))
    visits = [crawler.visit(claim, site[claim.page.url.removeprefix(ROOT)]) for claim in claims]
    for batch in [visits] if together else [[visit] for visit in visits]:
        await crawler.commit(*batch)
    assert await crawler.look(site) == [at("target")]
    assert await crawler.store.pages.unreached(crawler.source.id, ROOT, 20) == []


async def test_F71_a_link_that_no_page_may_follow_leads_nowhere(crawler: ManualCrawler) -> None:
    site: dict[str, Seen] = {"": read("Root", "secret", nofollow=["secret"]), "secret": read("Secret")}
    assert await crawler.crawl(site) == [ROOT]
    assert await crawler.store.queue.frontier(crawler.source.id) == []
    assert [link.url for link in await crawler.store.links.of_source(crawler.source.id)] == [at("secret")]


async def test_A16_a_link_to_the_page_itself_is_no_way_into_it(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("", "island")
    await crawler.store.listings.record(crawler.source.id, [ListedUrl(ROOT)])
    await crawler.look({"": read("Root"), "island": read("Island", "island")})
    assert [page.url for page in await crawler.store.pages.unreached(crawler.source.id, ROOT, 20)] == [at("island")]
