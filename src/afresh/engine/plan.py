"""What a refresh would do and cost, told from what is on record."""

from collections.abc import Sequence

from afresh.core.model import Policy, Run, RunMode, Source
from afresh.core.scope import Rules
from afresh.core.views import Plan
from afresh.ports import Library


async def plan_of(store: Library, source: Source, rules: Rules, policy: Policy) -> Plan:
    """The plan of a refresh; writes and fetches nothing."""
    counts, urls = await store.plan_numbers(source.id, policy.recipe)
    runs = [run for run in await store.last_runs(source.id, 20) if run.finished_at is not None]
    known, conditional = counts["known"] or 0, counts["conditional"] or 0
    refused = [url for url, depth in urls if rules.refusal(url, depth) is not None]
    waiting = await store.frontier(source.id)
    notes = [f"{len(waiting)} links wait beyond a limit"] if waiting else []
    if counts["redirects"]:
        notes.append(f"{counts['redirects']} addresses that moved are asked again")
    return Plan(
        source=source.name,
        version=source.version,
        mode="refresh",
        known=known,
        conditional=conditional,
        unconditional=known - conditional,
        first_looks=counts["first_looks"] or 0,
        not_looked_at=len(refused),
        last_run_bytes=_bytes(runs[:1]),
        last_full_bytes=max((_bytes([run]) for run in runs), default=0),
        estimated_seconds=_seconds(runs),
        root=source.url,
        notes=tuple(notes),
    )


def _bytes(runs: Sequence[Run]) -> int:
    return sum(run.counts.get("bytes", 0) for run in runs)


def _seconds(runs: Sequence[Run]) -> float | None:
    """How long the last refresh took, or failing that the last run."""
    run = next((run for run in runs if run.mode is RunMode.REFRESH), runs[0] if runs else None)
    if run is None or run.finished_at is None:
        return None
    return round((run.finished_at - run.started_at).total_seconds(), 1)
