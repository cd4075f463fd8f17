"""Copies in external stores: what is wanted follows from the pages, and one worker at a time writes."""

from collections import Counter
from dataclasses import replace

import pytest
from tests.store.conftest import Open
from tests.store.crawler import ManualCrawler, at, read

from afresh.errors import RunBusy
from afresh.model.fetch import Moved, Seen
from afresh.model.filters import ALL_PAGES, LIVE_PAGES, PageFilter
from afresh.model.records import PageStatus
from afresh.sync.copy import Copy, DesiredCopy
from afresh.sync.reconcile import CONTENT, copy_state, copy_view, with_copies
from afresh.sync.reports import CopyView
from afresh.text.normalize import content_hash

SITE: dict[str, Seen] = {"": read("Root", "a", "b", "c"), "a": read("Page a"), "b": read("B"), "c": read("C")}


async def to_do(crawler: ManualCrawler) -> dict[str, DesiredCopy]:
    """What is to be done in the store `out`, by path."""
    found = await crawler.store.copies.of_sink("out", [crawler.source.id], to_do=True)
    return {each.copy.url.removeprefix(at("")): each for each in found}


def held(wanted: DesiredCopy) -> Copy:
    """The copy as it is when the store holds what is wanted."""
    number = wanted.copy.id
    return replace(
        wanted.copy,
        state=PageStatus.ACTIVE,
        wanted_hash=wanted.hash,
        held_hash=wanted.hash,
        remote_id=f"documents/{number}",
        remote_name="A page",
    )


async def hold_all(crawler: ManualCrawler) -> None:
    """Have the store hold everything."""
    store, now = crawler.store, crawler.clock()
    await store.copies.take_sink("out", "there", crawler.worker)
    await store.copies.add("out", crawler.worker, [crawler.source.id], now)
    await store.copies.record("out", crawler.worker, [held(each) for each in (await to_do(crawler)).values()], now)


async def test_D8_D9_D11_F07_the_commit_that_changes_a_page_is_the_order_to_change_its_copies(
    crawler: ManualCrawler,
) -> None:
    await crawler.join()
    await crawler.crawl(SITE)
    assert await crawler.store.copies.count_uncopied("out", [crawler.source.id]) == 4
    await hold_all(crawler)
    assert await crawler.store.copies.count_uncopied("out", [crawler.source.id]) == 0
    assert await to_do(crawler) == {}
    assert await crawler.store.copies.add("out", crawler.worker, [crawler.source.id], crawler.clock()) == 0
    await crawler.crawl(SITE)
    assert await to_do(crawler) == {}
    moved: dict[str, Seen] = {"": read("Root", "a", "b", "c"), "a": read("Page a, changed"), "c": Moved(to=at("a"))}
    await crawler.crawl(moved)
    left = await to_do(crawler)
    assert {path: (each.hash, each.moved) for path, each in left.items()} == {
        "a": (content_hash("Page a, changed"), False),
        "b": (None, False),
        "c": (None, True),
    }
    assert await crawler.store.stats.count_copies("out", [crawler.source.id]) == {"active": 1, "ready_for_indexing": 1}
    assert await crawler.store.stats.count_copies("other", [crawler.source.id]) == {"ready_for_indexing": 2}
    assert await crawler.store.stats.count_copies("out", []) == {}
    text = await crawler.store.copies.page_text((await crawler.page("a")).id)
    assert text is not None
    assert (text.hash, text.markdown, text.title) == (left["a"].hash, "Page a, changed", "A page")
    assert await crawler.store.copies.page_text((await crawler.page("b")).id) is None
    numbers = {path: (await crawler.page(path)).id for path in ("", "a", "b", "c")}
    by_url = {each.copy.url: each for each in await crawler.store.copies.of_pages(list(numbers.values()))}
    assert [by_url[at("a")]] == await crawler.store.copies.of_pages([numbers["a"]])
    assert (len(by_url), await crawler.store.copies.of_pages([])) == (4, [])


