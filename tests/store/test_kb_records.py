"""Records of the knowledge base: told by visits, imposed by the cache, gone with their pages."""

from dataclasses import replace
from datetime import timedelta

from tests.store.desk import Desk, at, read

from afresh.digest.cache import FetchStatus, SeenCache
from afresh.digest.records import DigestPage, DigestUpdate
from afresh.model.fetch import Failed, Gone, Outcome, Seen
from afresh.model.records import RunMode, RunState

SITE: dict[str, Seen] = {"": read("Root", "a"), "a": read("Page a", etag='"1"')}
HASH = "5" * 64


async def record_of(desk: Desk, path: str) -> DigestPage | None:
    """What the store knows of a page."""
    pages = await desk.store.digest.pages(desk.source.id)
    return next((page for page in pages if page.url == at(path)), None)


async def tell(desk: Desk, path: str, seen: Seen, told: DigestUpdate) -> None:
    """One look at one page, with what it tells."""
    await desk.begin(RunMode.CHECK)
    await desk.enqueue(path)
    [claim] = await desk.claim()
    visit = desk.visit(claim, seen)
    await desk.commit(replace(visit, harvest=replace(visit.harvest, told=told)))
    await desk.finish(RunState.COMPLETED)


async def test_E9_a_look_tells_what_it_knows_and_leaves_the_rest(desk: Desk) -> None:
    await desk.crawl(SITE)
    now = desk.clock()
    first = DigestUpdate(
        text_hash=HASH, summary="All of it.", indexed_at=now, fetched_at=now, status=FetchStatus.SUCCESS
    )
    await tell(desk, "a", SITE["a"], first)
    failed = Failed(outcome=Outcome.TIMEOUT, reason="no answer")
    await tell(desk, "a", failed, DigestUpdate(status=FetchStatus.TIMEOUT))
    page = await record_of(desk, "a")
    assert page is not None
    assert (page.text_hash, page.summary, page.fetched_at) == (HASH, "All of it.", now)
    assert (page.status, page.failures, page.etag) == (FetchStatus.TIMEOUT, 1, '"1"')


async def test_G7_what_the_cache_says_is_imposed_on_pages_known_and_unknown(desk: Desk) -> None:
    await desk.crawl(SITE)
    now, later = desk.clock(), desk.clock() + timedelta(days=3)
    said = DigestPage(
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
    new = replace(said, url=at("new"), depth=0)
    for _ in range(2):  # twice changes nothing more
        await desk.store.digest.impose(desk.source.id, [said, new], now)
        assert await record_of(desk, "a") == said
        assert await record_of(desk, "new") == new
    assert {wait.url: wait.next_at for wait in await desk.store.due.waiting(desk.source.id)}[
        at("new")
    ] == later
    (page,) = [page for page, *_ in await desk.store.pages.find(at("a"))]
    told = await desk.store.digest.records(page.id)
    assert told is not None
    assert (told.summary, told.status) == ("By hand.", FetchStatus.ERROR)


async def test_E16_a_record_goes_with_its_page(desk: Desk) -> None:
    await desk.crawl(SITE)
    await tell(desk, "a", SITE["a"], DigestUpdate(text_hash=HASH, summary="All of it."))
    await desk.crawl({**SITE, "a": Gone()})
    page = await record_of(desk, "a")
    assert page is None or page.text_hash is None
    (found,) = [page for page, *_ in await desk.store.pages.find(at("a"))]
    assert await desk.store.digest.records(found.id) is None


async def test_G7_the_cache_last_seen_is_remembered_and_no_other(desk: Desk) -> None:
    assert await desk.store.digest.cache_seen() is None
    for cache in (SeenCache("/a.json", "one"), SeenCache("/a.json", "two"), SeenCache("/b.json", "two")):
        await desk.store.digest.see_cache(cache)
        assert await desk.store.digest.cache_seen() == cache


async def test_E20_within_a_budget_the_longest_due_is_claimed_first(desk: Desk) -> None:
    now = desk.clock()
    pages = [
        DigestPage(url=at(path), next_at=now - timedelta(hours=hours))
        for path, hours in (("a", 1), ("b", 3), ("c", 2))
    ]
    await desk.store.digest.impose(desk.source.id, pages, now - timedelta(hours=4))
    await desk.begin(RunMode.DUE)
    await desk.store.queue.enqueue_due(desk.run, replace(desk.limits, budget=2), now)
    assert [claim.page.url for claim in await desk.claim()] == [at("b"), at("c")]
