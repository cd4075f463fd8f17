"""Leases and fencing: who lost a claim writes nothing, and no claim stays behind."""

import pytest
from tests.store.asking import search
from tests.store.crawler import ManualCrawler, at, read

from afresh.crawl.run_verdict import RunEnding
from afresh.errors import RunBusy
from afresh.model.fetch import Gone, Outcome, Seen
from afresh.model.records import PageStatus, RunMode, RunState


async def _claimed(crawler: ManualCrawler) -> ManualCrawler:
    await crawler.join()
    await crawler.begin()
    await crawler.enqueue("", "a")
    return crawler


async def test_F24_a_worker_that_lost_its_lease_writes_nothing(crawler: ManualCrawler) -> None:
    await _claimed(crawler)
    late, kept = await crawler.claim()
    await crawler.store.workers.reclaim(["w1"], crawler.clock.advance(120))
    before = await crawler.reload()
    visits = [crawler.visit(claim, read("Too late", "never")) for claim in (late, kept)]
    assert await crawler.commit(*visits) == []
    assert await crawler.reload() == before
    assert await crawler.urls() == []
    assert await search(crawler.store, "late") == []
    assert await crawler.store.links.of_source(crawler.source.id) == []
    assert await crawler.changes() == []
    assert await crawler.store.pages.find(at("never")) == []
    assert (await crawler.page(late.page.url)).status is PageStatus.PENDING


async def test_F24_in_one_batch_what_is_still_held_is_written_and_the_rest_is_not(crawler: ManualCrawler) -> None:
    await _claimed(crawler)
    [lost] = await crawler.claim(1)
    await crawler.store.workers.reclaim(["w1"], crawler.clock.advance(120))
    second = crawler.beside(crawler.store, "w1")
    claims = await second.claim()
    assert len(claims) == 2
    visits = [second.visit(claim, read(f"New {claim.page.url}")) for claim in claims]
    stale = crawler.visit(lost, read("Stale"))
    assert sorted(await crawler.commit(stale, *visits)) == [at(""), at("a")]
    assert await search(crawler.store, "stale") == []


async def test_F26_the_same_name_after_a_restart_is_not_the_same_claim(crawler: ManualCrawler) -> None:
    """The number of the row is the token: the new attempt has another."""
    await _claimed(crawler)
    [before] = await crawler.claim(1)
    await crawler.store.workers.reclaim(["w1"], crawler.clock.advance(1))
    await crawler.join(pid=2)
    after = next(claim for claim in await crawler.claim() if claim.page.id == before.page.id)
    assert after.crawl_id != before.crawl_id
    assert await crawler.commit(crawler.visit(before, Gone())) == []
    assert await crawler.commit(crawler.visit(after, read("Alive"))) == [before.page.url]


async def test_B7_reclaim_stamps_the_attempt_and_opens_a_new_row(crawler: ManualCrawler) -> None:
    await _claimed(crawler)
    [claim] = await crawler.claim(1)
    now = crawler.clock.advance(120)
    assert await crawler.store.workers.reclaim(["w1"], now) == 1
    abandoned, again = await crawler.attempts(claim.page.url)
    assert (abandoned.outcome, abandoned.completed_at) == (Outcome.ABANDONED, now)
    assert (abandoned.locked_at, abandoned.locked_by) == (None, None)
    assert "w1" in (abandoned.error_message or "")
    assert (again.outcome, again.run_id, again.scheduled_for) == (None, crawler.run.id, now)
    assert (again.domain, again.priority, again.url) == (abandoned.domain, abandoned.priority, abandoned.url)
    assert await crawler.store.workers.all() == []


async def test_F24_a_worker_with_a_newer_heartbeat_keeps_its_pages(crawler: ManualCrawler) -> None:
    """Between the look at the hearts and the taking a worker may come back and claim."""
    await _claimed(crawler)
    heartbeats = {each.name: each.heartbeat_at for each in await crawler.store.workers.all()}
    crawler.clock.advance(120)
    await crawler.beat()
    [claim] = await crawler.claim(1)
    assert await crawler.store.workers.reclaim(["w1"], crawler.clock(), heartbeats) == 0
    assert await crawler.store.workers.reclaim(["w1"], crawler.clock(), {}) == 0, "nor who was unknown and is no more"
    assert await crawler.commit(crawler.visit(claim, read("Alive"))) == [claim.page.url]
    await crawler.claim(1)
    assert await crawler.store.workers.reclaim(["w1"], crawler.clock(), {"w1": crawler.clock()}) == 1


