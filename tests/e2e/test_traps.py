"""Traps end (F67, P13), and real documentation does not suffer from how they are ended."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.endless import ENTRIES, EndlessSite
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, index_of, opened
from tests.e2e.sites import lay, looks, page

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.testing import FrozenClock, TinySite
from afresh.urls.traps import pattern_of


@pytest.fixture
def endless() -> Iterator[EndlessSite]:
    with EndlessSite() as site:
        yield site


def patterns(site: TinySite, store: Path) -> Counter[str]:
    """How many pages are held of each pattern."""
    held = (pattern_of(url, site.url) for url in index_of(store))
    return Counter(pattern.removeprefix(site.url) for pattern in held if pattern)


@pytest.mark.parametrize(
    ("trap", "expected", "reported"),
    [
        ("/cal/", {"cal/{n}/{n}": 40, "cal/{n}/{n}/{n}": 40}, "stopped at 40 pages like /cal/{n}/{n}"),
        ("/list", {"list?page={n}": 40}, "stopped at 40 pages like /list?page={n}"),
        ("/shop/", {"shop/e?key={id}": 40}, "stopped at 40 pages like /shop/e?key={id}"),
    ],
)
async def test_F67_P13_what_counts_without_end_ends_at_its_pattern(
    store: Path, work: type[InProcess], endless: EndlessSite, trap: str, expected: dict[str, int], reported: str
) -> None:
    lay(endless, {"/": [ENTRIES[trap]]})
    async with opened(store, {"crawl.max_per_pattern": 40}) as kb:
        report = await kb.runs.crawl(endless.url, name="docs")
        assert patterns(endless, store) == expected
        (note,) = [each for each in report.notes if reported in each and "looks infinite" in each][:1]
        assert "--max-per-pattern 200` admits more" in note
        for _ in range(2):
            (again,) = await kb.runs.refresh(["docs"])
            assert (again.new, again.state) == (0, "completed")
        (full,) = await kb.runs.refresh(["docs"], full=True)
        assert (full.new, full.missing) == (0, 0)
    assert patterns(endless, store) == expected
    assert_sound(store)


async def test_F67_session_ids_make_no_pages_of_their_own(kb: KnowledgeBase, endless: EndlessSite, store: Path) -> None:
    lay(endless, {"/": [ENTRIES["/shop/"]]})
    await kb.runs.crawl(endless.url, name="docs", rules={"exclude": ["*key=*"]})
    assert set(index_of(store)) == {endless.at(path) for path in ("/", "/shop/a", "/shop/b", "/shop/c", "/shop/d")}


async def test_F67_a_path_that_repeats_itself_ends_and_is_reported(
    kb: KnowledgeBase, endless: EndlessSite, store: Path
) -> None:
    lay(endless, {"/": [ENTRIES["/deep"]]})
    report = await kb.runs.crawl(endless.url, name="docs", rules={"max_components": 7})
    assert endless.at("/deep/a/a") in index_of(store)
    assert not [url for url in index_of(store) if "/a/a/a" in url or "/b/c/b/c/b/c" in url]
    assert [note for note in report.notes if "/a/a/a" in note and "the path repeats itself" in note]
    with pytest.raises(UsageError, match="looks endless: the path repeats /a"):
        await kb.pages.explain(endless.at("/deep/a/a/a"))


async def test_F67_ever_longer_addresses_and_ever_more_parameters_end_and_are_reported(
    kb: KnowledgeBase, endless: EndlessSite, store: Path
) -> None:
    lay(endless, {"/": [ENTRIES["/long/"], ENTRIES["/grow"]]})
    report = await kb.runs.crawl(endless.url, name="docs")
    assert max(map(len, index_of(store))) <= 2_000
    assert any("longer than 2,000 characters" in note for note in report.notes)
    assert any("the parameters keep growing" in note for note in report.notes)
    assert report.state == "completed"


async def test_F67_P13_all_traps_at_once_stay_below_max_pages(
    store: Path, work: type[InProcess], endless: EndlessSite
) -> None:
    lay(endless, {"/": [*ENTRIES.values(), "/real"], "/real": ["/real/1", "/real/2"], "/real/1": [], "/real/2": []})
    flags = {"crawl.max_per_pattern": 20, "crawl.max_pages": 150, "crawl.concurrency": 16}
    async with opened(store, flags) as kb:
        report = await kb.runs.crawl(endless.url, name="docs")
        assert report.state == "completed"
        assert {endless.at(path) for path in ("/", "/real", "/real/1", "/real/2")} <= set(index_of(store))
        assert len(index_of(store)) <= 150
        await kb.runs.refresh(["docs"], full=True)
    assert len(index_of(store)) <= 150
    assert max(patterns(endless, store).values()) <= 20


async def test_P13_a_due_run_keeps_to_max_pages_too(store: Path, work: type[InProcess], tiny: TinySite) -> None:
    """What is due is less than what is there: new pages still count against all of it."""
    lay(tiny, {"/": ["/a", "/b", "/c"], "/a": [], "/b": [], "/c": []})
    clock = FrozenClock()
    async with opened(store, {"crawl.max_pages": 5, "policy.retries": 0}, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.fail("/a", 503)
        await kb.runs.refresh(["docs"])
        tiny.restore("/a")
        tiny.put("/", page("/", ["/a", "/b", "/c", "/d", "/e", "/f"]))
        lay(tiny, {"/d": [], "/e": [], "/f": []})
        clock.advance(60)  # /a is tried again; the others are not due for long
        (report,) = await kb.runs.refresh(["docs"], due=True)
    assert (report.new, report.not_modified) == (1, 3)
    assert len(index_of(store)) == 5


async def test_F67_why_names_the_trap_and_a_wider_limit_goes_on_without_reading_again(
    store: Path, work: type[InProcess], endless: EndlessSite
) -> None:
    lay(endless, {"/": [ENTRIES["/list"]]})
    async with opened(store) as kb:
        await kb.runs.crawl(endless.url, name="docs", rules={"max_per_pattern": 10})
        left_out = next(
            link.url for link in await kb.links.of_source("docs", limit=100) if link.url not in index_of(store)
        )
        with pytest.raises(UsageError, match=r"10 pages like /list\?page={n}, which look like an infinite URL space"):
            await kb.pages.explain(left_out)
        endless.requests.clear()
        report = await kb.runs.crawl(endless.url, name="docs", rules={"max_per_pattern": 25})
        assert (report.not_modified, report.new) == (11, 15)
        assert patterns(endless, store) == {"list?page={n}": 25}


async def test_F67_other_rules_do_not_open_a_trap_again(
    store: Path, work: type[InProcess], endless: EndlessSite
) -> None:
    lay(endless, {"/": [ENTRIES["/cal/"], "/old"], "/old": []})
    async with opened(store, {"crawl.max_per_pattern": 10}) as kb:
        await kb.runs.crawl(endless.url, name="docs", rules={"exclude": ["/old"]})
        before = patterns(endless, store)
        report = await kb.runs.crawl(endless.url, name="docs", rules={"exclude": []})
    assert (report.new, patterns(endless, store)) == (1, before)


async def test_F67_numbered_pages_of_real_sites_come_in_whole(
    store: Path, work: type[InProcess], tiny: TinySite
) -> None:
    """Listed by a sitemap, by a table of contents, or below the page that links to them."""
    contents, below, listed = ([f"{start}/{n}" for n in range(30)] for start in ("/toc", "/part/7/item", "/map"))
    lay(tiny, {"/": ["/toc", "/part/7/"], "/toc": contents, "/part/7/": below})
    lay(tiny, {path: ["/toc/1", "/part/7/item/2"] for path in (*contents, *below, *listed)})
    tiny.sitemap(True)
    for path in (*contents, *below):
        tiny.put(path, page(path), listed=False)
    async with opened(store, {"crawl.max_per_pattern": 5}) as kb:
        report = await kb.runs.crawl(tiny.url, name="docs")
    assert len(index_of(store)) == len(looks(tiny)) == 3 + 90
    assert report.notes == ()


async def test_F67_a_trap_is_still_reported_by_a_run_that_was_interrupted(
    store: Path, work: type[InProcess], endless: EndlessSite
) -> None:
    lay(endless, {"/": [ENTRIES["/list"]]})
    async with opened(store, {"crawl.max_per_pattern": 30}) as kb:
        gate = endless.hold("/list?page=20")
        running = asyncio.create_task(kb.runs.crawl(endless.url, name="docs"))
        await gate.arrived()
        kb.stop()
        endless.release("/list?page=20")
        assert (await running).state == "cancelled"
    async with opened(store, {"crawl.max_per_pattern": 30}) as kb:
        report = await kb.runs.crawl(endless.url, name="docs")
    assert report.state == "completed"
    assert any("stopped at 30 pages like /list?page={n}" in note for note in report.notes)
    assert patterns(endless, store) == {"list?page={n}": 30}
