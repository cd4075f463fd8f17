"""Leases and fencing: who lost a claim writes nothing, and no claim stays behind."""

import pytest
from tests.store.asking import search
from tests.store.desk import Desk, at, read

from afresh.crawl.judge import RunEnding
from afresh.errors import RunBusy
from afresh.model.fetch import Gone, Outcome, Seen
from afresh.model.records import PageStatus, RunMode, RunState


async def _claimed(desk: Desk) -> Desk:
    await desk.join()
    await desk.begin()
    await desk.enqueue("", "a")
    return desk


async def test_F24_a_worker_that_lost_its_lease_writes_nothing(desk: Desk) -> None:
    await _claimed(desk)
    late, kept = await desk.claim()
    await desk.store.workers.reclaim(["w1"], desk.clock.advance(120))
    before = await desk.reload()
    visits = [desk.visit(claim, read("Too late", "never")) for claim in (late, kept)]
    assert await desk.commit(*visits) == []
    assert await desk.reload() == before
    assert await desk.urls() == []
    assert await search(desk.store, "late") == []
    assert await desk.store.links.of_source(desk.source.id) == []
    assert await desk.changes() == []
    assert await desk.store.pages.find(at("never")) == []
    assert (await desk.page(late.page.url)).status is PageStatus.PENDING


async def test_F24_in_one_batch_what_is_still_held_is_written_and_the_rest_is_not(desk: Desk) -> None:
    await _claimed(desk)
    [lost] = await desk.claim(1)
    await desk.store.workers.reclaim(["w1"], desk.clock.advance(120))
    second = desk.beside(desk.store, "w1")
    claims = await second.claim()
    assert len(claims) == 2
    visits = [second.visit(claim, read(f"New {claim.page.url}")) for claim in claims]
    stale = desk.visit(lost, read("Stale"))
    assert sorted(await desk.commit(stale, *visits)) == [at(""), at("a")]
    assert await search(desk.store, "stale") == []


async def test_F26_the_same_name_after_a_restart_is_not_the_same_claim(desk: Desk) -> None:
    """The number of the row is the token: the new attempt has another."""
    await _claimed(desk)
    [before] = await desk.claim(1)
    await desk.store.workers.reclaim(["w1"], desk.clock.advance(1))
    await desk.join(pid=2)
    after = next(claim for claim in await desk.claim() if claim.page.id == before.page.id)
    assert after.crawl_id != before.crawl_id
    assert await desk.commit(desk.visit(before, Gone())) == []
    assert await desk.commit(desk.visit(after, read("Alive"))) == [before.page.url]


async def test_B7_reclaim_stamps_the_attempt_and_opens_a_new_row(desk: Desk) -> None:
    await _claimed(desk)
    [claim] = await desk.claim(1)
    now = desk.clock.advance(120)
    assert await desk.store.workers.reclaim(["w1"], now) == 1
    abandoned, again = await desk.attempts(claim.page.url)
    assert (abandoned.outcome, abandoned.completed_at) == (Outcome.ABANDONED, now)
    assert (abandoned.locked_at, abandoned.locked_by) == (None, None)
    assert "w1" in (abandoned.error_message or "")
    assert (again.outcome, again.run_id, again.scheduled_for) == (None, desk.run.id, now)
    assert (again.domain, again.priority, again.url) == (abandoned.domain, abandoned.priority, abandoned.url)
    assert await desk.store.workers.all() == []


async def test_F24_nobody_is_robbed_whose_heart_has_moved_since_it_was_taken_for_dead(desk: Desk) -> None:
    """Between the look at the hearts and the taking a worker may come back and claim."""
    await _claimed(desk)
    hearts = {each.name: each.heartbeat_at for each in await desk.store.workers.all()}
    desk.clock.advance(120)
    await desk.beat()
    [claim] = await desk.claim(1)
    assert await desk.store.workers.reclaim(["w1"], desk.clock(), hearts) == 0
    assert await desk.store.workers.reclaim(["w1"], desk.clock(), {}) == 0, (
        "nor who was unknown and is no more"
    )
    assert await desk.commit(desk.visit(claim, read("Alive"))) == [claim.page.url]
    await desk.claim(1)
    assert await desk.store.workers.reclaim(["w1"], desk.clock(), {"w1": desk.clock()}) == 1


