"""The first crawl of a site: what is found, asked for and stored."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import EVERY_STORE, assert_sound, counts, found, index_of, opened, rows
from tests.e2e.sites import BusySite, lay, looks, page, star, word

from afresh.kb import KnowledgeBase
from afresh.model.records import PageStatus
from afresh.testing import FrozenClock, TinySite


@EVERY_STORE
async def test_A1_a_first_crawl_stores_content_with_its_etag_and_follows_links(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, {"/": ["/a"], "/a": ["/b"], "/b": []})
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 3})
    held = index_of(store)
    assert set(held) == {tiny.at(path) for path in ("/", "/a", "/b")}
    assert all(each.chunks and each.markdown for each in held.values())
    assert all(view.etag and view.last_modified for view in await kb.pages.of_source("docs"))
    assert await found(kb, word("/b")) == {tiny.at("/b")}
    assert_sound(store)


async def test_A15_depth_is_the_shortest_way_from_the_root(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a", "/c"], "/a": ["/b"], "/b": ["/c", "/d"], "/c": ["/d"], "/d": []})
    await kb.runs.crawl(tiny.url, name="docs")
    depths = {view.url: view.depth for view in await kb.pages.of_source("docs")}
    assert depths == {tiny.at(p): d for p, d in (("/", 0), ("/a", 1), ("/c", 1), ("/b", 2), ("/d", 2))}


async def test_A14_max_depth_holds_in_the_first_crawl_and_in_a_refresh(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a"], "/a": ["/b"], "/b": ["/c"], "/c": ["/d"], "/d": []})
    await kb.runs.crawl(tiny.url, name="docs", rules={"max_depth": 2})
    assert set(looks(tiny)) == {"/", "/a", "/b"}
    tiny.edit("/b", add_paragraph="changed, and still two links away from the root")
    await kb.runs.refresh(["docs"])
    assert set(looks(tiny)) == {"/", "/a", "/b"}


async def test_A14_the_shorter_way_counts_also_when_the_longer_one_is_found_first(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    """/x is first seen four links away, then two; what lies behind it is within max depth then."""
    lay(tiny, {"/": ["/a", "/slow"], "/a": ["/b"], "/b": ["/c"], "/c": ["/x"], "/slow": ["/x"], "/x": ["/y"]})
    lay(tiny, {"/y": ["/z"], "/z": []})
    gate = tiny.hold("/slow")

    def listen(event: object) -> None:
        if tiny.requests.count("/x"):
            gate.release()

    report = await kb.runs.crawl(tiny.url, name="docs", rules={"max_depth": 4}, listener=listen)
    assert report.state == "completed"
    depths = {view.url: view.depth for view in await kb.pages.of_source("docs")}
    assert {url: depths[tiny.at(url)] for url in ("/x", "/y", "/z")} == {"/x": 2, "/y": 3, "/z": 4}


@EVERY_STORE
async def test_A13_A21_A23_every_page_is_asked_for_once_and_the_root_too(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    everywhere = ["/", "/#top", "/a", "/a#x", "/b?utm_source=n", "/b", "/c/../a"]
    lay(tiny, dict.fromkeys(("/", "/a", "/b"), everywhere))
    await kb.runs.crawl(tiny.url, name="docs")
    assert looks(tiny) == {"/": 1, "/a": 1, "/b": 1}
    first = "select count(*) from page_crawls where url = ? and run_id = (select min(id) from runs)"
    assert rows(store, first, tiny.url) == [(1,)]
    tiny.requests.clear()
    await kb.runs.refresh(["docs"])
    assert looks(tiny) == {"/": 1, "/a": 1, "/b": 1}


async def test_A23_a_404_is_not_retried_and_not_stored(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/": ["/nowhere"]})
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, counts(report)) == ("completed", {"new": 1})
    assert looks(tiny)["/nowhere"] == 1
    assert set(index_of(store)) == {tiny.url}


@pytest.mark.parametrize(("flags", "most"), [({}, 3), ({"crawl.concurrency": 5}, 5)])
async def test_A20_three_fetches_at_a_time_per_host_by_default(
    store: Path, work: type[InProcess], flags: dict[str, object], most: int
) -> None:
    with BusySite() as site:
        lay(site, star(24))
        for path in site.paths:
            site.slow(path, 0.02)
        async with opened(store, flags) as kb:
            report = await kb.runs.crawl(site.url, name="docs")
        assert report.new == 25
        assert site.most == most


async def test_C3_C4_C5_C6_one_time_stamps_site_pages_and_links_of_a_run(
    store: Path, work: type[InProcess], tiny: TinySite
) -> None:
    clock = FrozenClock()
    began = clock()

    def tick(_: object) -> None:
        clock.advance(1)

    lay(tiny, {"/": ["/a", "https://elsewhere.example/x"], "/a": ["/"]})
    async with opened(store, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs", listener=tick)
        source, pages, links = (
            await kb.sources.view("docs"),
            await kb.pages.of_source("docs"),
            await kb.links.of_source("docs"),
        )
        assert source.crawl_time == began
        assert {view.crawl_time for view in pages} == {began}
        assert {view.crawl_time for view in links} == {began}
        assert {view.url for view in links} == {tiny.url, tiny.at("/a"), "https://elsewhere.example/x"}
        assert {view.text for view in links} >= {"to /a"}
        later = clock.advance(3600)
        await kb.runs.refresh(["docs"])
        assert _stamps(
            await kb.sources.view("docs"), await kb.pages.of_source("docs"), await kb.links.of_source("docs")
        ) == {later}


def _stamps(source: object, *lists: Sequence[object]) -> set[datetime]:
    return {each.crawl_time for each in (source, *(view for views in lists for view in views))}  # type: ignore[attr-defined]


async def test_C12_other_schemes_other_hosts_and_forbidden_pages_are_not_fetched(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    links = ["mailto:a@b.example", "javascript:void(0)", "ftp://127.0.0.1/x", "http://other.example/", "/no/x"]
    lay(tiny, {"/": [*links, "/yes"], "/yes": [], "/no/x": []})
    tiny.robots("User-agent: *\nDisallow: /no/\n")
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert set(looks(tiny)) == {"/", "/yes"}
    assert (report.state, counts(report)) == ("completed", {"new": 2, "refused": 1})
    why = await kb.pages.explain(tiny.at("/no/x"))
    assert "robots.txt line 2" in why.summary


async def test_C23_surplus_parameters_are_stripped_and_long_paths_left_out(kb: KnowledgeBase, tiny: TinySite) -> None:
    deep = "/d/e/f/g"
    links = ["/a?x=1", "/a?x=1&y=2", "/a?x=1&y=3", f"{deep}/h", deep]
    lay(tiny, {"/": links, "/a": [], deep: [], f"{deep}/h": []})
    report = await kb.runs.crawl(tiny.url, name="docs", rules={"max_params": 1, "max_components": 4})
    assert looks(tiny) == {"/": 1, "/a?x=1": 1, deep: 1}
    assert report.new == 3


async def test_a_page_that_only_a_sitemap_names_is_found(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a"], "/a": [], "/island": []})
    tiny.sitemap(True)
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert report.new == 3
    assert await found(kb, word("/island")) == {tiny.at("/island")}
    assert [report.state for report in await kb.runs.refresh(["docs"])] == ["completed"]
    assert await found(kb, word("/island")) == {tiny.at("/island")}


@pytest.mark.parametrize(
    ("scope", "expected"), [("subpages", {"/docs/", "/docs/a"}), ("hostname", {"/docs/", "/docs/a", "/blog", "/"})]
)
async def test_the_scope_bounds_what_belongs(kb: KnowledgeBase, tiny: TinySite, scope: str, expected: set[str]) -> None:
    lay(tiny, {"/docs/": ["a", "/blog", "/"], "/docs/a": [], "/blog": [], "/": []})
    await kb.runs.crawl(tiny.at("/docs/"), name="docs", rules={"scope": scope})
    assert set(looks(tiny)) == expected


async def test_include_and_exclude_bound_what_belongs(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/api/a", "/api/old/b", "/guide"], "/api/a": [], "/api/old/b": [], "/guide": []})
    await kb.runs.crawl(tiny.url, name="docs", rules={"include": ["/api/*"], "exclude": ["*/old/*"]})
    assert set(looks(tiny)) == {"/", "/api/a"}


async def test_P13_never_more_than_max_pages_and_the_report_says_so(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, star(30))
    report = await kb.runs.crawl(tiny.url, name="docs", rules={"max_pages": 12})
    assert (report.state, report.new) == ("completed", 12)
    assert any("max_pages 12" in note for note in report.notes)
    assert sum(looks(tiny).values()) == 12
    again = await kb.runs.crawl(tiny.url, name="docs")
    assert (counts(again), len(index_of(store))) == ({"not_modified": 12}, 12)
    tiny.requests.clear()
    wider = await kb.runs.crawl(tiny.url, name="docs", rules={"max_pages": 100})
    assert counts(wider) == {"not_modified": 12, "new": 19}
    assert (wider.notes, set(looks(tiny).values())) == ((), {1})


async def test_A20_the_real_processes_read_a_site_of_documentation(site: TinySite, store: Path) -> None:
    """The Harbor documentation, extracted in processes of their own: every page but the forbidden one."""
    async with opened(store) as kb:
        report = await kb.runs.crawl(site.url, name="docs")
        assert report.state == "completed"
        assert report.new == len([path for path in site.paths if not path.startswith("/private/")])
        statuses = {view.status for view in await kb.pages.of_source("docs") if view.content_hash}
        assert statuses == {PageStatus.ACTIVE}
        assert ((await kb.search.search("retry with back-off", within=["docs"])).hits)[0].url.startswith(site.url)
    assert_sound(store)


async def test_a_page_that_cannot_be_read_does_not_stop_the_others(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a", "/picture", "/b"], "/a": [], "/b": []})
    tiny.put("/picture", page("x"), media_type="image/png")
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert counts(report) == {"new": 3, "refused": 1}


async def test_each_page_is_one_trip_to_a_parser_process(
    kb: KnowledgeBase, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    assert work.calls == 3
    tiny.edit("/a", "<body>", "<body><!-- other bytes, the same text -->")
    await kb.runs.refresh(["docs"])
    assert work.calls == 4
