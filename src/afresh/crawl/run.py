"""Run a source: list its URLs, queue and visit pages, judge the results, and delete pages that are gone."""

import asyncio
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from afresh.crawl import run_log, run_verdict
from afresh.crawl.context import RunContext
from afresh.crawl.factory import RunToolFactory
from afresh.crawl.heartbeat import release_dead_processes
from afresh.crawl.report import dropped_notes, left_out_notes, report_of
from afresh.crawl.retention import prune_source
from afresh.crawl.run_verdict import RunEnding, RunVerdict
from afresh.crawl.seed import fill, is_as_listed
from afresh.crawl.tools import RunOptions, RunTools
from afresh.crawl.url_patterns import trap_notes
from afresh.crawl.worker import Worker
from afresh.dataclass import dataclass, replace
from afresh.errors import EmbedError, RunBusy, SourceError
from afresh.events import Listener, Notice, ignore
from afresh.links import scoring as best_first
from afresh.links.scoring import count_scores, update_scores
from afresh.model.fetch import Outcome
from afresh.model.records import UNFINISHED, ListedUrl, Page, PageId, PageStatus, Run, RunId, RunMode, RunState, Source
from afresh.model.reports import RunReport
from afresh.notify.outbox import messages_to_send
from afresh.ops.failpoints import failpoint
from afresh.search.records import UNEMBEDDED
from afresh.sources.linklist.parse import LINKS
from afresh.sync.sync import sink_views
from afresh.urls.canonical import origin_of
from afresh.urls.scope import Rules

UNUSED_VECTOR_AGE = timedelta(days=30)  # vectors are kept for text that may come back
EMBED_BATCH = 256  # chunks that get missing vectors at a time
MAX_NOTES = 5  # notes of one kind in a report


async def run_source(
    tools: RunTools,
    source: Source,
    rules: Rules,
    options: RunOptions,
    stopping: asyncio.Event,
    only: RunId | None = None,
) -> RunReport:
    """Run a source: visit its pages, end the run, and return the report.

    With `only`, process that open run; if it is stopped, it returns to the queue for other workers.
    """
    now = tools.clock()
    run, resumed = await tools.store.runs.start(
        source.id, options.mode, full=tools.full, worker=tools.worker, now=now, slot=options.slot, only=only
    )
    tools = replace(tools, full=run.full)
    context = RunContext(tools, source, rules, run, stopping, resumed)
    context.tools = tools = replace(tools, best_first=best_first.applies(context))
    if tools.scoring is not None:
        await tools.scoring.begin(run)
    run_log.run_started(run, source.label, resumed=resumed)
    failpoint("run.started")
    if resumed and only is None:
        notice = f"continuing run {run.id}, which was interrupted"
        if run.started_at == now:
            notice = f"run {run.id} was interrupted some time ago, so every page is checked again"
        tools.listener(Notice(text=notice))
    await fill(context, options.pages)
    failpoint("run.filled")
    worker = await _work_with_scores(context)
    current = await _reload(context)  # raises if the run was cancelled
    if run.mode is RunMode.CHECK and current.counts.get("gone") and context.starts_at_root:
        await tools.store.queue.enqueue(run, [ListedUrl(rules.root, 0)], context.limits, tools.clock())
        worker = await _work_with_scores(context)  # check whether the site itself is available
    if worker.waits_until is not None:
        waiting = "page waits" if worker.left_waiting == 1 else "pages wait"
        context.notes.append(
            f"{worker.left_waiting} {waiting}: the host asks for a pause until {worker.waits_until:%H:%M} UTC"
        )
    await _fill_gaps(context)
    if tools.scoring is not None and run.mode is not RunMode.CHECK:
        await tools.scoring.finish(run)
    verdict = await _judge(context, worker.left_waiting)
    if run.mode is RunMode.CHECK and verdict.state is RunState.CANCELLED:
        verdict = replace(verdict, state=RunState.PARTIAL, error="stopped")  # such a run is never resumed
    if only is not None and verdict.state is RunState.CANCELLED:
        verdict = replace(verdict, state=RunState.QUEUED)
    report = await _finish(context, verdict)
    await update_scores(tools.store, tools.scoring, run)
    if tools.embedding is not None:
        await tools.store.vectors.forget(tools.clock() - UNUSED_VECTOR_AGE)
    if run.mode is not RunMode.CHECK:
        await prune_source(tools.store, source.id, tools.retention, tools.clock())
    run_log.run_ended(report, source.label)
    return report


