"""Sitemaps that lie, swell or lead astray (F76, F77), from the request to the report."""

from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import index_of, opened
from tests.e2e.sites import lay, looks

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite


def sitemap(*locs: str) -> str:
    entries = "".join(f"<url><loc>{loc}</loc></url>" for loc in locs)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


def serve(site: TinySite, *locs: str) -> None:
    site.put("/sitemap.xml", sitemap(*locs), media_type="application/xml")


async def test_F77_foreign_and_private_addresses_are_dropped_and_reported(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, {"/": [], "/a": []})
    private = ["http://10.0.0.1/", "http://169.254.169.254/latest", "http://[::1]/", "http://intranet/x"]
    foreign = [f"http://s{number}.example.org/p" for number in range(49_000)]
    serve(tiny, "/a", *private, *foreign, "file:///etc/passwd")
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert set(index_of(store)) == {tiny.url, tiny.at("/a")}
    assert report.notes == ("sitemap: 49,005 URLs left out: 49,000 other host, 4 private, 1 not a web URL",)
    assert report.state == "completed"


async def test_F76_a_sitemap_beyond_max_pages_fills_the_room_and_proves_no_absence(
    store: Path, work: type[InProcess], tiny: TinySite
) -> None:
    paths = [f"/p{number}" for number in range(40)]
    lay(tiny, dict.fromkeys(paths, ()))
    lay(tiny, {"/": ["/kept"], "/kept": []})
    async with opened(store, {"crawl.max_pages": 10, "policy.missing_after": 1}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        assert set(index_of(store)) == {tiny.url, tiny.at("/kept")}
        lay(tiny, {"/": []})
        serve(tiny, *paths)
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.missing, report.deleted, report.state) == (0, 0, "completed")
        assert any("list more than 10 URLs: 30 left out" in note for note in report.notes)
        assert len(index_of(store)) == 10
    assert tiny.at("/kept") in index_of(store)


async def test_F76_a_huge_sitemap_is_parsed_elsewhere_and_holds_no_more_than_max_pages(
    store: Path, work: type[InProcess], tiny: TinySite
) -> None:
    lay(tiny, {"/": []})
    serve(tiny, *(f"/{'x' * 200}/{number}" for number in range(50_000)))
    async with opened(store, {"crawl.max_pages": 1}) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs")
        assert work.calls == 2  # the sitemap, and the one page
    assert any("more than 1 URLs: 49,999 left out" in note for note in report.notes)


@pytest.mark.parametrize("body", ["<html>404</html>", "<urlset><url><loc>/a</loc></ur", "no sitemap"])
async def test_F76_a_broken_sitemap_harms_nothing(kb: KnowledgeBase, tiny: TinySite, store: Path, body: str) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    tiny.robots("Sitemap: {url}sitemap.xml\n")
    tiny.put("/sitemap.xml", body, media_type="application/xml")
    for _ in range(4):
        report = await kb.runs.crawl(tiny.url, name="docs")
    assert (report.state, report.missing) == ("completed", 0)
    assert len(report.notes) == 1
    assert set(index_of(store)) == {tiny.url, tiny.at("/a")}


async def test_F76_lastmod_is_only_a_hint(kb: KnowledgeBase, tiny: TinySite) -> None:
    """A page is asked whatever its date says: a wrong date must not hide a change."""
    lay(tiny, {"/": [], "/a": []})
    stale = sitemap("/a").replace("</loc>", "</loc><lastmod>1999-01-01</lastmod>")
    tiny.put("/sitemap.xml", stale, media_type="application/xml")
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.edit("/a", add_paragraph="news")
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.changed, looks(tiny)["/a"]) == (1, 1)
