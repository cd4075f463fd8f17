"""What a site says of itself beside its pages: llms.txt, Markdown files and answers, feeds."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import counts, found, index_of, opened, rows
from tests.e2e.sites import lay, looks, page, star, word

from afresh.kb import KnowledgeBase
from afresh.testing import FrozenClock, TinySite
from afresh.testing.script import Answer, unless_known

if TYPE_CHECKING:
    from aiohttp import web


def llms(site: TinySite, *paths: str, at: str = "/llms.txt", more: str = "") -> None:
    """Place a list of links for programs."""
    items = "".join(f"- [{path}]({path}): what it says\n" for path in paths)
    site.put(at, f"# Site\n\n> A site.\n\n## Docs\n\n{items}{more}", media_type="text/plain")


def markdown(title: str, *links: str) -> str:
    """A page in Markdown that can be found by `word(title)`."""
    items = "".join(f"- [to {link}]({link})\n" for link in links)
    return f"# {title}\n\nIn Markdown this page speaks of {word(title)} and of little else.\n\n{items}"


def put_markdown(site: TinySite, path: str, title: str, *links: str) -> None:
    site.put(path, markdown(title, *links), media_type="text/markdown")


def at(site: TinySite, *paths: str) -> set[str]:
    return {site.at(path) for path in paths}


def texts(store: Path) -> dict[str, str]:
    return dict(rows(store, "select p.url, d.markdown from pages p join documents d on d.page_id = p.id"))


# ---- llms.txt ------------------------------------------------------------------------------------


async def test_A1_llms_txt_lists_pages_that_nothing_links_to(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": [], "/a": ["/deep"], "/deep": []})
    llms(tiny, "/a", "https://other.example/x")
    report = await kb.runs.crawl(tiny.url, name="docs")
    views = {view.url: view.depth for view in await kb.pages.of_source("docs")}
    assert views == {tiny.url: 0, tiny.at("/a"): 1, tiny.at("/deep"): 2}
    assert (report.state, report.notes) == ("completed", ())


async def test_A3_llms_txt_that_was_there_is_asked_for_conditionally(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    lay(tiny, {"/": [], "/a": []})
    llms(tiny, "/a")
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    for _ in range(4):  # one more than it takes to miss a page
        tiny.requests.clear()
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.not_modified, report.missing) == (2, 0)
        assert sorted(tiny.requests.paths()) == ["/", "/a", "/llms.txt", "/robots.txt", "/sitemap.xml"]
        assert tiny.requests.count("/llms.txt", status=304) == 1
    assert index_of(store) == before
    lay(tiny, {"/new": []})
    llms(tiny, "/a", "/new")
    (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"new": 1, "not_modified": 2}


async def test_A23_llms_txt_that_is_not_there_is_asked_for_once(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(2))
    await kb.runs.crawl(tiny.url, name="docs")
    assert tiny.requests.count("/llms.txt") == 1
    tiny.requests.clear()
    await kb.runs.refresh(["docs"])
    assert sorted(tiny.requests.paths()) == ["/", "/p0", "/p1", "/robots.txt", "/sitemap.xml"]
    await kb.runs.refresh(["docs"], full=True)
    assert tiny.requests.count("/llms.txt") == 1


async def test_A23_beside_a_sitemap_llms_txt_is_not_asked_for(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": [], "/a": []})
    llms(tiny, "/b")
    tiny.sitemap(True)
    await kb.runs.crawl(tiny.url, name="docs")
    await kb.runs.refresh(["docs"])
    assert tiny.requests.count("/llms.txt") == 0


async def test_llms_txt_below_the_root_comes_first(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/docs/": [], "/docs/a": [], "/docs/b": [], "/c": []})
    llms(tiny, "a", "/c", at="/docs/llms.txt")
    llms(tiny, "/docs/b")
    await kb.runs.crawl(tiny.at("/docs/"), name="docs")
    assert {view.url for view in await kb.pages.of_source("docs")} == at(tiny, "/docs/", "/docs/a")
    tiny.delete("/docs/llms.txt")
    await kb.runs.crawl(tiny.at("/docs/"), name="other", version="2")
    assert {view.url for view in await kb.pages.of_source("other@2")} == at(tiny, "/docs/", "/docs/b")


async def test_llms_txt_that_robots_names_is_read_beside_sitemaps(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": [], "/a": [], "/b": []})
    tiny.robots("Sitemap: {url}map.txt\nSitemap: {url}llms.txt\n")
    tiny.put("/map.txt", tiny.at("/a"), media_type="text/plain")
    llms(tiny, "/b")
    await kb.runs.crawl(tiny.url, name="docs")
    assert {view.url for view in await kb.pages.of_source("docs")} == at(tiny, "/", "/a", "/b")


@pytest.mark.parametrize(
    "body",
    [
        "<!doctype html><title>404</title><a href='/a'>x</a>",
        "no links at all",
        "# x\n\n" + "- [a](http://10.0.0.1/) [b](file:///etc/passwd) [c](//[::1]/)\n" * 3,
        "x" * (5 * 1024 * 1024 + 1),
        "[" * 200_000 + "](" * 200_000,
    ],
    ids=["a soft 404", "prose", "private links", "huge", "brackets"],
)
async def test_F76_F77_an_llms_txt_that_lies_harms_nothing(
    kb: KnowledgeBase, tiny: TinySite, store: Path, body: str
) -> None:
    lay(tiny, {"/": ["/a"], "/a": []})
    tiny.put("/llms.txt", body, media_type="text/plain")
    for _ in range(4):
        report = await kb.runs.crawl(tiny.url, name="docs")
        assert (report.state, report.missing) == ("completed", 0)
    assert set(index_of(store)) == at(tiny, "/", "/a")


async def test_G2_an_llms_txt_that_broke_makes_absence_no_evidence(
    store: Path, work: type[InProcess], tiny: TinySite
) -> None:
    lay(tiny, {"/": [], "/a": []})
    llms(tiny, "/a")
    async with opened(store, {"policy.missing_after": 1}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        for broken in (503, 403):
            tiny.fail("/llms.txt", broken)
            (report,) = await kb.runs.refresh(["docs"])
            assert (report.missing, report.deleted) == (0, 0)
            assert any("llms.txt" in note for note in report.notes)
        tiny.put("/llms.txt", "<html>welcome</html>", media_type="text/html")
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.missing, report.deleted) == (0, 0)
        tiny.delete("/llms.txt")
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.deleted, set(index_of(store))) == (1, {tiny.url})


async def test_a_list_that_is_itself_the_target(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": [], "/a": ["/deep"], "/deep": [], "/listed": []})
    llms(tiny, "/a")
    tiny.sitemap(True)
    await kb.runs.crawl(tiny.at("/llms.txt"), name="list")
    assert {view.url for view in await kb.pages.of_source("list")} == at(tiny, "/llms.txt", "/a", "/deep")


async def test_all_text_in_one_file_is_a_page_only_where_it_is_the_target(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/a", "/llms-full.txt"], "/a": []})
    whole = "# All\n\n" + markdown("/a", "/a", "/b")
    tiny.put("/llms-full.txt", whole, media_type="text/plain")
    await kb.runs.crawl(tiny.url, name="site")
    assert {view.url for view in await kb.pages.of_source("site")} == at(tiny, "/", "/a")
    await kb.runs.crawl(tiny.at("/llms-full.txt"), name="whole")
    assert {view.url for view in await kb.pages.of_source("whole")} == at(tiny, "/llms-full.txt")
    assert await found(kb, word("/a"), "whole") == at(tiny, "/llms-full.txt")


# ---- Markdown files ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["", ".html", "/"])
async def test_a_page_and_its_markdown_file_are_one_page(
    kb: KnowledgeBase, tiny: TinySite, store: Path, form: str
) -> None:
    pages = [f"/docs/a{form}", f"/docs/b{form}"]
    lay(tiny, {"/": pages, **{path: ["/docs/a.md", "/docs/b.md"] for path in pages}})
    put_markdown(tiny, "/docs/a.md", "a", "b.md", f"/docs/b{form}", "c.md")
    put_markdown(tiny, "/docs/b.md", "b")
    put_markdown(tiny, "/docs/c.md", "c")
    llms(tiny, "/docs/a.md", "/docs/b.md")
    report = await kb.runs.crawl(tiny.url, name="docs")
    held = texts(store)
    assert set(held) == at(tiny, "/", *pages, f"/docs/c{form}")
    assert all("In Markdown" in held[tiny.at(path)] for path in (*pages, f"/docs/c{form}"))
    assert report.state == "completed"
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.not_modified, report.changed) == (4, 0)
    assert looks(tiny) == dict.fromkeys(("/", "/docs/a.md", "/docs/b.md", "/docs/c.md"), 1)
    tiny.edit("/docs/b.md", "little else", "something new")
    (report,) = await kb.runs.refresh(["docs"], full=True)
    assert counts(report) == {"changed": 1, "unchanged": 3}
    assert set(texts(store)) == set(held)


async def test_a_markdown_file_without_a_page_is_a_page(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": []})
    put_markdown(tiny, "/a.md", "a", "b.md")
    put_markdown(tiny, "/b.md", "b")
    llms(tiny, "/a.md")
    await kb.runs.crawl(tiny.url, name="docs")
    assert {view.url for view in await kb.pages.of_source("docs")} == at(tiny, "/", "/a.md", "/b.md")
    tiny.requests.clear()
    await kb.runs.refresh(["docs"])
    assert set(looks(tiny)) == {"/", "/a.md", "/b.md"}


async def test_a_page_whose_markdown_file_goes_is_read_as_html(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/": [], "/a": [], "/b": []})
    for name in ("a", "b"):
        put_markdown(tiny, f"/{name}.md", name)
    llms(tiny, "/a.md", "/b.md")
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.delete("/a.md")
    tiny.put("/b.md", page("not found"))
    (report,) = await kb.runs.refresh(["docs"])
    assert counts(report) == {"changed": 2, "not_modified": 1}
    assert not any("In Markdown" in text for text in texts(store).values())
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["docs"])
    assert report.not_modified == 3
    assert looks(tiny) == {"/": 1, "/a": 1, "/b": 1}


async def test_a_page_that_names_its_markdown_does_not_lead_there(kb: KnowledgeBase, tiny: TinySite) -> None:
    head = '<link rel="alternate" type="text/markdown" href="/a.md">'
    tiny.put("/", page("/", ["/a", "/other.md"]))
    tiny.put("/a", page("/a", ["/a.md", "/b"], head=head))
    lay(tiny, {"/b": []})
    put_markdown(tiny, "/a.md", "a")
    put_markdown(tiny, "/other.md", "other")
    await kb.runs.crawl(tiny.url, name="docs")
    assert {view.url for view in await kb.pages.of_source("docs")} == at(tiny, "/", "/a", "/b", "/other.md")


# ---- Markdown by asking for it -------------------------------------------------------------------


class NegotiatingSite(TinySite):
    """A site that answers with Markdown who prefers that, with an ETag of its own for each form."""

    alternates: Mapping[str, str] = {}

    def _answer(self, request: "web.BaseRequest") -> Answer:
        prefers = request.headers.get("Accept", "").startswith("text/markdown")
        text = self.alternates.get(request.path) if prefers else None
        if text is None:
            return super()._answer(request)
        headers = {"Content-Type": "text/markdown", "ETag": f'"md-{hash(text)}"', "Vary": "Accept"}
        answer = Answer(status=200, headers=headers, body=text.encode())
        return unless_known(answer, request.headers.get("If-None-Match"), None)


def negotiating(site: NegotiatingSite) -> NegotiatingSite:
    graph = {"/": ["/a"], "/a": ["/sub/b", "/c"], "/sub/b": ["/d", "/sub/e"], "/c": [], "/d": [], "/sub/e": []}
    lay(site, graph)
    relative = {"/sub/b": ["../d", "e"]}
    site.alternates = {path: markdown(path, *relative.get(path, links)) for path, links in graph.items()}
    site.put("/sitemap.xml", "".join(f"{site.at(path)}\n" for path in ("/a", "/sub/b", "/c")))
    return site


async def test_A12_pages_read_as_markdown_lead_to_the_same_pages(
    store: Path, work: type[InProcess], tmp_path: Path
) -> None:
    with NegotiatingSite() as site:
        negotiating(site)
        async with opened(store) as kb, opened(tmp_path / "html.db", {"crawl.markdown": "never"}) as plain:
            await kb.runs.crawl(site.url, name="docs")
            await plain.runs.crawl(site.url, name="docs")
            held, as_html = texts(store), texts(tmp_path / "html.db")
            assert set(held) == set(as_html) == at(site, "/", "/a", "/sub/b", "/c", "/d", "/sub/e")
            assert {url for url, text in held.items() if "In Markdown" in text} == at(site, "/a", "/sub/b", "/c")
            assert not any("In Markdown" in text for text in as_html.values())
            site.requests.clear()
            (report,) = await kb.runs.refresh(["docs"])
            assert (report.not_modified, set(looks(site).values())) == (6, {1})
            site.alternates = {**site.alternates, "/c": markdown("/c") + "\nNews.\n"}
            (report,) = await kb.runs.refresh(["docs"])
            assert counts(report) == {"changed": 1, "not_modified": 5}


async def test_A4_a_page_on_record_stays_as_it_was_first_read(store: Path, work: type[InProcess]) -> None:
    """A site that begins to offer Markdown changes nothing by that: no page, no vector, no link."""
    with NegotiatingSite() as site:
        alternates, site.alternates = negotiating(site).alternates, {}
        async with opened(store) as kb:
            await kb.runs.crawl(site.url, name="docs")
            site.alternates = alternates
            before = index_of(store)
            (report,) = await kb.runs.refresh(["docs"])
            assert counts(report) == {"not_modified": 6}
            (report,) = await kb.runs.refresh(["docs"], full=True)
            assert counts(report) == {"unchanged": 6}
            assert index_of(store) == before


# ---- feeds ---------------------------------------------------------------------------------------


def feed(site: TinySite, *items: tuple[str, str]) -> None:
    entries = "".join(f"<item><link>{path}</link><pubDate>{when}</pubDate></item>" for path, when in items)
    xml = f"<rss><channel><link>/</link>{entries}</channel></rss>"
    site.put("/feed.xml", xml, media_type="application/rss+xml")


FEED = "<link rel=alternate type='application/rss+xml' title=News href=feed.xml>"
WHEN = "Thu, 05 Jan 2017 12:34:51 GMT"


async def test_a_feed_that_the_root_names_lists_pages_from_the_second_run_on(kb: KnowledgeBase, tiny: TinySite) -> None:
    tiny.put("/", page("/", head=FEED))
    lay(tiny, {"/post": []})
    feed(tiny, ("/post", WHEN), ("http://10.0.0.1/", WHEN))
    await kb.runs.crawl(tiny.url, name="docs")
    assert tiny.requests.count("/feed.xml") == 0
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.new, report.state) == (1, "completed")
    for _ in range(4):
        tiny.requests.clear()
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.not_modified, report.missing) == (2, 0)
        assert tiny.requests.count("/feed.xml", status=304) == tiny.requests.count("/feed.xml") == 1
    tiny.fail("/feed.xml", 503)
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.missing, any("feed.xml" in note for note in report.notes)) == (0, True)
    tiny.restore("/feed.xml")
    (report,) = await kb.runs.refresh(["docs"], full=True)
    assert (report.unchanged, report.missing) == (2, 0)
    tiny.put("/", page("/", text="the feed is no longer named"))
    await kb.runs.refresh(["docs"])
    tiny.requests.clear()
    await kb.runs.refresh(["docs"])
    assert tiny.requests.count("/feed.xml") == 0


@pytest.mark.parametrize(
    "body", ["<html>404</html>", "", "<rss><channel><it", '<!DOCTYPE x [<!ENTITY a "b">]><rss>&a;</rss>']
)
async def test_F76_a_feed_that_is_none_is_asked_for_once(kb: KnowledgeBase, tiny: TinySite, body: str) -> None:
    tiny.put("/", page("/", ["/a"], head=FEED))
    lay(tiny, {"/a": []})
    tiny.put("/feed.xml", body)
    for _ in range(4):
        report = await kb.runs.crawl(tiny.url, name="docs")
        assert (report.state, report.missing) == ("completed", 0)
    assert tiny.requests.count("/feed.xml") == 1


async def test_A23_a_feed_is_not_asked_for_where_sitemaps_have_dates(kb: KnowledgeBase, tiny: TinySite) -> None:
    tiny.put("/", page("/", ["/a"], head=FEED))
    lay(tiny, {"/a": []})
    feed(tiny, ("/a", WHEN))
    tiny.sitemap(True)
    for _ in range(3):
        await kb.runs.crawl(tiny.url, name="docs")
    assert tiny.requests.count("/feed.xml") == 0


# ---- dates ---------------------------------------------------------------------------------------


def dated(site: TinySite, **dates: str) -> None:
    entries = "".join(f"<url><loc>/{name}</loc><lastmod>{when}</lastmod></url>" for name, when in dates.items())
    site.put("/sitemap.xml", f"<urlset>{entries}</urlset>", media_type="application/xml")


async def test_F76_pages_with_old_dates_are_not_asked_only_where_that_was_chosen(
    store: Path, work: type[InProcess], tiny: TinySite
) -> None:
    lay(tiny, {"/": ["/a", "/b", "/c", "/d"], "/a": [], "/b": [], "/c": [], "/d": []})
    dated(tiny, a="2020-01-01", b="9999-01-01", c="rubbish")
    clock = FrozenClock(datetime(2026, 5, 20, tzinfo=UTC))
    flags = {"crawl.trust_lastmod": True, "policy.reread_seconds": 30 * 86_400}
    async with opened(store, flags, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        before = {view.url: view.checked_at for view in await kb.pages.of_source("docs")}
        clock.advance(86_400)
        tiny.requests.clear()
        (report,) = await kb.runs.refresh(["docs"])
        assert counts(report) == {"not_modified": 5}
        assert looks(tiny) == {"/": 1, "/b": 1, "/c": 1, "/d": 1}
        attempt = next(each for each in await kb.pages.history(tiny.at("/a")) if each.outcome)
        assert (attempt.status_code, (attempt.reason or "")[:9]) == (None, "not reque")
        after = {view.url: view.checked_at for view in await kb.pages.of_source("docs")}
        assert after[tiny.at("/a")] == before[tiny.at("/a")], "nobody looked"
        tiny.edit("/a", add_paragraph="news")
        dated(tiny, a="2026-05-20T12:00:00Z")  # told late: between the look and the run that did not ask
        clock.advance(60)
        (report,) = await kb.runs.refresh(["docs"])
        assert report.changed == 1
        clock.advance(40 * 86_400)
        tiny.requests.clear()
        await kb.runs.refresh(["docs"])
        assert looks(tiny)["/a"] == 1
        tiny.requests.clear()
        await kb.runs.refresh(["docs"], full=True)
        assert looks(tiny)["/a"] == 1


async def test_A28_what_the_site_says_is_news_is_due_at_once(
    store: Path, work: type[InProcess], tiny: TinySite
) -> None:
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    dated(tiny, a="2026-05-01", b="2026-05-01")
    clock = FrozenClock(datetime(2026, 5, 20, tzinfo=UTC))
    async with opened(store, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        clock.advance(3600)
        tiny.requests.clear()
        (report,) = await kb.runs.refresh(["docs"], due=True)
        assert (counts(report), looks(tiny)) == ({}, {})
        tiny.edit("/a", add_paragraph="news")
        lay(tiny, {"/c": []})
        dated(tiny, a="2026-05-20T00:30:00Z", b="9999-01-01", c="2026-05-20T00:30:00Z")
        (report,) = await kb.runs.refresh(["docs"], due=True)
        assert counts(report) == {"changed": 1, "new": 1, "not_modified": 1}
        assert looks(tiny) == {"/": 1, "/a": 1, "/c": 1}  # the root tells whether the site is well
