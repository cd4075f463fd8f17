"""What a refresh would do and cost, told from what is on record."""

from collections.abc import Sequence
from datetime import datetime

from afresh.aio import in_turns
from afresh.crawl.decide import request_for
from afresh.crawl.report import seconds_of
from afresh.model.records import PageStatus, Policy, Run, RunMode, RunState, Source
from afresh.model.reports import Plan
from afresh.model.transitions import UNFINISHED
from afresh.store.store import Store
from afresh.urls.scope import Rules

FINISHED = (RunState.COMPLETED, RunState.PARTIAL, RunState.NEEDS_CONFIRMATION)


async def plan_of(
    store: Store, source: Source, rules: Rules, policy: Policy, now: datetime, wanted_model: str | None
) -> Plan:
    """The plan of a refresh; writes and fetches nothing."""
    pages = await store.pages.to_check(source.id)
    listed = source.kind != "web"  # of all others the listing tells, or where their links lead
    looked_at = [
        page
        async for page in in_turns(pages, lambda page: page.url)
        if listed or rules.refusal(page.url, page.depth) is None
    ]
    known = [page for page in looked_at if page.content_hash is not None]
    conditional = [page for page in known if request_for(page, policy, now).validators is not None]
    first = [page for page in looked_at if page.status is PageStatus.PENDING]
    tally = await store.stats.due_tally(source.id, now, policy.max_age_seconds)
    runs = [run for run in await store.runs.last(source.id, 20) if run.state in FINISHED]
    return Plan(
        source=source.name,
        version=source.version,
        mode="refresh",
        known=len(known),
        conditional=len(conditional),
        unconditional=len(known) - len(conditional),
        first_looks=len(first),
        not_looked_at=len(pages) - len(looked_at),
        last_run_bytes=_bytes(runs[:1]),
        last_full_bytes=max((_bytes([run]) for run in runs), default=0),
        estimated_seconds=_seconds(runs),
        root=source.url,
        due=tally.due,
        budget=policy.budget_per_run,
        notes=(
            *await _notes(store, source, len(looked_at) - len(known) - len(first)),
            *await _models(store, wanted_model),
        ),
    )


async def _notes(store: Store, source: Source, others: int) -> tuple[str, ...]:
    notes = []
    if others:
        addresses = "address without content is" if others == 1 else "addresses without content are"
        notes.append(f"{others} {addresses} asked again: moved, refused, failed or gone, and still linked")
    if waiting := len(await store.queue.frontier(source.id)):
        notes.append(f"{waiting} {'link waits' if waiting == 1 else 'links wait'} beyond a limit")
    last = await store.runs.last(source.id, 1)
    if last and last[0].state in UNFINISHED:
        notes.append(f"run {last[0].id} is not finished: a refresh goes on with what is left of it")
    return tuple(notes)


async def _models(store: Store, wanted: str | None) -> tuple[str, ...]:
    """Who makes the vectors of changed text, if that is not the model that is set."""
    serving = await store.vectors.serving_model()
    if wanted is None or serving is None or serving.name == wanted:
        return ()
    return (f"{wanted} is set, but {serving.name} answers: `afresh reindex` makes the index anew",)


def _bytes(runs: Sequence[Run]) -> int:
    return sum(run.counts.get("bytes", 0) for run in runs)


def _seconds(runs: Sequence[Run]) -> float | None:
    """How long the last refresh took, or failing that the last run."""
    run = next((run for run in runs if run.mode is RunMode.REFRESH), runs[0] if runs else None)
    if run is None or run.finished_at is None:
        return None
    return round(seconds_of(run), 1)
