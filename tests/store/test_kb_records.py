"""Records of the knowledge base: told by visits, imposed by the cache, gone with their pages."""

from dataclasses import replace
from datetime import timedelta

from tests.store.crawler import ManualCrawler, at, read

from afresh.digest.cache import FetchStatus, SeenCache
from afresh.digest.records import DigestPage, DigestUpdate
from afresh.model.fetch import Failed, Gone, Outcome, Seen
from afresh.model.records import RunMode, RunState

SITE: dict[str, Seen] = {"": read("Root", "a"), "a": read("Page a", etag='"1"')}
HASH = "5" * 64


async def record_of(crawler: ManualCrawler, path: str) -> DigestPage | None:
    """What the store knows of a page."""
    pages = await crawler.store.digest.pages(crawler.source.id)
    return next((page for page in pages if page.url == at(path)), None)


async def visit_with(crawler: ManualCrawler, path: str, seen: Seen, update: DigestUpdate) -> None:
    """One look at one page, with what it tells."""
    await crawler.begin(RunMode.CHECK)
    await crawler.enqueue(path)
    [claim] = await crawler.claim()
    visit = crawler.visit(claim, seen)
    await crawler.commit(replace(visit, content=replace(visit.content, digest=update)))
    await crawler.finish(RunState.COMPLETED)


async def test_E9_a_visit_records_what_it_found_and_leaves_the_rest(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    now = crawler.clock()
    first = DigestUpdate(
        text_hash=HASH, summary="All of it.", indexed_at=now, fetched_at=now, status=FetchStatus.SUCCESS
    )
    await visit_with(crawler, "a", SITE["a"], first)
    failed = Failed(outcome=Outcome.TIMEOUT, reason="no answer")
    await visit_with(crawler, "a", failed, DigestUpdate(status=FetchStatus.TIMEOUT))
    page = await record_of(crawler, "a")
    assert page is not None
    assert (page.text_hash, page.summary, page.fetched_at) == (HASH, "All of it.", now)
    assert (page.status, page.failures, page.etag) == (FetchStatus.TIMEOUT, 1, '"1"')


async def test_G7_what_the_cache_says_is_imposed_on_pages_known_and_unknown(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    now, later = crawler.clock(), crawler.clock() + timedelta(days=3)
    imposed = DigestPage(
        url=at("a"),
        depth=1,
        etag='"2"',
        failures=4,
        next_at=later,
        text_hash=HASH,
        summary="By hand.",
        indexed_at=now,
        fetched_at=now,
        status=FetchStatus.ERROR,
    )
    new = replace(imposed, url=at("new"), depth=0)
    for _ in range(2):  # twice changes nothing more
        await crawler.store.digest.apply_cache(crawler.source.id, [imposed, new], now)
        assert await record_of(crawler, "a") == imposed
        assert await record_of(crawler, "new") == new
    assert {wait.url: wait.next_at for wait in await crawler.store.due.waiting(crawler.source.id)}[at("new")] == later
    (page,) = [page for page, *_ in await crawler.store.pages.find(at("a"))]
    update = await crawler.store.digest.records(page.id)
    assert update is not None
    assert (update.summary, update.status) == ("By hand.", FetchStatus.ERROR)


async def test_E16_a_record_goes_with_its_page(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await visit_with(crawler, "a", SITE["a"], DigestUpdate(text_hash=HASH, summary="All of it."))
    await crawler.crawl({**SITE, "a": Gone()})
    page = await record_of(crawler, "a")
    assert page is None or page.text_hash is None
    (found,) = [page for page, *_ in await crawler.store.pages.find(at("a"))]
    assert await crawler.store.digest.records(found.id) is None


async def test_G7_the_cache_last_seen_is_remembered_and_no_other(crawler: ManualCrawler) -> None:
    assert await crawler.store.digest.recorded_cache() is None
    for cache in (SeenCache("/a.json", "one"), SeenCache("/a.json", "two"), SeenCache("/b.json", "two")):
        await crawler.store.digest.record_cache(cache)
        assert await crawler.store.digest.recorded_cache() == cache


async def test_E20_within_a_budget_the_most_overdue_is_claimed_first(crawler: ManualCrawler) -> None:
    now = crawler.clock()
    pages = [
        DigestPage(url=at(path), next_at=now - timedelta(hours=hours)) for path, hours in (("a", 1), ("b", 3), ("c", 2))
    ]
    await crawler.store.digest.apply_cache(crawler.source.id, pages, now - timedelta(hours=4))
    await crawler.begin(RunMode.DUE)
    await crawler.store.queue.enqueue_due(crawler.run, replace(crawler.limits, budget=2), now)
    assert [claim.page.url for claim in await crawler.claim()] == [at("b"), at("c")]
