"""Several sources in one store: side by side on one host, all at once, and only what is due."""

from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import assert_sound, counts, found, index_of, opened
from tests.e2e.sites import lay, looks, page, star, word

from afresh.errors import UsageError
from afresh.kb import KnowledgeBase
from afresh.testing import FrozenClock, TinySite


async def test_two_sources_on_one_host_do_not_touch_each_other(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, {"/one/": ["/one/a", "/two/"], "/one/a": [], "/two/": ["/two/b", "/one/"], "/two/b": []})
    await kb.runs.crawl(tiny.at("/one/"), name="one")
    await kb.runs.crawl(tiny.at("/two/"), name="two")
    assert set(index_of(store, "one")) == {tiny.at("/one/"), tiny.at("/one/a")}
    assert set(index_of(store, "two")) == {tiny.at("/two/"), tiny.at("/two/b")}
    assert await found(kb, word("/one/a"), within="two") == set()
    tiny.delete("/one/a")
    (report,) = await kb.runs.refresh(["one"])
    assert (report.source, report.deleted) == ("one", 1)
    assert set(index_of(store, "two")) == {tiny.at("/two/"), tiny.at("/two/b")}


async def test_A9_two_versions_of_one_address_are_two_sources(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    lay(tiny, star(2))
    await kb.runs.crawl(tiny.url, name="docs", version="1")
    tiny.edit("/p1", add_paragraph="only in version two: pangolins")
    await kb.runs.crawl(tiny.url, name="docs", version="2")
    assert [(view.name, view.version, view.pages) for view in await kb.sources.views()] == [
        ("docs", "1", 3),
        ("docs", "2", 3),
    ]
    assert await found(kb, "pangolins", within="docs@1") == set()
    assert await found(kb, "pangolins", within="docs@2") == {tiny.at("/p1")}
    assert (await kb.sources.view("docs")).version == "2"


async def test_a_name_belongs_to_one_address(kb: KnowledgeBase, tiny: TinySite) -> None:
    lay(tiny, {"/a/": [], "/b/": []})
    await kb.runs.crawl(tiny.at("/a/"), name="docs")
    with pytest.raises(UsageError, match="--name"):
        await kb.runs.crawl(tiny.at("/b/"), name="docs")


async def test_refresh_without_a_name_looks_at_every_source(kb: KnowledgeBase, tiny: TinySite) -> None:
    with TinySite() as other:
        lay(tiny, star(3))
        lay(other, star(2))
        await kb.runs.crawl(tiny.url, name="docs")
        await kb.runs.crawl(other.url, name="other")
        other.edit("/p1", add_paragraph="new")
        reports = {report.source: counts(report) for report in await kb.runs.refresh()}
    assert reports == {"docs": {"not_modified": 4}, "other": {"not_modified": 2, "changed": 1}}


async def test_one_source_that_is_down_does_not_stop_the_others(kb: KnowledgeBase, tiny: TinySite) -> None:
    with TinySite() as other:
        lay(tiny, star(3))
        lay(other, star(2))
        await kb.runs.crawl(tiny.url, name="a")
        await kb.runs.crawl(other.url, name="b")
        tiny.down()
        states = {report.source: report.state for report in await kb.runs.refresh()}
    assert states == {"a": "failed", "b": "completed"}


async def test_A28_G6_due_looks_only_at_what_is_due(store: Path, work: type[InProcess], tiny: TinySite) -> None:
    clock = FrozenClock()
    lay(tiny, {"/": ["/a"], "/a": []})
    async with opened(store, {"policy.recheck_seconds": 3600}, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.requests.clear()
        clock.advance(1800)
        (early,) = await kb.runs.refresh(due=True)
        assert (early.checked, sum(looks(tiny).values())) == (0, 0)
        tiny.put("/a", page("/a", ["/late"]))
        lay(tiny, {"/late": []})
        clock.advance(1801)
        (due,) = await kb.runs.refresh(due=True)
        assert (due.mode, due.state, counts(due)) == ("due", "completed", {"not_modified": 1, "changed": 1, "new": 1})
        clock.advance(60)
        (again,) = await kb.runs.refresh(due=True)
        assert again.checked == 0
    assert_sound(store)


async def test_A28_due_never_counts_absence(store: Path, work: type[InProcess], tiny: TinySite) -> None:
    clock = FrozenClock()
    lay(tiny, {"/": ["/a"], "/a": []})
    async with opened(store, {"policy.recheck_seconds": 60}, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.put("/", page("/", []))
        for _ in range(5):
            clock.advance(61)
            (report,) = await kb.runs.refresh(["docs"], due=True)
            assert (report.state, report.missing, report.deleted) == ("completed", 0, 0)
        tiny.delete("/a")
        clock.advance(61)
        (report,) = await kb.runs.refresh(["docs"], due=True)
        assert report.deleted == 1  # a 404 is proof also then
    assert set(index_of(store)) == {tiny.url}


async def test_A28_a_failed_page_is_due_when_its_back_off_is_over(
    store: Path, work: type[InProcess], tiny: TinySite
) -> None:
    clock = FrozenClock()
    lay(tiny, star(20))
    flags = {"policy.retries": 0, "policy.backoff_base_seconds": 100, "policy.backoff_max_seconds": 1000}
    async with opened(store, flags, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.fail("/p1", 500)
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.state, report.failed) == ("partial", 1)
        tiny.requests.clear()
        clock.advance(99)
        await kb.runs.refresh(["docs"], due=True)
        assert looks(tiny) == {}
        clock.advance(2)
        tiny.restore("/p1")
        (report,) = await kb.runs.refresh(["docs"], due=True)
        assert (looks(tiny), counts(report)) == ({"/": 1, "/p1": 1}, {"not_modified": 2})
