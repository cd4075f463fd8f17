"""A refresh: what is asked, what is processed, what is left alone."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import EVERY_STORE, assert_sound, counts, found, index_of, opened, rows
from tests.e2e.sites import StubbornSite, lay, looks, page, star, word

from afresh.extract.pool.pool import ParserProcess
from afresh.kb import KnowledgeBase
from afresh.model.fetch import Outcome
from afresh.testing import TinySite

CONTENT = "select id, url, content_hash, changed_at, title, etag, depth from pages order by id"
CHUNKS = "select id, page_id, sort_order, content, created_at from chunks order by id"


async def test_A2_A3_A11_a_refresh_asks_every_known_page_and_the_root_with_validators(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    lay(tiny, star(5))
    await kb.runs.crawl(tiny.url, name="docs")
    etags = {view.url: view.etag for view in await kb.pages.of_source("docs")}
    dates = {view.url: view.last_modified for view in await kb.pages.of_source("docs")}
    tiny.requests.clear()
    await kb.runs.refresh(["docs"])
    asked = [each for each in tiny.requests if each.path not in ("/robots.txt", "/sitemap.xml")]
    assert {tiny.at(each.path): each.if_none_match for each in asked} == etags
    assert {tiny.at(each.path): each.if_modified_since for each in asked} == dates
    assert {each.status for each in asked} == {304}
    assert len(asked) == 6


@EVERY_STORE
async def test_A4_G4_a_304_touches_no_content_and_makes_no_work(
    kb: KnowledgeBase, tiny: TinySite, store: Path, work: type[InProcess]
) -> None:
    lay(tiny, star(8))
    await kb.runs.crawl(tiny.url, name="docs")
    before, made = (rows(store, CONTENT), rows(store, CHUNKS)), work.calls
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.checked, counts(report), report.bytes) == (9, {"not_modified": 9}, 0)
    assert (rows(store, CONTENT), rows(store, CHUNKS)) == before
    assert work.calls == made
    last = await kb.pages.history(tiny.at("/p0"))
    assert [each.outcome for each in last if each.outcome] == [Outcome.NOT_MODIFIED, Outcome.SUCCESS]


async def test_A4_an_unchanged_refresh_starts_no_process(
    store: Path, tiny: TinySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real Offload: its processes are started by the first body, and there is none."""
    lay(tiny, star(3))
    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs")

        async def forbidden() -> ParserProcess:
            raise AssertionError("a process was started although nothing had changed")

        monkeypatch.setattr(ParserProcess, "start", forbidden)
        (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"not_modified": 4}


