"""The queue of pages to look at: enqueue, claim, give back, pause hosts."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from afresh.model.records import Backlog, Claim, CrawlId, Limits, Listed, Run, RunId, RunMode, SourceId
from afresh.store.dialect import Row, Session
from afresh.store.due import await_looks, due_rows, listed_at, room_in
from afresh.store.records import at, page_from
from afresh.store.repository import Repository, not_retried, retried_as
from afresh.urls.canonical import domain_of

HEARD = 10_000  # queued addresses that are remembered without asking the tables
FIRST_TURN = 1  # of `hosts.used`; 0: handed over and not asked since, 2: asked before by the same worker


class QueueRepository(Repository):
    """Queue pages for a run and hand them to workers."""

    async def enqueue(self, run: Run, listed: Sequence[Listed], limits: Limits, now: datetime) -> int:
        """Queue addresses for a run, each at most once; how many were new to it."""
        wanted: dict[str, int] = {}
        for item in listed:
            wanted[item.url] = min(item.depth, wanted.get(item.url, item.depth))
        async with self.queueing(run) as tx:
            return await self.queue_pages(tx, run, wanted, limits, now)

    async def ask_again(self, run: Run, urls: Sequence[str]) -> None:
        """Let a run queue pages again that it has looked at; those that it found gone stay so."""
        async with self.queueing(run) as tx:
            number = await tx.run("ask_again", source=run.source_id, run=run.id, urls=list(urls))
            await tx.run("count_queued", run=run.id, number=-number)
        self.caches.depths.pop(run.id, None)

    async def keep_within(self, run: Run, max_pages: int) -> None:
        """Take what a run has found and not read out of its queue where it may read fewer pages by now."""
        async with self.queueing(run) as tx:
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

    async def enqueue_known(self, run: Run, limits: Limits, now: datetime) -> None:
        """Queue every page on record: those of the index, and dead ones that are still linked."""
        async with self.queueing(run) as tx:
            await tx.run("adopt_known", run=run.id, source=run.source_id, now=now)
            await self._count_adopted(tx, run)
            rows = await tx.all("known_without_row", run=run.id, source=run.source_id)
            wanted = {row["url"]: row["depth"] for row in rows}
            await self.queue_pages(tx, run, wanted, limits, now)

    async def enqueue_due(
        self, run: Run, limits: Limits, now: datetime, *, max_age: float | None = None
    ) -> None:
        """Queue the pages that are due (schedule/due.py), within what is left of the budget."""
        async with self.db.write(run.source_id) as tx:
            crawls = await due_rows(tx, run, limits, now, max_age)
            await tx.run("adopt_rows", run=run.id, crawls=crawls, now=now)
            if limits.budget is not None:  # in the order in which they are due
                ranks = [{"crawl": crawl, "rank": rank} for rank, crawl in enumerate(crawls)]
                await tx.many("rank_row", ranks)
            await self._count_adopted(tx, run)

    async def schedule(
        self, run: Run, listed: Sequence[Listed], limits: Limits, recheck: float, now: datetime
    ) -> None:
        """Let what a source lists wait for a look: at once, or in its turn if it was listed and is gone."""
        wanted = {item.url: item.depth for item in listed if item.depth <= limits.max_depth}
        async with self.db.write(run.source_id) as tx:
            rows = await tx.all("paths_known", source=run.source_id, urls=list(wanted))
            known = {row["url"] for row in rows}
            fresh = await self._within_room(tx, run, [url for url in wanted if url not in known], limits)
            await self._insert_pages(tx, run, {url: wanted[url] for url in fresh}, now)
            rows = await tx.all("unscheduled", source=run.source_id, urls=list(wanted))
            await await_looks(tx, run, {row["url"]: listed_at(row, recheck, now) for row in rows}, now)

    async def _insert_pages(self, tx: Session, run: Run, fresh: Mapping[str, int], now: datetime) -> None:
        base = {"source": run.source_id, "run": run.id, "now": now}
        await tx.many("insert_page", [{**base, "url": url, "depth": depth} for url, depth in fresh.items()])

    async def _count_adopted(self, tx: Session, run: Run) -> None:
        number = await tx.run("mark_adopted", run=run.id, source=run.source_id)
        await tx.run("count_queued", run=run.id, number=number)

    async def frontier(self, source: SourceId) -> list[Listed]:
        """Links that belong to the source and have not become pages, nearest first."""
        async with self.db.read() as tx:
            return [Listed(row["url"], row["depth"]) for row in await tx.all("frontier", source=source)]

    @asynccontextmanager
    async def queueing(self, run: Run, *, alone: bool = True) -> AsyncIterator[Session]:
        """A transaction; if it is undone, what was remembered of the queue is forgotten."""
        try:
            async with self.db.write(run.source_id if alone else None) as tx:
                yield tx
        except BaseException:
            self.caches.depths.pop(run.id, None)
            raise

    @not_retried
    async def queue_pages(
        self, tx: Session, run: Run, wanted: Mapping[str, int], limits: Limits, now: datetime
    ) -> int:
        """Queue addresses inside a transaction; a shorter way to a page is passed on to its children."""
        queued, todo = 0, dict(wanted)
        while todo:
            todo = self._unheard(run.id, todo, limits)
            number, lowered = await self._queue_once(tx, run, todo, limits, now)
            queued += number
            rows = await tx.all("stored_children", pages=lowered) if lowered else []
            todo = {row["url"]: row["depth"] for row in rows}
        return queued

    def _unheard(self, run: RunId, wanted: Mapping[str, int], limits: Limits) -> dict[str, int]:
        heard = self.caches.depths.setdefault(run, {})
        return {
            url: depth
            for url, depth in wanted.items()
            if depth <= limits.max_depth and heard.get(hash(url), depth + 1) > depth
        }

    def _hear(self, run: RunId, queued: Mapping[str, int]) -> None:
        heard = self.caches.depths.setdefault(run, {})
        if len(heard) > HEARD:
            heard.clear()  # the tables know them all
        heard.update({hash(url): depth for url, depth in queued.items()})

    async def _queue_once(
        self, tx: Session, run: Run, wanted: Mapping[str, int], limits: Limits, now: datetime
    ) -> tuple[int, list[int]]:
        if not wanted:
            return 0, []
        rows = await tx.all("paths_known", source=run.source_id, urls=list(wanted))
        known = {row["url"]: row for row in rows}
        fresh = await self._within_room(tx, run, [url for url in wanted if url not in known], limits)
        again = [url for url, row in known.items() if row["queued_run"] != run.id]
        lowered = [row for url, row in known.items() if _nearer(row, wanted[url], run.id)]
        base = {"source": run.source_id, "run": run.id, "now": now}
        await self._insert_pages(tx, run, {url: wanted[url] for url in fresh}, now)
        nearer = [{"page": row["id"], "depth": wanted[row["url"]], "now": now} for row in lowered]
        await tx.many("lower_depth", nearer)
        await tx.many("raise_priority", nearer)
        queued = [*again, *fresh]
        if limits.budget is not None:
            queued = await self._within_budget(tx, run, _in_order(wanted, queued), limits, now)
        await tx.many("open_crawl", [{**base, "url": url, "domain": domain_of(url)} for url in queued])
        await tx.run("mark_queued", source=run.source_id, run=run.id, urls=queued)
        await tx.run("count_queued", run=run.id, number=len(queued))
        self._hear(run.id, {url: wanted[url] for url in [*known, *fresh]})
        return len(queued), [row["id"] for row in lowered if row["queued_run"] == run.id]

    async def _within_room(self, tx: Session, run: Run, fresh: list[str], limits: Limits) -> list[str]:
        if not fresh:
            return fresh
        partly = run.mode is RunMode.DUE  # what it does not look at is there as well
        row = await tx.one("taken_room", run=run.id, source=run.source_id, partly=int(partly))
        room = max(0, limits.max_pages - (row["taken"] if row else 0))
        if room < len(fresh):
            await tx.run("open_frontier", source=run.source_id)
        return fresh[:room]

    async def _within_budget(
        self, tx: Session, run: Run, urls: list[str], limits: Limits, now: datetime
    ) -> list[str]:
        """What a run may still queue; the rest waits for the next run, unless it waits for a look already."""
        room = await room_in(tx, run, limits) or 0
        await await_looks(tx, run, dict.fromkeys(urls[room:], now), now)
        return urls[:room]

    async def claim_again(
        self, run: RunId, worker: str, now: datetime, *, limit: int, crowded: Collection[str] = ()
    ) -> list[Claim]:
        """What a claim took whose answer was lost, as from hosts of others; else a claim."""
        async with self.db.read() as tx:
            rows = await tx.all("claimed_at", run=run, worker=worker, now=now)
        if rows:
            return [_claim(row, {row["domain"]: True}) for row in rows]
        return await self.claim(run, worker, now, limit=limit, crowded=crowded)

    @retried_as(claim_again)
    async def claim(
        self, run: RunId, worker: str, now: datetime, *, limit: int, crowded: Collection[str] = ()
    ) -> list[Claim]:
        """Take work of hosts that nobody else is looking at, and that are not crowded with ours already.

        A host wanted by another is handed over.

        Who finds too little wants hosts of others: half of those that each of them looks at for this run, so
        that work spreads and then stays where it is, and all that they look at for another.
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
        """What is left of a run."""
        async with self.db.read() as tx:
            row = await tx.one("open_rows", run=run)
            assert row is not None  # noqa: S101 - an aggregate always has a row
            return Backlog(open=row["open"], held=row["held"] or 0, next_at=at(row["next"]))

    async def pause_host(self, domain: str, until: datetime) -> None:
        """Let a host rest until a time, for every worker."""
        async with self.db.write() as tx:
            await tx.run("pause_host", domain=domain, until=until)

    async def pauses(self, now: datetime) -> dict[str, datetime]:
        """The hosts that rest, and until when."""
        async with self.db.read() as tx:
            rows = await tx.all("pauses", now=now)
            return {row["domain"]: at(row["next_allowed_at"]) or now for row in rows}

    async def give_back(self, claims: Sequence[Claim], worker: str, now: datetime) -> None:
        """Give back some claims, unvisited: their pages wait in the queue as before."""
        async with self.db.write() as tx:
            crawls = [claim.crawl_id for claim in claims]
            await tx.run("give_back_crawls", crawls=crawls, worker=worker, now=now)


async def _take_hosts(
    tx: Session, domains: set[str], run: RunId, worker: str, now: datetime
) -> dict[str, bool]:
    """Those of the hosts that nobody else took at the same moment, each with whether it came from another."""
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


def _nearer(row: Row, depth: int, run: RunId) -> bool:
    """Whether a page that this run itself found lies nearer to the root than it was thought to."""
    return bool(row["created_run"] == run and depth < row["depth"])


def _claim(row: Row, hosts: Mapping[str, bool]) -> Claim:
    return Claim(
        crawl_id=CrawlId(row["crawl_id"]),
        page=page_from(dict(row)),  # a dict finds a column faster than a row does
        run_id=RunId(row["run_id"]),
        domain=row["domain"],
        arrived=hosts[row["domain"]],
    )


def _in_order(wanted: Mapping[str, int], chosen: Sequence[str]) -> list[str]:
    """Some of the wanted addresses in the order in which they were found."""
    among = set(chosen)
    return [url for url in wanted if url in among]
