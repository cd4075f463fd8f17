"""Count the results of visits for the report of a run, and restore the counts when a run is resumed."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from afresh.model.fetch import Outcome
from afresh.model.records import ChangeKind, ContentAction, Run, RunState, Visit
from afresh.search.records import UNEMBEDDED

RESUME_WITHIN = timedelta(hours=24)  # an older run is replaced by a new one
CONTINUE_WITHIN = timedelta(minutes=3)  # since its last work; later, every page is checked again
KEPT = frozenset(  # counts that a run keeps when it checks every page again: of written content and of its cost
    (
        *("new", "changed", "bytes", "rendered", "retried", "chunks_embedded", "chunks_reused", "summaries"),
        *("links_scored", "links_saved", "link_calls", "link_calls_saved"),
        *("ai_calls", "ai_tokens", "worked_ms"),
    )
)


def change_of(visit: Visit) -> ChangeKind | None:
    """Return NEW or CHANGED if a visit read new or changed content, else None."""
    decision, before = visit.decision, visit.claim.page
    if decision.content is not ContentAction.REPLACE:
        return None
    if before.content_hash is None:
        return ChangeKind.NEW
    return ChangeKind.CHANGED if before.content_hash != decision.page.content_hash else None


def tally(visit: Visit) -> dict[str, int]:
    """Return the numbers that a visit adds to the counts of its run.

    A failure that will be retried counts only as a retry. Pages that had content are also counted separately
    (`known_…`), because many failures among them mean an outage.
    """
    decision, content = visit.decision, visit.content
    if decision.retry:
        return {"retried": 1, "bytes": content.body_bytes}
    known, change = visit.claim.page.content_hash is not None, change_of(visit)
    match decision.outcome:
        case Outcome.NOT_MODIFIED:
            kind = "not_modified"
        case Outcome.SUCCESS:  # dropped content is a page with noindex
            kind = "refused" if decision.content is ContentAction.DROP else str(change or "unchanged")
        case Outcome.GONE:
            kind = "gone" if known else "dead"
        case Outcome.MOVED:
            kind = "redirects"
        case _:
            kind = "refused" if decision.refused else "doubtful" if decision.doubtful else "failed"
    unembedded = decision.reason.startswith(UNEMBEDDED)  # the page was fetched, only the embedder failed
    flagged = decision.page.doubt is not None and decision.content is ContentAction.REPLACE
    made, digest, cut = content.embedded, content.digest, decision.page.links_left_out
    counts = {
        "checked": 1,
        "bytes": content.body_bytes,
        kind: 1,
        "known_asked": known,
        "known_barred": known and kind == "refused" and decision.status_code in (401, 403, 407),
        f"known_{kind}": known and kind in ("failed", "doubtful") and not unembedded,
        "trapped": content.trapped,
        "long_links": content.long_links,
        "cut_links": cut,
        "cut_pages": cut > 0,
        "unembedded": unembedded,
        "chunks_embedded": made or 0,
        "chunks_reused": 0 if made is None else len(content.chunks) - made,
        "summaries": digest is not None and digest.summary is not None,
        "ai_calls": digest is not None and digest.summary is not None and digest.asked_model,
        "rendered": content.rendered,
        "hinted": visit.hinted,
        "hinted_changed": visit.hinted and change is ChangeKind.CHANGED,
        "flagged": flagged,
        "flagged_new": flagged and change is ChangeKind.NEW,
    }
    return {name: int(number) for name, number in counts.items() if number}


def only_checked(visit: Visit) -> bool:
    """Return whether a visit changed only times and counts of its page, so that a cheaper statement can store it."""
    before, after = visit.claim.page, visit.decision.page
    return (
        visit.decision.outcome is Outcome.NOT_MODIFIED
        and after.validators == before.validators
        and not (after.failures or after.gone_count or after.doomed_by or before.moved_to)
        and (after.crashes, after.doubt, after.doubt_hash, after.doubt_run)
        == (before.crashes, before.doubt, before.doubt_hash, before.doubt_run)
    )


def checks_all_again(run: Run, now: datetime) -> bool:
    """Return whether the run was interrupted for so long that it checks every page again."""
    last = run.worked_at or run.taken_at
    if last is None:
        return bool(run.queued or run.counts)
    return abs(now - last) > CONTINUE_WITHIN


def counts_so_far(run: Run, *, again: bool) -> Mapping[str, int]:
    """Return the counts with which a run is resumed, including the working time of a worker that died."""
    counts = {name: number for name, number in run.counts.items() if not again or name in KEPT}
    if run.state is RunState.RUNNING and run.taken_at is not None and run.worked_at is not None:
        spent = max(timedelta(0), run.worked_at - run.taken_at)
        counts["worked_ms"] = counts.get("worked_ms", 0) + round(spent.total_seconds() * 1000)
    return counts
