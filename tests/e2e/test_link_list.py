"""A file of links from crawl to search: pages of many hosts, added, taken off, moved, down and due."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, found, index_of, opened
from tests.e2e.sites import BusySite, lay, looks, page, word

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.testing import FrozenClock, TinySite

HOUR = 3600
DAY = 24 * HOUR
PATHS = ("/a", "/b", "/c")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "links.txt"


@pytest.fixture
def other() -> Iterator[TinySite]:
    """A second host."""
    with TinySite() as site:
        yield site


def write(file: Path, *lines: str, content: str | None = None) -> None:
    """A list that was saved a while ago, so that nobody waits for it to settle."""
    file.write_text("".join(f"{line}\n" for line in lines) if content is None else content)
    os.utime(file, (1_600_000_000, 1_600_000_000))


def urls(site: TinySite, *paths: str) -> list[str]:
    return [f"{site.url.rstrip('/')}{path}" for path in paths]


def asked(*sites: TinySite) -> int:
    """How many pages were asked for, without robots.txt and what a site shows where there is nothing."""
    return sum(sum(Counter(path for path in looks(site) if path in PATHS).values()) for site in sites)


async def pages_of(kb: KnowledgeBase, label: str = "links.txt") -> set[str]:
    """The addresses with content."""
    return {view.url for view in await kb.pages.of_source(label) if view.content_hash is not None}


async def test_E15_A27_every_listed_address_is_a_page_and_links_on_it_are_not_followed(
    kb: KnowledgeBase, tiny: TinySite, other: TinySite, file: Path
) -> None:
    lay(tiny, {"/a": ["/b", "/c"], "/b": [], "/c": []})
    lay(other, {"/x": [*urls(tiny, "/c"), "/y"], "/y": []})
    listed = [*urls(tiny, "/a", "/b"), *urls(other, "/x")]
    write(file, "# mine", *listed, "", listed[0], "intro.html")
    report = await kb.runs.crawl(str(file))
    assert (report.state, counts(report)) == ("completed", {"new": 3})
    assert report.notes == (
        "links.txt line 7: 'intro.html' is not an http or https URL",
        "links.txt line 6: this URL is listed before, and read once",
    )
    assert await pages_of(kb) == set(listed)
    assert await found(kb, word("/x"), "links.txt") == {listed[2]}
    view = await kb.sources.view("links.txt")
    assert (view.kind, view.url) == ("links", file.as_uri())
    assert {each.depth for each in await kb.pages.of_source("links.txt")} == {0}
    with pytest.raises(UsageError, match="is a list of links: only URLs in the list are read"):
        await kb.pages.explain(urls(tiny, "/c")[0])


async def test_A27_a_refresh_asks_each_page_whether_it_changed(
    kb: KnowledgeBase, tiny: TinySite, other: TinySite, file: Path
) -> None:
    lay(tiny, {path: [] for path in PATHS})
    lay(other, {"/x": []})
    write(file, *urls(tiny, *PATHS), *urls(other, "/x"))
    await kb.runs.crawl(str(file))
    tiny.edit("/b", add_paragraph="Now with zebras.")
    tiny.delete("/c")
    (report,) = await kb.runs.refresh(["links.txt"])
    assert counts(report) == {"not_modified": 2, "changed": 1, "deleted": 1}
    assert await found(kb, "zebras", "links.txt") == set(urls(tiny, "/b"))
    tiny.put("/c", page("/c again"))
    (report,) = await kb.runs.refresh(["links.txt"])
    assert counts(report) == {"not_modified": 3, "new": 1}


async def test_E16_E29_what_is_taken_off_leaves_and_what_is_added_comes_and_nobody_is_asked_for_the_former(
    kb: KnowledgeBase, tiny: TinySite, file: Path
) -> None:
    lay(tiny, {path: [] for path in PATHS})
    a, b, c = urls(tiny, *PATHS)
    write(file, a, b)
    await kb.runs.crawl(str(file))
    write(file, a, c)
    tiny.requests.clear()
    (report,) = await kb.runs.refresh(["links.txt"])
    assert counts(report) == {"not_modified": 1, "new": 1, "deleted": 1}
    assert "/b" not in looks(tiny)
    assert await pages_of(kb) == {a, c}
    [gone, *_] = await kb.pages.history(b)
    assert (gone.outcome, gone.reason) == ("gone", "no longer listed in links.txt")


async def test_E16_E29_the_same_with_due_and_what_is_not_due_is_left_alone(
    store: Path, work: type[InProcess], tiny: TinySite, file: Path
) -> None:
    lay(tiny, {path: [] for path in PATHS})
    a, b, c = urls(tiny, *PATHS)
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        write(file, a, b)
        await kb.runs.crawl(str(file))
        clock.advance(HOUR)
        write(file, a, c)
        tiny.requests.clear()
        (report,) = await kb.runs.refresh(due=True)
        assert (report.state, counts(report)) == ("completed", {"new": 1, "deleted": 1})
        assert asked(tiny) == 1
        assert await pages_of(kb) == {a, c}
        checked = {view.url: view.checked_at for view in await kb.pages.of_source("links.txt")}
        assert (checked[a], checked[c]) == (clock() - timedelta(hours=1), clock()), "/a was left alone"
        write(file, a, b, c)
        clock.advance(HOUR)
        (report,) = await kb.runs.refresh(due=True)
        assert counts(report) == {"new": 1}, "what comes back is due at once"
        clock.advance(DAY - HOUR)
        (report,) = await kb.runs.refresh(due=True)
        assert counts(report) == {"not_modified": 2}, "each page has a time of its own"
        (report,) = await kb.runs.refresh(due=True)
        assert counts(report) == {}
    assert_sound(store)


async def test_E20_a_budget_reads_a_long_list_in_parts(
    store: Path, work: type[InProcess], tiny: TinySite, file: Path
) -> None:
    paths = [f"/p{number}" for number in range(7)]
    lay(tiny, {path: [] for path in paths})
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        write(file, *urls(tiny, paths[0]))
        await kb.runs.crawl(str(file), name="links")
        write(file, *urls(tiny, *paths))
        news = []
        for _ in range(4):
            clock.advance(60)
            (report,) = await kb.runs.refresh(due=True, budget=2)
            news.append(report.new)
        assert news == [2, 2, 2, 0]
        assert await pages_of(kb, "links") == set(urls(tiny, *paths))


@pytest.mark.parametrize("content", ["", "\n# all of it commented out\n", "\ufeff", "htt", None])
async def test_F86_an_empty_or_vanished_list_fails_the_run_and_keeps_everything(
    kb: KnowledgeBase, tiny: TinySite, file: Path, store: Path, content: str | None
) -> None:
    lay(tiny, {path: [] for path in PATHS})
    write(file, *urls(tiny, *PATHS))
    await kb.runs.crawl(str(file))
    before = index_of(store)
    if content is None:
        os.remove(file)  # noqa: PTH107
    else:
        write(file, content=content)
    tiny.requests.clear()
    for due in (False, True):
        (report,) = await kb.runs.refresh(["links.txt"], due=due)
        assert (report.state, counts(report)) == ("failed", {})
        assert "kept" in (report.error or "")
    assert asked(tiny) == 0
    assert index_of(store) == before
    write(file, *urls(tiny, *PATHS))
    (report,) = await kb.runs.refresh(["links.txt"])
    assert (report.state, counts(report)) == ("completed", {"not_modified": 3})


async def test_F86_P5_a_list_that_lost_most_of_its_lines_waits_for_a_word(
    kb: KnowledgeBase, tiny: TinySite, file: Path
) -> None:
    paths = [f"/p{number}" for number in range(30)]
    lay(tiny, {path: [] for path in paths})
    write(file, *urls(tiny, *paths))
    await kb.runs.crawl(str(file))
    write(file, *urls(tiny, *paths[:10]))
    for due in (True, False):
        (report,) = await kb.runs.refresh(["links.txt"], due=due)
        assert (report.state, report.held, report.deleted) == ("needs_confirmation", 20, 0)
        assert len(await pages_of(kb)) == 30
    report = await kb.runs.confirm(report.run)
    assert report.deleted == 20
    assert await pages_of(kb) == set(urls(tiny, *paths[:10]))


async def test_F86_a_half_saved_list_is_not_taken_for_a_shorter_one(
    kb: KnowledgeBase, tiny: TinySite, file: Path
) -> None:
    """An editor that truncates and writes in two steps, and a run that starts in between."""
    lay(tiny, {path: [] for path in PATHS})
    whole = "".join(f"{url}\n" for url in urls(tiny, *PATHS))
    write(file, content=whole)
    await kb.runs.crawl(str(file))
    with open(file, "w", buffering=1) as editor:  # noqa: ASYNC230, PTH123 - its steps are the point
        editor.write(whole[: len(whole) // 2])
        editor.flush()
        asyncio.get_running_loop().call_later(0.1, lambda: (editor.write(whole[len(whole) // 2 :]), None)[1])
        (report,) = await kb.runs.refresh(["links.txt"])
    assert (report.state, counts(report)) == ("completed", {"not_modified": 3})


async def test_A17_G12_an_address_that_moved_for_good_keeps_its_page_and_shows_what_is_there_now(
    kb: KnowledgeBase, tiny: TinySite, other: TinySite, file: Path
) -> None:
    lay(tiny, {"/a": []})
    lay(other, {"/new": []})
    a, new = urls(tiny, "/a")[0], urls(other, "/new")[0]
    write(file, a)
    await kb.runs.crawl(str(file))
    tiny.redirect("/a", new, status=301)
    (report,) = await kb.runs.refresh(["links.txt"])
    assert (report.state, counts(report)) == ("completed", {"changed": 1})
    assert report.notes == (f"moved permanently and read at the new URL: {a} → {new}",)
    assert await found(kb, word("/new"), "links.txt") == {a}
    other.requests.clear()
    (report,) = await kb.runs.refresh(["links.txt"])
    assert counts(report) == {"not_modified": 1}
    assert looks(other)["/new"] == 1
    write(file, new)
    (report,) = await kb.runs.refresh(["links.txt"])
    assert counts(report) == {"new": 1, "deleted": 1}
    assert await found(kb, word("/new"), "links.txt") == {new}


async def test_a_temporary_redirect_may_lead_to_any_host(
    kb: KnowledgeBase, tiny: TinySite, other: TinySite, file: Path
) -> None:
    lay(other, {"/new": []})
    tiny.redirect("/a", urls(other, "/new")[0])
    write(file, *urls(tiny, "/a"))
    report = await kb.runs.crawl(str(file))
    assert counts(report) == {"new": 1}
    other.robots("User-agent: *\nDisallow: /new\n")
    other.edit("/new", add_paragraph="Forbidden by now.")
    (report,) = await kb.runs.refresh(["links.txt"])
    assert counts(report) == {"refused": 1}, "robots.txt is asked there too"


async def test_P4_a_dead_host_fails_its_own_pages_and_no_others(kb: KnowledgeBase, tiny: TinySite, file: Path) -> None:
    lay(tiny, {path: [] for path in PATHS})
    with TinySite() as mortal:
        lay(mortal, {"/x": [], "/y": []})
        dead = urls(mortal, "/x", "/y")
        write(file, *dead, *urls(tiny, *PATHS))
        assert counts(await kb.runs.crawl(str(file))) == {"new": 5}
    tiny.edit("/b", add_paragraph="Now with zebras.")
    write(file, *dead, *urls(tiny, "/a", "/b"))
    (report,) = await kb.runs.refresh(["links.txt"])
    assert report.state == "partial"
    assert counts(report) == {"failed": 2, "not_modified": 1, "changed": 1, "deleted": 1}
    assert await pages_of(kb) == {*dead, *urls(tiny, "/a", "/b")}


async def test_E16_a_host_that_is_no_longer_listed_is_not_asked_for_anything(
    kb: KnowledgeBase, tiny: TinySite, other: TinySite, file: Path
) -> None:
    lay(tiny, {"/a": []})
    lay(other, {"/x": [], "/y": []})
    write(file, *urls(tiny, "/a"), *urls(other, "/x", "/y"))
    await kb.runs.crawl(str(file))
    write(file, *urls(tiny, "/a"))
    other.requests.clear()
    (report,) = await kb.runs.refresh(["links.txt"])
    assert counts(report) == {"not_modified": 1, "deleted": 2}
    assert other.requests.paths() == [], "not even for its robots.txt"


async def test_F73_a_page_that_robots_txt_closes_is_kept_and_others_are_read(
    kb: KnowledgeBase, tiny: TinySite, other: TinySite, file: Path
) -> None:
    lay(tiny, {"/a": []})
    lay(other, {"/x": [], "/y": []})
    write(file, *urls(tiny, "/a"), *urls(other, "/x", "/y"))
    await kb.runs.crawl(str(file))
    other.robots("User-agent: *\nDisallow: /\n")
    (report,) = await kb.runs.refresh(["links.txt"])
    assert (report.state, counts(report)) == ("completed", {"not_modified": 1, "refused": 2})
    assert len(await pages_of(kb)) == 3


async def test_P4_when_no_page_can_be_read_the_run_has_failed(kb: KnowledgeBase, file: Path) -> None:
    with TinySite() as mortal:
        lay(mortal, {path: [] for path in PATHS})
        write(file, *urls(mortal, *PATHS))
        await kb.runs.crawl(str(file))
    (report,) = await kb.runs.refresh(["links.txt"])
    assert (report.state, report.failed) == ("failed", 3)
    assert len(await pages_of(kb)) == 3


async def test_A20_B16_politeness_holds_for_each_host_of_a_list(store: Path, work: type[InProcess], file: Path) -> None:
    paths = [f"/p{number}" for number in range(12)]
    with BusySite() as one, BusySite() as two:
        for site in (one, two):
            lay(site, {path: [] for path in paths})
        write(file, *(url for path in paths for site in (one, two) for url in urls(site, path)))
        async with opened(store, {"crawl.concurrency": 2}) as kb:
            report = await kb.runs.crawl(str(file))
        assert counts(report) == {"new": 24}
        assert max(one.most, two.most) <= 2


async def test_F10_a_run_that_is_stopped_before_the_list_is_read_goes_on_later_and_deletes_nothing(
    store: Path, work: type[InProcess], tiny: TinySite, file: Path
) -> None:
    lay(tiny, {path: [] for path in PATHS})
    write(file, *urls(tiny, *PATHS))
    async with opened(store) as kb:
        kb.stop()
        assert (await kb.runs.crawl(str(file))).state == "cancelled"
    async with opened(store) as kb:
        (report,) = await kb.runs.refresh()
        assert (report.state, counts(report)) == ("completed", {"new": 3})


async def test_plan_says_what_a_refresh_of_a_list_looks_at(
    store: Path, work: type[InProcess], tiny: TinySite, file: Path
) -> None:
    lay(tiny, {path: [] for path in PATHS})
    write(file, *urls(tiny, *PATHS))
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        await kb.runs.crawl(str(file))
        plan = await kb.sources.plan("links.txt")
        assert (plan.known, plan.conditional, plan.not_looked_at, plan.due) == (3, 3, 0, 0)
        clock.advance(2 * DAY)
        assert (await kb.sources.plan("links.txt")).due == 3


async def test_search_with_max_age_looks_again_at_a_listed_page(
    store: Path, work: type[InProcess], tiny: TinySite, file: Path
) -> None:
    lay(tiny, {path: [] for path in PATHS})
    write(file, *urls(tiny, *PATHS))
    clock = FrozenClock()
    async with opened(store, clock=clock) as kb:
        await kb.runs.crawl(str(file))
        clock.advance(HOUR)
        tiny.edit("/a", add_paragraph="Now with zebras.")
        answer = await kb.search.search(word("/a"), mode="text", max_age=timedelta(minutes=1))
        assert [hit.url for hit in answer.hits] == urls(tiny, "/a")
        assert await found(kb, "zebras", "links.txt") == set(urls(tiny, "/a"))
