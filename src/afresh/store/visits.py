"""Finished visits become state: the one transaction that writes what workers found."""

import json
from collections.abc import Sequence
from datetime import datetime

from afresh.crawl.counters import change_of, only_checked, tally, total
from afresh.model.fetch import Outcome
from afresh.model.records import Content, Limits, Page, Run, RunMode, Visit
from afresh.ops.failpoints import failpoint
from afresh.store.chunks import swap_chunks
from afresh.store.dialect import Database, Session
from afresh.store.digest import tell
from afresh.store.queue import QueueRepository
from afresh.store.repository import Caches, Repository
from afresh.store.retry import RetryPolicy
from afresh.urls.canonical import domain_of


class VisitRepository(Repository):
    """Write finished visits."""

    def __init__(self, db: Database, caches: Caches, retry: RetryPolicy | None) -> None:
        super().__init__(db, caches, retry)
        self._queue = QueueRepository(db, caches, retry)

    async def commit(
        self,
        run: Run,
        visits: Sequence[Visit],
        worker: str,
        now: datetime,
        *,
        limits: Limits,
        keep_body: bool,
    ) -> list[Visit]:
        """Write finished visits of one run; those whose lease was lost are left out of the answer."""
        try:
            async with self._queue.queueing(run, alone=False) as tx:
                mine = await _still_held(tx, visits, worker)
                await _stamp(tx, run, mine, now)
                failpoint("commit.next")
                await _write_pages(tx, run, mine, now)
                failpoint("commit.pages")
                reused = await swap_chunks(tx, mine, now, keep_body=keep_body)
                failpoint("commit.chunks")
                await tell(tx, mine)
                if any(map(_concerns_others, mine)):
                    await tx.turn(run.source_id)
                await _mark_ways(tx, run, mine)
                await self.caches.links.write(tx, run, mine)
                failpoint("commit.links")
                await _record_changes(tx, run, mine, now, keep_body=keep_body)
                failpoint("commit.changes")
                await self._queue_children(tx, run, mine, limits, now)
                failpoint("commit.children")
                if mine:
                    await _count(tx, run, [*map(tally, mine), reused], now)
                failpoint("commit.counts")
        except BaseException:
            self.caches.links.forget()
            raise
        return mine

    async def _queue_children(
        self, tx: Session, run: Run, visits: Sequence[Visit], limits: Limits, now: datetime
    ) -> None:
        """Queue what visits lead to; what a check of a few pages finds waits for the next run."""
        children = await _children(tx, visits)
        if run.mode is not RunMode.CHECK:
            await self._queue.queue_pages(tx, run, children, limits, now)
        elif children:
            await tx.run("open_frontier", source=run.source_id)


async def _still_held(tx: Session, visits: Sequence[Visit], worker: str) -> list[Visit]:
    crawls = [visit.claim.crawl_id for visit in visits]
    held = {row["id"] for row in await tx.all("held_crawls", crawls=crawls, worker=worker)}
    return [visit for visit in visits if visit.claim.crawl_id in held]


async def _stamp(tx: Session, run: Run, visits: Sequence[Visit], now: datetime) -> None:
    await tx.many(
        "stamp_crawl",
        [
            {
                "crawl": visit.claim.crawl_id,
                "outcome": visit.decision.outcome,
                "status_code": visit.decision.status_code,
                "error_message": visit.decision.error_message,
                "reason": visit.decision.reason,
                "now": now,
            }
            for visit in visits
        ],
    )
    failpoint("commit.stamp")
    await tx.many(
        "next_crawl",
        [
            {
                "page": visit.claim.page.id,
                "run": run.id if visit.decision.retry else None,
                "url": visit.claim.page.url,
                "domain": domain_of(visit.claim.page.url),
                "priority": -visit.claim.page.depth,
                "at": visit.decision.next_at,
                "now": now,
            }
            for visit in visits
            if visit.decision.next_at is not None
        ],
    )


async def _write_pages(tx: Session, run: Run, visits: Sequence[Visit], now: datetime) -> None:
    checked = [visit for visit in visits if only_checked(visit)]
    await tx.many(
        "check_page",
        [
            {
                "page": visit.claim.page.id,
                "crawl_time": run.started_at,
                "checked_at": visit.decision.page.checked_at,
                "observed_at": visit.decision.page.observed_at,
                "quiet_seconds": visit.decision.page.rhythm.quiet,
            }
            for visit in checked
        ],
    )
    await tx.many("update_page", [_page_row(visit, run, now) for visit in visits if not only_checked(visit)])