async def test_reclaim_takes_from_the_dead_alone(crawler: ManualCrawler) -> None:
    await _claimed(crawler)
    await crawler.enqueue("https://api.example.org/")
    second = crawler.beside(crawler.store, "w2")
    await crawler.claim(1)
    [living] = await second.claim()
    assert await crawler.store.workers.reclaim(["w1", "never seen"], crawler.clock()) == 1
    assert await second.commit(second.visit(living, read("Alive"))) == [living.page.url]


async def test_reclaiming_twice_abandons_once(crawler: ManualCrawler) -> None:
    await _claimed(crawler)
    [claim] = await crawler.claim(1)
    assert await crawler.store.workers.reclaim(["w1"], crawler.clock()) == 1
    assert await crawler.store.workers.reclaim(["w1"], crawler.clock()) == 0
    assert len(await crawler.attempts(claim.page.url)) == 2


async def test_a_reclaimed_look_counts_no_page_twice(crawler: ManualCrawler) -> None:
    """The same page, the same run, one more row."""
    await _claimed(crawler)
    await crawler.claim()
    await crawler.store.workers.reclaim(["w1"], crawler.clock())
    assert (await crawler.reload()).queued == 2
    assert (await crawler.store.queue.backlog(crawler.run.id)).open == 2


async def test_release_gives_rows_back_without_an_attempt_to_show(crawler: ManualCrawler) -> None:
    """A worker that stops in good order has looked at nothing."""
    await _claimed(crawler)
    await crawler.claim()
    assert await crawler.store.workers.lock_owners() == {"w1"}
    await crawler.store.workers.release("w1", crawler.clock())
    assert await crawler.store.workers.lock_owners() == set()
    [row] = await crawler.attempts("a")
    assert (row.outcome, row.locked_at, row.locked_by) == (None, None, None)
    assert len(await crawler.claim()) == 2


async def test_F24_a_released_row_can_no_longer_be_written(crawler: ManualCrawler) -> None:
    await _claimed(crawler)
    [claim, *_] = await crawler.claim()
    await crawler.store.workers.release("w1", crawler.clock())
    assert await crawler.commit(crawler.visit(claim, read("Too late"))) == []


async def test_the_claim_of_another_cannot_be_written(crawler: ManualCrawler) -> None:
    await _claimed(crawler)
    [claim, *_] = await crawler.claim()
    thief = crawler.beside(crawler.store, "w2")
    assert await thief.commit(thief.visit(claim, read("Stolen"))) == []
    assert await crawler.commit(crawler.visit(claim, read("Mine"))) == [claim.page.url]


async def test_a_worker_that_has_committed_everything_holds_no_page(crawler: ManualCrawler) -> None:
    await _claimed(crawler)
    claims = await crawler.claim()
    assert await crawler.store.workers.held_by() == {"w1": 2}
    await crawler.commit(*[crawler.visit(claim, read("Done")) for claim in claims])
    assert await crawler.store.workers.held_by() == {}


async def test_B6_dropping_a_page_that_is_in_flight_leaves_no_lock_behind(crawler: ManualCrawler) -> None:
    """`afresh confirm` may drop a page that the next run is just looking at."""
    await crawler.crawl({"": read("Root", "a"), "a": read("Page a")})
    await crawler.begin()
    await crawler.enqueue("a")
    await crawler.look({"a": Gone()})
    braked = await crawler.finish(RunState.NEEDS_CONFIRMATION)
    await crawler.begin()
    await crawler.enqueue("a")
    [claim] = await crawler.claim()
    confirmed = RunEnding(state=RunState.COMPLETED, counts={}, dropped=[claim.page])
    await crawler.store.runs.finish(braked, confirmed, crawler.clock())
    assert await crawler.store.workers.held_by() == {}
    assert (await crawler.store.stats.workload([crawler.worker])).held == 0
    assert await crawler.commit(crawler.visit(claim, read("Too late"))) == []
    [*_, last] = await crawler.attempts("a")
    assert (last.outcome, last.locked_at, last.locked_by) == (Outcome.CANCELLED, None, None)


async def test_F24_a_worker_that_lost_its_run_can_neither_count_nor_drop_nor_end_it(crawler: ManualCrawler) -> None:
    """It slept between its judgement and its end; another took the run over meanwhile."""
    await crawler.crawl({"": read("Root", "a", "b"), "a": read("Page a"), "b": read("Page b")})
    await crawler.join()
    await crawler.begin()
    await crawler.enqueue("", "a")
    await crawler.look({"": read("Root", "a"), "a": Gone()})
    asleep, missing = await crawler.reload(), await crawler.missing()
    [(gone, _)] = await crawler.store.pages.doomed(crawler.source.id)
    await crawler.store.workers.reclaim(["w1"], crawler.clock.advance(120))
    other = crawler.beside(crawler.store, "w2")
    assert await other.begin()
    ending = RunEnding(state=RunState.COMPLETED, counts={"deleted": 1}, missing=missing, dropped=[gone])
    with pytest.raises(RunBusy, match="taken over"):
        await crawler.store.runs.finish(asleep, ending, crawler.clock())
    assert await crawler.urls() == [at(""), at("a"), at("b")]
    assert (await crawler.page("b")).missing_count == 0
    assert (await other.reload()).state is RunState.RUNNING
    await other.sweep()
    assert await crawler.urls() == [at(""), at("b")]
    assert (await crawler.page("b")).missing_count == 1


