"""What looks at the pages of a source are worth, where its schedule is `auto`."""

import asyncio
from dataclasses import replace

from afresh.model.records import Policy, Source
from afresh.schedule.change_rate import NO_SIGNALS, Signals, plan_looks
from afresh.schedule.rules import Schedule
from afresh.store.store import Store
from afresh.urls.canonical import domain_of

RUNS = 200  # whose looks tell what the hints of a site are worth


async def with_plan(policy: Policy, store: Store, source: Source, schedule: Schedule | None) -> Policy:
    """The policy of a source; with `auto` each page is looked at as often as it is worth, in the budget."""
    if schedule is None or schedule.budget is None:
        return policy
    looks, seconds = schedule.budget.batch
    pages = [(domain_of(url), rhythm) for url, rhythm in await store.schedules.rhythms(source.id)]
    plan = await asyncio.to_thread(
        plan_looks,
        pages,
        schedule.budget.rate,
        shortest=seconds,
        longest=max(seconds, policy.adapt_max_seconds),
        signals=await _signals(store, source),
    )
    return replace(policy, looks=plan, budget_per_run=policy.budget_per_run or looks)


async def _signals(store: Store, source: Source) -> Signals:
    """What the dates of sitemaps and feeds were worth in the last runs."""
    counts = [run.counts for run in await store.runs.last(source.id, RUNS)]
    told, told_changes, looks, changes = (
        sum(each.get(name, 0) for each in counts)
        for name in ("hinted", "hinted_changed", "known_asked", "changed")
    )
    return Signals.of(told, told_changes, looks, changes) if told else NO_SIGNALS
