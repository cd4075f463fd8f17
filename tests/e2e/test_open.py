"""A stored page as its reader gets it, and the version of a source that is meant."""

from pathlib import Path

import pytest
from tests.e2e.library import opened, settings
from tests.e2e.sites import lay, page, star
from tests.server.asking import ask

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.model.filters import ALL_PAGES
from afresh.model.versions import Match
from afresh.server.app import make_app
from afresh.testing import TinySite


async def test_a_page_is_opened_as_markdown_with_its_times(kb: KnowledgeBase, tiny: TinySite) -> None:
    tiny.put("/", page("Start", ["/a"], "Welcome to the harbour."))
    tiny.put("/a", page("Retries", ["/"], "A job is tried again."))
    await kb.runs.crawl(tiny.url, name="docs")
    view = await kb.pages.open(tiny.at("/a#part"))
    assert view.markdown.splitlines()[0] == "# Retries"
    assert "A job is tried again." in view.markdown
    assert (view.url, view.title, view.source, view.version) == (tiny.at("/a"), "Retries", "docs", None)
    assert (view.language, view.moved_from, view.also_in) == ("en", (), ())
    assert view.checked_at is not None
    assert view.changed_at is not None
    assert (await kb.pages.open(tiny.at("/a"), within="docs")).markdown == view.markdown


async def test_a_moved_page_is_followed_and_a_deleted_one_says_since_when(
    kb: KnowledgeBase, store: Path, tiny: TinySite
) -> None:
    lay(tiny, star(12))
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.move("/p0", "/new")
    tiny.delete("/p1")
    await kb.runs.refresh(["docs"])
    view = await kb.pages.open(tiny.at("/p0"))
    assert (view.url, view.moved_from) == (tiny.at("/new"), (tiny.at("/p0"),))
    [moved] = await kb.pages.records(None, ALL_PAGES, url=tiny.at("/p0"), limit=1)
    displayed = (await ask(make_app(kb, settings(store), works=False), "GET", f"/pages/{moved.id}")).body.decode()
    assert f">{tiny.at('/new')}</a>. This is the text of that page." in displayed
    with pytest.raises(UsageError, match=r"/p1 was deleted on \d{4}-\d\d-\d\d at [\d:]{8} UTC; `afresh why"):
        await kb.pages.open(tiny.at("/p1"))


async def test_what_is_not_on_record_is_reported_with_what_is_near(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": ["/guide/retries/"], "/guide/retries/": []})
    await kb.runs.crawl(tiny.url, name="docs")
    with pytest.raises(UsageError, match=rf"not indexed; similar: {tiny.at('/guide/retries/')}$"):
        await kb.pages.open(tiny.at("/api/retries.html"))
    with pytest.raises(UsageError, match="lists the indexed URLs"):
        await kb.pages.open("https://zebra.example/zzz")


async def test_without_a_body_the_way_to_keep_one_is_reported(store: Path, work: object, tiny: TinySite) -> None:
    lay(tiny, star(2))
    async with opened(store, {"storage.body": "none"}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        with pytest.raises(UsageError, match=r"storage\.body: markdown and run `afresh refresh docs`"):
            await kb.pages.open(tiny.at("/p0"))
    async with opened(store) as kb:
        await kb.runs.refresh(["docs"])
        assert "speaks of" in (await kb.pages.open(tiny.at("/p0"))).markdown


async def test_the_text_before_a_loss_is_opened_too(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, star(3))
    tiny.put("/p0", page("/p0", ["/"], "Herons stand in the shallow water and wait. " * 60))
    await kb.runs.crawl(tiny.url, name="docs")
    with pytest.raises(UsageError, match="no former text"):
        await kb.pages.open(tiny.at("/p0"), former=True)
    tiny.put("/p0", page("/p0", ["/"], "Herons stand in the shallow water."))
    await kb.runs.refresh(["docs"])
    now, before = await kb.pages.open(tiny.at("/p0")), await kb.pages.open(tiny.at("/p0"), former=True)
    assert now.doubt is not None
    assert len(before.markdown) > 10 * len(now.markdown)


async def test_versions_are_found_for_reading_and_only_exact_ones_for_changing(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    for number in ("17.0.2", "18.2.0", "18.3.1"):
        lay(tiny, {f"/{number}/": []})
        await kb.runs.crawl(tiny.at(f"/{number}/"), name="react", version=number)
    found = await kb.sources.find_version("react@^18")
    assert (found.version, found.match, found.unversioned) == ("18.3.1", Match.RANGE, False)
    assert found.versions == ("18.3.1", "18.2.0", "17.0.2")
    assert found.url == tiny.at("/18.3.1/")
    assert (await kb.pages.open(tiny.at("/18.2.0/"), within="react@~18.2")).version == "18.2.0"
    for changing in (
        kb.runs.refresh(["react@18"]),
        kb.sources.remove("react@18"),
        kb.sources.view("react@18"),
        kb.sources.plan("react@18"),
    ):
        with pytest.raises(UsageError, match=r"no source react(@18)?; did you mean react@18\.3\.1 or react@18\.2\.0"):
            await changing
    with pytest.raises(UsageError, match="did you mean react"):
        await kb.sources.find_version("raect@18")
    with pytest.raises(UsageError, match=r"no source react@16; did you mean react@18\.3\.1"):
        await kb.sources.find_version("react@16")
    with pytest.raises(UsageError, match="cannot be a version"):
        await kb.runs.crawl(tiny.at("/18.3.1/"), name="react", version="^18")


async def test_a_stand_in_is_reported(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/": [], "/17/": []})
    await kb.runs.crawl(tiny.url, name="docs")
    await kb.runs.crawl(tiny.at("/17/"), name="docs", version="17")
    for label, message in {
        "docs": (),
        "docs@17": (),
        "docs@18.1.0": ("there is no docs@18.1.0: using docs@17 (closest lower version)",),
        "docs@16": ("there is no docs@16: using docs, which has no version",),
    }.items():
        assert (await kb.search.search("speaks", within=[label], mode="text")).notes == message
    both = await kb.search.search("speaks", within=["docs", "docs@^17"], mode="text")
    assert {hit.version for hit in both.hits} == {None, "17"}
