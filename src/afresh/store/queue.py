"""The queue of pages to check, the locks on hosts, and the workers that claim pages."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from afresh.model.records import (
    Backlog,
    Claim,
    CrawlId,
    ListedUrl,
    Run,
    RunId,
    RunLimits,
    RunMode,
    SourceId,
    WorkerRecord,
)
from afresh.store.dialect import Row, Transaction
from afresh.store.records import at, listed_from, page_from
from afresh.store.repository import Repository, not_retried
from afresh.store.schedules import budget_left, due_rows, listed_at, plan_later_checks
from afresh.urls.canonical import domain_of

MAX_CACHED_URLS = 10_000  # per run
FIRST_TURN = 1  # `hosts.used` when a worker first uses a host; 2: used before by this worker, 0: handed over, unused


class QueueRepository(Repository):
    async def enqueue(self, run: Run, listed: Sequence[ListedUrl], limits: RunLimits, now: datetime) -> int:
        """Queue URLs for a run, each at most once; return the number of newly queued URLs."""
        wanted: dict[str, int] = {}
        for item in listed:
            wanted[item.url] = min(item.depth, wanted.get(item.url, item.depth))
        async with self._queueing(run) as tx:
            return await self.queue_pages(tx, run, wanted, limits, now)

    async def allow_again(self, run: Run, urls: Sequence[str]) -> None:
        """Let a run queue these pages again although it has checked them, unless they were gone."""
        async with self._queueing(run) as tx:
            number = await tx.run("allow_again", source=run.source_id, run=run.id, urls=list(urls))
            await tx.run("count_queued", run=run.id, number=-number)
        self.caches.depths.pop(run.id, None)

    async def keep_within(self, run: Run, max_pages: int) -> None:
        """Remove unread pages from the queue if the run now has more than `max_pages` pages."""
        async with self._queueing(run) as tx:
            unread = [row["id"] for row in await tx.all("unread_pages", run=run.id)]
            row = await tx.one("run_by_id", run=run.id)
            over = (row["queued"] if row else 0) - max_pages
            left = unread[max(0, len(unread) - over) :] if over > 0 else []
            if left:
                await tx.run("unqueue_unread", pages=left)
                await tx.run("forget_unread", pages=left)
                await tx.run("count_queued", run=run.id, number=-len(left))
                await tx.run("open_frontier", source=run.source_id)
        self.caches.depths.pop(run.id, None)

    async def enqueue_known(self, run: Run, limits: RunLimits, now: datetime) -> None:
        """Queue the stored pages for a run: those with content, and those without content that are still linked."""
        async with self._queueing(run) as tx:
            await tx.run("adopt_known", run=run.id, source=run.source_id, now=now)
            await self._count_adopted(tx, run)
            rows = await tx.all("known_without_row", run=run.id, source=run.source_id)
            wanted = {row["url"]: row["depth"] for row in rows}
            await self.queue_pages(tx, run, wanted, limits, now)

    async def enqueue_due(self, run: Run, limits: RunLimits, now: datetime, *, max_age: float | None = None) -> None:
        """Queue the pages that are due (schedule/due.py), up to the remaining budget of the run."""
        async with self.db.write(run.source_id) as tx:
            crawls = await due_rows(tx, run, limits, now, max_age)
            await tx.run("adopt_rows", run=run.id, crawls=crawls, now=now)
            if limits.budget is not None:  # in the order of their due dates
                ranks = [{"crawl": crawl, "rank": rank} for rank, crawl in enumerate(crawls)]
                await tx.many("rank_row", ranks)
            await self._count_adopted(tx, run)

    async def schedule(
        self, run: Run, listed: Sequence[ListedUrl], limits: RunLimits, recheck: float, now: datetime
    ) -> None:
        """Schedule checks of the URLs that a source lists: now, or `recheck` seconds after a page was found gone."""
        wanted = {item.url: item.depth for item in listed if item.depth <= limits.max_depth}
        async with self.db.write(run.source_id) as tx:
            rows = await tx.all("paths_known", source=run.source_id, urls=list(wanted))
            known = {row["url"] for row in rows}
            fresh = await self._within_room(tx, run, [url for url in wanted if url not in known], limits)
            base = {"source": run.source_id, "run": run.id, "now": now}
            await tx.many("insert_page", [{**base, "url": url, "depth": wanted[url]} for url in fresh])
            rows = await tx.all("unscheduled", source=run.source_id, urls=list(wanted))
            await plan_later_checks(tx, run, {row["url"]: listed_at(row, recheck, now) for row in rows}, now)

    async def _count_adopted(self, tx: Transaction, run: Run) -> None:
        number = await tx.run("mark_adopted", run=run.id, source=run.source_id)
        await tx.run("count_queued", run=run.id, number=number)

    async def frontier(self, source: SourceId) -> list[ListedUrl]:
        """Return the admitted links that are not pages yet, nearest to the root first."""
        return await self._list(listed_from, "frontier", source=source)

    @asynccontextmanager
    async def _queueing(self, run: Run) -> AsyncIterator[Transaction]:
        """Open a transaction; if it is rolled back, forget which pages of the run are known to be queued."""
        try:
            async with self.db.write(run.source_id) as tx:
                yield tx
        except BaseException:
            self.caches.depths.pop(run.id, None)
            raise

    @not_retried
    async def queue_pages(
        self, tx: Transaction, run: Run, wanted: Mapping[str, int], limits: RunLimits, now: datetime
    ) -> int:
        """Queue URLs with their depths inside a transaction; return the number of newly queued URLs.

        If a known page gets a smaller depth, so do the pages that it links to.
        """
        queued, todo = 0, dict(wanted)
        cached = self.caches.depths.setdefault(run.id, {})
        while todo := {
            url: depth
            for url, depth in todo.items()
            if depth <= limits.max_depth and cached.get(hash(url), depth + 1) > depth
        }:
            number, kept, lowered = await self._queue_once(tx, run, todo, limits, now)
            if len(cached) > MAX_CACHED_URLS:
                cached.clear()  # they are stored in the tables anyway
            cached.update({hash(url): todo[url] for url in kept})
            queued += number
            rows = await tx.all("stored_children", pages=lowered) if lowered else []
            todo = {row["url"]: row["depth"] for row in rows}
        return queued

    async def _queue_once(
        self, tx: Transaction, run: Run, wanted: Mapping[str, int], limits: RunLimits, now: datetime
    ) -> tuple[int, list[str], list[int]]:
        """Queue URLs; return the number of newly queued ones, all stored URLs, and pages with a smaller depth."""
        rows = await tx.all("paths_known", source=run.source_id, urls=list(wanted))
        known = {row["url"]: row for row in rows}
        fresh = await self._within_room(tx, run, [url for url in wanted if url not in known], limits)
        again = [url for url, row in known.items() if row["queued_run"] != run.id]
        mine = [row for row in known.values() if row["created_run"] == run.id]
        lowered = [row for row in mine if wanted[row["url"]] < row["depth"]]  # nearer to the root
        base = {"source": run.source_id, "run": run.id, "now": now}
        await tx.many("insert_page", [{**base, "url": url, "depth": wanted[url]} for url in fresh])
        nearer = [{"page": row["id"], "depth": wanted[row["url"]], "now": now} for row in lowered]
        await tx.many("lower_depth", nearer)
        await tx.many("raise_priority", nearer)
        queued = [*again, *fresh]
        if limits.budget is not None:
            room = await budget_left(tx, run, limits.budget)
            among = set(queued)
            found = [url for url in wanted if url in among]  # in the order of discovery
            queued = found[:room]
            await plan_later_checks(tx, run, dict.fromkeys(found[room:], now), now)  # left for the next run
        await tx.many("open_crawl", [{**base, "url": url, "domain": domain_of(url)} for url in queued])
        await tx.many("mark_queued", [{"source": run.source_id, "run": run.id, "urls": queued}])
        await tx.many("count_queued", [{"run": run.id, "number": len(queued)}])
        nearer_ids = [row["id"] for row in lowered if row["queued_run"] == run.id]
        return len(queued), [*known, *fresh], nearer_ids

    async def _within_room(self, tx: Transaction, run: Run, fresh: list[str], limits: RunLimits) -> list[str]:
        if not fresh:
            return fresh
        partly = run.mode is RunMode.DUE  # then pages that the run does not check count towards the limit, too
        rows = await tx.all("taken_room", run=run.id, source=run.source_id, partly=int(partly))
        room = max(0, limits.max_pages - (rows[0]["taken"] if rows else 0))
        if room < len(fresh):
            await tx.many("open_frontier", [{"source": run.source_id}])
        return fresh[:room]

    async def claim_again(
        self, run: RunId, worker: str, now: datetime, *, limit: int, crowded: Collection[str] = ()
    ) -> list[Claim]:
        """Repeat a claim whose result was lost, or claim pages; assume that another worker just used every host."""
        rows = await self._all("claimed_at", run=run, worker=worker, now=now)
        if rows:
            return [_claim(row, {row["domain"]: True}) for row in rows]
        return await self.claim(run, worker, now, limit=limit, crowded=crowded)

    async def claim(
        self, run: RunId, worker: str, now: datetime, *, limit: int, crowded: Collection[str] = ()
    ) -> list[Claim]:
        """Claim pages on hosts that no other worker uses; return the claims.

        `crowded` are hosts for which this worker has enough claims, so they are skipped. Hosts that other workers
        have asked for are handed over to them. If fewer than `limit` pages can be claimed, this worker asks other
        workers for hosts with pages of this run: workers of the same run for half of these hosts, so that the work
        is shared, and workers of other runs for all of them.
        """
        async with self.db.write() as tx:
            busy = await tx.all("busy_hosts", worker=worker, now=now)
            leaving = any(row["leaving"] for row in busy)
            if leaving:
                await tx.run("hand_over_hosts", worker=worker, had_turn=0)
            blocked = [row["domain"] for row in busy if row["closed"]]
            rows = await tx.all("claimable", run=run, now=now, blocked=[*blocked, *crowded], limit=limit)
            hosts = await _take_hosts(tx, {row["domain"] for row in rows}, run, worker, now)
            rows = [row for row in rows if row["domain"] in hosts]
            if rows:
                await tx.run("lock_crawls", crawls=[row["crawl_id"] for row in rows], worker=worker, now=now)
            if blocked and not crowded and len(rows) < limit:
                await tx.run("want_hosts", worker=worker, run=run)
            if leaving:
                await tx.run("hand_over_hosts", worker=worker, had_turn=1)
            return [_claim(row, hosts) for row in rows]

    async def backlog(self, run: RunId) -> Backlog:
        [backlog] = await self._records(Backlog, "open_rows", run=run)
        return backlog

    async def pause_host(self, domain: str, until: datetime) -> None:
        await self._run("pause_host", domain=domain, until=until)

    async def give_back(self, claims: Sequence[Claim], worker: str, now: datetime) -> None:
        """Release claims of pages that were not checked; the pages stay in the queue."""
        crawls = [claim.crawl_id for claim in claims]
        await self._run("give_back_crawls", crawls=crawls, worker=worker, now=now)


async def _take_hosts(tx: Transaction, domains: set[str], run: RunId, worker: str, now: datetime) -> dict[str, bool]:
    """Lock those of the hosts that are free; return each locked host, and whether another worker used it before."""
    if not domains:
        return {}
    given = {"run": run, "worker": worker, "now": now}
    rows = await tx.all("take_hosts", domains=sorted(domains), **given)
    taken = {row["domain"]: row["used"] == FIRST_TURN for row in rows}
    unknown = sorted(domains - taken.keys())
    if unknown:
        made = [row["domain"] for row in await tx.all("know_hosts", domains=unknown)]
        rows = await tx.all("take_hosts", domains=made, **given) if made else []
        taken.update({row["domain"]: False for row in rows})
    return taken


def _claim(row: Row, hosts: Mapping[str, bool]) -> Claim:
    return Claim(
        crawl_id=CrawlId(row["crawl_id"]),
        page=page_from(row),
        run_id=RunId(row["run_id"]),
        domain=row["domain"],
        starts_delay=hosts[row["domain"]],
    )


class WorkerRepository(Repository):
    async def join(self, worker: WorkerRecord) -> None:
        await self._run("upsert_worker", name=worker.name, host=worker.host, pid=worker.pid, now=worker.heartbeat_at)

    @not_retried  # a delayed heartbeat would report an old time
    async def beat(self, worker: WorkerRecord) -> bool:
        """Store the heartbeat of a worker; return False if another process has removed the worker as dead."""
        now = worker.heartbeat_at
        async with self.db.write() as tx:
            known = await tx.run("beat", worker=worker.name, now=now)
            if not known:
                await tx.run("upsert_worker", name=worker.name, host=worker.host, pid=worker.pid, now=now)
            return bool(known)

    async def all(self) -> list[WorkerRecord]:
        """Return all registered workers, including dead ones."""
        return await self._records(WorkerRecord, "workers")

    async def release(self, worker: str, now: datetime) -> None:
        """Release all claims and hosts of a worker and unregister the worker."""
        self.caches.depths.clear()
        async with self.db.write() as tx:
            await tx.run("release_crawls", worker=worker, now=now)
            await self._free_hosts(tx, [worker])
            await tx.run("forget_workers", workers=[worker])

    async def reclaim(
        self, dead: Sequence[str], now: datetime, heartbeats: Mapping[str, datetime | None] | None = None
    ) -> int:
        """Queue again the pages that dead workers claimed, and mark the attempts as abandoned; return their number.

        `heartbeats` holds the last heartbeat of each dead worker (None: not registered). A worker that has sent another
        heartbeat since is skipped.
        """
        async with self.db.write() as tx:
            if heartbeats is not None:
                rows = await tx.all("heartbeats", workers=list(dead))
                beats = {row["name"]: at(row["heartbeat_at"]) for row in rows}
                dead = [name for name in dead if beats.get(name) == heartbeats.get(name)]
            rows = await tx.all("abandon_crawls", workers=list(dead), now=now)
            await tx.many("reopen_crawl", [{**dict(row), "now": now} for row in rows if row["page_id"]])
            await self._free_hosts(tx, dead)
            await tx.run("forget_workers", workers=list(dead))
            return len(rows)

    async def _free_hosts(self, tx: Transaction, workers: Sequence[str]) -> None:
        await tx.run("unwant_hosts", workers=list(workers))  # first: hosts just handed to them are released, too
        await tx.run("release_hosts", workers=list(workers))

    async def lock_owners(self) -> set[str]:
        return {row["locked_by"] for row in await self._all("lock_owners")}

    async def held_by(self) -> dict[str, int]:
        return {row["locked_by"]: row["number"] for row in await self._all("held_by")}

    async def latest_moment(self) -> datetime | None:
        row = await self._one("latest_moment")
        return at(row["at"]) if row else None
