"""The history as the queue, in memory: rows without an outcome are the work."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from afresh.core.looks import Outcome
from afresh.core.model import (
    Attempt,
    Backlog,
    Claim,
    Limits,
    Listed,
    Page,
    PageId,
    Run,
    RunId,
    RunMode,
    SourceId,
)
from afresh.core.schedule import due
from afresh.testing.memory.tables import LEFT, Host, PageRow
from afresh.testing.memory.waits import MemoryWaits, waiting_of


class MemoryQueue(MemoryWaits):
    """Putting pages into the queue and taking them out."""

    async def enqueue(self, run: Run, listed: Sequence[Listed], limits: Limits, now: datetime) -> int:
        """Queue addresses for a run, each at most once; how many were new to it."""
        wanted: dict[str, int] = {}
        for item in listed:
            wanted[item.url] = min(item.depth, wanted.get(item.url, item.depth))
        with self.tables.transaction():
            return self.queue_pages(run, wanted, limits, now)

    async def ask_again(self, run: Run, urls: Sequence[str]) -> None:
        """Let a run queue pages again that it has looked at; those that it found gone stay so."""
        open_pages = {row.page_id for row in self.tables.waiting() if row.run_id == run.id}
        for row in filter(None, (self.tables.page_at(run.source_id, url) for url in urls)):
            if row.queued_run == run.id and not row.page.gone_count and row.page.id not in open_pages:
                self._unmark(row, run)

    async def keep_within(self, run: Run, max_pages: int) -> None:
        """Take what a run has found and not read out of its queue where it may read fewer pages by now."""
        read = {row.page_id for row in self.tables.crawls.values() if row.outcome is not None}
        waiting = [row for row in self.tables.waiting() if row.run_id == run.id and row.locked_at is None]
        found = sorted(waiting, key=lambda row: (-row.priority, row.id))
        pages = [self.tables.pages[PageId(row.page_id or 0)] for row in found]
        unread = [
            page
            for page in pages
            if page.created_run == run.id and page.page.content_hash is None and page.page.id not in read
        ]
        over = self.tables.runs[run.id].queued - max_pages
        for page in unread[max(0, len(unread) - over) :] if over > 0 else ():
            self._unmark(page, run)
            self.tables.crawls.pop(self.tables.open.pop(page.page.id))
            del self.tables.pages[page.page.id], self.tables.addresses[run.source_id, page.page.url]
            self.open_frontier(run.source_id)

    async def enqueue_known(self, run: Run, limits: Limits, now: datetime) -> None:
        """Queue every page on record: those of the index, and dead ones that are still linked."""
        wanted = {page.url: page.depth for page in await self.pages_to_look_at(run.source_id)}
        with self.tables.transaction():
            self.queue_pages(run, wanted, limits, now)

    async def pages_to_look_at(self, source: SourceId) -> list[Page]:
        """The pages that a refresh would queue at its start."""
        linked, rows = self._linked(source), self.tables.pages_of(source)
        return [
            row.page for row in rows if row.page.status not in LEFT or row.listed or row.page.url in linked
        ]

    def _linked(self, source: SourceId) -> set[str]:
        pages = (row.page for row in self.tables.pages_of(source))
        living = [page.id for page in pages if page.status not in LEFT and page.missing_count == 0]
        return {edge.url for page in living for edge in self.tables.edges.get(page, ()) if edge.follow}

    async def enqueue_due(
        self, run: Run, limits: Limits, now: datetime, *, max_age: float | None = None
    ) -> None:
        """Queue the pages that are due (core/schedule.py), within what is left of the budget."""
        rows = {page.page.url: (row, page) for row, page in self.rows_waiting(run.source_id)}
        pages = [waiting_of(row, page) for row, page in rows.values() if page.queued_run != run.id]
        with self.tables.transaction():
            found = due(pages, now, max_age=max_age, budget=self.room(run, limits))
            for rank, url in enumerate(found):
                row, page = rows[url]
                due_at = min(row.scheduled_for, now)
                priority = row.priority if limits.budget is None else -rank
                self.tables.change_attempt(
                    row.id, now, run_id=run.id, scheduled_for=due_at, priority=priority
                )
                self._mark(page, run)

    async def schedule(
        self, run: Run, listed: Sequence[Listed], limits: Limits, recheck: float, now: datetime
    ) -> None:
        """Let what a source lists wait for a look: at once, or in its turn if it was listed and is gone."""
        with self.tables.transaction():
            for item in listed:
                row = self.tables.page_at(run.source_id, item.url)
                if item.depth > limits.max_depth:
                    continue
                if row is None and self._taken_room(run) >= limits.max_pages:
                    self.open_frontier(run.source_id)
                    continue
                row = row or self._discover(run, item.url, item.depth, now)
                self.await_look(row.page, _listed_at(row, recheck, now), now)

    def queue_pages(self, run: Run, wanted: Mapping[str, int], limits: Limits, now: datetime) -> int:
        """Queue addresses; a shorter way to a page that this run found is passed on to its children."""
        queued, todo = 0, dict(wanted)
        while todo:
            near = {url: depth for url, depth in todo.items() if depth <= limits.max_depth}
            queued += sum(self._queue(run, url, depth, limits, now) for url, depth in near.items())
            lowered = [url for url, depth in near.items() if self._lower(run, url, depth, now)]
            todo = self._children(run.source_id, lowered)
        return queued

    def _queue(self, run: Run, url: str, depth: int, limits: Limits, now: datetime) -> bool:
        row = self.tables.page_at(run.source_id, url)
        if row is None and self._taken_room(run) >= limits.max_pages:
            self.open_frontier(run.source_id)
            return False
        row = row or self._discover(run, url, depth, now)
        if row.queued_run == run.id:
            return False
        if self.room(run, limits) == 0:
            self.await_look(row.page, now, now)
            return False
        self.tables.open_attempt(row.page, run.id, now, now)
        self._mark(row, run)
        return True

    def open_frontier(self, source: SourceId) -> None:
        """Remember that links wait to become pages."""
        self.tables.sources[source] = replace(self.tables.sources[source], frontier_open=True)

    def _taken_room(self, run: Run) -> int:
        if run.mode is not RunMode.DUE:
            return self.tables.runs[run.id].queued
        return sum(row.page.status not in LEFT for row in self.tables.pages_of(run.source_id))

    def _discover(self, run: Run, url: str, depth: int, now: datetime) -> PageRow:
        page = self.tables.new_page(run.source_id, url, depth, now)
        self.tables.pages[page.id] = PageRow(page=page, created_run=run.id)
        self.tables.addresses[run.source_id, url] = page.id
        return self.tables.pages[page.id]

    def _mark(self, row: PageRow, run: Run) -> None:
        self.tables.pages[row.page.id] = replace(row, queued_run=run.id)
        current = self.tables.runs[run.id]
        self.tables.runs[run.id] = replace(current, queued=current.queued + 1)

    def _unmark(self, row: PageRow, run: Run) -> None:
        self.tables.pages[row.page.id] = replace(row, queued_run=None)
        current = self.tables.runs[run.id]
        self.tables.runs[run.id] = replace(current, queued=current.queued - 1)

    def _lower(self, run: Run, url: str, depth: int, now: datetime) -> bool:
        row = self.tables.page_at(run.source_id, url)
        if row is None or row.created_run != run.id or row.page.depth <= depth:
            return False
        self.tables.change_page(row.page.id, depth=depth, updated_at=now)
        if row.page.id in self.tables.open:
            self.tables.change_attempt(self.tables.open[row.page.id], now, priority=-depth)
        return True

    def _children(self, source: SourceId, parents: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in filter(None, (self.tables.page_at(source, url) for url in parents)):
            for edge in self.tables.edges.get(row.page.id, ()):
                if edge.follow and self.tables.links.get((source, edge.url)):
                    found[edge.url] = min(found.get(edge.url, row.page.depth + 1), row.page.depth + 1)
        return found

    async def frontier(self, source: SourceId) -> list[Listed]:
        """Links that belong to the source and have not become pages, nearest first."""
        parents = [row.page.url for row in self.tables.pages_of(source)]
        found = self._children(source, parents)
        waiting = [
            Listed(url, depth) for url, depth in found.items() if (source, url) not in self.tables.addresses
        ]
        return sorted(waiting, key=lambda item: item.depth)

    async def claim(
        self, run: RunId, worker: str, now: datetime, *, limit: int, crowded: Collection[str] = ()
    ) -> list[Claim]:
        """Take work of hosts that nobody else is looking at, and that are not crowded with ours already."""
        leaving = [d for d, host in self.tables.hosts.items() if host.is_to_be_left_by(worker)]
        self._hand_over(leaving, worker)
        rows = [row for row in self.tables.waiting() if self._is_free(row, run, worker, now)]
        rows = [row for row in rows if row.domain not in crowded]
        taken = sorted(rows, key=lambda row: -row.priority)[:limit]
        for row in taken:
            self.tables.change_attempt(row.id, now, locked_at=now, locked_by=worker)
        arrived = {domain: self._take(domain, run, worker) for domain in {row.domain for row in taken}}
        if not crowded and len(taken) < limit:
            self._want(run, worker)
        self._hand_over(list(self.tables.hosts), worker)
        return [self._claim(row, run, arrived[row.domain]) for row in taken]

    async def claim_again(
        self, run: RunId, worker: str, now: datetime, *, limit: int, crowded: Collection[str] = ()
    ) -> list[Claim]:
        """What a claim took whose answer was lost, as from hosts of others; else a claim."""
        rows = [row for row in self.tables.waiting() if (row.locked_by, row.locked_at) == (worker, now)]
        taken = sorted((row for row in rows if row.run_id == run), key=lambda row: -row.priority)
        if taken:
            return [self._claim(row, run, arrived=True) for row in taken]
        return await self.claim(run, worker, now, limit=limit, crowded=crowded)

    def _take(self, domain: str, run: RunId, worker: str) -> bool:
        """Let a host be the worker's; whether it comes from another."""
        host = self.tables.hosts.get(domain, Host())
        stays = host.locked_by == worker
        taken = replace(host, locked_by=worker, used=True, known=True, run=run)
        self.tables.hosts[domain] = taken if stays else replace(taken, wanted_by=None)
        return host.known and not (stays and host.used)

    def _hand_over(self, domains: Sequence[str], worker: str) -> None:
        """Give hosts to those who want them, where the holder has nothing in flight."""
        busy = {row.domain for row in self.tables.waiting() if row.locked_by == worker}
        for domain in set(domains) - busy:
            host = self.tables.hosts[domain]
            if host.locked_by == worker and host.wanted_by:
                given = replace(host, locked_by=host.wanted_by, run=host.wanted_run)
                self.tables.hosts[domain] = replace(given, wanted_by=None, used=False)

    def _want(self, run: RunId, worker: str) -> None:
        """Ask others for half of the hosts that they look at for this run, and all they do for another."""
        rows = self.tables.waiting()
        waiting = {row.domain for row in rows if row.run_id == run and row.locked_at is None}
        theirs: dict[str | None, list[str]] = defaultdict(list)
        for domain, host in sorted(self.tables.hosts.items()):
            if domain in waiting and host.wanted_by is None and host.is_held_by_other(worker):
                theirs[host.locked_by].append(domain)
        for domains in theirs.values():
            for place, domain in enumerate(domains, 1):
                host = self.tables.hosts[domain]
                if host.run != run or 2 * place <= len(domains):
                    self.tables.hosts[domain] = replace(host, wanted_by=worker, wanted_run=run)

    def _is_free(self, row: Attempt, run: RunId, worker: str, now: datetime) -> bool:
        due = row.run_id == run and row.locked_at is None and row.scheduled_for <= now
        return due and not self.tables.hosts.get(row.domain, Host()).is_closed_to(worker, now)

    def _claim(self, row: Attempt, run: RunId, arrived: bool) -> Claim:
        page = self.tables.pages[PageId(row.page_id or 0)].page
        return Claim(crawl_id=row.id, page=page, run_id=run, domain=row.domain, arrived=arrived)

    async def backlog(self, run: RunId) -> Backlog:
        """What is left of a run."""
        rows = [row for row in self.tables.waiting() if row.run_id == run]
        free = [self._ready_at(row) for row in rows if row.locked_at is None]
        return Backlog(open=len(rows), held=len(rows) - len(free), next_at=min(free, default=None))

    def _ready_at(self, row: Attempt) -> datetime:
        rests_until = self.tables.hosts.get(row.domain, Host()).next_allowed_at
        return max(row.scheduled_for, rests_until or row.scheduled_for)

    async def pause_host(self, domain: str, until: datetime) -> None:
        """Let a host rest until a time, for every worker; a longer rest stays."""
        host = self.tables.hosts.get(domain, Host())
        later = max(until, host.next_allowed_at or until)
        self.tables.hosts[domain] = replace(host, next_allowed_at=later, known=True)

    async def give_back(self, claims: Sequence[Claim], worker: str, now: datetime) -> None:
        """Give back some claims, unvisited: their pages wait in the queue as before."""
        crawls = {claim.crawl_id for claim in claims}
        for row in self.tables.waiting():
            if row.locked_by == worker and row.id in crawls:
                self.tables.change_attempt(row.id, now, locked_at=None, locked_by=None)

    async def release(self, worker: str, now: datetime) -> None:
        """Give back everything a worker holds, unfinished, and forget the worker."""
        for row in self.tables.waiting():
            if row.locked_by == worker:
                self.tables.change_attempt(row.id, now, locked_at=None, locked_by=None)
        self._forget([worker])

    async def reclaim(
        self, dead: Sequence[str], now: datetime, hearts: Mapping[str, datetime | None] | None = None
    ) -> int:
        """Put back what dead workers held: the attempt is stamped as abandoned, a new one is queued.

        Who says by what heartbeats it took them for dead (those without were unknown) takes from nobody whose
        heart has moved since.
        """
        if hearts is not None:
            known = self.tables.workers
            beats = {name: known[name].heartbeat_at for name in dead if name in known}
            dead = [name for name in dead if beats.get(name) == hearts.get(name)]
        left = [row for row in self.tables.waiting() if row.locked_by in dead]
        with self.tables.transaction():
            for row in left:
                said = f"the worker stopped before it finished: {row.locked_by}"
                self.tables.close_attempt(row.id, Outcome.ABANDONED, now, error_message=said)
                page = self.tables.pages[PageId(row.page_id or 0)].page
                self.tables.open_attempt(page, row.run_id, now, now)
            self._forget(dead)
        return len(left)

    def _forget(self, workers: Sequence[str]) -> None:
        for name in workers:
            self.tables.workers.pop(name, None)
        for domain, host in self.tables.hosts.items():
            if host.locked_by in workers:
                self.tables.hosts[domain] = Host(next_allowed_at=host.next_allowed_at, known=True)
            elif host.wanted_by in workers:
                self.tables.hosts[domain] = replace(host, wanted_by=None)

    async def lock_owners(self) -> set[str]:
        """The names of all who hold a page or a host."""
        pages = {row.locked_by for row in self.tables.crawls.values()}
        hosts = {host.locked_by for host in self.tables.hosts.values()}
        return {name for name in pages | hosts if name is not None}


def _listed_at(row: PageRow, recheck: float, now: datetime) -> datetime:
    """When a listed page without a next look is due: at once, unless it was on the list when it went."""
    if not row.listed or row.page.checked_at is None:
        return now
    return row.page.checked_at + timedelta(seconds=recheck)
