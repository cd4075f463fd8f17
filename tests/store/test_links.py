"""Links: one row per target, edges with their text, and what belongs to the source."""

from dataclasses import replace

import pytest
from tests.store.desk import ROOT, Desk, at, read

from afresh.model.fetch import Link, Seen
from afresh.model.records import ListedUrl, Visit


async def test_C24_B18_one_row_per_target_with_edges_from_its_pages(desk: Desk) -> None:
    await desk.crawl(
        {"": read("Root", "a", "b"), "a": read("A", "b", "https://x.example/"), "b": read("B", "")}
    )
    links = {link.url: link for link in await desk.store.links.of_source(desk.source.id)}
    assert set(links) == {at("a"), at("b"), ROOT, "https://x.example/"}
    assert (links[at("b")].pages, links[at("b")].page_count) == ((ROOT, at("a")), 2)
    assert links["https://x.example/"].pages == (at("a"),)
    assert links[at("a")].text == "to a"
    assert (await desk.store.stats.source_view(desk.source)).links == 4


async def test_the_links_of_one_page(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a", "b"), "a": read("A", "b"), "b": read("B")})
    of_a = await desk.store.links.of_source(desk.source.id, page=at("a"))
    assert [(link.url, link.page_count) for link in of_a] == [(at("b"), 2)]
    assert await desk.store.links.of_source(desk.source.id, page=at("b")) == []
    assert len(await desk.store.links.of_source(desk.source.id, limit=1)) == 1


async def test_a_link_is_shown_with_its_longest_text(desk: Desk) -> None:
    await desk.begin()
    await desk.enqueue("", "a")
    claims = await desk.claim()
    texts = dict(zip((claim.page.url for claim in claims), ("here", "The whole guide"), strict=True))
    await desk.commit(
        *[_linking(desk, claim.page.url, desk.visit(claim, read("Text")), texts) for claim in claims]
    )
    [link] = await desk.store.links.of_source(desk.source.id)
    assert (link.url, link.text) == (at("guide"), "The whole guide")


def _linking(desk: Desk, url: str, visit: Visit, texts: dict[str, str]) -> Visit:
    links = (Link(at("guide"), texts[url]), Link(at("guide"), "again"))
    return replace(visit, harvest=replace(visit.harvest, links=links, children=frozenset({at("guide")})))


async def test_changed_links_replace_the_old_ones(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a", "b"), "a": read("A"), "b": read("B")})
    await desk.crawl({"": read("Root", "b", "c"), "a": read("A"), "b": read("B"), "c": read("C")})
    assert [link.url for link in await desk.store.links.of_source(desk.source.id)] == [at("b"), at("c")]
    assert (await desk.store.stats.source_view(desk.source)).links == 2, (
        "a link that stands nowhere is cleaned up"
    )


async def test_C11_links_on_record_stay_when_content_is_kept(desk: Desk) -> None:
    site: dict[str, Seen] = {"": read("Root", "a"), "a": read("A", "b"), "b": read("B")}
    await desk.crawl(site)
    before = [(link.url, link.pages) for link in await desk.store.links.of_source(desk.source.id)]
    await desk.crawl(site)
    assert [(link.url, link.pages) for link in await desk.store.links.of_source(desk.source.id)] == before


async def test_who_links_to_a_page_is_told_without_the_page_itself(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a"), "a": read("A", "a", "")})
    _, _, linked_from, _ = await desk.store.history.evidence(await desk.page("a"))
    assert linked_from == (ROOT,)


async def test_two_sources_have_links_of_their_own(desk: Desk) -> None:
    other = await Desk.at(desk.store, desk.clock, "other")
    await desk.crawl({"": read("Root", "a")})
    await other.crawl({"": read("Root", "b")})
    assert [link.url for link in await desk.store.links.of_source(desk.source.id)] == [at("a")]
    assert [link.url for link in await desk.store.links.of_source(other.source.id)] == [at("b")]


NOFOLLOW = read("A page whose links count for nothing", "target", follow=False)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("first", ["nofollow", "follow"])
async def test_A16_a_link_that_one_page_may_not_follow_still_leads_on_from_another(
    desk: Desk, first: str, together: bool
) -> None:
    """Whichever of the two is committed first, alone or in one batch: the target is reached."""
    site: dict[str, Seen] = {"": read("Root", "nofollow", "follow"), "target": read("Target")}
    site |= {"nofollow": NOFOLLOW, "follow": read("A page that leads on", "target")}
    await desk.begin()
    await desk.enqueue("")
    [root] = await desk.claim()
    await desk.commit(desk.visit(root, site[""]))
    claims = sorted(await desk.claim(), key=lambda claim: claim.page.url != at(first))
    visits = [desk.visit(claim, site[claim.page.url.removeprefix(ROOT)]) for claim in claims]
    for batch in [visits] if together else [[visit] for visit in visits]:
        await desk.commit(*batch)
    assert await desk.look(site) == [at("target")]
    assert await desk.store.pages.unreached(desk.source.id, ROOT, 20) == []


async def test_F71_a_link_that_no_page_may_follow_leads_nowhere(desk: Desk) -> None:
    site: dict[str, Seen] = {"": read("Root", "secret", nofollow=["secret"]), "secret": read("Secret")}
    assert await desk.crawl(site) == [ROOT]
    assert await desk.store.queue.frontier(desk.source.id) == []
    assert [link.url for link in await desk.store.links.of_source(desk.source.id)] == [at("secret")]


async def test_A16_a_link_to_the_page_itself_is_no_way_into_it(desk: Desk) -> None:
    await desk.begin()
    await desk.enqueue("", "island")
    await desk.store.listings.record(desk.source.id, [ListedUrl(ROOT)])
    await desk.look({"": read("Root"), "island": read("Island", "island")})
    assert [page.url for page in await desk.store.pages.unreached(desk.source.id, ROOT, 20)] == [at("island")]
