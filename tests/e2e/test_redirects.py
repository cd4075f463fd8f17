"""Redirects: the identity of a page moves with a permanent one and stays with a temporary one."""

from pathlib import Path

import pytest
from tests.e2e.library import EVERY_STORE, assert_sound, counts, found, index_of
from tests.e2e.sites import lay, looks, page, word

from afresh.kb import KnowledgeBase
from afresh.model.filters import ALL_PAGES
from afresh.model.records import ChangeKind, PageStatus
from afresh.testing import TinySite


@pytest.mark.parametrize("status", [301, 308])
@EVERY_STORE
async def test_A17_G12_a_permanent_redirect_moves_the_page(
    kb: KnowledgeBase, tiny: TinySite, store: Path, status: int
) -> None:
    lay(tiny, {"/": ["/old"], "/old": []})
    await kb.runs.crawl(tiny.url, name="docs")
    content = index_of(store)[tiny.at("/old")]
    tiny.move("/old", "/new")
    tiny.redirect("/old", "/new", status=status)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.moved, report.new, report.deleted) == ("completed", 1, 0, 0)
    assert (report.checked, report.not_modified, report.moved_read, report.redirected_or_gone) == (3, 1, 1, 1)
    views = {view.url: view for view in await kb.pages.of_source("docs", ALL_PAGES)}
    old, new = views[tiny.at("/old")], views[tiny.at("/new")]
    assert (old.status, old.moved_to, new.status) == (PageStatus.REDIRECT, tiny.at("/new"), PageStatus.ACTIVE)
    assert index_of(store)[tiny.at("/new")].content_hash == content.content_hash
    assert await found(kb, word("/old")) == {tiny.at("/new")}
    kinds = {(each.kind, each.url) for each in await kb.pages.changes("docs", run=report.run)}
    assert kinds == {(ChangeKind.MOVED, tiny.at("/old"))}
    assert new.depth == old.depth
    assert_sound(store)


async def test_A17_the_moved_page_stays_while_only_the_old_address_is_linked(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/old"], "/old": ["/child"], "/child": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.move("/old", "/new")
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.missing, report.deleted) == ("completed", 0, 0)
    assert await found(kb, word("/old")) == {tiny.at("/new")}
    assert await found(kb, word("/child")) == {tiny.at("/child")}


async def test_G12_a_temporary_redirect_keeps_the_old_address(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/": ["/old"], "/old": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/elsewhere", page("Elsewhere", text="about quokkas"), listed=False)
    tiny.redirect("/old", "/elsewhere", status=302)
    (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"not_modified": 1, "changed": 1}
    assert set(index_of(store)) == {tiny.url, tiny.at("/old")}
    assert await found(kb, "quokkas") == {tiny.at("/old")}
    (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"not_modified": 2}  # asked with the validators of the target


async def test_F51_source_and_target_both_linked_are_one_page(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/": ["/old", "/new"], "/new": []})
    tiny.redirect("/old", "/new", status=301)
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, report.new) == ("completed", 2)
    assert set(index_of(store)) == {tiny.url, tiny.at("/new")}
    assert looks(tiny)["/new"] == 1
    assert (await kb.pages.explain(tiny.at("/old"))).status is PageStatus.REDIRECT


@pytest.mark.parametrize("status", [301, 302])
async def test_F50_a_redirect_to_another_site_is_recorded_and_not_followed(
    kb: KnowledgeBase, tiny: TinySite, status: int
) -> None:
    with TinySite() as other:
        other.put("/x", page("Foreign", text="about numbats"))
        lay(tiny, {"/": ["/a", "/out"], "/a": []})
        tiny.redirect("/out", other.at("/x"), status=status)
        report = await kb.runs.crawl(tiny.url, name="docs")
        assert (report.new, len(other.requests)) == (2, 0)
        assert other.at("/x") in (await kb.pages.explain(tiny.at("/out"))).summary
        assert report.state == "completed"  # a page that is not ours is no failure of the site


