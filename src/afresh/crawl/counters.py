"""Counting: what one visit adds to the report of its run."""

from collections.abc import Iterable, Mapping

from afresh.model.fetch import Outcome
from afresh.model.records import ChangeKind, Content, Visit
from afresh.search.vectors import UNEMBEDDED

KEPT = frozenset(
    [
        "new",
        "changed",
        "bytes",
        "rendered",
        "retried",
        "chunks_embedded",
        "chunks_reused",
        "summaries",
        "links_scored",
        "links_saved",
        "link_calls",
        "link_calls_saved",
        "ai_calls",
        "ai_tokens",
        "worked_ms",
    ]
)


def change_of(visit: Visit) -> ChangeKind | None:
    """Whether a visit brought new or changed content; deletions and moves are the sweep's to tell."""
    decision, before = visit.decision, visit.claim.page
    if decision.content is not Content.REPLACE:
        return None
    if before.content_hash is None:
        return ChangeKind.NEW
    return ChangeKind.CHANGED if before.content_hash != decision.page.content_hash else None


def tally(visit: Visit) -> dict[str, int]:
    """The counts of one visit; a failure that is tried again in the same run is not counted yet."""
    decision = visit.decision
    if decision.retry:
        return {"retried": 1, "bytes": visit.harvest.body_bytes}
    counts = {
        "checked": 1,
        "bytes": visit.harvest.body_bytes,
        _kind(visit): 1,
        **_known(visit),
        **_left_out(visit),
        **_embedded(visit),
        **_summarised(visit),
    }
    if visit.harvest.rendered:
        counts["rendered"] = 1
    if visit.hinted:
        counts |= {"hinted": 1, "hinted_changed": int(change_of(visit) is ChangeKind.CHANGED)}
    flagged = decision.page.doubt is not None and decision.content is Content.REPLACE
    if not flagged:
        return counts
    return {**counts, "flagged": 1, "flagged_new": int(change_of(visit) is ChangeKind.NEW)}


def _embedded(visit: Visit) -> dict[str, int]:
    """What a page cost in vectors, and what it did not."""
    if _awaits_vectors(visit):
        return {"unembedded": 1}
    made = visit.harvest.embedded
    if made is None or visit.decision.content is not Content.REPLACE:
        return {}
    return {"chunks_embedded": made, "chunks_reused": len(visit.harvest.chunks) - made}


def _summarised(visit: Visit) -> dict[str, int]:
    """What a page of the knowledge base cost."""
    told = visit.harvest.told
    if told is None or told.summary is None:
        return {}
    return {"summaries": 1, "ai_calls": int(told.asked_model)}


def _awaits_vectors(visit: Visit) -> bool:
    """Whether a look was well and only the embedder was not."""
    return visit.decision.reason.startswith(UNEMBEDDED)


def _left_out(visit: Visit) -> dict[str, int]:
    """Links that nobody will follow: they end a run as notes."""
    harvest, cut = visit.harvest, visit.decision.page.links_left_out
    if not (cut or harvest.trapped or harvest.long_links):
        return {}
    found = {
        "trapped": harvest.trapped,
        "long_links": harvest.long_links,
        "cut_links": cut,
        "cut_pages": min(cut, 1),
    }
    return {name: number for name, number in found.items() if number}


def _kind(visit: Visit) -> str:
    match visit.decision.outcome:
        case Outcome.NOT_MODIFIED:
            return "not_modified"
        case Outcome.SUCCESS:
            change = change_of(visit)
            unwanted = visit.decision.content is Content.DROP  # it asks not to be indexed
            return "refused" if unwanted else str(change) if change else "unchanged"
        case Outcome.GONE:
            return "gone" if visit.claim.page.content_hash is not None else "dead"
        case Outcome.MOVED:
            return "redirects"
        case _:
            decision = visit.decision
            return "refused" if decision.refused else "doubtful" if decision.doubtful else "failed"


def _known(visit: Visit) -> Mapping[str, int]:
    """Pages with content are counted apart: how many of them fail tells an outage."""
    if visit.claim.page.content_hash is None:
        return {}
    kind = _kind(visit)
    if _awaits_vectors(visit):  # no fault of the source
        return {"known_asked": 1}
    if kind == "refused" and visit.decision.status_code in (401, 403, 407):
        return {"known_asked": 1, "known_barred": 1}
    return {"known_asked": 1, f"known_{kind}": 1} if kind in ("failed", "doubtful") else {"known_asked": 1}


def kept_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of a run that stay when it looks at everything again: what it wrote and what that cost."""
    return {name: number for name, number in counts.items() if name in KEPT}


def total(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of counts, key by key."""
    result: dict[str, int] = {}
    for part in parts:
        for key, number in part.items():
            result[key] = result.get(key, 0) + number
    return result


def only_checked(visit: Visit) -> bool:
    """Whether nothing about the page changed but that it was looked at."""
    before, decision = visit.claim.page, visit.decision
    return (
        decision.outcome is Outcome.NOT_MODIFIED
        and decision.page.validators == before.validators
        and before.moved_to is None
        and before.doubt_hash is None
        and before.doubt is None
    )
