"""How pages leave the index: by proof, by absence, and held by the brake."""

from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, found, index_of, opened, rows
from tests.e2e.sites import lay, looks, page, star, word

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.model.fetch import Outcome
from afresh.model.records import ChangeKind, PageStatus
from afresh.testing import TinySite


@pytest.mark.parametrize("status", [404, 410])
async def test_A7_F37_F38_a_dead_page_leaves_in_the_same_run_and_its_links_are_not_followed(
    kb: KnowledgeBase, tiny: TinySite, store: Path, status: int
) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": ["/only"], "/b": [], "/only": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.fail("/a", status)
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("completed", 1)
    assert await found(kb, word("/a")) == set()
    assert looks(tiny)["/a"] == 1
    assert [(each.kind, each.url) for each in await kb.pages.changes("docs", run=report.run)] == [
        (ChangeKind.DELETED, tiny.at("/a"))
    ]
    edges = "select count(*) from page_links e join pages p on p.id = e.page_id where p.url = ?"
    assert rows(store, edges, tiny.at("/a")) == [(0,)]
    assert_sound(store)


async def test_A7_A16_what_only_a_dead_page_linked_to_is_absent_from_that_very_run(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    """The links of a dead page are not followed, so a run that finds it dead does not reach /only."""
    lay(tiny, {"/": ["/a"], "/a": ["/only"], "/only": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.delete("/a")
    deleted = [report.deleted for _ in range(3) for report in await kb.runs.refresh(["docs"])]
    assert deleted == [1, 0, 1]


async def test_a_page_that_is_deleted_is_not_reported_as_missing_too(kb: KnowledgeBase, tiny: TinySite) -> None:
    """Missing means not reached and kept; a page that is unlinked and answers 404 is neither."""
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", ["/b"]))
    tiny.delete("/a")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.deleted, report.missing) == (1, 0)


async def test_A16_C14_G2_an_unreachable_page_leaves_after_three_complete_runs(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": ["/deep"], "/b": [], "/deep": ["/a"]})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", ["/b"]))  # /a and /deep link to each other, and still answer 200
    for _ in range(2):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.missing, report.deleted) == (2, 0)
        assert await found(kb, word("/deep")) == {tiny.at("/deep")}
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("completed", 2)
    assert await found(kb, word("/deep")) == set()