async def test_F24_a_run_ends_once(crawler: ManualCrawler) -> None:
    await _claimed(crawler)
    run = await crawler.reload()
    await crawler.finish(RunState.PARTIAL)
    with pytest.raises(RunBusy):
        await crawler.store.runs.finish(run, RunEnding(state=RunState.COMPLETED, counts={}), crawler.clock())
    assert (await crawler.reload()).state is RunState.PARTIAL


async def test_P5_a_page_that_was_found_again_is_not_dropped_by_a_late_confirmation(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a"), "a": read("Page a")})
    await crawler.begin()
    await crawler.enqueue("a")
    await crawler.look({"a": Gone()})
    braked = await crawler.finish(RunState.NEEDS_CONFIRMATION)
    [(gone, _)] = await crawler.store.pages.doomed(crawler.source.id)
    await crawler.begin()
    await crawler.enqueue("a")
    await crawler.look({"a": read("Page a, back")})
    confirmed = RunEnding(state=RunState.COMPLETED, counts={}, dropped=[gone])
    await crawler.store.runs.finish(braked, confirmed, crawler.clock())
    assert at("a") in await crawler.urls()


async def test_F24_a_worker_taken_for_dead_is_registered_again_by_its_heartbeat(crawler: ManualCrawler) -> None:
    """So that what it claims from then on is not taken from it."""
    await _claimed(crawler)
    await crawler.store.workers.reclaim(["w1"], crawler.clock.advance(120))
    assert await crawler.store.workers.all() == []
    await crawler.beat()
    assert [worker.name for worker in await crawler.store.workers.all()] == ["w1"]


JUMPS = pytest.mark.parametrize("days", [1, -1, 3650], ids=["a-day-on", "a-day-back", "ten-years-on"])


@JUMPS
async def test_F28_absence_is_counted_by_runs_whatever_the_clock_says(crawler: ManualCrawler, days: int) -> None:
    site: dict[str, Seen] = {"": read("Root", "a"), "a": read("Page a")}
    await crawler.crawl(site)
    without: dict[str, Seen] = {"": read("Root alone"), "a": read("Page a")}
    for run in (1, 2):
        await crawler.crawl(without)
        crawler.clock.advance(days=days)
        assert (await crawler.page("a")).missing_count == run
        assert at("a") in await crawler.urls()
    await crawler.crawl(without)
    assert at("a") not in await crawler.urls()


@JUMPS
async def test_F28_an_interrupted_run_continues_or_restarts_after_the_clock_was_set(
    crawler: ManualCrawler, days: int
) -> None:
    await _claimed(crawler)
    await crawler.claim()
    crawler.clock.advance(days=days)
    await crawler.store.workers.reclaim(["w1"], crawler.clock())
    await crawler.enqueue("b")
    crawler.clock.advance(days=-2 * days)
    await crawler.begin()
    await crawler.enqueue("")
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    assert sorted(await crawler.look({})) == [at(""), at("a"), at("b")]
    assert (await crawler.store.queue.backlog(crawler.run.id)).open == 0


async def test_F28_a_look_dated_by_a_clock_that_was_wrong_is_due(crawler: ManualCrawler) -> None:
    """Ten years ahead for a while: nothing waits for ten years."""
    now = crawler.clock()
    crawler.clock.advance(days=3650)
    await crawler.crawl({"": read("Root", "a"), "a": read("Page a")})
    await crawler.store.queue.pause_host("docs.example.org", crawler.clock.advance(60))
    crawler.clock.set(now)
    await crawler.begin(RunMode.DUE)
    await crawler.store.queue.enqueue_due(crawler.run, crawler.limits, crawler.clock())
    assert sorted(await crawler.look({"": read("Root", "a"), "a": read("Page a")})) == [at(""), at("a")]


async def test_F28_a_look_that_is_not_due_yet_stays_so(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root")})
    crawler.clock.advance(60)
    await crawler.begin(RunMode.DUE)
    await crawler.store.queue.enqueue_due(crawler.run, crawler.limits, crawler.clock())
    assert await crawler.claim() == []