async def check_status_of_pages(crawler: ManualCrawler) -> None:
    """Whether pages are found by the status that they are shown with."""
    pages = await crawler.store.pages.records([crawler.source.id], ALL_PAGES, limit=9)
    copies = await crawler.store.copies.of_pages([page.id for page in pages])
    here, first = [crawler.source.id], pages[0].id
    for sinks in (["out"], ["out", "two"], ["two", "other"]):
        views = {
            page.id: with_copies(page, sinks, [each for each in copies if each.copy.page_id == page.id])
            for page in pages
        }
        some = PageFilter(status=PageStatus.ERROR, text="a", depth=1)
        for which in [*map(_with_status, PageStatus), some, LIVE_PAGES, ALL_PAGES]:
            found = await crawler.store.copies.pages_by_state(sinks, here, which, after=0, limit=9)
            assert found == [page for page in pages if which.fits(views[page.id])], (sinks, which)
            part = await crawler.store.copies.pages_by_state(sinks, here, which, after=first, limit=1)
            assert part == [page for page in found if page.id > first][:1]
            assert await crawler.store.copies.pages_by_state(sinks, [], which, after=0, limit=9) == []


def _with_status(status: PageStatus) -> PageFilter:
    return PageFilter(status=status)


async def test_D16_everything_about_a_copy_is_kept_and_read_in_order(crawler: ManualCrawler) -> None:
    await crawler.join()
    await crawler.crawl(SITE)
    await crawler.store.copies.take_sink("out", "there", crawler.worker)
    await crawler.store.copies.add("out", crawler.worker, [crawler.source.id], crawler.clock())
    await crawler.store.copies.take_sink("two", "there", crawler.worker)
    await crawler.store.copies.add("two", crawler.worker, [crawler.source.id], crawler.clock())
    second = [held(each) for each in await crawler.store.copies.of_sink("two", [crawler.source.id])]
    await crawler.store.copies.record("two", crawler.worker, second, crawler.clock())
    first = (await crawler.store.copies.of_sink("out", [crawler.source.id], limit=1))[0].copy
    now = crawler.clock()
    full = replace(
        held(DesiredCopy(copy=first, hash="h2")),
        state=PageStatus.PROCESSING,
        putting=True,
        former=("x/1", "x/2"),
        leftovers=("x/3",),
        attempts=2,
        put_at=now,
        failed_at=now,
        next_try_at=now,
        error="FAILED: too odd",
        updated_at=now,
    )
    await crawler.store.copies.record("out", crawler.worker, [full], now)
    whole = await crawler.store.copies.of_sink("out", [crawler.source.id])
    assert whole[0].copy == full
    assert [each.copy.id for each in whole] == sorted(each.copy.id for each in whole)
    rest = await crawler.store.copies.of_sink("out", [crawler.source.id], after=first.id, limit=2)
    assert [each.copy.id for each in rest] == [each.copy.id for each in whole[1:3]]
    assert await crawler.store.copies.of_sink("out", [crawler.source.id], only=[]) == []
    assert {each.hash for each in await crawler.store.copies.of_sink("out", [])} == {None}  # no longer attached
    here = [crawler.source.id]
    for state in PageStatus:
        for at_hand in (whole[0].hash, "h2"):
            now_held = replace(full, state=state, wanted_hash=at_hand, held_hash=at_hand)
            await crawler.store.copies.record("out", crawler.worker, [now_held], now)
            states = Counter(map(copy_state, await crawler.store.copies.of_sink("out", [crawler.source.id])))
            assert await crawler.store.stats.count_copies("out", [crawler.source.id]) == states
            stuck = replace(now_held, error="stuck: PROCESSING since noon")
            await crawler.store.copies.record("out", crawler.worker, [stuck], now)
            number = sum(copy_view(each, "out").stuck for each in await crawler.store.copies.of_sink("out", here))
            assert await crawler.store.stats.count_stuck("out", here) == number
            assert number == (state is PageStatus.PROCESSING and at_hand == whole[0].hash)
            assert await crawler.store.stats.count_stuck("out", []) == 0
            await crawler.store.copies.record("out", crawler.worker, [now_held], now)
            for each in CONTENT:
                listed = await crawler.store.copies.pages("out", crawler.source.id, state=each, after=0, limit=9)
                assert [page.copy.state for page in listed] == [each] * states[each]
            await check_status_of_pages(crawler)
    pages = sorted(each.copy.page_id or 0 for each in whole)
    parts = [
        await crawler.store.copies.pages("out", crawler.source.id, state=None, after=after, limit=3)
        for after in (0, pages[2])
    ]
    assert [page.id for part in parts for page in part] == pages
    [own] = [page for part in parts for page in part if page.id == first.page_id]
    assert (own.copy.error, own.url) == ("FAILED: too odd", first.url)
    bare = await crawler.store.copies.pages("other", crawler.source.id, state=None, after=0, limit=1)
    assert bare[0].copy == CopyView(sink="other", state=PageStatus.READY_FOR_INDEXING)


