"""Rules and wishes: noindex and nofollow, and rules that change between two runs."""

from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, found, index_of, opened, rows
from tests.e2e.sites import lay, looks, page, word

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite

NOINDEX = '<meta name="robots" content="noindex">'
NOFOLLOW = '<meta name="robots" content="nofollow">'


@pytest.mark.parametrize(("obeyed", "expected"), [(True, {"/", "/b"}), (False, {"/", "/a", "/b"})])
async def test_F71_noindex_is_obeyed_as_set_and_its_links_count(
    store: Path, work: type[InProcess], tiny: TinySite, obeyed: bool, expected: set[str]
) -> None:
    lay(tiny, {"/": ["/a"], "/b": []})
    tiny.put("/a", page("/a", ["/b"], head=NOINDEX))
    async with opened(store, {"crawl.respect_noindex": obeyed}) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs")
        (again,) = await kb.runs.refresh(["docs"])
    assert set(index_of(store)) == {tiny.at(path) for path in expected}
    assert (report.state, again.state, again.missing) == ("completed", "completed", 0)


@pytest.mark.parametrize("header", [True, False])
async def test_F71_a_page_that_begins_to_ask_for_noindex_leaves(
    kb: KnowledgeBase, tiny: TinySite, store: Path, header: bool
) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    await kb.runs.crawl(tiny.url, name="docs")
    if header:
        tiny.put("/a", page("/a"), headers={"X-Robots-Tag": "noindex", "ETag": '"other"'})
    else:
        tiny.put("/a", page("/a", head=NOINDEX))
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.deleted) == ("completed", 1)
    assert "noindex" in (await kb.pages.explain(tiny.at("/a"))).summary
    tiny.put("/a", page("/a"))
    (report,) = await kb.runs.refresh(["docs"])
    assert report.new == 1
    assert_sound(store)


@pytest.mark.parametrize(("obeyed", "expected"), [(True, {"/", "/a"}), (False, {"/", "/a", "/b", "/c"})])
async def test_F71_nofollow_is_obeyed_as_set(
    store: Path, work: type[InProcess], tiny: TinySite, obeyed: bool, expected: set[str]
) -> None:
    tiny.put("/", page("/", ["/a"]).replace("</ul>", '</ul><a rel="nofollow" href="/c">c</a>'))
    tiny.put("/a", page("/a", ["/b"], head=NOFOLLOW))
    lay(tiny, {"/b": [], "/c": []})
    async with opened(store, {"crawl.respect_nofollow": obeyed}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        await kb.runs.refresh(["docs"])
    assert set(looks(tiny)) == expected


async def test_a_widened_exclude_finds_pages_without_reading_unchanged_ones_again(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    lay(tiny, {"/": ["/a", "/x/b"], "/a": [], "/x/b": ["/x/c"], "/x/c": []})
    await kb.runs.crawl(tiny.url, name="docs", rules={"exclude": ["/x/*"]})
    tiny.requests.clear()
    report = await kb.runs.crawl(tiny.url, name="docs", rules={"exclude": []})
    assert counts(report) == {"not_modified": 2, "new": 2}
    assert await found(kb, word("/x/c")) == {tiny.at("/x/c")}
    assert tiny.requests.count("/", status=304) == 1


async def test_a_narrowed_rule_lets_pages_leave_by_the_missing_policy(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, {"/": ["/a", "/x/b"], "/a": [], "/x/b": ["/x/c"], "/x/c": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.requests.clear()
    report = await kb.runs.crawl(tiny.url, name="docs", rules={"exclude": ["/x/*"]})
    assert (report.state, report.missing, report.deleted) == ("completed", 2, 0)
    assert set(looks(tiny)) == {"/", "/a"}
    assert "excluded by /x/*" in (await kb.pages.explain(tiny.at("/x/b"))).summary
    assert [each.deleted for _ in range(2) for each in await kb.runs.refresh(["docs"])] == [0, 2]
    assert set(index_of(store)) == {tiny.url, tiny.at("/a")}


async def test_a_smaller_max_depth_lets_deeper_pages_leave_by_the_missing_policy(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, {"/": ["/a"], "/a": ["/b"], "/b": ["/c"], "/c": []})
    await kb.runs.crawl(tiny.url, name="docs")
    await kb.runs.crawl(tiny.url, name="docs", rules={"max_depth": 1})
    for _ in range(3):
        await kb.runs.refresh(["docs"])
    assert set(index_of(store)) == {tiny.url, tiny.at("/a")}


async def test_a_larger_max_depth_finds_what_lies_deeper_behind_unchanged_pages(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, {"/": ["/a"], "/a": ["/b"], "/b": ["/c"], "/c": []})
    await kb.runs.crawl(tiny.url, name="docs", rules={"max_depth": 1})
    report = await kb.runs.crawl(tiny.url, name="docs", rules={"max_depth": 5})
    assert counts(report) == {"not_modified": 2, "new": 2}
    assert len(index_of(store)) == 4


async def test_G1_storage_body_none_keeps_signals_and_finds_pages(
    store: Path, work: type[InProcess], tiny: TinySite
) -> None:
    tiny.put("/", page("/", text="The capybara swims before breakfast and sleeps after it."))
    async with opened(store, {"storage.body": "none"}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        assert await found(kb, "capybara") == {tiny.url}
        assert not any("capybara swims" in content for (content,) in rows(store, "select content from chunks"))
        assert rows(store, "select markdown from documents where markdown is not null") == []
        tiny.edit("/", "capybara", "tapir")
        (report,) = await kb.runs.refresh(["docs"])
        assert counts(report) == {"changed": 1}
        assert (await found(kb, "tapir"), await found(kb, "capybara")) == ({tiny.url}, set())
    assert b"swims before breakfast" not in store.read_bytes()


async def test_G1_body_can_be_switched_per_source_and_is_made_again(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    """Another recipe: the pages are read again without validators, and none counts as changed."""
    lay(tiny, {"/": ["/a"], "/a": []})
    await kb.runs.crawl(tiny.url, name="docs")
    report = await kb.runs.crawl(tiny.url, name="docs", policy={"body": "none"})
    assert (report.changed, report.new) == (0, 0)
    assert rows(store, "select count(*) from documents where markdown is not null") == [(0,)]
    assert await found(kb, word("/a")) == {tiny.at("/a")}
    await kb.runs.crawl(tiny.url, name="docs", policy={"body": "markdown"})
    assert rows(store, "select count(*) from documents where markdown is not null") == [(2,)]
    assert_sound(store)