async def test_reclaim_takes_from_the_dead_alone(desk: Desk) -> None:
    await _claimed(desk)
    await desk.enqueue("https://api.example.org/")
    second = desk.beside(desk.store, "w2")
    await desk.claim(1)
    [living] = await second.claim()
    assert await desk.store.workers.reclaim(["w1", "never seen"], desk.clock()) == 1
    assert await second.commit(second.visit(living, read("Alive"))) == [living.page.url]


async def test_reclaiming_twice_abandons_once(desk: Desk) -> None:
    await _claimed(desk)
    [claim] = await desk.claim(1)
    assert await desk.store.workers.reclaim(["w1"], desk.clock()) == 1
    assert await desk.store.workers.reclaim(["w1"], desk.clock()) == 0
    assert len(await desk.attempts(claim.page.url)) == 2


async def test_a_reclaimed_look_counts_no_page_twice(desk: Desk) -> None:
    """The same page, the same run, one more row."""
    await _claimed(desk)
    await desk.claim()
    await desk.store.workers.reclaim(["w1"], desk.clock())
    assert (await desk.reload()).queued == 2
    assert (await desk.store.queue.backlog(desk.run.id)).open == 2


async def test_release_gives_rows_back_without_an_attempt_to_show(desk: Desk) -> None:
    """A worker that stops in good order has looked at nothing."""
    await _claimed(desk)
    await desk.claim()
    assert await desk.store.workers.lock_owners() == {"w1"}
    await desk.store.workers.release("w1", desk.clock())
    assert await desk.store.workers.lock_owners() == set()
    [row] = await desk.attempts("a")
    assert (row.outcome, row.locked_at, row.locked_by) == (None, None, None)
    assert len(await desk.claim()) == 2


async def test_F24_who_released_a_row_can_no_longer_write_it(desk: Desk) -> None:
    await _claimed(desk)
    [claim, *_] = await desk.claim()
    await desk.store.workers.release("w1", desk.clock())
    assert await desk.commit(desk.visit(claim, read("Too late"))) == []


async def test_the_claim_of_another_cannot_be_written(desk: Desk) -> None:
    await _claimed(desk)
    [claim, *_] = await desk.claim()
    thief = desk.beside(desk.store, "w2")
    assert await thief.commit(thief.visit(claim, read("Stolen"))) == []
    assert await desk.commit(desk.visit(claim, read("Mine"))) == [claim.page.url]


async def test_who_has_handed_in_everything_holds_no_page(desk: Desk) -> None:
    await _claimed(desk)
    claims = await desk.claim()
    assert await desk.store.workers.held_by() == {"w1": 2}
    await desk.commit(*[desk.visit(claim, read("Done")) for claim in claims])
    assert await desk.store.workers.held_by() == {}


async def test_B6_dropping_a_page_that_is_in_flight_leaves_no_lock_behind(desk: Desk) -> None:
    """`afresh confirm` may drop a page that the next run is just looking at."""
    await desk.crawl({"": read("Root", "a"), "a": read("Page a")})
    await desk.begin()
    await desk.enqueue("a")
    await desk.look({"a": Gone()})
    braked = await desk.finish(RunState.NEEDS_CONFIRMATION)
    await desk.begin()
    await desk.enqueue("a")
    [claim] = await desk.claim()
    confirmed = RunEnding(state=RunState.COMPLETED, counts={}, dropped=[claim.page])
    await desk.store.runs.finish(braked, confirmed, desk.clock())
    assert await desk.store.workers.held_by() == {}
    assert (await desk.store.stats.workload([desk.worker])).held == 0
    assert await desk.commit(desk.visit(claim, read("Too late"))) == []
    [*_, last] = await desk.attempts("a")
    assert (last.outcome, last.locked_at, last.locked_by) == (Outcome.CANCELLED, None, None)


async def test_F24_who_lost_its_run_can_neither_count_nor_drop_nor_end_it(desk: Desk) -> None:
    """It slept between its judgement and its end; another took the run over meanwhile."""
    await desk.crawl({"": read("Root", "a", "b"), "a": read("Page a"), "b": read("Page b")})
    await desk.join()
    await desk.begin()
    await desk.enqueue("", "a")
    await desk.look({"": read("Root", "a"), "a": Gone()})
    asleep, missing = await desk.reload(), await desk.missing()
    [(gone, _)] = await desk.store.pages.doomed(desk.source.id)
    await desk.store.workers.reclaim(["w1"], desk.clock.advance(120))
    other = desk.beside(desk.store, "w2")
    assert await other.begin()
    ending = RunEnding(state=RunState.COMPLETED, counts={"deleted": 1}, missing=missing, dropped=[gone])
    with pytest.raises(RunBusy, match="taken over"):
        await desk.store.runs.finish(asleep, ending, desk.clock())
    assert await desk.urls() == [at(""), at("a"), at("b")]
    assert (await desk.page("b")).missing_count == 0
    assert (await other.reload()).state is RunState.RUNNING
    await other.sweep()
    assert await desk.urls() == [at(""), at("b")]
    assert (await desk.page("b")).missing_count == 1


