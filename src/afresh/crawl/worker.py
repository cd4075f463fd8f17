"""Claim pages of a run, visit them concurrently and commit the results in batches; wait for new work."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from weakref import WeakSet

from afresh.aio import wait_done, wait_event
from afresh.backoff import next_wait
from afresh.crawl import run_log
from afresh.crawl.hosts import HOST_PAUSE_SECONDS, HostDispatcher, Ticket
from afresh.crawl.tools import RunTools
from afresh.crawl.visit import (
    PendingVisit,
    broken_visit,
    fetch_page,
    fetch_page_in_span,
    process_page,
    process_pending,
    report_step,
)
from afresh.errors import StoreError, StoreUnavailable
from afresh.events import Notice, Progress
from afresh.model.fetch import Body
from afresh.model.records import Claim, CrawlId, Run, RunLimits, RunState, Visit
from afresh.ops.failpoints import failpoint
from afresh.store.store import Store

log = logging.getLogger(__name__)

COMMIT_DELAY_SECONDS = 0.08  # a finished visit waits this long, so that others can share its transaction
MAX_BATCH_VISITS = 256  # in one transaction
AHEAD_SECONDS = 1.0  # seconds of work to claim in advance
PROGRESS_SECONDS = 0.1
MIN_UNWRITTEN_BODIES = 10  # fetched but not yet committed: after a crash, they would be fetched again
MAX_UNWRITTEN_BYTES = 48 * 2**20  # of all these bodies
MAX_PENDING_BYTES = 32 * 2**20  # of visits that wait until the run has seen the other pages
STOP_GRACE_SECONDS = 5.0  # for active visits to finish after a stop
CANCEL_GRACE_SECONDS = 1.0  # the same after the run was cancelled
FIRST_TURN_SECONDS = 0.1  # first wait for a host that another worker uses; doubles each time
MAX_TURN_SECONDS = 1.0
POLL_SECONDS = 0.5  # between checks of a backlog that other workers hold
FIRST_MUTE_SECONDS, MAX_MUTE_SECONDS = 0.05, 1.0  # pause after a wake-up that brought no work


class WakeupListener:
    """Waits for notifications of new work; waits longer after notifications that brought no work."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since = store.db.news.count
        self.mute_seconds = 0.0  # set to 0 by a caller that found work

    def mark(self) -> None:
        """Note the number of notifications so far; call this before the queue is read, so that `wait` misses none."""
        self._since = self._store.db.news.count

    async def wait(self, seconds: float, *ends: asyncio.Event) -> None:
        """Wait for a notification or for one of the events `ends`, at most for some seconds."""
        waits: list[asyncio.Task[object]] = [asyncio.create_task(end.wait()) for end in ends]
        waits.append(asyncio.create_task(self._wait_for_news(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _wait_for_news(self, seconds: float) -> None:
        mute = min(self.mute_seconds, seconds)
        await asyncio.sleep(mute)
        await self._store.db.news.wait(self._since, seconds - mute)
        woken = self._store.db.news.count != self._since
        self.mute_seconds = next_wait(self.mute_seconds, FIRST_MUTE_SECONDS, MAX_MUTE_SECONDS) if woken else 0.0


class Worker:
    def __init__(self, tools: RunTools, run: Run, source: str, stopping: asyncio.Event, *, leads: bool = True) -> None:
        self.tools = tools
        self.run = run
        self.source = source
        self.stopping = stopping
        self.leads = leads  # False: another worker ends the run, and this one only assists
        self._retry_reason = ""
        self.left_waiting = 0  # pages whose host asked for too long a pause
        self.waits_until: datetime | None = None  # when the first of them may be requested
        self.over = False  # the run was cancelled or taken over by another worker
        self._name = tools.worker
        self._fetch = fetch_page_in_span if tools.traced else fetch_page
        self._dispatcher = HostDispatcher(tools.hosts)
        # after a claim that returned nothing: the crowded hosts at that time, and when to claim again
        self._empty_claim: tuple[frozenset[str], float] = (frozenset(), 0.0)
        self._finished: list[Visit] = []  # not written yet
        self._has_finished = asyncio.Event()
        self._finished_bodies = 0
        self._has_batch = asyncio.Event()  # waiting for more visits would delay fetching, or be in vain
        self._held = 0  # claims that are not committed yet
        self._returned: list[Claim] = []
        self._pending: list[PendingVisit] = []  # decided after all other pages
        self._pending_bytes = 0
        self._body_bytes = 0
        self._bytes_lock = asyncio.Lock()
        self._bytes_freed = asyncio.Event()
        self._unwritten: set[CrawlId] = set()  # claims that hold a body slot until they are written
        self._processing = WeakSet[asyncio.Task[None]]()
        self._progressed = asyncio.Event()  # something was committed or taken from the queue
        settings, budget = tools.settings, tools.budget(run.mode)
        room = 0 if tools.best_first else settings.max_pages  # best first: new pages are admitted by score
        self._limits = RunLimits(max_pages=room, max_depth=settings.max_depth, budget=budget)
        self._lanes = max(8, 2 * settings.concurrency)  # a slow host can take at most half of them
        self._max_bodies = max(MIN_UNWRITTEN_BODIES, self._lanes // 3)
        self._bodies = asyncio.Semaphore(self._max_bodies)
        self._batch = 2 * self._lanes
        self._turn = FIRST_TURN_SECONDS
        self._done = 0
        self._last_progress = 0.0
        self._started = asyncio.get_running_loop().time()
        self._wakeups = WakeupListener(tools.store)

    async def work(self) -> None:
        """Visit pages until none is left; after a stop, commit active visits and requeue the other claims."""
        try:
            async with asyncio.TaskGroup() as tasks:
                committer = tasks.create_task(self._commit())
                lanes = [tasks.create_task(self._lane(tasks)) for _ in range(self._lanes)]
                await self._feed(tasks)
                await self._drain()
                for task in (*lanes, *self._processing, committer):
                    task.cancel()
        except BaseExceptionGroup as group:  # users need one sentence: raise only the first error
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from group

    async def _feed(self, tasks: asyncio.TaskGroup) -> None:
        """Claim pages for the fetching tasks (`_lane`) until the run is done or stopped."""
        while not (self.over or self.stopping.is_set()):
            if self._returned:
                await self._give_back()
            if not self._needs_claims():
                await self._wait_for_progress()
            elif await self._claim():
                continue
            elif self._held and self._held == len(self._pending):
                if not await self._process_all_pending(tasks):
                    return
            elif self._held:
                await self._wait_for_progress()
            elif not await self._wait_for_backlog():
                return

    def _needs_claims(self) -> bool:
        """Return whether to claim more pages: too few claims wait, or most of them wait for slow hosts."""
        if len(self._dispatcher) < self._lanes:
            return True
        if self._dispatcher.ready_count >= self._lanes or len(self._dispatcher) > 2 * MAX_BATCH_VISITS:
            return False
        hosts, until = self._empty_claim
        return self._dispatcher.crowded_hosts(self._lanes) != hosts or asyncio.get_running_loop().time() >= until

    async def _claim(self) -> Sequence[Claim]:
        """Claim pages for about one second of work, so that little has to be repeated after a crash."""
        tools, crowded = self.tools, self._dispatcher.crowded_hosts(self._lanes)
        try:
            await tools.heartbeat.ensure_lease()
        except StoreUnavailable:  # the next store call waits until it is back
            return ()
        lapses = tools.heartbeat.lapses
        self._wakeups.mark()
        claims = await tools.store.queue.claim(
            self.run.id, self._name, tools.clock(), limit=self._batch, crowded=crowded
        )
        for claim in claims:
            if claim.starts_delay:
                tools.hosts.arrived(claim.domain)
            self._dispatcher.put((lapses, claim))
        self._held += len(claims)
        if claims:
            self._turn = FIRST_TURN_SECONDS
            self._wakeups.mute_seconds = 0.0
        now = asyncio.get_running_loop().time()
        self._empty_claim = (crowded, 0.0 if claims else now + POLL_SECONDS)
        rate = self._done / max(0.1, now - self._started)
        self._batch = int(min(MAX_BATCH_VISITS, max(2 * self._lanes, rate * AHEAD_SECONDS)))
        return claims

    async def _give_back(self) -> None:
        """Return claims on paused hosts to the queue; their pages become due after the pause."""
        tools, claims, self._returned = self.tools, self._returned, []
        for domain in {claim.domain for claim in claims}:
            until = tools.clock() + timedelta(seconds=tools.hosts.rest_of(domain))
            await tools.store.queue.pause_host(domain, until)
        await tools.store.queue.give_back(claims, self._name, tools.clock())
        self._held -= len(claims)

    async def _wait_for_progress(self) -> None:
        """Wait until a visit makes progress; if none does for a while, check whether the run was cancelled."""
        progressed = await wait_event(self._progressed, POLL_SECONDS)
        self._progressed.clear()
        if not progressed:
            self._check_if_over(await self.tools.store.runs.get(self.run.id))

    async def _wait_for_backlog(self) -> bool:
        """Wait for pages that are not due yet or held by another worker; return False if none are left."""
        tools = self.tools
        self._check_if_over(await tools.store.runs.get(self.run.id))
        backlog = await tools.store.queue.backlog(self.run.id)
        if backlog.open == 0 or self.over or self.stopping.is_set():
            return False
        if backlog.held == len(self._pending) and backlog.next_at is not None:
            pause = (backlog.next_at - tools.clock()).total_seconds()
            if pause > HOST_PAUSE_SECONDS:
                self.left_waiting, self.waits_until = backlog.open, backlog.next_at
                return False
            if pause > 1:
                pages = "page waits" if backlog.open == 1 else "pages wait"
                why = f" ({self._retry_reason})" if self._retry_reason else ""
                tools.listener(Notice(text=f"{backlog.open} {pages} {pause:.0f} s for the next attempt{why}"))
            if pause > 0:
                await self._wakeups.wait(pause, self.stopping)
                self._check_if_over(await tools.store.runs.get(self.run.id))
            else:  # another worker uses the host, and may have died
                await tools.heartbeat.reclaim()
                await self._wakeups.wait(self._turn, self.stopping)
                self._turn = next_wait(self._turn, FIRST_TURN_SECONDS, MAX_TURN_SECONDS)
        else:
            await tools.heartbeat.reclaim()
            await self._wakeups.wait(POLL_SECONDS, self.stopping)
        return True

    async def _lane(self, tasks: asyncio.TaskGroup) -> None:
        """Fetch pages one after another; process each body in a task of its own."""
        ticket: Ticket | None = None
        while True:
            lapses, claim = ticket or await self._dispatcher.get()
            ticket = None
            if len(self._dispatcher) < self._lanes:
                self._progressed.set()
            if self.over or self.stopping.is_set():
                self._held -= 1
                continue
            ours = lapses == self.tools.heartbeat.lapses
            if ours:
                failpoint("page.claimed")
            try:
                fetched = await self._fetch(claim, self.tools) if ours else None
            except StoreError:
                raise
            except Exception as error:
                log.exception("fetching %s failed", claim.page.url)
                self._finished.append(broken_visit(claim, error, self.tools))
                self._has_finished.set()
                self._dispatcher.done(claim.domain)
                continue
            if isinstance(fetched, Body):
                self._dispatcher.done(claim.domain)
                size = len(fetched.data)
                await self._make_room(claim, size)
                self._processing.add(
                    tasks.create_task(self._process(claim, partial(process_page, claim, fetched, self.tools), size))
                )
            else:
                ticket = self._dispatcher.take_next(claim.domain)
                if fetched is None:
                    self._returned.append(claim)
                    self._progressed.set()
                else:
                    await self._process(claim, partial(process_page, claim, fetched, self.tools))
            del fetched  # free the body now, not after the next fetch

    async def _make_room(self, claim: Claim, size: int) -> None:
        """Wait until number and size of the bodies in progress allow one more."""
        await self._bodies.acquire()
        self._unwritten.add(claim.crawl_id)
        async with self._bytes_lock:
            while self._body_bytes and self._body_bytes + size > MAX_UNWRITTEN_BYTES:
                self._bytes_freed.clear()
                await self._bytes_freed.wait()
            self._body_bytes += size

    def _leave_room(self, claim: Claim) -> None:
        if claim.crawl_id in self._unwritten:
            self._unwritten.discard(claim.crawl_id)
            self._bodies.release()

    async def _process_all_pending(self, tasks: asyncio.TaskGroup) -> bool:
        """Decide the visits that waited for the other pages if all these are done, else wait; return False to end."""
        backlog = await self.tools.store.queue.backlog(self.run.id)
        # only the leader waits for the pending visits of others
        others = backlog.open - (len(self._pending) if self.leads else backlog.held)
        if others > 0:
            return await self._wait_for_backlog()
        last, self._pending, self._pending_bytes = self._pending, [], 0
        for waiting in last:
            self._processing.add(tasks.create_task(self._process_pending(waiting)))
        return True

    async def _process_pending(self, waiting: PendingVisit) -> None:
        async with self._bodies:
            await self._process(waiting.arrived.claim, partial(process_pending, waiting, self.tools))

    async def _process(self, claim: Claim, begin: Callable[[], Awaitable[Visit | PendingVisit]], size: int = 0) -> None:
        """Call `begin`, which processes a page; add the resulting visit to those to commit or to the pending ones."""
        work = begin()
        del begin  # frees the body
        try:
            done = await work
            if isinstance(done, PendingVisit) and self._pending_bytes > MAX_PENDING_BYTES:
                done = await process_pending(done, self.tools)
        except StoreError:  # not the page's fault
            raise
        except Exception as error:
            log.exception("processing %s failed", claim.page.url)
            done = broken_visit(claim, error, self.tools)
        finally:
            self._body_bytes -= size
            self._bytes_freed.set()
        if isinstance(done, PendingVisit):
            self._pending.append(done)
            self._leave_room(claim)
            self._pending_bytes += done.weight
            self._progressed.set()
        else:
            self._finished.append(done)
            self._has_finished.set()
            self._finished_bodies += claim.crawl_id in self._unwritten
            full = min(MAX_BATCH_VISITS, self._held - len(self._pending))
            if len(self._finished) >= full or self._finished_bodies >= self._max_bodies // 2:
                self._has_batch.set()

    async def _commit(self) -> None:
        while True:
            await self._has_finished.wait()
            if len(self._finished) < min(MAX_BATCH_VISITS, self._held - len(self._pending)):  # others may join them
                await wait_event(self._has_batch, COMMIT_DELAY_SECONDS)
            self._has_batch.clear()
            self._finished_bodies = 0
            visits, self._finished = self._finished[:MAX_BATCH_VISITS], self._finished[MAX_BATCH_VISITS:]
            if not self._finished:
                self._has_finished.clear()
            await wait_done(asyncio.ensure_future(self._write(visits)))

    async def _write(self, visits: Sequence[Visit]) -> None:
        tools, pauses = self.tools, dict[str, float]()  # of hosts that asked for a pause
        retried = (done.decision.reason for done in visits if done.decision.retry)
        self._retry_reason = next(retried, self._retry_reason)
        for done in visits:
            if done.pause is not None:
                pauses[done.claim.domain] = max(pauses.get(done.claim.domain, 0.0), done.pause)
        for domain, seconds in pauses.items():
            await tools.store.queue.pause_host(domain, tools.clock() + timedelta(seconds=seconds))
            data = {"host": domain, "seconds": round(seconds)}
            run_log.log.info("host paused", extra={"data": data})
        failpoint("commit.begin")
        written = await tools.store.visits.commit(
            self.run, visits, self._name, tools.clock(), limits=self._limits, keep_body=tools.keep_body
        )
        failpoint("commit.done")
        for done in written:
            report_step("commit", done.claim.page.url, tools)
        run_log.visits_written(written)
        if tools.scoring is not None:
            tools.scoring.note(written)
        for visit in visits:
            self._leave_room(visit.claim)
        self._held -= len(visits)
        self._done += len(written)
        self._progressed.set()
        await self._report_progress()

    async def _report_progress(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._last_progress < PROGRESS_SECONDS:
            return
        self._last_progress = now
        run = await self.tools.store.runs.get(self.run.id)
        self._check_if_over(run)
        if run is not None:
            checked = run.counts.get("checked", 0)
            self.tools.listener(
                Progress(
                    run=run.id,
                    source=self.source,
                    done=checked,
                    queued=max(0, run.queued - checked),
                    counts=run.counts,
                    seconds=now - self._started,
                )
            )

    def _check_if_over(self, run: Run | None) -> None:
        """Set `self.over` if the run was cancelled, has ended, or was taken over by another worker."""
        if run is None or run.state not in (RunState.QUEUED, RunState.RUNNING):
            self.over = True
        self.over = self.over or (self.leads and run is not None and run.worker != self._name)

    async def _drain(self) -> None:
        """After a stop, wait some time for active visits to finish."""
        self._held -= self._dispatcher.clear()
        if self._has_active_visits():
            with suppress(StoreUnavailable):  # stopped while the database was unreachable
                self._check_if_over(await self.tools.store.runs.get(self.run.id))
        deadline = asyncio.get_running_loop().time() + (CANCEL_GRACE_SECONDS if self.over else STOP_GRACE_SECONDS)
        while self._has_active_visits() and asyncio.get_running_loop().time() < deadline:
            await wait_event(self._progressed, 0.05)
            self._progressed.clear()

    def _has_active_visits(self) -> bool:
        """Return whether any held claim is neither pending nor about to be returned to the queue."""
        return self._held > len(self._pending) + len(self._returned)
