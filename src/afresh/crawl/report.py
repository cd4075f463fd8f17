"""From a run on record to the report that people read."""

from collections.abc import Mapping
from typing import Any

from afresh.model.records import Run, RunMode, RunState, Source
from afresh.model.reports import RunReport
from afresh.ports import Lister
from afresh.sync.reports import DOCUMENTS, DocumentCounts, DocumentOutcome

COUNTS = (
    "checked",
    "new",
    "changed",
    "unchanged",
    "not_modified",
    "deleted",
    "missing",
    "moved",
    "failed",
    "refused",
    "doubtful",
    "flagged",
    "held",
    "rendered",
    "bytes",
    "chunks_embedded",
    "chunks_reused",
    "summaries",
    "links_scored",
    "links_unscored",
    "links_saved",
    "link_calls",
    "link_calls_saved",
    "ai_calls",
    "ai_tokens",
)


def seconds_of(run: Run) -> float:
    """How long a run was worked on; a pause before it went on does not count."""
    if run.state is RunState.RUNNING and run.taken_at is not None:
        until = run.finished_at or run.worked_at or run.taken_at
        before = run.counts.get("worked_ms", 0) / 1000
        return before + max(0.0, (until - run.taken_at).total_seconds())
    if "worked_ms" in run.counts:
        return run.counts["worked_ms"] / 1000
    return ((run.finished_at or run.started_at) - run.started_at).total_seconds()


def report_of(run: Run, source: Source) -> RunReport:
    """What a run did, in the words of the report."""
    counts: dict[str, Any] = {name: run.counts.get(name, 0) for name in COUNTS}
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
        documents=_documents(run),
        started_at=run.started_at,
        finished_at=run.finished_at,
        kept=not run.counts.get("unkept"),
        **counts,
    )


def _documents(run: Run) -> DocumentCounts | None:
    if run.mode is not RunMode.SYNC:
        return None
    return DocumentCounts(**{each: run.counts.get(f"{DOCUMENTS}{each}", 0) for each in DocumentOutcome})


def dropped_notes(lister: Lister) -> list[str]:
    """What a source lists that is left out, and why, as one sentence."""
    dropped = lister.dropped
    if not dropped:
        return []
    words = ("sitemap", "address", "addresses") if lister.kind == "web" else (lister.kind, "file", "files")
    kind, one, many = words
    parts = ", ".join(
        f"{number:,} {why}" for why, number in sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
    )
    number = sum(dropped.values())
    hint = " (`afresh why FILE` tells of one)" if kind == "folder" else ""
    return [f"{kind}: {number:,} {one if number == 1 else many} left out: {parts}{hint}"]


def left_out_notes(counts: Mapping[str, int]) -> list[str]:
    """Links that were not kept, and what that means for the run."""
    notes = []
    if pages := counts.get("cut_pages", 0):
        which = "1 page has" if pages == 1 else f"{pages:,} pages have"
        notes.append(
            f"{which} more links than are kept of one page: {counts.get('cut_links', 0):,} left out, "
            "so no page counts as missing"
        )
    if long := counts.get("long_links", 0):
        notes.append(f"{long:,} {'link' if long == 1 else 'links'} left out: longer than 2,000 characters")
    return notes