async def test_G12_a_temporary_redirect_out_of_the_scope_of_the_same_host_says_what_to_do(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    tiny.redirect("/docs/a", "/en/docs/a", status=302)
    lay(tiny, {"/docs/": ["/docs/a"], "/en/docs/a": []})
    report = await kb.runs.crawl(tiny.at("/docs/"), name="docs")
    assert (report.state, report.refused) == ("completed", 1)
    why = (await kb.pages.explain(tiny.at("/docs/a"))).summary
    assert f"redirected to {tiny.at('/en/docs/a')}: outside the scope subpages of" in why
    assert "another site" not in why


async def test_A17_a_root_that_moves_for_good_is_crawled_at_its_new_address(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    tiny.redirect("/docs", "/docs/", status=301)
    lay(tiny, {"/docs/": ["/docs/a"], "/docs/a": []})
    report = await kb.runs.crawl(tiny.at("/docs"), name="docs")
    assert (report.state, set(index_of(store))) == ("completed", {tiny.at("/docs/"), tiny.at("/docs/a")})
    for _ in range(4):
        (again,) = await kb.runs.refresh(["docs"])
        assert (again.state, again.deleted, again.missing) == ("completed", 0, 0)


async def test_P4_a_root_that_moves_to_another_site_fails_and_keeps_everything(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    tiny.redirect("/", "http://elsewhere.example/", status=301)
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.deleted, report.moved) == ("failed", 0, 0)
        assert "elsewhere.example" in (report.error or "")
    assert index_of(store) == before


async def test_F49_a_redirect_loop_is_reported_and_keeps_the_page(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, {"/": [f"/p{n}" for n in range(20)], **{f"/p{n}": [] for n in range(20)}})
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    tiny.redirect("/p1", "/loop", status=302)
    tiny.redirect("/loop", "/p1", status=302)
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.refused, report.failed, report.deleted) == ("completed", 1, 0, 0)
    assert looks(tiny)["/p1"] == 1  # one bad link is not asked for again, nor does it spoil every run
    assert "redirect loop" in (await kb.pages.explain(tiny.at("/p1"))).summary
    assert index_of(store) == before


async def test_F49_two_pages_that_moved_to_each_other_lose_nothing(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    """Permanent redirects in a circle: neither address has content to move to, so what is held stays."""
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.redirect("/a", "/b", status=301)
    tiny.redirect("/b", "/a", status=301)
    (report,) = await kb.runs.refresh(["docs"])
    assert report.deleted == 0
    assert {tiny.at("/a"), tiny.at("/b")} & set(index_of(store))


async def test_G12_a_page_that_moves_back_is_found_again(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    tiny.move("/a", "/b")
    await kb.runs.refresh(["docs"])
    tiny.restore("/a")
    tiny.redirect("/b", "/a", status=301)
    await kb.runs.refresh(["docs"])
    assert index_of(store) == before
    assert_sound(store)


async def test_A16_a_moved_page_that_nobody_links_to_any_more_leaves_for_good(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    """The old address must not bring its target back in every further run."""
    lay(tiny, {"/": ["/old"], "/old": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.move("/old", "/new")
    await kb.runs.refresh(["docs"])
    tiny.put("/", page("/", []))
    seen = [(each.new, each.deleted) for _ in range(6) for each in await kb.runs.refresh(["docs"])]
    assert seen == [(0, 0), (0, 0), (0, 1), (0, 0), (0, 0), (0, 0)]
    assert set(index_of(store)) == {tiny.url}


async def test_P6_a_page_that_moved_to_where_nothing_is_leaves(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    """301, and 404 at its target: together they prove that the content is gone."""
    lay(tiny, {"/": ["/old"], "/old": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.redirect("/old", "/nowhere", status=301)
    for _ in range(3):
        await kb.runs.refresh(["docs"])
    assert set(index_of(store)) == {tiny.url}
    assert "confirmation" not in (await kb.pages.explain(tiny.at("/old"))).summary