async def _work_with_scores(context: RunContext) -> Worker:
    """Visit pages until none is left, and score links; with `crawl.order: score`, queue the best links in batches."""
    scoring = context.tools.scoring
    if scoring is None or context.run.mode is RunMode.CHECK:
        return await _work(context)
    async with scoring.beside(context.run):
        worker = await _work(context)
        best = best_first.BestFirst(context, scoring)
        while context.tools.best_first and not worker.over and not worker.waits_until and await best.admit():
            worker = await _work(context)
    return worker


async def _work(context: RunContext) -> Worker:
    worker = Worker(context.tools, context.run, context.source.label, context.stopping)
    if context.unlisted is None:
        await worker.work()
    return worker


async def _fill_gaps(context: RunContext) -> None:
    """Create vectors for stored chunks that have none, such as chunks that were stored during a change of the model."""
    embedding, store = context.tools.embedding, context.tools.store
    serving = await store.vectors.serving_model()
    if embedding is None or serving is None or serving.name != embedding.embedder.model:
        return
    if context.run.mode is RunMode.CHECK or not await store.vectors.are_missing(embedding.embedder.model):
        return
    find, after = (
        partial(store.vectors.unembedded, embedding.embedder.model, source=context.source.id, limit=EMBED_BATCH),
        0,
    )
    while not context.stopping.is_set() and (chunks := await find(after=after)):
        try:
            context.filled += await embedding.ensure(chunks.values())
        except EmbedError as error:
            context.notes.append(f"some passages still have no embedding: {error}")
            return
        after = max(chunks)


async def _judge(context: RunContext, left_waiting: int) -> RunVerdict:
    tools, run, next_try = context.tools, await _reload(context), None
    origin = origin_of(context.rules.root)
    no_robots = tools.web.state(origin) == "unreachable"
    if no_robots:
        run_log.log.warning("robots.txt unreachable", extra={"data": {"site": origin}})
    failed = run.counts.get("failed", 0) + left_waiting
    asked = run.counts.get("known_asked", 0)
    unasked = max(0, min(left_waiting, run.known - asked))  # of the pages that had content
    due = run.mode in (RunMode.DUE, RunMode.CHECK)
    asked_root = run.counts.get("gone" if run.mode is RunMode.CHECK else "checked")
    if failed and run.mode is RunMode.DUE:
        backing_off = await tools.store.due.backing_off(context.source.id, tools.clock())
        next_try = backing_off[0].next_at if backing_off else None
    stopped = context.stopping.is_set()
    if stopped and not context.unfilled:
        stopped = (await tools.store.queue.backlog(run.id)).open > 0
    verdict = run_verdict.judge(
        run_verdict.RunEvidence(
            unlisted=context.unlisted,
            many_hosts=context.source.kind == LINKS,
            root_failed=await _root_failure(context) if asked_root or not due else None,
            robots_unreachable=no_robots,
            listing_complete=not due and not tools.lister.listing_errors and not run.counts.get("cut_pages"),
            stopped=stopped,
            known=asked + unasked,
            known_failed=run.counts.get("known_failed", 0) + unasked,
            known_doubtful=run.counts.get("known_doubtful", 0),
            known_barred=run.counts.get("known_barred", 0),
            failed=failed,
            unembedded=run.counts.get("unembedded", 0),
            embedder=tools.embedding.last_error if tools.embedding else None,
            next_try=next_try,
        )
    )
    for notes in (tools.lister.listing_errors, tools.lister.notes, tools.notes()):
        context.notes.extend(notes[:MAX_NOTES])
        if len(notes) > MAX_NOTES:
            context.notes.append(f"{len(notes) - MAX_NOTES} more of this kind")
    context.notes.extend(dropped_notes(tools.lister))
    return verdict


async def _root_failure(context: RunContext) -> str | None:
    """Return why the root page could not be read; None if it was read, or if the root is not a page."""
    if not context.starts_at_root:
        return None
    page, attempt = await context.tools.store.history.root_attempt(context.source.id, context.rules.root)
    if page is None or attempt is None:
        return "it was not checked"
    match attempt.outcome:
        case Outcome.SUCCESS | Outcome.NOT_MODIFIED:
            return None
        case Outcome.MOVED if page.moved_to is not None:
            if context.rules.refusal(page.moved_to, 0) is None:
                return None
            return f"it moved to {page.moved_to}, outside this source; crawl that URL instead"
        case Outcome.FAILED if page.content_hash and (attempt.reason or "").startswith(UNEMBEDDED):
            return None  # only the embedder failed
        case _:
            return attempt.reason or attempt.error_message or str(attempt.outcome)