async def test_F24_a_run_ends_once(desk: Desk) -> None:
    await _claimed(desk)
    run = await desk.reload()
    await desk.finish(RunState.PARTIAL)
    with pytest.raises(RunBusy):
        await desk.store.runs.finish(run, RunEnding(state=RunState.COMPLETED, counts={}), desk.clock())
    assert (await desk.reload()).state is RunState.PARTIAL


async def test_P5_a_page_that_was_found_again_is_not_dropped_by_a_late_confirmation(desk: Desk) -> None:
    await desk.crawl({"": read("Root", "a"), "a": read("Page a")})
    await desk.begin()
    await desk.enqueue("a")
    await desk.look({"a": Gone()})
    braked = await desk.finish(RunState.NEEDS_CONFIRMATION)
    [(gone, _)] = await desk.store.pages.doomed(desk.source.id)
    await desk.begin()
    await desk.enqueue("a")
    await desk.look({"a": read("Page a, back")})
    confirmed = RunEnding(state=RunState.COMPLETED, counts={}, dropped=[gone])
    await desk.store.runs.finish(braked, confirmed, desk.clock())
    assert at("a") in await desk.urls()


async def test_F24_a_worker_that_was_taken_for_dead_is_known_again_when_its_heart_beats(desk: Desk) -> None:
    """So that what it claims from then on is not taken from it."""
    await _claimed(desk)
    await desk.store.workers.reclaim(["w1"], desk.clock.advance(120))
    assert await desk.store.workers.all() == []
    await desk.beat()
    assert [worker.name for worker in await desk.store.workers.all()] == ["w1"]


JUMPS = pytest.mark.parametrize("days", [1, -1, 3650], ids=["a-day-on", "a-day-back", "ten-years-on"])


@JUMPS
async def test_F28_absence_is_counted_by_runs_whatever_the_clock_says(desk: Desk, days: int) -> None:
    site: dict[str, Seen] = {"": read("Root", "a"), "a": read("Page a")}
    await desk.crawl(site)
    without: dict[str, Seen] = {"": read("Root alone"), "a": read("Page a")}
    for run in (1, 2):
        await desk.crawl(without)
        desk.clock.advance(days=days)
        assert (await desk.page("a")).missing_count == run
        assert at("a") in await desk.urls()
    await desk.crawl(without)
    assert at("a") not in await desk.urls()


@JUMPS
async def test_F28_an_interrupted_run_goes_on_or_anew_after_the_clock_was_set(desk: Desk, days: int) -> None:
    await _claimed(desk)
    await desk.claim()
    desk.clock.advance(days=days)
    await desk.store.workers.reclaim(["w1"], desk.clock())
    await desk.enqueue("b")
    desk.clock.advance(days=-2 * days)
    await desk.begin()
    await desk.enqueue("")
    await desk.store.queue.enqueue_known(desk.run, desk.limits, desk.clock())
    assert sorted(await desk.look({})) == [at(""), at("a"), at("b")]
    assert (await desk.store.queue.backlog(desk.run.id)).open == 0


async def test_F28_a_look_dated_by_a_clock_that_was_wrong_is_due(desk: Desk) -> None:
    """Ten years ahead for a while: nothing waits for ten years."""
    now = desk.clock()
    desk.clock.advance(days=3650)
    await desk.crawl({"": read("Root", "a"), "a": read("Page a")})
    await desk.store.queue.pause_host("docs.example.org", desk.clock.advance(60))
    desk.clock.set(now)
    await desk.begin(RunMode.DUE)
    await desk.store.queue.enqueue_due(desk.run, desk.limits, desk.clock())
    assert sorted(await desk.look({"": read("Root", "a"), "a": read("Page a")})) == [at(""), at("a")]


async def test_F28_a_look_that_is_not_due_yet_stays_so(desk: Desk) -> None:
    await desk.crawl({"": read("Root")})
    desk.clock.advance(60)
    await desk.begin(RunMode.DUE)
    await desk.store.queue.enqueue_due(desk.run, desk.limits, desk.clock())
    assert await desk.claim() == []