async def test_A16_a_page_that_is_linked_again_starts_from_nought(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    await kb.runs.crawl(tiny.url, name="docs")
    for links in ([], [], ["/a"], [], []):
        tiny.put("/", page("/", links))
        await kb.runs.refresh(["docs"])
    view = {view.url: view for view in await kb.pages.of_source("docs")}[tiny.at("/a")]
    assert (view.missing_count, view.status) == (2, PageStatus.ACTIVE)


async def test_G2_missing_after_one_is_C14(store: Path, tiny: TinySite, work: type[InProcess]) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    async with opened(store, {"policy.missing_after": 1}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.put("/", page("/", []))
        (report,) = await kb.runs.refresh(["docs"])
    assert (report.deleted, set(index_of(store))) == (1, {tiny.url})


async def test_A16_a_sitemap_keeps_a_page_that_nobody_links_to(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    tiny.sitemap(True)
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", []))
    assert [report.missing for _ in range(3) for report in await kb.runs.refresh(["docs"])] == [0, 0, 0]
    tiny.sitemap(False)
    assert [report.missing for report in await kb.runs.refresh(["docs"])] == [1]


async def test_G2_an_unreadable_sitemap_makes_absence_no_evidence(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a"], "/a": [], "/island": []})
    tiny.sitemap(True)
    tiny.robots("Sitemap: {url}sitemap.xml\n")
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.fail("/sitemap.xml", 500)
    for _ in range(4):
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.missing, report.deleted) == (0, 0)
    assert await found(kb, word("/island")) == {tiny.at("/island")}


async def test_F36_a_flapping_page_is_deleted_and_found_again(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    before = {view.url: view.content_hash for view in await kb.pages.of_source("docs")}
    seen = []
    for gone in (True, False, True, False):
        (tiny.delete if gone else tiny.restore)("/a")
        (report,) = await kb.runs.refresh(["docs"])
        seen.append((report.new, report.deleted, len(await found(kb, word("/a")))))
    assert seen == [(0, 1, 0), (1, 0, 1), (0, 1, 0), (1, 0, 1)]
    assert {view.url: view.content_hash for view in await kb.pages.of_source("docs")} == before


async def test_F36_with_gone_after_three_it_is_never_deleted(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    async with opened(store, {"policy.gone_after": 3}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        for gone in (True, True, False, True, True, False):
            (tiny.delete if gone else tiny.restore)("/a")
            (report,) = await kb.runs.refresh(["docs"])
            assert report.deleted == 0
            assert await found(kb, word("/a")) == {tiny.at("/a")}
        tiny.delete("/a")
        deleted = [report.deleted for _ in range(3) for report in await kb.runs.refresh(["docs"])]
    assert deleted == [0, 0, 1]


async def test_P5_F34_all_but_the_root_404_is_held_until_confirmed(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, star(20))
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    for path in star(20):
        if path != "/":
            tiny.delete(path)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.held, report.deleted) == ("needs_confirmation", 20, 0)
    assert index_of(store) == before
    assert await found(kb, word("/p7")) == {tiny.at("/p7")}
    assert [each.run for each in (await kb.status.get()).runs] == [report.run]
    assert "confirm" in (await kb.pages.explain(tiny.at("/p7"))).summary
    confirmed = await kb.runs.confirm(report.run)
    assert (confirmed.state, confirmed.deleted, confirmed.held) == ("completed", 20, 0)
    assert set(index_of(store)) == {tiny.url}
    assert await found(kb, word("/p7")) == set()
    assert (await kb.status.get()).runs == ()
    with pytest.raises(UsageError, match="does not need confirmation"):
        await kb.runs.confirm(report.run)
    assert_sound(store)


async def test_P5_a_braked_run_is_forgotten_when_the_pages_are_back(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, star(20))
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    for path in star(20):
        if path != "/":
            tiny.delete(path)
    (held,) = await kb.runs.refresh(["docs"])
    for path in star(20):
        tiny.restore(path)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("completed", 0)
    with pytest.raises(UsageError, match="does not need confirmation"):  # nothing is left of what it wanted to delete
        await kb.runs.confirm(held.run)
    assert index_of(store) == before


async def test_P5_the_brake_holds_again_as_long_as_nobody_confirms(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, star(20))
    await kb.runs.crawl(tiny.url, name="docs")
    for path in star(20):
        if path != "/":
            tiny.delete(path)
    reports = [report for _ in range(4) for report in await kb.runs.refresh(["docs"])]
    assert {(report.state, report.held, report.deleted) for report in reports} == {("needs_confirmation", 20, 0)}
    assert len(index_of(store)) == 21


async def test_P5_absence_is_braked_like_proof(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, star(20))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", []))
    states = [report.state for _ in range(3) for report in await kb.runs.refresh(["docs"])]
    assert states == ["completed", "completed", "needs_confirmation"]
    assert len(index_of(store)) == 21


async def test_F37_few_dead_pages_are_deleted_at_once(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, star(30))
    await kb.runs.crawl(tiny.url, name="docs")
    for number in range(10):  # a third of the source, but not more than ten pages
        tiny.delete(f"/p{number}")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted, len(index_of(store))) == ("completed", 10, 21)


async def test_G3_removing_a_source_keeps_its_history(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, star(3))
    await kb.runs.crawl(tiny.url, name="docs")
    finished = "select id, url, outcome from page_crawls where outcome not in ('cancelled') order by id"
    attempts = rows(store, finished)
    assert await kb.sources.remove("docs") == 4
    assert await kb.sources.views() == []
    assert (await kb.search.search(word("/p1"), mode="text")).hits == ()
    assert rows(store, finished) == attempts
    assert rows(store, "select distinct page_id from page_crawls") == [(None,)]
    assert rows(store, "select count(*) from page_crawls where outcome is null") == [(0,)]
    history = await kb.pages.history(tiny.at("/p1"))
    assert [each.outcome for each in history] == [Outcome.CANCELLED, Outcome.SUCCESS]
    assert rows(store, "select count(*) from pages") == rows(store, "select count(*) from chunks") == [(0,)]
    assert (await kb.runs.crawl(tiny.url, name="docs")).new == 4
    assert_sound(store)
