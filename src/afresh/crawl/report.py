"""Build the report of a run from its record."""

from collections.abc import Mapping
from typing import Any

from afresh.dataclass import fields
from afresh.model.records import Run, RunMode, RunState, Source
from afresh.model.reports import REFUSED, RunReport
from afresh.ports import Lister
from afresh.sync.reports import DOCUMENTS, DocumentCounts, DocumentOutcome

COUNTS = tuple(each.name for each in fields(RunReport) if each.type is int and each.name not in ("known", "queued"))


def seconds_of(run: Run) -> float:
    """Return the seconds that workers spent on a run, without interruptions."""
    if run.state is RunState.RUNNING and run.taken_at is not None:
        until = run.finished_at or run.worked_at or run.taken_at
        before = run.counts.get("worked_ms", 0) / 1000
        return before + max(0.0, (until - run.taken_at).total_seconds())
    if "worked_ms" in run.counts:
        return run.counts["worked_ms"] / 1000
    return ((run.finished_at or run.started_at) - run.started_at).total_seconds()


def report_of(run: Run, source: Source) -> RunReport:
    counts: dict[str, Any] = {name: run.counts.get(name, 0) for name in COUNTS}
    documents = {each: run.counts.get(f"{DOCUMENTS}{each}", 0) for each in DocumentOutcome}
    return RunReport(
        run=run.id,
        source=source.name,
        version=source.version,
        mode=run.mode,
        state=run.state,
        known=run.known,
        queued=run.queued,
        seconds=round(seconds_of(run), 3),
        error=run.error,
        notes=run.notes,
        documents=DocumentCounts(**documents) if run.mode is RunMode.SYNC else None,
        started_at=run.started_at,
        finished_at=run.finished_at,
        kept=not run.counts.get("unkept"),
        refusals={name.removeprefix(REFUSED): each for name, each in run.counts.items() if name.startswith(REFUSED)},
        **counts,
    )


def dropped_notes(lister: Lister) -> list[str]:
    """Return a note on how many listed items were left out and why; [] if none were left out."""
    dropped = lister.dropped
    if not dropped:
        return []
    kind, one, many = ("sitemap", "URL", "URLs") if lister.kind == "web" else (lister.kind, "file", "files")
    ranked = sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
    parts, number = ", ".join(f"{each:,} {why}" for why, each in ranked), sum(dropped.values())
    hint = " (`afresh why FILE` explains one)" if kind == "folder" else ""
    return [f"{kind}: {number:,} {one if number == 1 else many} left out: {parts}{hint}"]


def left_out_notes(counts: Mapping[str, int]) -> list[str]:
    notes = []
    if pages := counts.get("cut_pages", 0):
        which = "1 page has" if pages == 1 else f"{pages:,} pages have"
        cut = counts.get("cut_links", 0)
        notes.append(
            f"{which} too many links: {cut:,} {'was' if cut == 1 else 'were'} left out, "
            "so this run deletes no page because no link leads to it"
        )
    if long := counts.get("long_links", 0):
        notes.append(f"{long:,} {'link' if long == 1 else 'links'} left out: longer than 2,000 characters")
    return notes
