"""A sync on record: a run with a number, and its documents as they were then and as they are now."""

from dataclasses import replace
from datetime import timedelta

from tests.store.crawler import ManualCrawler, read
from tests.store.test_copies import SITE, hold_all, to_do

from afresh.model.records import Run, RunId, RunMode, RunState
from afresh.model.retention import Prunable
from afresh.sync.after_runs import FinishedRuns
from afresh.sync.copy import Copy
from afresh.sync.reports import DocumentNote, DocumentOutcome, SyncedDocument

D = DocumentOutcome


def note(run: Run, copy: Copy, outcome: DocumentOutcome) -> DocumentNote:
    return DocumentNote(run=run.id, copy=copy, outcome=outcome)


async def copies(crawler: ManualCrawler) -> list[Copy]:
    return [each.copy for each in await crawler.store.copies.of_sink("out", [crawler.source.id])]


async def documents(crawler: ManualCrawler, run: Run, **which: object) -> list[SyncedDocument]:
    return list(await crawler.store.copies.documents_of_run(run.id, **{"after": 0, "limit": 9, **which}))  # type: ignore[arg-type]


async def test_R9_D21_a_sync_is_a_run_with_the_states_of_its_documents_then_and_now(crawler: ManualCrawler) -> None:
    await crawler.join()
    await crawler.crawl(SITE)
    crawl = crawler.run
    await hold_all(crawler)
    store, now = crawler.store, crawler.clock()
    run = await store.copies.start_run(crawler.source.id, crawler.worker, now)
    assert (run.mode, run.state, run.started_at, run.worker) == (RunMode.SYNC, RunState.RUNNING, now, crawler.worker)
    assert run.id > crawl.id
    one, two, three, _ = await copies(crawler)
    await store.copies.record_documents([note(run, one, D.UPLOADED), note(run, two, D.WAITING)], now)
    await store.copies.record_documents([note(run, replace(one, error="late"), D.VERIFIED)], now)
    await store.copies.record_documents([note(run, two, D.STUCK), note(run, three, D.REPLACED)], now)
    assert await store.copies.count_documents(run.id) == {"uploaded": 1, "stuck": 1, "replaced": 1}
    assert await store.copies.count_documents(RunId(4711)) == {}
    found = await documents(crawler, run)
    assert [(each.url, each.outcome, each.state, each.error) for each in found] == [
        (one.url, "uploaded", "active", "late"),  # what was done stays, the state is the last one
        (two.url, "stuck", "active", None),
        (three.url, "replaced", "active", None),
    ]
    assert [each.state_now for each in found] == ["active"] * 3
    assert (found[0].remote_id, found[0].remote_name, found[0].sink) == (one.remote_id, "A page", "out")
    assert [each.id for each in await documents(crawler, run, after=found[0].id, limit=1)] == [found[1].id]
    assert [each.url for each in await documents(crawler, run, outcome=D.STUCK)] == [two.url]

    await store.copies.finish_run(run, RunState.PARTIAL, {"documents_stuck": 1}, "odd", now)
    ended = await store.runs.get(run.id)
    assert ended is not None
    assert (ended.state, ended.error, ended.finished_at, dict(ended.counts)) == (
        RunState.PARTIAL,
        "odd",
        now,
        {"documents_stuck": 1},
    )
    await crawler.crawl({"": read("Root", "a", "b", "c"), "a": read("Page a"), "c": read("New text")})
    later = {each.url: each for each in await documents(crawler, run)}
    paths = {each.copy.url: path for path, each in (await to_do(crawler)).items()}
    states = {paths.get(url, ""): (each.state, each.state_now) for url, each in later.items()}
    assert all(then == "active" for then, _ in states.values())
    assert {now for path, (_, now) in states.items() if path in "bc" and path} <= {"deleted", "ready_for_indexing"}
    assert len({now for _, now in states.values()}) > 1
    await store.sources.remove(crawler.source.id, now)
    assert await documents(crawler, run) == []


async def test_R9_F144_a_sync_on_record_is_no_look_and_one_that_was_killed_is_closed_by_the_next(
    crawler: ManualCrawler,
) -> None:
    """No crawl continues it, waits for it or counts it."""
    await crawler.join()
    await crawler.crawl(SITE)
    crawl = crawler.run
    store, source = crawler.store, crawler.source.id
    endings = FinishedRuns(store)
    await endings.poll()
    dead = await store.copies.start_run(source, "dead-worker", crawler.clock())
    assert [run.id for run in await store.runs.last(source, 9)] == [crawl.id]
    assert await store.runs.live() == []
    assert (await store.stats.source_view(crawler.source)).last_run == crawl.id
    assert [run.id for run in await store.runs.records(None, limit=9)] == [dead.id, crawl.id]
    slot = crawler.clock.advance(hours=1)
    run, resumed = await store.runs.start(
        source, RunMode.REFRESH, full=False, worker=crawler.worker, now=crawler.clock(), slot=slot
    )
    assert not resumed
    assert run.id != dead.id
    still = await store.runs.get(dead.id)
    assert still is not None
    assert still.state is RunState.RUNNING  # a crawl closes no sync
    mine = await store.copies.start_run(source, crawler.worker, crawler.clock())
    closed = await store.runs.get(dead.id)
    assert closed is not None
    assert (closed.state, closed.finished_at) == (RunState.FAILED, crawler.clock())
    assert "interrupted" in str(closed.error)
    second = await store.copies.start_run(source, "dead-worker", crawler.clock())
    alive = await store.runs.get(mine.id)
    assert alive is not None
    assert alive.state is RunState.RUNNING  # its worker lives
    assert second.id != mine.id
    await store.copies.finish_run(mine, RunState.COMPLETED, {}, None, crawler.clock())
    assert await endings.poll() == set()  # else the end of a sync would ask for the next


async def test_R2_documents_of_syncs_go_with_the_attempts_but_not_those_of_the_latest_sync(
    crawler: ManualCrawler,
) -> None:
    await crawler.join()
    await crawler.crawl(SITE)
    await hold_all(crawler)
    store, (one, two, *_) = crawler.store, await copies(crawler)
    elsewhere = replace(two, sink="elsewhere")
    runs = []
    for notes in ((one, two), (one, elsewhere), (one, two), (one,)):
        run = await store.copies.start_run(crawler.source.id, crawler.worker, crawler.clock())
        await store.copies.record_documents([note(run, copy, D.UPLOADED) for copy in notes], crawler.clock())
        runs.append(run)
        if len(runs) < 4:
            await store.copies.finish_run(run, RunState.COMPLETED, {}, None, crawler.clock())
        crawler.clock.advance(days=1)
    before = crawler.clock()
    early = Prunable(attempts=before - timedelta(days=9))
    assert (
        (await store.retention.count_prunable(early)).attempts
        == await store.retention.prune("documents", before, limit=0)
        == 0
    )
    counted = (await store.retention.count_prunable(Prunable(attempts=before))).attempts
    attempts, _ = await store.retention.prune_attempts(before, after=0, limit=999)
    removed = [
        await store.retention.prune("documents", before, limit=3),
        await store.retention.prune("documents", before, limit=3),
    ]
    assert removed == [3, 2], "a few at a time"
    assert counted == attempts + 5
    left = [[each.sink for each in await documents(crawler, run)] for run in runs]
    assert left == [[], ["elsewhere"], [], ["out"]], "the latest of each store, and those of an open run"
    assert await store.retention.prune("documents", before, limit=9) == 0
