"""Write the results of finished visits, a batch in one transaction."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from afresh.model.fetch import Outcome
from afresh.model.records import ChangeKind, ContentAction, Run, RunLimits, RunMode, Visit
from afresh.ops.failpoints import failpoint
from afresh.search.records import UNEMBEDDED
from afresh.store.chunks import change_row, swap_chunks
from afresh.store.dialect import Database, Transaction
from afresh.store.digest import record_digests
from afresh.store.queue import QueueRepository
from afresh.store.repository import Caches, Repository, RetryPolicy

_WRITTEN = (  # fields of a page with a column of the same name
    *("status", "title", "language", "content_type", "content_hash", "links_hash", "links_left_out"),
    *("recipe", "chunker", "failures", "gone_count", "crashes", "doubt", "doubt_hash", "doubt_run"),
    *("refused_hash", "moved_to", "last_scraped", "changed_at"),
)

_VALIDATORS = ("etag", "last_modified", "size", "mtime_ns")


class VisitRepository(Repository):
    def __init__(self, db: Database, caches: Caches, retry: RetryPolicy | None) -> None:
        super().__init__(db, caches, retry)
        self._queue = QueueRepository(db, caches, retry)

    async def commit(
        self, run: Run, visits: Sequence[Visit], worker: str, now: datetime, *, limits: RunLimits, keep_body: bool
    ) -> list[Visit]:
        """Write finished visits; return those written, without visits for which the worker lost its lease.

        If a visit changes more than its own page, the transaction waits for the lock on the source.
        """
        locks = any(
            visit.content.links is not None
            or visit.decision.content is not ContentAction.KEEP
            or visit.claim.page.doomed_by is not None
            for visit in visits
        )
        try:
            async with self.db.write(run.source_id if locks else None) as tx:
                crawls = [visit.claim.crawl_id for visit in visits]
                held = {row["id"] for row in await tx.all("held_crawls", crawls=crawls, worker=worker)}
                mine = [visit for visit in visits if visit.claim.crawl_id in held]
                await _stamp(tx, run, mine, now)
                failpoint("commit.next")
                await _write_pages(tx, run, mine, now)
                failpoint("commit.pages")
                reused = await swap_chunks(tx, mine, now, keep_body=keep_body)
                failpoint("commit.chunks")
                if any(visit.content.digest for visit in mine):
                    await record_digests(tx, mine)
                await self.caches.links.write(tx, run, mine)
                failpoint("commit.links")
                counts = [tally(visit) for visit in mine]
                rows = [
                    change_row(visit.claim.page, run.id, kind, visit.decision.page.content_hash, now)
                    | {"diff": visit.content.diff if keep_body else None}
                    for visit, numbers in zip(mine, counts, strict=True)
                    for kind in (ChangeKind.NEW, ChangeKind.CHANGED)
                    if kind in numbers
                ]
                await tx.many("insert_change", rows)
                failpoint("commit.changes")
                children = await _children(tx, mine)
                if run.mode is not RunMode.CHECK:
                    await self._queue.queue_pages(tx, run, children, limits, now)
                elif children:  # links found by a check of a few pages wait for the next run
                    await tx.many("open_frontier", [{"source": run.source_id}])
                failpoint("commit.children")
                if mine:
                    await add_counts(tx, run, [*counts, reused], now)
                failpoint("commit.counts")
        except BaseException:
            self.caches.links.forget()
            self.caches.depths.pop(run.id, None)
            raise
        return mine


async def _stamp(tx: Transaction, run: Run, visits: Sequence[Visit], now: datetime) -> None:
    stamps = [
        {
            "crawl": visit.claim.crawl_id,
            "outcome": visit.decision.outcome,
            "status_code": visit.decision.status_code,
            "error_message": visit.decision.error_message,
            "reason": visit.decision.reason,
            "now": now,
        }
        for visit in visits
    ]
    await tx.many("stamp_crawl", stamps)
    failpoint("commit.stamp")
    following = [
        {
            "page": visit.claim.page.id,
            "run": run.id if visit.decision.retry else None,
            "domain": visit.claim.domain,
            "at": visit.decision.next_at,
            "now": now,
        }
        for visit in visits
        if visit.decision.next_at is not None
    ]
    await tx.many("next_crawl", following)


async def _write_pages(tx: Transaction, run: Run, visits: Sequence[Visit], now: datetime) -> None:
    checked, written = list[dict[str, object]](), list[dict[str, object]]()
    for visit in visits:
        page, decision = visit.decision.page, visit.decision
        row = {
            "page": page.id,
            "crawl_time": run.started_at,
            "checked_at": page.checked_at,
            "observed_at": page.observed_at,
            "quiet_seconds": page.rhythm.quiet,
        }
        if decision.outcome is Outcome.NOT_MODIFIED and only_checked(visit):
            checked.append(row)
            continue
        answered = decision.outcome in (Outcome.SUCCESS, Outcome.NOT_MODIFIED)
        # Content to be deleted stays until the run ends, because the deletion limit may still prevent it.
        drops = decision.content is ContentAction.DROP and page.content_hash is not None
        row |= {name: getattr(page, name) for name in _WRITTEN}
        row |= {name: getattr(page.validators, name) for name in _VALIDATORS}
        row |= {
            "validators_url": page.validators.url,
            "doomed_by": run.id if drops else page.doomed_by,
            "last_seen": run.started_at if answered else page.last_seen,
            "change_count": page.rhythm.changes,
            "span_seconds": page.rhythm.spans,
            "now": now,
        }
        written.append(row)
    await tx.many("check_page", checked)
    await tx.many("update_page", written)


async def _children(tx: Transaction, visits: Sequence[Visit]) -> dict[str, int]:
    """Return the URLs to which visited pages link, each with its smallest depth."""
    parents = [visit.claim.page.id for visit in visits if visit.content.links]
    rows = await tx.all("depths_of", pages=parents) if parents else []
    current = {row["id"]: row["depth"] for row in rows}  # a page may have got a smaller depth since the claim
    depths: dict[str, int] = {}
    for visit in visits:
        step = 0 if visit.decision.outcome is Outcome.MOVED else 1
        depth = current.get(visit.claim.page.id, visit.claim.page.depth) + step
        for link in visit.content.links or ():
            if link.follow and link.url in visit.content.children and depths.get(link.url, depth) >= depth:
                depths[link.url] = depth
    return depths


async def add_counts(tx: Transaction, run: Run, parts: Sequence[Mapping[str, int]], now: datetime) -> None:
    rows = await tx.all("counts_of_run", run=run.id)
    counts: dict[str, int] = json.loads(rows[0]["counts"]) if rows else {}
    for part in parts:
        for key, number in part.items():
            counts[key] = counts.get(key, 0) + number
    await tx.many("count_run", [{"run": run.id, "now": now, "counts": json.dumps(counts)}])


def tally(visit: Visit) -> dict[str, int]:
    """Return the numbers that a visit adds to the counts of its run.

    A failure that will be retried counts only as a retry. Pages that had content are also counted separately
    (`known_…`), because many failures among them mean an outage.
    """
    decision, content = visit.decision, visit.content
    if decision.retry:
        return {"retried": 1, "bytes": content.body_bytes}
    before, known, change = visit.claim.page, visit.claim.page.content_hash is not None, None
    if decision.content is ContentAction.REPLACE and before.content_hash != decision.page.content_hash:
        change = ChangeKind.CHANGED if known else ChangeKind.NEW
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
    """Return whether an unmodified page changed only in times and counts, so that a cheaper statement can store it."""
    before, after = visit.claim.page, visit.decision.page
    return (
        after.validators == before.validators
        and not (after.failures or after.gone_count or after.doomed_by or before.moved_to)
        and (after.crashes, after.doubt, after.doubt_hash, after.doubt_run)
        == (before.crashes, before.doubt, before.doubt_hash, before.doubt_run)
    )
