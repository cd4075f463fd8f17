"""Too many links on a page (F64), and what a page claims about addresses (F70)."""

from pathlib import Path

import psutil
import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import index_of, opened, rows
from tests.e2e.sites import lay, page

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite


async def test_F64_a_page_full_of_links_costs_little_and_is_reported(store: Path, tiny: TinySite) -> None:
    tiny.put("/", page("/"))
    async with opened(store, {"crawl.max_pages": 1}) as kb:
        await kb.runs.crawl(tiny.url, name="small")  # loads the modules and the model
    tiny.put("/", page("/") + "".join(f"<a href=p{number}>x</a> " for number in range(200_000)))
    before = psutil.Process().memory_info().rss
    async with opened(store, {"crawl.max_pages": 1}) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs", again=True)
        grown = psutil.Process().memory_info().rss - before
    assert rows(store, "select count(*) from page_links") == [(5_000,)]
    reported = (
        "1 page has too many links: 195,000 were left out, so this run deletes no page because no link leads to it"
    )
    assert reported in report.notes
    assert grown < 60 * 2**20


async def test_F64_a_page_behind_a_cut_link_is_not_missing(
    store: Path, work: type[InProcess], tiny: TinySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the run that cuts it, and not in the later ones, where the page answers 304."""
    lay(tiny, {"/": ["/a", "/last"], "/a": [], "/last": []})
    async with opened(store, {"policy.missing_after": 1}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        monkeypatch.setattr("afresh.extract.links.MAX_LINKS", 3)
        tiny.put("/", page("/", ["/a", "https://x.example.org/1", "https://x.example.org/2", "/last"]))
        for _ in range(3):
            (report,) = await kb.runs.refresh(["docs"])
            assert (report.missing, report.deleted, report.state) == (0, 0, "completed")
            assert any("1 was left out" in note for note in report.notes)
        tiny.put("/", page("/", ["/a"]))
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.deleted, report.notes) == (1, ())
    assert set(index_of(store)) == {tiny.url, tiny.at("/a")}


@pytest.mark.parametrize(
    ("base", "found"),
    [
        ("/sub/", {"/", "/sub/a"}),
        ("http://foreign.example.org/", {"/"}),
        ("javascript:alert(1)//", {"/", "/a"}),
        ("http://user:word@127.0.0.1/", {"/", "/a"}),
        ("file:///etc/", {"/", "/a"}),
    ],
)
async def test_F70_base_is_honoured_within_the_scope(
    kb: KnowledgeBase, tiny: TinySite, store: Path, base: str, found: set[str]
) -> None:
    tiny.put("/", page("/", ["a"], head=f'<base href="{base}">'))
    lay(tiny, {"/a": [], "/sub/a": []})
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert set(index_of(store)) == {tiny.at(path) for path in found}
    assert report.state == "completed"


async def test_F70_a_foreign_canonical_is_ignored_and_reported(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    """Inside the source it is ignored too: a page is what its own address answers."""
    foreign, own = "https://thief.example.org/a", "/b"
    tiny.put("/", page("/", ["/a"], head=f'<link rel="canonical" href="{own}">'))
    tiny.put("/a", page("/a", head=f'<link rel="canonical" href="{foreign}">'))
    await kb.runs.crawl(tiny.url, name="docs")
    assert set(index_of(store)) == {tiny.url, tiny.at("/a")}
    reasons = dict(rows(store, "select url, reason from page_crawls where outcome = 'success'"))
    assert reasons[tiny.at("/a")] == f"200, first content; its rel=canonical to another host is ignored: {foreign}"
    assert "canonical" not in reasons[tiny.url]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("0; url=/there", {"/", "/there"}),
        ("0;URL='/there#part'", {"/", "/there"}),
        ("5", {"/"}),
        ("0; url=http://foreign.example.org/", {"/"}),
        ("0; url=javascript:alert(1)", {"/"}),
        ("0; url=file:///etc/passwd", {"/"}),
    ],
)
async def test_F70_meta_refresh_is_a_link_within_the_scope(
    kb: KnowledgeBase, tiny: TinySite, store: Path, content: str, found: set[str]
) -> None:
    tiny.put("/", page("/", head=f'<meta http-equiv="Refresh" content="{content}">'))
    lay(tiny, {"/there": []})
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert set(index_of(store)) == {tiny.at(path) for path in found}
    assert report.state == "completed"
