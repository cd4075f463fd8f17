"""Sources, runs and workers: one run at a time per source, and none is lost."""

from dataclasses import replace
from typing import Any

import pytest
from tests.store.asking import search
from tests.store.crawler import LIMITS, ROOT, ManualCrawler, at, read

from afresh.crawl.run_verdict import RunEnding
from afresh.errors import RunBusy
from afresh.model.records import ListedUrl, RunMode, RunState, WorkerRecord
from afresh.model.reports import Workload
from afresh.store.store import Store
from afresh.testing import FrozenClock

# ---- sources


async def test_A9_a_source_is_one_name_and_version(store: Store, clock: FrozenClock) -> None:
    """The same label is the same source; another version is another source."""
    first = await ManualCrawler.at(store, clock, "react", "18")
    again = await ManualCrawler.at(store, clock, "react", "18")
    other = await ManualCrawler.at(store, clock, "react")
    assert again.source.id == first.source.id != other.source.id
    assert [each.label for each in await store.sources.all()] == ["react", "react@18"]
    assert [each.label for each in await store.sources.all("react")] == ["react", "react@18"]
    assert await store.sources.all("vue") == []


async def test_new_rules_are_merged_over_the_old(store: Store, clock: FrozenClock) -> None:
    key = {"name": "docs", "version": None, "kind": "web", "url": ROOT}
    rules = {"max_depth": 3, "exclude": ["*/old/*"]}
    made = await store.sources.add(**key, rules=rules, policy={"body": "none"}, now=clock())  # type: ignore[arg-type]
    later = clock.advance(5)
    found = await store.sources.add(**key, rules={"max_depth": 4}, policy={}, now=later)  # type: ignore[arg-type]
    assert found.rules == {"max_depth": 4, "exclude": ["*/old/*"]}
    assert found.policy == {"body": "none"}
    assert (found.created_at, found.updated_at) == (made.created_at, later)


async def test_a_source_is_found_by_label_id_and_root(crawler: ManualCrawler) -> None:
    store, source = crawler.store, crawler.source
    assert await store.sources.find("docs", None) == source
    assert await store.sources.find_by_url(ROOT, None) == source
    assert await store.sources.get(source.id) == source
    assert await store.sources.find("docs", "2") is None
    assert await store.sources.find_by_url(ROOT, "2") is None