def _concerns_others(visit: Visit) -> bool:
    """Whether a visit writes more than its own page: those of one source then take turns."""
    return (
        visit.harvest.links is not None or visit.decision.content is not Content.KEEP or _changes_ways(visit)
    )


async def _mark_ways(tx: Session, run: Run, visits: Sequence[Visit]) -> None:
    if any(map(_changes_ways, visits)):
        await tx.run("mark_graph", source=run.source_id, changed=1)


def _changes_ways(visit: Visit) -> bool:
    """Whether a page begins or ceases to lead on: nothing is reached through a page that is to go."""
    was_doomed = visit.claim.page.doomed_by is not None
    drops = visit.decision.content is Content.DROP
    return drops or (was_doomed and visit.decision.page.doomed_by is None)


def _page_row(visit: Visit, run: Run, now: datetime) -> dict[str, object]:
    page, decision = visit.decision.page, visit.decision
    answered = decision.outcome in (Outcome.SUCCESS, Outcome.NOT_MODIFIED)
    return {
        "page": page.id,
        "status": page.status,
        "title": page.title,
        "language": page.language,
        "etag": page.validators.etag,
        "last_modified": page.validators.last_modified,
        "size": page.validators.size,
        "mtime_ns": page.validators.mtime_ns,
        "validators_url": page.validators.url,
        "content_type": page.content_type,
        "content_hash": page.content_hash,
        "links_hash": page.links_hash,
        "links_left_out": page.links_left_out,
        "recipe": page.recipe,
        "chunker": page.chunker,
        "failures": page.failures,
        "gone_count": page.gone_count,
        "doomed_by": _doomed_by(page, visit, run),
        "crashes": page.crashes,
        "doubt": page.doubt,
        "doubt_hash": page.doubt_hash,
        "doubt_run": page.doubt_run,
        "refused_hash": page.refused_hash,
        "moved_to": page.moved_to,
        "crawl_time": run.started_at,
        "last_seen": run.started_at if answered else page.last_seen,
        "last_scraped": page.last_scraped,
        "checked_at": page.checked_at,
        "changed_at": page.changed_at,
        "observed_at": page.observed_at,
        "change_count": page.rhythm.changes,
        "quiet_seconds": page.rhythm.quiet,
        "span_seconds": page.rhythm.spans,
        "now": now,
    }


def _doomed_by(page: Page, visit: Visit, run: Run) -> int | None:
    """Content that is to go stays until the run's sweep, where the brake can still hold it."""
    drops = visit.decision.content is Content.DROP and page.content_hash is not None
    return run.id if drops else page.doomed_by


async def _record_changes(
    tx: Session, run: Run, visits: Sequence[Visit], now: datetime, *, keep_body: bool
) -> None:
    await tx.many(
        "insert_change",
        [
            {
                "source": run.source_id,
                "page": visit.claim.page.id,
                "url": visit.claim.page.url,
                "kind": kind,
                "run": run.id,
                "now": now,
                "old_hash": visit.claim.page.content_hash,
                "new_hash": visit.decision.page.content_hash,
                "diff": visit.harvest.diff if keep_body else None,
                "moved_to": None,
            }
            for visit in visits
            if (kind := change_of(visit)) is not None
        ],
    )


async def _children(tx: Session, visits: Sequence[Visit]) -> dict[str, int]:
    """The addresses that visits lead to, each with the smallest depth it was found at."""
    parents = [visit.claim.page.id for visit in visits if visit.harvest.links]
    rows = await tx.all("depths_of", pages=parents) if parents else []
    current = {row["id"]: row["depth"] for row in rows}  # a shorter way may have been found since the claim
    depths: dict[str, int] = {}
    for visit in visits:
        step = 0 if visit.decision.outcome is Outcome.MOVED else 1
        depth = current.get(visit.claim.page.id, visit.claim.page.depth) + step
        for link in visit.harvest.links or ():
            if link.follow and link.url in visit.harvest.children and depths.get(link.url, depth) >= depth:
                depths[link.url] = depth
    return depths


async def _count(tx: Session, run: Run, parts: Sequence[dict[str, int]], now: datetime) -> None:
    row = await tx.one("counts_of_run", run=run.id)
    before = json.loads(row["counts"]) if row else {}
    await tx.run("count_run", run=run.id, now=now, counts=json.dumps(total([before, *parts])))