async def test_D18_a_removed_source_leaves_its_documents_behind_to_be_dropped(crawler: ManualCrawler) -> None:
    await crawler.join()
    await crawler.crawl(SITE)
    await hold_all(crawler)
    await crawler.store.copies.add_orphans("out", crawler.worker, [("docs", "old", "documents/77")], crawler.clock())
    await crawler.store.sources.remove(crawler.source.id, crawler.clock())
    left = await crawler.store.copies.of_sink("out", [], to_do=True)
    assert [(each.copy.page_id, each.hash) for each in left] == [(None, None)] * 5
    assert [each.copy.leftovers for each in left if each.copy.remote_id is None] == [("documents/77",)]
    gone = [
        replace(each.copy, remote_id=None, held_hash=None, leftovers=(), state=PageStatus.DELETED) for each in left[1:]
    ]
    await crawler.store.copies.record("out", crawler.worker, gone, crawler.clock())
    await crawler.store.copies.leave_sink("out", crawler.worker, crawler.clock(), audit=False)
    assert [each.copy for each in await crawler.store.copies.of_sink("out", [])] == [left[0].copy]


async def test_P18_one_worker_syncs_a_store_and_a_dead_one_leaves_a_doubt(
    crawler: ManualCrawler, open_another: Open
) -> None:
    await crawler.join()
    await crawler.crawl(SITE)
    other = crawler.beside(await open_another(), "w2")
    await other.join(pid=2)
    assert await crawler.store.copies.store_id() is None
    assert (await crawler.store.copies.store_id("first"), await other.store.copies.store_id("second")) == (
        "first",
        "first",
    )
    assert (await crawler.store.copies.take_sink("out", "there", "w1")).audit
    began = crawler.clock()
    await crawler.store.copies.leave_sink(
        "out", "w1", crawler.clock(), audit=False, audited_at=crawler.clock(), error="busy"
    )
    [record] = await crawler.store.copies.sink_records()
    assert (record.failing_since, record.synced_at) == (began, began)
    assert (record.audit, record.audited_at, record.error) == (False, crawler.clock(), "busy")
    assert not (await crawler.store.copies.take_sink("out", "there", "w1")).audit
    await crawler.store.copies.add("out", "w1", [crawler.source.id], crawler.clock())
    with pytest.raises(RunBusy, match="another process"):
        await other.store.copies.take_sink("out", "there", "w2")
    await other.store.workers.reclaim(["w1"], crawler.clock())
    assert (await other.store.copies.take_sink("out", "there", "w2")).audit  # what w1 was about to do is unknown
    await other.store.copies.leave_sink("out", "w2", crawler.clock(), audit=False, error="still busy")
    assert (await other.store.copies.sink_records())[0].failing_since == began
    assert not (await other.store.copies.take_sink("out", "there", "w2")).audit
    late = (await crawler.store.copies.of_sink("out", [crawler.source.id]))[0]
    with pytest.raises(RunBusy, match="taken over"):
        await crawler.store.copies.record("out", "w1", [held(late)], crawler.clock())
    assert (await crawler.store.copies.of_sink("out", [crawler.source.id]))[0] == late
    [record] = await other.store.copies.sink_records()
    assert (record.worker, record.audit) == ("w2", True)  # the late one may have put a document
    await other.store.copies.leave_sink("out", "w2", crawler.clock(), audit=False)
    assert (await other.store.copies.sink_records())[0].failing_since is None
    assert (await other.store.copies.take_sink("out", "elsewhere", "w2")).audit