@EVERY_STORE
async def test_A5_A24_changed_content_swaps_chunks_and_validators_together(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    await kb.runs.crawl(tiny.url, name="docs")
    old = {view.url: view for view in await kb.pages.of_source("docs")}[tiny.at("/a")]
    tiny.put("/a", page("A new title", ["/fresh"], "It is all about zebrafish now."))
    lay(tiny, {"/fresh": []})
    (report,) = await kb.runs.refresh(["docs"])
    new = {view.url: view for view in await kb.pages.of_source("docs")}[tiny.at("/a")]
    assert counts(report) == {"not_modified": 1, "changed": 1, "new": 1}
    assert (new.id, new.title) == (old.id, "A new title")
    assert new.etag != old.etag
    assert new.last_modified != old.last_modified
    assert new.content_hash != old.content_hash
    assert await found(kb, "zebrafish") == {tiny.at("/a")}
    assert await found(kb, word("/a")) == set()
    assert await found(kb, word("/fresh")) == {tiny.at("/fresh")}
    assert_sound(store)


@EVERY_STORE
async def test_A5_chunks_whose_text_stayed_keep_their_rows(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    parts = [f"<h2>Part {n}</h2><p>{f'sentence {n} of a long text. ' * 60}</p>" for n in range(6)]
    tiny.put("/", f"<title>Long</title><main><h1>Long</h1>{''.join(parts)}</main>")
    await kb.runs.crawl(tiny.url, name="docs")
    before = dict(rows(store, "select id, content from chunks"))
    assert len(before) > 3
    tiny.edit("/", "sentence 3", "phrase 3")
    (report,) = await kb.runs.refresh(["docs"])
    after = dict(rows(store, "select id, content from chunks"))
    same = {key for key in before if after.get(key) == before[key]}
    assert len(same) == report.chunks_reused == len(before) - len([c for c in before.values() if "sentence 3" in c])
    assert not any("sentence 3" in content for content in after.values())


@EVERY_STORE
async def test_A12_a_new_page_behind_an_unchanged_root_is_found(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a"], "/a": ["/b"], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/b", page("/b", ["/new"]))
    lay(tiny, {"/new": []})
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"not_modified": 2, "changed": 1, "new": 1}
    assert await found(kb, word("/new")) == {tiny.at("/new")}
    depth = {view.url: view.depth for view in await kb.pages.of_source("docs")}
    assert depth[tiny.at("/new")] == 3  # A15: its parent's + 1


async def test_A12_C11_links_of_an_unchanged_page_are_followed_where_the_target_was_lost(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    """/a answered 404 and left; the 304 of the root still leads there when it is back."""
    lay(tiny, {"/": ["/a"], "/a": []})
    tiny.delete("/a")
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.restore("/a")
    (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"not_modified": 1, "new": 1}


async def test_A14_the_stored_depth_is_kept(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a"], "/a": ["/b"], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", ["/a", "/b"]))
    await kb.runs.refresh(["docs"])
    assert {view.url: view.depth for view in await kb.pages.of_source("docs")}[tiny.at("/b")] == 2


async def test_A25_a_second_crawl_is_a_refresh(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, star(4))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.edit("/p1", add_paragraph="something about ocelots")
    tiny.delete("/p2")
    again = await kb.runs.crawl(tiny.url)
    assert counts(again) == {"not_modified": 3, "changed": 1, "deleted": 1}
    assert [view.name for view in await kb.sources.views()] == ["docs"]


async def test_full_asks_without_validators_and_still_processes_only_what_changed(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    lay(tiny, star(3))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"], full=True)
    assert not any(each.conditional for each in tiny.requests)
    assert counts(report) == {"unchanged": 4}


async def test_F44_the_same_etag_with_other_content_is_judged_by_the_hash(kb: KnowledgeBase) -> None:
    """A server that ignores validators and sends 200 with the ETag it always sends."""
    with StubbornSite() as site:
        site.put("/", page("/", ["/a"]), headers={"ETag": '"same"'})
        site.put("/a", page("/a"), headers={"ETag": '"same"'})
        await kb.runs.crawl(site.url, name="docs")
        site.edit("/a", add_paragraph="this is new")
        (report,) = await kb.runs.refresh(["docs"])
        assert counts(report) == {"unchanged": 1, "changed": 1}


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(lambda n: f'<meta name="csp-nonce" content="{n}">', id="nonce"),
        pytest.param(lambda n: f"<script>var t = {n};</script>", id="script"),
        pytest.param(lambda n: f'<link rel="x" href="/style.css?v={n}">', id="build"),
    ],
)
async def test_F46_F47_new_etag_and_noise_but_the_same_content_is_unchanged(
    kb: KnowledgeBase, tiny: TinySite, work: type[InProcess], noise: Callable[[int], str]
) -> None:
    numbers = count()
    lay(tiny, {"/": ["/a"]})
    tiny.put("/a", lambda: page("/a", text="steady text", head=noise(next(numbers))))
    await kb.runs.crawl(tiny.url, name="docs")
    made = work.calls
    (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"not_modified": 1, "unchanged": 1}
    assert work.calls - made == 1  # read, but not chunked
    assert (await kb.pages.explain(tiny.at("/a"))).summary.startswith("200, same content hash")


async def test_F47_a_page_without_any_validator_is_judged_by_its_hash(kb: KnowledgeBase, store: Path) -> None:
    with TinySite(etags=False) as site:
        site.put("/", page("/", ["/a"]), headers={"Last-Modified": ""})
        site.put("/a", page("/a"), headers={"Last-Modified": ""})
        await kb.runs.crawl(site.url, name="docs")
        (report,) = await kb.runs.refresh(["docs"])
        assert counts(report) == {"unchanged": 2}
        site.edit("/a", add_paragraph="more")
        (report,) = await kb.runs.refresh(["docs"])
        assert counts(report) == {"unchanged": 1, "changed": 1}


async def test_C8_C9_an_unchanged_page_only_gets_a_new_crawl_time(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, star(2))
    await kb.runs.crawl(tiny.url, name="docs")
    before = {view.url: view for view in await kb.pages.of_source("docs")}
    await kb.runs.refresh(["docs"])
    for view in await kb.pages.of_source("docs"):
        old = before[view.url]
        assert view.crawl_time is not None
        assert old.crawl_time is not None
        assert view.crawl_time > old.crawl_time
        assert (view.changed_at, view.content_hash) == (old.changed_at, old.content_hash)


async def test_A23_A21_each_page_costs_one_request_per_run(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(10))
    tiny.sitemap(True)
    await kb.runs.crawl(tiny.url, name="docs")
    for path in ("/p1", "/p2"):
        tiny.edit(path, add_paragraph="new")
    tiny.delete("/p3")
    tiny.requests.clear()
    await kb.runs.refresh(["docs"])
    assert set(looks(tiny).values()) == {1}
    assert sum(looks(tiny).values()) == 11
    assert tiny.requests.count("/robots.txt") == tiny.requests.count("/sitemap.xml") == 1


async def test_A22_a_refresh_repeated_changes_nothing(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, star(5))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.edit("/p1", add_paragraph="something else")
    await kb.runs.refresh(["docs"])
    once = index_of(store)
    await kb.runs.refresh(["docs"])
    assert index_of(store) == once
    assert_sound(store)