async def test_G3_removing_a_source_keeps_its_history_and_leaves_nothing_open(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a"), "a": read("Page a")})
    page = await crawler.page("a")
    await crawler.store.sources.remove(crawler.source.id, crawler.clock())
    assert await crawler.store.sources.all() == []
    assert await crawler.store.pages.find(at("a")) == []
    assert await search(crawler.store, "page") == []
    assert await crawler.store.runs.last(crawler.source.id) == []
    history = await crawler.store.history.of_url(at("a"))
    assert [attempt.page_id for attempt in history] == [None, None]
    assert page.id not in {attempt.page_id for attempt in history}
    assert all(attempt.outcome is not None for attempt in history)


async def test_P3_removing_a_source_in_the_middle_of_a_run_leaves_nothing_pending(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("", "a", "b")
    await crawler.claim(1)
    await crawler.store.sources.remove(crawler.source.id, crawler.clock())
    assert await crawler.store.stats.workload([crawler.worker]) == Workload()


async def test_a_visit_to_a_removed_source_writes_nothing(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("")
    [claim] = await crawler.claim()
    await crawler.store.sources.remove(crawler.source.id, crawler.clock())
    assert await crawler.commit(crawler.visit(claim, read("Root", "a"))) == []
    assert (await crawler.store.stats.totals())["pages"] == 0


# ---- runs


async def test_C6_a_run_stamps_its_source_and_says_what_was_known(crawler: ManualCrawler) -> None:
    await crawler.crawl({"": read("Root", "a"), "a": read("Page a")})
    now = crawler.clock.advance(3600)
    assert await crawler.begin(RunMode.REFRESH) is False
    assert crawler.run.started_at == now
    assert (crawler.run.mode, crawler.run.state, crawler.run.known) == (RunMode.REFRESH, RunState.RUNNING, 2)
    source = await crawler.store.sources.get(crawler.source.id)
    assert source is not None
    assert source.crawl_time == now


async def test_a_killed_run_goes_on_where_it_was(crawler: ManualCrawler) -> None:
    await crawler.join()
    await crawler.begin()
    await crawler.enqueue("")
    await crawler.enqueue("a", "b", depth=1)
    await crawler.commit(*[crawler.visit(claim, read(claim.page.url)) for claim in await crawler.claim(1)])
    await crawler.claim(1)
    first = crawler.run
    crawler = crawler.beside(crawler.store, "w2")
    await crawler.store.workers.reclaim(["w1"], crawler.clock.advance(5))
    assert await crawler.begin() is True
    assert (crawler.run.id, crawler.run.started_at, crawler.run.worker) == (first.id, first.started_at, "w2")
    assert sorted(await crawler.look({"a": read("A"), "b": read("B")})) == [at("a"), at("b")]
    assert (await crawler.reload()).counts["checked"] == 3


async def test_a_cancelled_run_goes_on_where_it_was(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("", "a")
    await crawler.finish(RunState.CANCELLED)
    assert (await crawler.store.queue.backlog(crawler.run.id)).open == 2
    cancelled = crawler.run.id
    assert await crawler.begin() is True
    assert (crawler.run.id, crawler.run.state, crawler.run.finished_at) == (cancelled, RunState.RUNNING, None)


async def test_a_second_worker_finds_the_run_busy(crawler: ManualCrawler) -> None:
    await crawler.join()
    await crawler.begin()
    other = crawler.beside(crawler.store, "w2")
    with pytest.raises(RunBusy, match=f"run {crawler.run.id} of docs is already in progress"):
        await other.begin()
    assert await crawler.begin() is True, "the worker itself is not in its own way"
    await crawler.store.workers.release("w1", crawler.clock())
    assert await other.begin() is True


async def test_two_sources_do_not_keep_each_other_busy(crawler: ManualCrawler) -> None:
    await crawler.join()
    await crawler.begin()
    other = replace(await ManualCrawler.at(crawler.store, crawler.clock, "other"), worker="w2")
    assert await other.begin() is False


@pytest.mark.parametrize(("hours", "resumed"), [(23.9, True), (24.1, False)])
async def test_a_run_of_yesterday_is_given_up(crawler: ManualCrawler, hours: float, resumed: bool) -> None:
    """What an old run had seen is too old to build on."""
    await crawler.begin()
    await crawler.enqueue("", "a")
    old = crawler.run.id
    crawler.clock.advance(hours=hours)
    assert await crawler.begin() is resumed
    assert (crawler.run.id == old) is resumed
    given_up = await crawler.store.runs.get(old)
    assert given_up is not None
    assert given_up.state is (RunState.RUNNING if resumed else RunState.FAILED)
    assert (await crawler.store.queue.backlog(old)).open == 0  # it is filled again


@pytest.mark.parametrize(("minutes", "again"), [(2, False), (4, True)])
async def test_R0_a_run_that_goes_on_later_than_a_few_minutes_begins_again(
    crawler: ManualCrawler, minutes: int, again: bool
) -> None:
    """It keeps its number and what it wrote, and forgets what it looked at and took for gone."""
    await crawler.begin()
    await crawler.enqueue("", "a", "b")
    first, second = (await crawler.claim())[:2]
    await crawler.commit(crawler.visit(first, read("Root", "words")))
    await crawler.store.workers.release(crawler.worker, crawler.clock())
    number, began = crawler.run.id, crawler.run.started_at
    crawler.clock.advance(60 * minutes)
    assert await crawler.begin() is True
    run = await crawler.reload()
    assert (run.id, run.started_at) == (number, crawler.clock() if again else began)
    assert run.counts.get("new") == 1
    assert run.counts.get("checked") == (None if again else 1)
    assert run.counts["worked_ms"] == 0
    assert (run.queued, (await crawler.store.queue.backlog(number)).open) == ((0, 0) if again else (3, 3))
    await crawler.enqueue("", "a", "b")
    asked = {claim.page.url for claim in await crawler.claim()}
    assert (second.page.url in asked, first.page.url in asked) == (True, True)  # the root is, in any case
    assert (await crawler.reload()).queued == (3 if again else 4)


@pytest.mark.parametrize(
    ("first", "second", "resumed"),
    [(False, False, True), (True, True, True), (True, False, True), (False, True, False)],
)
async def test_a_full_look_does_not_go_on_with_a_run_that_trusted_validators(
    crawler: ManualCrawler, first: bool, second: bool, resumed: bool
) -> None:
    await crawler.begin(full=first)
    assert await crawler.begin(full=second) is resumed
    assert crawler.run.full is (first or second)


async def test_what_a_given_up_run_left_open_is_taken_by_the_next(crawler: ManualCrawler) -> None:
    await crawler.begin()
    await crawler.enqueue("", "a")
    crawler.clock.advance(hours=25)
    await crawler.begin()
    await crawler.store.queue.enqueue_known(crawler.run, crawler.limits, crawler.clock())
    assert sorted(await crawler.look({})) == [at(""), at("a")]


async def test_a_finished_run_keeps_its_report(crawler: ManualCrawler) -> None:
    await crawler.begin()
    ending = RunEnding(state=RunState.PARTIAL, counts={"checked": 2}, notes=["a note"], error="one page")
    done = await crawler.store.runs.finish(crawler.run, ending, crawler.clock())
    assert done == await crawler.store.runs.get(crawler.run.id)
    assert (done.counts, done.notes, done.error) == ({"checked": 2}, ("a note",), "one page")
    assert done.finished_at == crawler.clock()
    assert await crawler.begin() is False


async def test_last_and_live_runs_come_newest_first(crawler: ManualCrawler) -> None:
    ids = []
    for state in (RunState.COMPLETED, RunState.NEEDS_CONFIRMATION, RunState.FAILED):
        await crawler.begin()
        await crawler.finish(state)
        ids.append(crawler.run.id)
    await crawler.begin()
    ids.append(crawler.run.id)
    last = await crawler.store.runs.last(crawler.source.id, 3)
    assert [run.id for run in last] == ids[:0:-1]
    assert [run.id for run in await crawler.store.runs.live()] == [ids[3], ids[1]]


# ---- workers


async def test_a_worker_is_known_until_it_leaves(crawler: ManualCrawler) -> None:
    await crawler.join(pid=7)
    later = crawler.clock.advance(10)
    await crawler.beat(pid=7)
    [worker] = await crawler.store.workers.all()
    assert (worker.name, worker.host, worker.pid, worker.heartbeat_at) == ("w1", "here", 7, later)
    await crawler.store.workers.release("w1", later)
    assert await crawler.store.workers.all() == []


async def test_F26_a_worker_that_comes_back_under_its_name_is_known_by_its_new_process(crawler: ManualCrawler) -> None:
    """Whoever asks whether it lives must look for the process that runs now."""
    await crawler.join(pid=7)
    await crawler.join(pid=8)
    assert [worker.pid for worker in await crawler.store.workers.all()] == [8]


async def test_F25_there_is_one_run_for_each_slot(crawler: ManualCrawler) -> None:
    slot = crawler.clock()
    await crawler.crawl({"": read("The root")})
    with pytest.raises(RunBusy, match="another process has already run the source"):
        await crawler.store.runs.start(
            crawler.source.id, RunMode.DUE, full=False, worker="w2", now=crawler.clock(), slot=slot
        )
    later = crawler.clock.advance(60)
    run, resumed = await crawler.store.runs.start(
        crawler.source.id, RunMode.DUE, full=False, worker="w2", now=crawler.clock.advance(60), slot=later
    )
    assert (run.mode, resumed) == (RunMode.DUE, False)


# ---- runs that wait for a worker


async def test_a_queued_run_waits_for_a_worker_and_is_queued_once(crawler: ManualCrawler) -> None:
    store, source, now = crawler.store, crawler.source.id, crawler.clock()
    queued, resumed = await store.runs.start(source, RunMode.REFRESH, full=True, worker=None, now=now)
    assert (queued.state, queued.worker, queued.full, resumed) == (RunState.QUEUED, None, True, False)
    again, _ = await store.runs.start(source, RunMode.REFRESH, full=False, worker=None, now=crawler.clock())
    assert again.id == queued.id
    assert [run.id for run in await store.runs.live()] == [queued.id]
    taken, resumed = await store.runs.start(source, RunMode.REFRESH, full=True, worker="w", now=now, only=queued.id)
    assert (taken.id, taken.state, taken.worker, resumed) == (queued.id, RunState.RUNNING, "w", True)


async def test_only_a_run_that_is_open_is_taken_up(crawler: ManualCrawler) -> None:
    store, source, now = crawler.store, crawler.source.id, crawler.clock()
    queued, _ = await store.runs.start(source, RunMode.REFRESH, full=False, worker=None, now=now)
    taken, _ = await store.runs.start(source, RunMode.REFRESH, full=False, worker="w", now=now)
    await store.runs.finish(taken, RunEnding(state=RunState.COMPLETED, counts={}), now)
    with pytest.raises(RunBusy, match="has already ended"):
        await store.runs.start(source, RunMode.REFRESH, full=False, worker="v", now=now, only=queued.id)
    assert len(await store.runs.last(source, 9)) == 1


async def test_a_run_that_is_handed_over_keeps_its_queue(crawler: ManualCrawler) -> None:
    store, source = crawler.store, crawler.source.id
    run, _ = await store.runs.start(source, RunMode.CRAWL, full=False, worker="w", now=crawler.clock(), slot=None)
    await store.queue.enqueue(run, [ListedUrl(at("a"), 1), ListedUrl(at("b"), 1)], LIMITS, crawler.clock())
    left = await store.runs.finish(run, RunEnding(state=RunState.QUEUED, counts={}), crawler.clock())
    assert left.state is RunState.QUEUED
    assert (await store.queue.backlog(run.id)).open == 2
    heir, resumed = await store.runs.start(
        source, RunMode.CRAWL, full=False, worker="v", now=crawler.clock(), only=run.id
    )
    assert (heir.id, heir.worker, resumed) == (run.id, "v", True)
    await store.workers.join(WorkerRecord(name="u", host="h", pid=1, heartbeat_at=crawler.clock()))
    assert await store.runs.join(run.id, "u") == heir
    assert [(each.name, each.helps) for each in await store.workers.all()] == [("u", run.id)]
    await store.workers.beat(WorkerRecord(name="u", host="h", pid=1, heartbeat_at=crawler.clock()))
    assert [each.helps for each in await store.workers.all()] == [run.id]
    with pytest.raises(RunBusy, match="taken over"):
        await store.runs.finish(
            replace(left, state=RunState.RUNNING), RunEnding(state=RunState.FAILED, counts={}), crawler.clock()
        )


async def test_a_run_that_waits_or_works_can_be_cancelled_once_and_goes_on_later(crawler: ManualCrawler) -> None:
    store, clock = crawler.store, crawler.clock
    queued, _ = await store.runs.start(crawler.source.id, RunMode.REFRESH, full=False, worker=None, now=clock())
    cancelled = await store.runs.cancel(queued, clock.advance(1))
    assert cancelled == replace(queued, state=RunState.CANCELLED, finished_at=clock())
    assert await store.runs.cancel(queued, clock()) is None
    again, resumed = await store.runs.start(crawler.source.id, RunMode.REFRESH, full=False, worker="w", now=clock())
    assert (again.id, again.state, resumed) == (queued.id, RunState.RUNNING, True)
    stopped = await store.runs.cancel(again, clock())
    assert stopped is not None
    assert stopped.state is RunState.CANCELLED
    with pytest.raises(RunBusy):
        await store.runs.finish(again, RunEnding(state=RunState.COMPLETED, counts={}), clock())


@pytest.mark.parametrize("by_operator", [True, False])
async def test_S3_the_creator_of_a_source_stays_stored(crawler: ManualCrawler, *, by_operator: bool) -> None:
    given: dict[str, Any] = {"name": "repo", "version": None, "kind": "git", "url": "git+https://h.org/r"}
    given |= {"rules": {}, "policy": {}}
    made = await crawler.store.sources.add(**given, now=crawler.clock(), by_operator=by_operator)
    again = await crawler.store.sources.add(**given, now=crawler.clock(), by_operator=not by_operator)
    changed = await crawler.store.sources.replace_rules(made.id, {"max_pages": 3}, {}, crawler.clock())
    for each in (made, again, changed, await crawler.store.sources.get(made.id)):
        assert each is not None
        assert (each.operator_url, each.is_operators) == (made.url if by_operator else "", by_operator)