async def _finish(context: RunContext, verdict: RunVerdict) -> RunReport:
    run, now = await _reload(context), context.tools.clock()
    failpoint("finish.begin")
    missing = await _missing_pages(context) if verdict.may_miss else None
    ending = await _build_ending(context, run, verdict, missing)
    finished = await context.tools.store.runs.finish(run, ending, now)
    failpoint("finish.done")
    if ending.counts.get("unkept"):
        await context.tools.store.sources.end_trial(finished, now)
    return report_of(finished, context.source)


async def _build_ending(context: RunContext, run: Run, verdict: RunVerdict, missing: list[Page] | None) -> RunEnding:
    store, counts, state = context.tools.store, dict(run.counts), verdict.state
    dropped: list[Page] = []
    heirs: Mapping[PageId, Page] = {}
    if missing is not None:  # pages that are deleted now are not counted as missing
        counts["missing"] = sum(1 for page in missing if page.doomed_by is None)
    if verdict.may_delete:
        doomed = await _deletable_pages(context, missing or [])
        heirs = await store.pages.heirs(context.source.id, doomed)
        lost = sum(1 for page in doomed if page.id not in heirs)
        live = await store.pages.live_count(context.source.id) if doomed else 0
        if run_verdict.exceeds_deletion_limit(
            live, lost, context.tools.policy, to_one=run_verdict.moved_to_one(doomed)
        ):
            counts["held"], heirs = len(doomed), {}
            state = RunState.NEEDS_CONFIRMATION
        else:
            dropped = doomed
            counts |= run_verdict.count_moves(doomed, heirs, run)
    root = context.moved_root if state in (RunState.COMPLETED, RunState.PARTIAL) else None
    if root is not None:
        context.notes.append(f"the start page moved permanently: {context.source.label} now starts at {root}")
    await _add_notes(context, run, counts, state)
    ended = state in (RunState.FAILED, RunState.COMPLETED) and not counts.get("unembedded")
    if context.source.trial and ended and not await store.sources.was_read(context.source.id):
        counts["unkept"] = 1
        context.notes.append(f"nothing was read, so {context.source.label} was not added")
    if context.filled:
        counts["chunks_embedded"] = counts.get("chunks_embedded", 0) + context.filled
    await count_scores(context.tools.scoring, run, counts, context.notes)
    counts["worked_ms"] = counts.get("worked_ms", 0) + round((time.monotonic() - context.began) * 1000)
    whole = state is RunState.COMPLETED and await is_as_listed(context, dropped)
    return RunEnding(
        state=state,
        counts=counts,
        notes=context.notes,
        error=verdict.error,
        missing=missing,
        dropped=dropped,
        forgives=not verdict.may_delete and state not in UNFINISHED,
        heirs=heirs,
        root=root,
        messages=messages_to_send(context.tools.targets, context.source.label, state, counts),
        mark=context.tools.lister.mark if whole else None,  # only then the state token stands for what is stored
    )


async def _add_notes(context: RunContext, run: Run, counts: Mapping[str, int], state: RunState) -> None:
    store = context.tools.store
    context.notes.extend(_suspicion_notes(counts, context.source.label))
    context.notes.extend(await _switch_model(context))
    if dead := counts.get("dead", 0):
        links, lists = ("link", "lists it") if dead == 1 else ("links", "lists them")
        command = f"`afresh attempts {run.id} --outcome gone`"
        context.notes.append(f"{dead} broken {links} (404 or 410): {command} {lists}")
    context.notes.extend(left_out_notes(counts))
    if counts.get("trapped"):
        context.notes.extend(await trap_notes(store, context.source.id, context.rules))
    waiting, _ = await store.links.frontier_is_open(context.source.id, context.fingerprint)
    if waiting and run.mode not in (RunMode.DUE, RunMode.CHECK):
        context.notes.append(f"stopped at max_pages {context.rules.max_pages}: raise max_pages to follow more links")
    if state is RunState.COMPLETED and not counts.get("checked") and run.mode is not RunMode.DUE:
        context.notes.append("no readable page was found: check the URL, the rules and what was left out")


