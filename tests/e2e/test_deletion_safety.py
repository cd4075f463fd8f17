"""What a server can do to make afresh delete what it should keep, and cannot."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.e2e.library import EVERY_STORE, assert_sound, index_of, opened
from tests.e2e.sites import lay, looks, page, star

from afresh.errors import RunBusy, UsageError
from afresh.kb import KnowledgeBase
from afresh.testing import FrozenClock, TinySite


@EVERY_STORE
async def test_P4_P5_a_confirmation_covers_what_its_own_run_found(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    """A later outage must not add to what an earlier run wants to delete."""
    lay(tiny, star(40))
    await kb.runs.crawl(tiny.url, name="docs")
    for number in range(12):
        tiny.fail(f"/p{number}", 404)
    (held,) = await kb.runs.refresh(["docs"])
    assert (held.state, held.held) == ("needs_confirmation", 12)
    for path in star(40):
        tiny.fail(path, 404)
    (outage,) = await kb.runs.refresh(["docs"])
    assert (outage.state, outage.deleted) == ("failed", 0)
    assert len(index_of(store)) == 41
    confirmed = await kb.runs.confirm(held.run)
    assert confirmed.deleted <= 12
    assert len(index_of(store)) >= 29
    assert_sound(store)


@pytest.mark.parametrize("status", [401, 403, 503])
async def test_P4_F41_what_an_outage_took_for_gone_is_not_carried_out_later(
    kb: KnowledgeBase, tiny: TinySite, store: Path, status: int
) -> None:
    """All 404 with the root, then the root is well and the pages are refused: nobody proved anything."""
    lay(tiny, star(8))
    await kb.runs.crawl(tiny.url, name="docs")
    before = index_of(store)
    for path in star(8):
        tiny.fail(path, 404)
    assert [each.state for each in await kb.runs.refresh(["docs"])] == ["failed"]
    tiny.restore("/")
    for number in range(8):
        tiny.fail(f"/p{number}", status)
    (report,) = await kb.runs.refresh(["docs"])
    assert report.deleted == 0
    assert index_of(store) == before


async def test_P4_F35_a_due_run_makes_sure_that_the_site_is_well(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(8))
    clock = FrozenClock()
    async with opened(store, {"policy.recheck_seconds": 60}, clock=clock) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        before = index_of(store)
        for path in star(8):
            tiny.fail(path, 404)
        clock.advance(61)
        (report,) = await kb.runs.refresh(["docs"], due=True)
    assert (report.state, report.deleted) == ("failed", 0)
    assert index_of(store) == before


async def test_P4_a_run_that_goes_on_does_not_trust_the_root_of_yesterday(
    tmp_path: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    """Stopped, then the site breaks down, then the next command goes on with the run."""
    lay(tiny, star(8))
    store = tmp_path / "afresh.db"
    async with opened(store) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        before = index_of(store)
    gate = tiny.hold("/p7")
    async with opened(store) as kb:
        refresh = asyncio.create_task(kb.runs.refresh(["docs"]))
        await gate.arrived()
        kb.stop()
        (stopped,) = await refresh
        assert stopped.state == "cancelled"
    gate.release()
    for path in star(8):
        tiny.fail(path, 404)
    tiny.requests.clear()
    async with opened(store) as kb:
        (report,) = await kb.runs.refresh(["docs"])
    assert looks(tiny)["/"] == 1
    assert (report.run, report.state, report.deleted) == (stopped.run, "failed", 0)
    assert index_of(store) == before


async def test_A16_pages_that_only_link_to_each_other_leave_for_good(
    kb: KnowledgeBase, tiny: TinySite, store: Path
) -> None:
    """Unlinked one run apart: neither may bring the other back for ever."""
    lay(tiny, {"/": ["/a", "/b"], "/a": ["/b"], "/b": ["/a"]})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", ["/b"]))
    tiny.put("/b", page("/b", []))
    await kb.runs.refresh(["docs"])
    tiny.put("/b", page("/b", ["/a"]))
    tiny.put("/", page("/", []))
    for _ in range(6):
        await kb.runs.refresh(["docs"])
    later = [(each.new, each.deleted) for _ in range(4) for each in await kb.runs.refresh(["docs"])]
    assert later == [(0, 0)] * 4
    assert set(index_of(store)) == {tiny.url}


async def test_A7_a_stub_that_is_gone_leads_nowhere(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    """A hub that was never indexed (noindex) and then dies takes its way to the child with it."""
    hub = page("/hub", ["/child"], head='<meta name="robots" content="noindex">')
    lay(tiny, {"/": ["/hub"], "/child": []})
    tiny.put("/hub", hub)
    await kb.runs.crawl(tiny.url, name="docs")
    assert tiny.at("/child") in index_of(store)
    tiny.fail("/hub", 404)
    for _ in range(3):
        await kb.runs.refresh(["docs"])
    assert set(index_of(store)) == {tiny.url}


async def test_F71_a_hub_that_begins_to_ask_for_noindex_still_leads_on(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, {"/": ["/hub"], "/hub": ["/a", "/b"], "/a": [], "/b": []})
    async with opened(store, {"policy.missing_after": 1}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        tiny.put("/hub", page("/hub", ["/a", "/b"], head='<meta name="robots" content="noindex">'))
        for _ in range(3):
            (report,) = await kb.runs.refresh(["docs"])
            assert (report.new, report.missing) == (0, 0)
    assert set(index_of(store)) == {tiny.url, tiny.at("/a"), tiny.at("/b")}


async def test_P12_a_stop_is_received_while_sitemaps_are_read(
    tmp_path: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    lay(tiny, star(3))
    tiny.sitemap(True)
    gate = tiny.hold("/sitemap.xml")
    async with opened(tmp_path / "afresh.db") as kb:
        crawl = asyncio.create_task(kb.runs.crawl(tiny.url, name="docs"))
        await gate.arrived()
        kb.stop()
        assert (await crawl).state == "cancelled"
    gate.release()
    async with opened(tmp_path / "afresh.db") as kb:
        assert (await kb.runs.crawl(tiny.url, name="docs")).state == "completed"
        with pytest.raises(UsageError):
            await kb.runs.confirm(1)


async def test_G2_a_site_that_forbids_a_sitemap_it_never_had_is_listed_completely(
    kb: KnowledgeBase, tiny: TinySite
) -> None:
    """Some sites answer 403 to everything that does not exist."""
    tiny.fail("/sitemap.xml", 403)
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    (report,) = await kb.runs.refresh(["docs"])
    assert (report.state, report.notes) == ("completed", ())


async def test_G2_a_sitemap_that_is_forbidden_proves_nothing(
    store: Path, tiny: TinySite, work: type[InProcess]
) -> None:
    """A listing that was there and is refused now is no complete listing; one that is gone is."""
    lay(tiny, {"/": []})
    tiny.put("/only-listed", page("/only-listed"))
    tiny.sitemap(True)
    async with opened(store, {"policy.missing_after": 1}) as kb:
        await kb.runs.crawl(tiny.url, name="docs")
        before = index_of(store)
        assert tiny.at("/only-listed") in before
        tiny.fail("/sitemap.xml", 403)
        (report,) = await kb.runs.refresh(["docs"])
        assert (report.deleted, report.missing) == (0, 0)
        assert any("sitemap.xml" in note for note in report.notes)
        assert index_of(store) == before


async def test_F24_a_run_that_was_taken_over_is_not_ended_twice(kb: KnowledgeBase, tiny: TinySite, store: Path) -> None:
    """A process that slept past its lease wakes up to a run that is another's: it counts nothing."""
    lay(tiny, {"/": ["/a", "/b"], "/a": [], "/b": []})
    await kb.runs.crawl(tiny.url, name="docs")
    tiny.put("/", page("/", ["/b"]))  # nothing leads to /a any more
    gate = tiny.hold("/b")
    refresh = asyncio.create_task(kb.runs.refresh(["docs"]))
    await gate.arrived()
    await asyncio.to_thread(_take_over, store)
    gate.release()
    with pytest.raises(RunBusy, match="taken over"):
        await refresh
    with closing(sqlite3.connect(store)) as other:
        assert other.execute("select max(missing_count) from pages").fetchone() == (0,)


def _take_over(store: Path) -> None:
    with closing(sqlite3.connect(store, timeout=30)) as other, other:
        other.execute("update runs set worker = 'another' where state = 'running'")
