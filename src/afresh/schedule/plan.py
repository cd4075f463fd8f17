"""Compute the next run of a source, and the plan of page checks if its schedule is `auto`."""

import asyncio
from datetime import datetime

from afresh.dataclass import replace
from afresh.model.records import UNFINISHED, Page, PageStatus, Policy, Source
from afresh.schedule.change_rate import NO_SIGNALS, HintAccuracy, plan_checks
from afresh.schedule.rules import Schedule, ScheduledRun
from afresh.sources.linklist.parse import LINKS
from afresh.store.store import Store
from afresh.urls.canonical import domain_of

RUNS = 200  # last runs from which the reliability of change dates is estimated


async def with_plan(policy: Policy, store: Store, source: Source, schedule: Schedule | None) -> Policy:
    """Return the policy of a source; for the schedule `auto`, with a plan of checks."""
    if schedule is None or schedule.budget is None:
        return policy
    looks, seconds = schedule.budget.batch
    pages = [(domain_of(url), rhythm) for url, rhythm in await store.schedules.rhythms(source.id)]
    plan = await asyncio.to_thread(
        plan_checks,
        pages,
        schedule.budget.rate,
        min_seconds=seconds,
        max_seconds=max(seconds, policy.adapt_max_seconds),
        signals=await _signals(store, source),
    )
    return replace(policy, check_plan=plan, budget_per_run=policy.budget_per_run or looks)


async def _signals(store: Store, source: Source) -> HintAccuracy:
    """Return how reliable the dates in sitemaps and feeds were in the last runs of a source."""
    counts = [run.counts for run in await store.runs.last(source.id, RUNS)]
    hinted, hinted_changes, looks, changes = (
        sum(each.get(name, 0) for each in counts) for name in ("hinted", "hinted_changed", "known_asked", "changed")
    )
    return HintAccuracy.of(hinted, hinted_changes, looks, changes) if hinted else NO_SIGNALS


async def next_time(store: Store, source: Source, schedule: Schedule | None, now: datetime) -> datetime | None:
    """Return the next scheduled time; `now` if the source never ran or its last run is unfinished."""
    if schedule is None:
        return None
    runs = await store.runs.last(source.id, 1)
    if not runs or runs[0].state in UNFINISHED:
        return now
    return schedule.next_after(runs[0].started_at)


async def next_run(
    store: Store, source: Source, schedule: Schedule | None, now: datetime, planned: ScheduledRun | None
) -> datetime | None:
    """Return when a scheduler starts the next run of a source; `planned` is the run that one has planned."""
    if schedule is not None and planned is not None and planned.rule == schedule.key:
        return planned.next_at
    return await next_time(store, source, schedule, now)


def next_check(
    source: Source,
    page: Page,
    schedule: Schedule | None,
    run_at: datetime | None,
    due_at: datetime | None,
    *,
    links: int,
) -> tuple[datetime | None, str]:
    """Return when a scheduled run will check a page or, if no time is known, what has to happen first.

    The next run starts at `run_at`; the page is due at `due_at`, and `links` pages link to it.
    """
    listed = source.kind != "web"
    if source.is_of_digest:
        return due_at, "with the next `afresh init-kb`"
    if page.status is PageStatus.DELETED and not links:
        return None, "when its source lists it again" if listed else "when a page links to it again"
    if schedule is None or run_at is None:
        return None, "no schedule: with the next refresh"
    if schedule.budget is None and source.kind != LINKS:  # its runs check all pages
        return run_at, ""
    if due_at is None:
        return None, "when its source lists it as changed" if listed else "with the next full refresh"
    return run_at if due_at <= run_at else schedule.following(run_at, due_at), ""
