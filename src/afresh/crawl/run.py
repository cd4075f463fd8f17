"""A run from its start to its sweep: list, enqueue, work, judge, let go of what is gone."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from afresh.crawl import run_log
from afresh.crawl.context import Course
from afresh.crawl.ending import Ending
from afresh.crawl.judge import (
    Evidence,
    Verdict,
    brake_holds,
    count_moves,
    decide_missing,
    judge,
    may_drop,
    moved_to_one,
)
from afresh.crawl.prune import prune_source
from afresh.crawl.report import dropped_notes, left_out_notes, report_of
from afresh.crawl.seed import fill, is_as_listed
from afresh.crawl.tools import Kit
from afresh.crawl.url_patterns import trap_notes
from afresh.crawl.worker import Worker, first_of
from afresh.errors import EmbedError, RunBusy, SourceError
from afresh.events import Notice
from afresh.links import best_first
from afresh.links.scoring import count_scores, settle_scores
from afresh.model.fetch import Outcome
from afresh.model.records import (
    Attempt,
    Listed,
    Page,
    PageId,
    PageStatus,
    Run,
    RunId,
    RunMode,
    RunState,
    Source,
)
from afresh.model.reports import RunReport
from afresh.model.transitions import UNFINISHED
from afresh.notify.outbox import letters
from afresh.ops.failpoints import failpoint
from afresh.search.vectors import UNEMBEDDED
from afresh.sources.linklist.parse import LINKS
from afresh.urls.canonical import origin_of
from afresh.urls.scope import Rules

UNUSED = timedelta(days=30)  # how long vectors are kept for text that may come back
GAP = 256  # chunks that are given the vectors they lack at a time
MANY = 5  # notes of one kind that are worth reading


async def run_source(
    kit: Kit,
    source: Source,
    rules: Rules,
    mode: RunMode,
    stopping: asyncio.Event,
    slot: datetime | None = None,
    pages: Sequence[Listed] = (),
    only: RunId | None = None,
) -> RunReport:
    """Look at a source, or just some of its pages: work on a run and end it as the evidence allows.

    Who goes on with `only` one run hands it over when told to stop.
    """
    now = kit.clock()
    run, resumed = await kit.store.runs.start(
        source.id, mode, full=kit.full, worker=kit.worker, now=now, slot=slot, only=only
    )
    kit.full = run.full
    course = Course(kit, source, rules, run, stopping, resumed)
    kit.best_first = best_first.applies(course)
    if kit.scoring is not None:
        await kit.scoring.begin(run)
    run_log.run_started(run, source.label, resumed=resumed)
    failpoint("run.started")
    if resumed and only is None:
        kit.listener(Notice(text=_told_of_resuming(run, now)))
    await fill(course, pages)
    failpoint("run.filled")
    worker = await _worked(course)
    await _reload(course)  # cancelled meanwhile: nothing is judged
    gone = run.mode is RunMode.CHECK and (await _reload(course)).counts.get("gone")
    if gone and course.starts_at_root:
        await kit.store.queue.enqueue(run, [Listed(rules.root, 0)], course.limits, kit.clock())
        worker = await _worked(course)  # is the site well at all?
    if worker.waits_until is not None:
        waiting = "page waits" if worker.left_waiting == 1 else "pages wait"
        course.notes.append(
            f"{worker.left_waiting} {waiting}: "
            f"the host asked to be left alone until {worker.waits_until:%H:%M} UTC"
        )
    await _fill_gaps(course)
    if kit.scoring is not None and run.mode is not RunMode.CHECK:
        await kit.scoring.finish(run)
    verdict = await _judge(course, worker.left_waiting)
    if run.mode is RunMode.CHECK and verdict.state is RunState.CANCELLED:
        verdict = replace(verdict, state=RunState.PARTIAL, error="stopped")  # nobody goes on with it
    if only is not None and verdict.state is RunState.CANCELLED:
        verdict = replace(verdict, state=RunState.QUEUED)
    report = await _finish(course, verdict)
    await settle_scores(kit.store, kit.scoring, run)
    if kit.embedding is not None:
        await kit.store.vectors.forget(kit.clock() - UNUSED)
    if run.mode is not RunMode.CHECK:
        await prune_source(kit.store, source.id, kit.retention, kit.clock())
    run_log.run_ended(report, source.label)
    return report


def _told_of_resuming(run: Run, now: datetime) -> str:
    if run.started_at == now:
        return f"run {run.id} was interrupted, and that was a while ago: everything is looked at again"
    return f"going on with run {run.id}, which was interrupted"


async def _worked(course: Course) -> Worker:
    """Work until nothing is left; where the best links come first, they are let in few by few."""
    scoring = course.kit.scoring
    if scoring is None or course.run.mode is RunMode.CHECK:
        return await _work(course)
    async with scoring.beside(course.run):
        worker = await _work(course)
        best = best_first.BestFirst(course, scoring)
        while course.kit.best_first and not worker.over and not worker.waits_until and await best.admit():
            worker = await _work(course)
    return worker


async def _work(course: Course) -> Worker:
    worker = Worker(course.kit, course.run, course.source.label, course.stopping)
    if course.unlisted is not None:
        return worker
    try:
        await worker.work()
    except BaseExceptionGroup as group:
        raise first_of(group) from group
    return worker


async def _fill_gaps(course: Course) -> None:
    """Give stored text the vectors it lacks, as after a run beside a switch of models."""
    embedding, store = course.kit.embedding, course.kit.store
    serving = await store.vectors.serving_model()
    if embedding is None or serving is None or serving.name != embedding.model:
        return
    if course.run.mode is RunMode.CHECK or not await store.vectors.are_missing(embedding.model):
        return
    lacking = await store.vectors.unembedded(embedding.model, source=course.source.id, limit=GAP)
    while lacking and not course.stopping.is_set():
        try:
            course.filled += await embedding.fill(lacking)
        except EmbedError as error:
            course.notes.append(f"some chunks still lack vectors: {error}")
            return
        after = lacking[-1].chunk
        lacking = await store.vectors.unembedded(
            embedding.model, source=course.source.id, after=after, limit=GAP
        )


async def _judge(course: Course, left_waiting: int) -> Verdict:
    kit, run = course.kit, await _reload(course)
    no_robots = kit.web.state(origin_of(course.rules.root)) == "unreachable"
    if no_robots:
        run_log.robots_unreachable(origin_of(course.rules.root))
    failed = run.counts.get("failed", 0) + left_waiting
    asked = run.counts.get("known_asked", 0)
    unasked = max(0, min(left_waiting, run.known - asked))  # of the pages that had content
    due = run.mode in (RunMode.DUE, RunMode.CHECK)
    asked_root = run.counts.get("gone" if run.mode is RunMode.CHECK else "checked")
    verdict = judge(
        Evidence(
            unlisted=course.unlisted,
            many_hosts=course.source.kind == LINKS,
            root_failed=await _root_failure(course) if asked_root or not due else None,
            robots_unreachable=no_robots,
            listing_complete=not due and not kit.lister.listing_errors and not run.counts.get("cut_pages"),
            stopped=course.stopping.is_set() and (course.unfilled or await _has_more(course)),
            known=asked + unasked,
            known_failed=run.counts.get("known_failed", 0) + unasked,
            known_doubtful=run.counts.get("known_doubtful", 0),
            known_barred=run.counts.get("known_barred", 0),
            failed=failed,
            unembedded=run.counts.get("unembedded", 0),
            embedder=kit.embedding.trouble if kit.embedding else None,
            next_try=await _next_try(course) if failed and run.mode is RunMode.DUE else None,
        )
    )
    for told in (kit.lister.listing_errors, kit.lister.notes, kit.notes()):
        course.notes.extend(told[:MANY])
        if len(told) > MANY:
            course.notes.append(f"{len(told) - MANY} more of the kind")
    course.notes.extend(dropped_notes(kit.lister))
    return verdict


async def _next_try(course: Course) -> datetime | None:
    """When the first page that backs off is tried again."""
    backing_off = await course.kit.store.due.backing_off(course.source.id, course.kit.clock())
    return backing_off[0].next_at if backing_off else None


async def _has_more(course: Course) -> bool:
    """Whether something is left to look at."""
    return (await course.kit.store.queue.backlog(course.run.id)).open > 0


async def _root_failure(course: Course) -> str | None:
    """Why the root gave nothing to start from, or None if it did or is no page."""
    if not course.starts_at_root:
        return None
    page, attempt = await course.kit.store.history.root_attempt(course.source.id, course.rules.root)
    if page is None or attempt is None:
        return "it was not looked at"
    match attempt.outcome:
        case Outcome.SUCCESS | Outcome.NOT_MODIFIED:
            return None
        case Outcome.MOVED if page.moved_to is not None:
            if course.rules.refusal(page.moved_to, 0) is None:
                return None
            return f"it moved to {page.moved_to}, outside this source; crawl that address instead"
        case Outcome.FAILED if page.content_hash is not None and _awaits_vectors(attempt):
            return None  # the site is well: only the embedder is not
        case _:
            return attempt.reason or attempt.error_message or str(attempt.outcome)


def _awaits_vectors(attempt: Attempt) -> bool:
    return (attempt.reason or "").startswith(UNEMBEDDED)


async def _finish(course: Course, verdict: Verdict) -> RunReport:
    """End the run in one transaction, which only its owner can make."""
    run, now = await _reload(course), course.kit.clock()
    failpoint("finish.begin")
    missing = await _missing(course) if verdict.may_miss else None
    ending = await _ending(course, run, verdict, missing)
    finished = await course.kit.store.runs.finish(run, ending, now)
    failpoint("finish.done")
    if ending.counts.get("unkept"):
        await course.kit.store.sources.end_trial(finished, now)
    return report_of(finished, course.source)


async def _ending(course: Course, run: Run, verdict: Verdict, missing: list[Page] | None) -> Ending:
    store, counts, state = course.kit.store, dict(run.counts), verdict.state
    dropped: list[Page] = []
    heirs: Mapping[PageId, Page] = {}
    if missing is not None:  # those that are missed for the last time are told as deleted
        counts["missing"] = sum(1 for page in missing if page.doomed_by is None)
    if verdict.may_delete:
        doomed = await _doomed(course, missing or [])
        heirs = await store.pages.heirs(course.source.id, doomed)
        lost = sum(1 for page in doomed if page.id not in heirs)
        live = await store.pages.live_count(course.source.id) if doomed else 0
        to_one = moved_to_one(doomed)
        if brake_holds(live, lost, course.kit.policy, to_one=to_one):
            counts["held"], heirs = len(doomed), {}
            state = RunState.NEEDS_CONFIRMATION
        else:
            dropped = doomed
            counts |= count_moves(doomed, heirs, run)
    root = course.moved_root if state in (RunState.COMPLETED, RunState.PARTIAL) else None
    if root is not None:
        course.notes.append(f"the root moved permanently: {course.source.label} is read from {root} now")
    await _note(course, run, counts, state)
    if await _is_failed_trial(course, counts, state):
        counts["unkept"] = 1
        course.notes.append(f"nothing was read, so {course.source.label} was not kept")
    if course.filled:
        counts["chunks_embedded"] = counts.get("chunks_embedded", 0) + course.filled
    await count_scores(course.kit.scoring, run, counts, course.notes)
    counts["worked_ms"] = counts.get("worked_ms", 0) + course.worked_ms
    return Ending(
        state=state,
        counts=counts,
        notes=course.notes,
        error=verdict.error,
        missing=missing,
        dropped=dropped,
        forgives=not verdict.may_delete and state not in UNFINISHED,
        heirs=heirs,
        root=root,
        letters=letters(course.kit.targets, course.source.label, state, counts),
        mark=await _mark(course, state, dropped),
    )


async def _mark(course: Course, state: RunState, dropped: Sequence[Page]) -> str | None:
    """What names the state that was read, if all of it was: only then it may speak for the record."""
    whole = state is RunState.COMPLETED and await is_as_listed(course, dropped)
    return course.kit.lister.mark if whole else None


async def _note(course: Course, run: Run, counts: Mapping[str, int], state: RunState) -> None:
    """Tell what the numbers alone do not."""
    store = course.kit.store
    course.notes.extend(_doubts(counts, course.source.label))
    course.notes.extend(await _other_model(course))
    if dead := counts.get("dead", 0):
        course.notes.append(f"{dead} {'link leads' if dead == 1 else 'links lead'} nowhere (404 or 410)")
    course.notes.extend(left_out_notes(counts))
    if counts.get("trapped"):
        course.notes.extend(await trap_notes(store, course.source.id, course.rules))
    waiting, _ = await store.links.frontier_is_open(course.source.id, course.fingerprint)
    if waiting and run.mode not in (RunMode.DUE, RunMode.CHECK):
        course.notes.append(f"stopped at max_pages {course.rules.max_pages}: more links wait to be followed")
    if state is RunState.COMPLETED and not counts.get("checked") and run.mode is not RunMode.DUE:
        course.notes.append("nothing was found that could be read: see what is left out, and the rules")


async def _is_failed_trial(course: Course, counts: Mapping[str, int], state: RunState) -> bool:
    """Whether the source is new and its first run has read nothing, for no reason of ours."""
    ended = state in (RunState.FAILED, RunState.COMPLETED) and not counts.get("unembedded")
    return course.source.trial and ended and not await course.kit.store.sources.was_read(course.source.id)


async def _other_model(course: Course) -> list[str]:
    """Vectors of a model that does not answer find nothing: it does from now on if it has made them all."""
    embedding, serving = course.kit.embedding, await course.kit.store.vectors.serving_model()
    if embedding is None or (serving is not None and serving.name == embedding.model):
        return []
    if await course.kit.store.vectors.serve(embedding.model):
        return []
    answers = serving.name if serving else "no model"
    return [f"new text was embedded by {embedding.model}, but {answers} answers: run `afresh reindex`"]


def _doubts(counts: Mapping[str, int], label: str) -> list[str]:
    """What came with a 200 and was not believed, or believed with a flag."""
    notes = []
    if odd := counts.get("doubtful", 0):
        pages = "page shows" if odd == 1 else "pages show"
        notes.append(
            f"{odd} {pages} what is not believed: what was on record stays "
            f"(why: `afresh pages {label} --doubtful`; take it: `afresh refresh {label} --trust`)"
        )
    new = counts.get("flagged_new", 0)
    if short := counts.get("flagged", 0) - new:
        pages = "page" if short == 1 else "pages"
        notes.append(
            f"{short} {pages} lost nearly all text or became a login (which: `afresh pages {label} --doubtful`; "
            "`afresh restore URL` puts the text of one back)"
        )
    if new:
        pages = "new page has" if new == 1 else "new pages have"
        notes.append(f"{new} {pages} no text (which: `afresh pages {label} --doubtful`)")
    return notes


async def _missing(course: Course) -> list[Page]:
    """The pages that no way leads to, one run closer to their end."""
    store, root = course.kit.store, course.rules.root
    unreached = [  # what robots.txt closes cannot be looked at, so nobody knows whether it is gone
        page
        for page in await store.pages.unreached(course.source.id, root, course.rules.max_depth)
        if course.kit.lister.walks(page.url) and await course.kit.web.refusal(page.url) is None
    ]
    return [decide_missing(page, course.run.id, course.kit.policy) for page in unreached]


async def _doomed(course: Course, missing: list[Page]) -> list[Page]:
    return [
        page
        for page, target in await course.kit.store.pages.doomed(course.source.id, missing)
        if may_drop(page, target, course.run.id) and not _waits_for_target(course, page, target)
    ]


def _waits_for_target(course: Course, page: Page, target: PageStatus | None) -> bool:
    """Whether a check found a move to a page that only the next run will read."""
    if course.run.mode is not RunMode.CHECK or page.moved_to is None or target is PageStatus.ACTIVE:
        return False
    return course.rules.refusal(page.moved_to, 0) is None


async def _reload(course: Course) -> Run:
    run = await course.kit.store.runs.get(course.run.id)
    if run is None:
        raise SourceError(f"{course.source.label} was removed while it was being read")
    if run.state is RunState.CANCELLED:
        raise RunBusy(f"run {run.id} was cancelled; `afresh refresh {course.source.label}` goes on with it")
    if run.worker != course.kit.worker or run.state is not RunState.RUNNING:
        raise RunBusy(f"run {run.id} was taken over by another process while this one slept")
    return run
