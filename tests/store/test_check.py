"""A check of a few pages before an answer: a run that leaves everything else about its source alone."""

from datetime import timedelta

import pytest
from tests.store.crawler import ManualCrawler, at, read

from afresh.errors import RunBusy
from afresh.model.fetch import Gone, NotModified, Seen
from afresh.model.records import RunMode, RunState, Source

SITE: dict[str, Seen] = {"": read("Start", "a", "b"), "a": read("Apples", ""), "b": read("Bananas", "")}


@pytest.fixture
async def crawled(crawler: ManualCrawler) -> ManualCrawler:
    await crawler.join()
    await crawler.crawl(SITE)
    crawler.clock.advance(3600)
    return crawler


async def check(crawler: ManualCrawler, path: str, seen: Seen, state: RunState = RunState.COMPLETED) -> None:
    await crawler.begin(RunMode.CHECK)
    await crawler.enqueue(path)
    assert await crawler.look({path: seen}) == [at(path)]
    doomed = [
        page for page, _ in await crawler.store.pages.doomed(crawler.source.id) if page.doomed_by == crawler.run.id
    ]
    await crawler.finish(state, dropped=doomed if state is RunState.COMPLETED else ())


async def test_a_check_leaves_the_times_and_runs_of_its_source_alone(crawled: ManualCrawler) -> None:
    store, source = crawled.store, crawled.source.id
    before = await store.stats.source_view(await _source(crawled))
    last = (await store.runs.last(source, 9))[0]
    await check(crawled, "a", NotModified())
    view = await store.stats.source_view(await _source(crawled))
    assert (view.crawl_time, view.last_run, view.last_mode) == (before.crawl_time, last.id, "crawl")
    assert [run.id for run in await store.runs.last(source, 9)] == [last.id]
    assert (await crawled.page("a")).checked_at == crawled.clock()
    assert (await crawled.page("b")).checked_at != crawled.clock()


async def _source(crawler: ManualCrawler) -> Source:
    found = await crawler.store.sources.get(crawler.source.id)
    assert found is not None
    return found


async def test_a_check_is_not_the_look_that_a_schedule_waits_for(crawled: ManualCrawler) -> None:
    slot = crawled.clock() - timedelta(seconds=1)
    await check(crawled, "a", NotModified())
    run, resumed = await crawled.store.runs.start(
        crawled.source.id, RunMode.DUE, full=False, worker="w1", now=crawled.clock(), slot=slot
    )
    assert (run.mode, resumed) == (RunMode.DUE, False)


async def test_new_links_of_a_check_wait_for_the_next_run(crawled: ManualCrawler) -> None:
    store, source = crawled.store, crawled.source.id
    await store.links.close_frontier(source, "rules", 20)
    await check(crawled, "a", read("Apples and more", "", "new"))
    assert await store.pages.find(at("new")) == []
    assert await store.links.frontier_is_open(source, "rules") == (True, False)
    assert [listed.url for listed in await store.queue.frontier(source)] == [at("new")]
    await crawled.begin(RunMode.REFRESH)
    await store.queue.enqueue(crawled.run, await store.queue.frontier(source), crawled.limits, crawled.clock())
    assert at("new") in [claim.page.url for claim in await crawled.claim()]


async def test_a_check_that_leads_nowhere_new_opens_nothing(crawled: ManualCrawler) -> None:
    await crawled.store.links.close_frontier(crawled.source.id, "rules", 20)
    await check(crawled, "a", read("Apples, ripe"))
    assert await crawled.store.links.frontier_is_open(crawled.source.id, "rules") == (False, False)


async def test_a_check_waits_for_nobody(crawled: ManualCrawler) -> None:
    """Neither a run at work nor one that was interrupted is disturbed."""
    await crawled.begin(RunMode.REFRESH)
    other = crawled.beside(crawled.store, "w2")
    with pytest.raises(RunBusy, match=r"^run \d+ of docs is already in progress"):
        await other.begin(RunMode.CHECK)
    await crawled.finish(RunState.CANCELLED)
    with pytest.raises(RunBusy, match=r"was interrupted; `afresh refresh` continues it"):
        await other.begin(RunMode.CHECK)
    assert await crawled.begin(RunMode.REFRESH), "it goes on as if nothing had been"


@pytest.mark.parametrize("mode", [RunMode.CHECK, RunMode.REFRESH])
async def test_a_check_that_died_is_given_up_and_nobody_goes_on_with_it(crawled: ManualCrawler, mode: RunMode) -> None:
    await crawled.begin(RunMode.CHECK)
    await crawled.enqueue("a")
    await crawled.claim()
    assert await crawled.store.runs.live() == [], "nobody is asked to go on with it"
    await crawled.store.workers.reclaim([crawled.worker], crawled.clock())
    died, other = crawled.run, crawled.beside(crawled.store, "w2")
    assert not await other.begin(mode)
    assert other.run.id != died.id
    assert (await crawled.reload()).state is RunState.FAILED
    await other.enqueue("a")
    assert [claim.page.url for claim in await other.claim()] == [at("a")]


async def test_a_check_forgives_nothing_and_supersedes_nothing(crawled: ManualCrawler) -> None:
    """A run that waits for a confirmation still may delete what it found gone."""
    await crawled.begin(RunMode.REFRESH)
    await crawled.enqueue("b")
    await crawled.look({"b": Gone()})
    held = await crawled.finish(RunState.NEEDS_CONFIRMATION)
    await check(crawled, "a", NotModified())
    run = await crawled.store.runs.get(held.id)
    assert run is not None
    assert run.state is RunState.NEEDS_CONFIRMATION
    assert (await crawled.page("b")).doomed_by == held.id
    assert [run.id for run in await crawled.store.runs.live()] == [held.id]


async def test_a_failed_check_forgives_its_own_marks(crawled: ManualCrawler) -> None:
    await check(crawled, "b", Gone(), RunState.FAILED)
    assert (await crawled.page("b")).doomed_by is None
    assert at("b") in await crawled.urls()


async def test_a_check_drops_what_it_proved_gone(crawled: ManualCrawler) -> None:
    await check(crawled, "b", Gone())
    assert at("b") not in await crawled.urls()
    assert at("a") in await crawled.urls()
