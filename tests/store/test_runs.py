"""Sources, runs and workers: one run at a time per source, and none is lost."""

from dataclasses import replace
from typing import Any

import pytest
from tests.store.asking import search
from tests.store.desk import LIMITS, ROOT, Desk, at, read

from afresh.crawl.judge import RunEnding
from afresh.errors import RunBusy
from afresh.model.records import ListedUrl, RunMode, RunState, WorkerRecord
from afresh.model.reports import Workload
from afresh.store.store import Store
from afresh.testing import FrozenClock

# ---- sources


async def test_A9_a_source_is_one_name_and_version(store: Store, clock: FrozenClock) -> None:
    """The same label is the same source; another version is another source."""
    first = await Desk.at(store, clock, "react", "18")
    again = await Desk.at(store, clock, "react", "18")
    other = await Desk.at(store, clock, "react")
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


async def test_a_source_is_found_by_label_id_and_root(desk: Desk) -> None:
    store, source = desk.store, desk.source
    assert await store.sources.find("docs", None) == source
    assert await store.sources.find_by_url(ROOT, None) == source
    assert await store.sources.get(source.id) == source
    assert await store.sources.find("docs", "2") is None
    assert await store.sources.find_by_url(ROOT, "2") is None


async def test_G3_removing_a_source_keeps_its_history_and_leaves_nothing_open(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a"), "a": read("Page a")})
    page = await desk.page("a")
    await desk.store.sources.remove(desk.source.id, desk.clock())
    assert await desk.store.sources.all() == []
    assert await desk.store.pages.find(at("a")) == []
    assert await search(desk.store, "page") == []
    assert await desk.store.runs.last(desk.source.id) == []
    history = await desk.store.history.of_url(at("a"))
    assert [attempt.page_id for attempt in history] == [None, None]
    assert page.id not in {attempt.page_id for attempt in history}
    assert all(attempt.outcome is not None for attempt in history)


async def test_P3_removing_a_source_in_the_middle_of_a_run_leaves_nothing_pending(desk: Desk) -> None:
    await desk.begin()
    await desk.enqueue("", "a", "b")
    await desk.claim(1)
    await desk.store.sources.remove(desk.source.id, desk.clock())
    assert await desk.store.stats.workload([desk.worker]) == Workload()


async def test_a_visit_to_a_removed_source_writes_nothing(desk: Desk) -> None:
    await desk.begin()
    await desk.enqueue("")
    [claim] = await desk.claim()
    await desk.store.sources.remove(desk.source.id, desk.clock())
    assert await desk.commit(desk.visit(claim, read("Root", "a"))) == []
    assert (await desk.store.stats.totals())["pages"] == 0


# ---- runs


async def test_C6_a_run_stamps_its_source_and_says_what_was_known(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a"), "a": read("Page a")})
    now = desk.clock.advance(3600)
    assert await desk.begin(RunMode.REFRESH) is False
    assert desk.run.started_at == now
    assert (desk.run.mode, desk.run.state, desk.run.known) == (RunMode.REFRESH, RunState.RUNNING, 2)
    source = await desk.store.sources.get(desk.source.id)
    assert source is not None
    assert source.crawl_time == now


async def test_a_killed_run_goes_on_where_it_was(desk: Desk) -> None:
    await desk.join()
    await desk.begin()
    await desk.enqueue("")
    await desk.enqueue("a", "b", depth=1)
    await desk.commit(*[desk.visit(claim, read(claim.page.url)) for claim in await desk.claim(1)])
    await desk.claim(1)
    first = desk.run
    desk = desk.beside(desk.store, "w2")
    await desk.store.workers.reclaim(["w1"], desk.clock.advance(5))
    assert await desk.begin() is True
    assert (desk.run.id, desk.run.started_at, desk.run.worker) == (first.id, first.started_at, "w2")
    assert sorted(await desk.look({"a": read("A"), "b": read("B")})) == [at("a"), at("b")]
    assert (await desk.reload()).counts["checked"] == 3


async def test_a_cancelled_run_goes_on_where_it_was(desk: Desk) -> None:
    await desk.begin()
    await desk.enqueue("", "a")
    await desk.finish(RunState.CANCELLED)
    assert (await desk.store.queue.backlog(desk.run.id)).open == 2
    cancelled = desk.run.id
    assert await desk.begin() is True
    assert (desk.run.id, desk.run.state, desk.run.finished_at) == (cancelled, RunState.RUNNING, None)


async def test_a_second_worker_is_told_that_the_run_is_busy(desk: Desk) -> None:
    await desk.join()
    await desk.begin()
    other = desk.beside(desk.store, "w2")
    with pytest.raises(RunBusy, match=f"run {desk.run.id} of docs is already in progress"):
        await other.begin()
    assert await desk.begin() is True, "the worker itself is not in its own way"
    await desk.store.workers.release("w1", desk.clock())
    assert await other.begin() is True


async def test_two_sources_do_not_keep_each_other_busy(desk: Desk) -> None:
    await desk.join()
    await desk.begin()
    other = replace(await Desk.at(desk.store, desk.clock, "other"), worker="w2")
    assert await other.begin() is False


@pytest.mark.parametrize(("hours", "resumed"), [(23.9, True), (24.1, False)])
async def test_a_run_of_yesterday_is_given_up(desk: Desk, hours: float, resumed: bool) -> None:
    """What an old run had seen is too old to build on."""
    await desk.begin()
    await desk.enqueue("", "a")
    old = desk.run.id
    desk.clock.advance(hours=hours)
    assert await desk.begin() is resumed
    assert (desk.run.id == old) is resumed
    given_up = await desk.store.runs.get(old)
    assert given_up is not None
    assert given_up.state is (RunState.RUNNING if resumed else RunState.FAILED)
    assert (await desk.store.queue.backlog(old)).open == 0  # it is filled again


@pytest.mark.parametrize(("minutes", "again"), [(2, False), (4, True)])
async def test_R0_a_run_that_goes_on_later_than_a_few_minutes_begins_again(
    desk: Desk, minutes: int, again: bool
) -> None:
    """It keeps its number and what it wrote, and forgets what it looked at and took for gone."""
    await desk.begin()
    await desk.enqueue("", "a", "b")
    first, second = (await desk.claim())[:2]
    await desk.commit(desk.visit(first, read("Root", "words")))
    await desk.store.workers.release(desk.worker, desk.clock())
    number, began = desk.run.id, desk.run.started_at
    desk.clock.advance(60 * minutes)
    assert await desk.begin() is True
    run = await desk.reload()
    assert (run.id, run.started_at) == (number, desk.clock() if again else began)
    assert run.counts.get("new") == 1
    assert run.counts.get("checked") == (None if again else 1)
    assert run.counts["worked_ms"] == 0
    assert (run.queued, (await desk.store.queue.backlog(number)).open) == ((0, 0) if again else (3, 3))
    await desk.enqueue("", "a", "b")
    asked = {claim.page.url for claim in await desk.claim()}
    assert (second.page.url in asked, first.page.url in asked) == (True, True)  # the root is, in any case
    assert (await desk.reload()).queued == (3 if again else 4)


@pytest.mark.parametrize(
    ("first", "second", "resumed"),
    [(False, False, True), (True, True, True), (True, False, True), (False, True, False)],
)
async def test_a_full_look_does_not_go_on_with_a_run_that_trusted_validators(
    desk: Desk, first: bool, second: bool, resumed: bool
) -> None:
    await desk.begin(full=first)
    assert await desk.begin(full=second) is resumed
    assert desk.run.full is (first or second)


async def test_what_a_given_up_run_left_open_is_taken_by_the_next(desk: Desk) -> None:
    await desk.begin()
    await desk.enqueue("", "a")
    desk.clock.advance(hours=25)
    await desk.begin()
    await desk.store.queue.enqueue_known(desk.run, desk.limits, desk.clock())
    assert sorted(await desk.look({})) == [at(""), at("a")]


async def test_a_finished_run_keeps_its_report(desk: Desk) -> None:
    await desk.begin()
    ending = RunEnding(state=RunState.PARTIAL, counts={"checked": 2}, notes=["a note"], error="one page")
    done = await desk.store.runs.finish(desk.run, ending, desk.clock())
    assert done == await desk.store.runs.get(desk.run.id)
    assert (done.counts, done.notes, done.error) == ({"checked": 2}, ("a note",), "one page")
    assert done.finished_at == desk.clock()
    assert await desk.begin() is False


async def test_last_and_live_runs_come_newest_first(desk: Desk) -> None:
    ids = []
    for state in (RunState.COMPLETED, RunState.NEEDS_CONFIRMATION, RunState.FAILED):
        await desk.begin()
        await desk.finish(state)
        ids.append(desk.run.id)
    await desk.begin()
    ids.append(desk.run.id)
    last = await desk.store.runs.last(desk.source.id, 3)
    assert [run.id for run in last] == ids[:0:-1]
    assert [run.id for run in await desk.store.runs.live()] == [ids[3], ids[1]]


# ---- workers


async def test_a_worker_is_known_until_it_leaves(desk: Desk) -> None:
    await desk.join(pid=7)
    later = desk.clock.advance(10)
    await desk.beat(pid=7)
    [worker] = await desk.store.workers.all()
    assert (worker.name, worker.host, worker.pid, worker.heartbeat_at) == ("w1", "here", 7, later)
    await desk.store.workers.release("w1", later)
    assert await desk.store.workers.all() == []


async def test_F26_a_worker_that_comes_back_under_its_name_is_known_by_its_new_process(desk: Desk) -> None:
    """Whoever asks whether it lives must look for the process that runs now."""
    await desk.join(pid=7)
    await desk.join(pid=8)
    assert [worker.pid for worker in await desk.store.workers.all()] == [8]


async def test_F25_there_is_one_run_for_each_slot(desk: Desk) -> None:
    slot = desk.clock()
    await desk.crawl({"": read("The root")})
    with pytest.raises(RunBusy, match="another process has looked at it"):
        await desk.store.runs.start(
            desk.source.id, RunMode.DUE, full=False, worker="w2", now=desk.clock(), slot=slot
        )
    later = desk.clock.advance(60)
    run, resumed = await desk.store.runs.start(
        desk.source.id, RunMode.DUE, full=False, worker="w2", now=desk.clock.advance(60), slot=later
    )
    assert (run.mode, resumed) == (RunMode.DUE, False)


# ---- runs that wait for a worker


async def test_a_queued_run_waits_for_a_worker_and_is_queued_once(desk: Desk) -> None:
    store, source, now = desk.store, desk.source.id, desk.clock()
    queued, resumed = await store.runs.start(source, RunMode.REFRESH, full=True, worker=None, now=now)
    assert (queued.state, queued.worker, queued.full, resumed) == (RunState.QUEUED, None, True, False)
    again, _ = await store.runs.start(source, RunMode.REFRESH, full=False, worker=None, now=desk.clock())
    assert again.id == queued.id
    assert [run.id for run in await store.runs.live()] == [queued.id]
    taken, resumed = await store.runs.start(
        source, RunMode.REFRESH, full=True, worker="w", now=now, only=queued.id
    )
    assert (taken.id, taken.state, taken.worker, resumed) == (queued.id, RunState.RUNNING, "w", True)


async def test_only_a_run_that_is_open_is_taken_up(desk: Desk) -> None:
    store, source, now = desk.store, desk.source.id, desk.clock()
    queued, _ = await store.runs.start(source, RunMode.REFRESH, full=False, worker=None, now=now)
    taken, _ = await store.runs.start(source, RunMode.REFRESH, full=False, worker="w", now=now)
    await store.runs.finish(taken, RunEnding(state=RunState.COMPLETED, counts={}), now)
    with pytest.raises(RunBusy, match="is over"):
        await store.runs.start(source, RunMode.REFRESH, full=False, worker="v", now=now, only=queued.id)
    assert len(await store.runs.last(source, 9)) == 1


async def test_a_run_that_is_handed_over_keeps_its_queue(desk: Desk) -> None:
    store, source = desk.store, desk.source.id
    run, _ = await store.runs.start(
        source, RunMode.CRAWL, full=False, worker="w", now=desk.clock(), slot=None
    )
    await store.queue.enqueue(run, [ListedUrl(at("a"), 1), ListedUrl(at("b"), 1)], LIMITS, desk.clock())
    left = await store.runs.finish(run, RunEnding(state=RunState.QUEUED, counts={}), desk.clock())
    assert left.state is RunState.QUEUED
    assert (await store.queue.backlog(run.id)).open == 2
    heir, resumed = await store.runs.start(
        source, RunMode.CRAWL, full=False, worker="v", now=desk.clock(), only=run.id
    )
    assert (heir.id, heir.worker, resumed) == (run.id, "v", True)
    await store.workers.join(WorkerRecord(name="u", host="h", pid=1, heartbeat_at=desk.clock()))
    assert await store.runs.join(run.id, "u") == heir
    assert [(each.name, each.helps) for each in await store.workers.all()] == [("u", run.id)]
    await store.workers.beat(WorkerRecord(name="u", host="h", pid=1, heartbeat_at=desk.clock()))
    assert [each.helps for each in await store.workers.all()] == [run.id]
    with pytest.raises(RunBusy, match="taken over"):
        await store.runs.finish(
            replace(left, state=RunState.RUNNING), RunEnding(state=RunState.FAILED, counts={}), desk.clock()
        )


async def test_a_run_that_waits_or_works_can_be_cancelled_once_and_goes_on_later(desk: Desk) -> None:
    store, clock = desk.store, desk.clock
    queued, _ = await store.runs.start(desk.source.id, RunMode.REFRESH, full=False, worker=None, now=clock())
    cancelled = await store.runs.cancel(queued, clock.advance(1))
    assert cancelled == replace(queued, state=RunState.CANCELLED, finished_at=clock())
    assert await store.runs.cancel(queued, clock()) is None
    again, resumed = await store.runs.start(
        desk.source.id, RunMode.REFRESH, full=False, worker="w", now=clock()
    )
    assert (again.id, again.state, resumed) == (queued.id, RunState.RUNNING, True)
    stopped = await store.runs.cancel(again, clock())
    assert stopped is not None
    assert stopped.state is RunState.CANCELLED
    with pytest.raises(RunBusy):
        await store.runs.finish(again, RunEnding(state=RunState.COMPLETED, counts={}), clock())


@pytest.mark.parametrize("by_operator", [True, False])
async def test_S3_who_added_a_source_stays_on_record(desk: Desk, *, by_operator: bool) -> None:
    given: dict[str, Any] = {"name": "repo", "version": None, "kind": "git", "url": "git+https://h.org/r"}
    given |= {"rules": {}, "policy": {}}
    made = await desk.store.sources.add(**given, now=desk.clock(), by_operator=by_operator)
    again = await desk.store.sources.add(**given, now=desk.clock(), by_operator=not by_operator)
    changed = await desk.store.sources.replace_rules(made.id, {"max_pages": 3}, {}, desk.clock())
    for each in (made, again, changed, await desk.store.sources.get(made.id)):
        assert each is not None
        assert (each.operator_url, each.is_operators) == (made.url if by_operator else "", by_operator)