async def _switch_model(context: RunContext) -> list[str]:
    """Switch searches to the configured model if all its vectors exist; else return a note about it."""
    embedding, serving = context.tools.embedding, await context.tools.store.vectors.serving_model()
    if embedding is None or (serving is not None and serving.name == embedding.embedder.model):
        return []
    if await context.tools.store.vectors.serve(embedding.embedder.model):
        return []
    answers = serving.name if serving else "no model"
    return [f"new text was embedded with {embedding.embedder.model}, but search uses {answers}: run `afresh reindex`"]


def _suspicion_notes(counts: Mapping[str, int], label: str) -> list[str]:
    notes = []
    if odd := counts.get("doubtful", 0):
        pages = "page looks" if odd == 1 else "pages look"
        known = counts.get("known_doubtful", 0)
        kept = "any previous version was kept" if 0 < known < odd else "the previous version was kept"
        notes.append(
            f"{odd} {pages} like an error, login or empty page; {kept if known else 'not stored'} "
            f"(see `afresh pages {label} --doubtful`; accept: `afresh refresh {label} --trust`)"
        )
    new = counts.get("flagged_new", 0)
    if short := counts.get("flagged", 0) - new:
        pages = "page" if short == 1 else "pages"
        notes.append(
            f"{short} {pages} lost nearly all text or became a login page (see `afresh pages {label} --doubtful`; "
            "`afresh restore URL` brings the former text back)"
        )
    if new:
        pages = "new page has" if new == 1 else "new pages have"
        notes.append(f"{new} {pages} no text or only an error message (see `afresh pages {label} --doubtful`)")
    return notes


async def _missing_pages(context: RunContext) -> list[Page]:
    """Return the pages that no link or listing leads to, each with its missing count increased by one."""
    store, root = context.tools.store, context.rules.root
    unreached = [  # pages closed by robots.txt may still exist
        page
        for page in await store.pages.unreached(context.source.id, root, context.rules.max_depth)
        if context.tools.lister.walks(page.url) and await context.tools.web.refusal(page.url) is None
    ]
    return [run_verdict.decide_missing(page, context.run.id, context.tools.policy) for page in unreached]


async def _deletable_pages(context: RunContext, missing: list[Page]) -> list[Page]:
    doomed = []
    for page, target in await context.tools.store.pages.doomed(context.source.id, missing):
        waits = (  # delete it later: the next run has to read the target first
            context.run.mode is RunMode.CHECK
            and page.moved_to is not None
            and target is not PageStatus.ACTIVE
            and context.rules.refusal(page.moved_to, 0) is None
        )
        if run_verdict.may_drop(page, target, context.run.id) and not waits:
            doomed.append(page)
    return doomed


async def _reload(context: RunContext) -> Run:
    run = await context.tools.store.runs.get(context.run.id)
    if run is None:
        raise SourceError(f"{context.source.label} was removed while it was being read")
    if run.state is RunState.CANCELLED:
        raise RunBusy(f"run {run.id} was cancelled; `afresh refresh {context.source.label}` continues it")
    if run.worker != context.tools.worker or run.state is not RunState.RUNNING:
        raise RunBusy(f"run {run.id} was taken over by another process while this one was paused")
    return run


@dataclass(frozen=True, slots=True)
class Runner:
    tools: RunToolFactory
    stopping: asyncio.Event

    async def run(self, source: Source, options: RunOptions, listener: Listener = ignore) -> RunReport:
        async with self.tools.open(source, options, listener, self.stopping) as (tools, rules):
            with run_log.run_span(source, options.mode) as ended:
                report = ended(await run_source(tools, source, rules, options, self.stopping))
        sinks = await sink_views(self.tools.store, [source], self.tools.sinks_of)
        return replace(report, sinks=sinks or None)

    async def queue(
        self, source: Source, mode: RunMode, *, full: bool = False, slot: datetime | None = None
    ) -> RunReport:
        store, now = self.tools.store, self.tools.clock()
        await release_dead_processes(store, self.tools.identity()[0], now)
        run, _ = await store.runs.start(source.id, mode, full=full, worker=None, now=now, slot=slot)
        return replace(report_of(run, source), seconds=0.0)
