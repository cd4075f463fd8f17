"""Answers: lists, numbers, history and changes, in the order that people rely on."""

from dataclasses import replace
from datetime import timedelta

from tests.fakes.attempts import Attempts
from tests.store.crawler import ROOT, ManualCrawler, at, read

from afresh.model.fetch import Failed, Gone, Moved, Outcome, Seen
from afresh.model.filters import PageFilter
from afresh.model.records import ChangeKind, PageId, PageStatus
from afresh.model.reports import Workload
from afresh.store.store import Store
from afresh.testing import FrozenClock

SITE: dict[str, Seen] = {
    "": read("Root", "b", "a", etag='"1"'),
    "a": read("Page a\n\nMore of a", "c"),
    "b": read("Page b", etag='"2"'),
    "c": Failed(outcome=Outcome.TIMEOUT, reason="no answer"),
}


async def test_pages_come_nearest_first(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    pages = await crawler.store.pages.of_source(crawler.source.id)
    assert [page.url for page in pages] == [ROOT, at("a"), at("b"), at("c")]
    assert [page.url for page in await crawler.store.pages.of_source(crawler.source.id, limit=2)] == [ROOT, at("a")]
    failed = await crawler.store.pages.of_source(crawler.source.id, PageFilter(status=PageStatus.ERROR))
    assert [page.url for page in failed] == [at("c")]


async def test_the_view_of_a_source_has_its_numbers(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    view = await crawler.store.stats.source_view(crawler.source)
    assert (view.name, view.version, view.kind, view.url) == ("docs", None, "web", ROOT)
    assert (view.pages, view.chunks, view.links, view.errors) == (3, 4, 3, 1)
    assert view.oldest_check == crawler.clock()
    assert (view.last_run, view.last_state, view.last_mode) == (crawler.run.id, "completed", "crawl")


async def test_an_empty_source_has_a_view_too(crawler: ManualCrawler) -> None:
    view = await crawler.store.stats.source_view(crawler.source)
    assert (view.pages, view.chunks, view.links, view.errors) == (0, 0, 0, 0)
    assert (view.oldest_check, view.last_run, view.last_state) == (None, None, None)


async def test_a_page_is_found_in_every_source_that_has_it(crawler: ManualCrawler) -> None:
    other = await ManualCrawler.at(crawler.store, crawler.clock, "docs", "2")
    await crawler.crawl({"": Gone()})
    await other.crawl(SITE)
    found = await crawler.store.pages.find(ROOT)
    assert [(name, version) for _, _, name, version in found] == [("docs", "2"), ("docs", None)]
    [(page, view, _, _)] = await crawler.store.pages.find(ROOT, other.source.id)
    assert (page.id, page.url, page.status) == (view.id, view.url, view.status)
    assert await crawler.store.pages.find(at("nowhere")) == []


async def test_addresses_are_found_by_a_part_of_them(crawler: ManualCrawler) -> None:
    other = await ManualCrawler.at(crawler.store, crawler.clock, "docs", "2")
    site: dict[str, Seen] = {
        "": read("Root", "guide/Retries", "a_b", "gone"),
        "guide/Retries": read("Retries", "api/retries"),
        "api/retries": read("More"),
        "a_b": read("Odd"),
        "gone": Gone(),
    }
    await crawler.crawl(site)
    await other.crawl(SITE)
    store, near = crawler.store, [at("guide/Retries"), at("api/retries")]
    assert await store.pages.urls_with("/retries") == near
    assert await store.pages.urls_with("/RETRIES", crawler.source.id, limit=1) == near[:1]
    assert await store.pages.urls_with("/retries", other.source.id) == []
    assert await store.pages.urls_with("a_b") == [at("a_b")]
    assert await store.pages.urls_with("a%b") == await store.pages.urls_with("gone") == []
    assert (await store.pages.urls_with("//docs.example.org/"))[0] == ROOT


# ---- history


async def test_B13_all_attempts_and_the_latest_can_be_listed(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    crawler.clock.advance(days=1)
    await crawler.crawl({**SITE, "a": Failed(outcome=Outcome.BLOCKED_5XX, reason="502", status_code=502)})
    page = await crawler.page("a")
    rows = await crawler.store.history.of_page(page.id)
    assert [row.outcome for row in rows] == [None, Outcome.BLOCKED_5XX, Outcome.SUCCESS]
    found = await crawler.store.history.of_url(at("a"))
    assert [(each.id, each.source, each.version) for each in found] == [(row.id, "docs", None) for row in rows]
    latest, following, linked, attempts = await crawler.store.history.evidence(page)
    assert latest == rows[1]
    assert (following, linked, attempts) == (rows[0].scheduled_for, (ROOT,), 2)


async def test_a_page_that_waits_for_its_first_look_has_no_evidence(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("")
    latest, following, linked, attempts = await crawler.store.history.evidence(await crawler.page(""))
    assert (latest, following, linked, attempts) == (None, crawler.clock(), (), 0)


async def test_an_address_without_history_has_none(store: Store) -> None:
    assert await store.history.of_url(at("nowhere")) == []
    assert await store.history.of_page(PageId(999_999_999)) == []


async def test_B14_the_factories_make_rows_like_those_of_a_store(crawler: ManualCrawler, clock: FrozenClock) -> None:
    """A test that uses the factories sees what a store would show."""
    await crawler.begin()
    await crawler.enqueue("")
    page, made = await crawler.page(""), clock()
    factory = Attempts(ROOT, page_id=page.id, run_id=crawler.run.id, now=made)
    [waiting] = await crawler.store.history.of_page(page.id)
    assert _alike(waiting, factory.scheduled_at(made))
    [claim] = await crawler.claim()
    [held] = await crawler.store.history.of_page(page.id)
    assert _alike(held, factory.locked("w1", made))
    await crawler.commit(crawler.visit(claim, Failed(outcome=Outcome.FAILED, reason="reset")))
    [following, failed] = await crawler.store.history.of_page(page.id)
    assert _alike(failed, factory.failed("reset"))
    clock.set(following.scheduled_for)
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, clock())
    await crawler.finish()
    await crawler.crawl({"": read("Root")})
    [_, done, _] = await crawler.store.history.of_page(page.id)
    assert (done.outcome, done.status_code) == (factory.successful().outcome, factory.successful().status_code)


def _alike(one: object, other: object) -> bool:
    names = ("page_id", "run_id", "url", "domain", "priority", "scheduled_for", "locked_at", "locked_by")
    more = ("completed_at", "outcome", "status_code", "error_message", "created_at", "updated_at")
    return all(getattr(one, name) == getattr(other, name) for name in (*names, *more))


# ---- changes


async def test_changes_come_newest_first_by_source_and_run(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    first = crawler.run.id
    await crawler.crawl({**SITE, "a": read("Page a, edited"), "b": Gone(), "c": Moved(to=at("d")), "d": read("D")})
    changes = await crawler.changes()
    assert [change.id for change in changes] == sorted((change.id for change in changes), reverse=True)
    found = {(change.url, change.kind) for change in changes if change.run == crawler.run.id}
    assert found == {(at("a"), ChangeKind.CHANGED), (at("b"), ChangeKind.DELETED), (at("d"), ChangeKind.NEW)}
    assert {change.kind for change in await crawler.changes(run=first)} == {ChangeKind.NEW}
    assert len(await crawler.changes(limit=2)) == 2
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    assert await crawler.store.history.changes([other.source.id], limit=9) == []
    for kind in ChangeKind:
        fit = [change for change in changes if change.kind is kind]
        assert await crawler.store.history.changes(None, kind=kind, limit=9) == fit
    kinds = [ChangeKind.DELETED, ChangeKind.CHANGED]
    oldest_first = await crawler.store.history.changes_of_run(crawler.run.id, kinds, limit=9)
    oldest = [change for change in reversed(changes) if change.run == crawler.run.id and change.kind in kinds]
    assert oldest_first == [replace(change, diff=None) for change in oldest]
    assert await crawler.store.history.changes_of_run(crawler.run.id, kinds, limit=1) == oldest_first[:1]
    assert await crawler.store.history.changes_of_run(crawler.run.id, [], limit=9) == []


async def test_a_change_names_its_source(crawler: ManualCrawler) -> None:
    other = await ManualCrawler.at(crawler.store, crawler.clock, "docs", "2")
    await other.crawl({"": read("Root")})
    [change] = await crawler.changes()
    assert (change.source, change.version, change.url, change.at) == ("docs", "2", ROOT, crawler.clock())


# ---- numbers


async def test_the_numbers_of_the_whole_store(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.begin()
    await crawler.enqueue("", "b")
    before = crawler.clock()
    crawler.clock.advance(5)
    await crawler.claim(1)
    totals = await crawler.store.stats.totals()
    expected = {"sources": 1, "pages": 3, "chunks": 4, "attempts": 4}
    assert {key: totals[key] for key in expected} == expected
    load = await crawler.store.stats.workload([crawler.worker])
    assert (load.waiting, load.held, load.oldest) == (1, 1, before)


async def test_an_empty_store_has_numbers_too(store: Store) -> None:
    totals = await store.stats.totals()
    assert set(totals.values()) == {0}
    assert await store.stats.workload(["w1"]) == Workload()
    assert await store.stats.size_bytes() >= 0
    assert await store.runs.live() == []


async def test_a_plan_looks_at_what_a_refresh_would_queue(crawler: ManualCrawler) -> None:
    """Dead and moved pages only while something links there."""
    await crawler.crawl(
        {
            "": read("Root", "a", "gone", "old"),
            "a": read("Page a", "lost"),
            "gone": Gone(),
            "old": Moved(to=at("a")),
            "lost": read("Page lost"),
        }
    )
    await crawler.crawl({"": read("Root", "a", "gone", "old"), "a": read("Page a"), "lost": Gone()})
    planned = {page.url for page in await crawler.store.pages.to_check(crawler.source.id)}
    assert planned == {at(""), at("a"), at("gone"), at("old")}
    await crawler.begin()
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    assert {claim.page.url for claim in await crawler.claim()} == planned


async def test_the_next_check_is_known_before_it_is_due(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    _, following, _, _ = await crawler.store.history.evidence(await crawler.page("b"))
    assert following == crawler.clock() + timedelta(seconds=crawler.policy.recheck_seconds)
