"""The worker: claims pages, walks them side by side, and commits what came of it in batches."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from afresh.aio import heard
from afresh.crawl import run_log
from afresh.crawl.dispatch import Lineup
from afresh.crawl.tools import Kit
from afresh.crawl.visit import Waiting, broken_visit, conclude, conclude_last, look
from afresh.crawl.wakeups import Ear
from afresh.errors import StoreError, StoreWaits
from afresh.events import Notice, Progress, Step
from afresh.model.fetch import Body
from afresh.model.records import Claim, CrawlId, Limits, Run, RunState, Visit
from afresh.ops.failpoints import failpoint

log = logging.getLogger(__name__)

LINGER = 0.03  # seconds a finished visit waits for others to share its transaction
BATCH = 256  # visits in one transaction at most
AHEAD_SECONDS = 1.0  # how much work is claimed ahead
PROGRESS_SECONDS = 0.1
BODIES = 10  # pages that are fetched and not written yet, beside those under way: a kill asks for them again
BODY_BYTES = 48 * 2**20  # and how large they may be together
UNDECIDED_BYTES = 32 * 2**20  # of bodies that wait until the rest was seen
GRACE = 5.0  # seconds that visits under way get to finish after a stop
LAST_GRACE = 1.0  # the same in a run that was cancelled
TURN = 0.1  # seconds until the first question whether it is our turn at a host, then twice as long
LONGEST_TURN = 1.0
POLL = 0.5  # seconds between looks at a backlog that others hold


class Worker:
    """Works on one run until nothing is left of it or it is told to stop."""

    def __init__(
        self, kit: Kit, run: Run, source: str, stopping: asyncio.Event, *, leads: bool = True
    ) -> None:
        self.kit = kit
        self.run = run
        self.source = source
        self.stopping = stopping
        self.leads = leads  # else another worker judges and ends the run, and this one only lends a hand
        self.left_waiting = 0  # rows given up because their host asks for too long a pause
        self.waits_until: datetime | None = None  # when the first of them may be looked at
        self.over = False  # the run was cancelled, or taken over by another worker
        self._line = Lineup(kit.hosts)
        self._vain: tuple[frozenset[str], float] = (frozenset(), 0.0)  # hosts beside which there was no work
        self._finished: asyncio.Queue[Visit] = asyncio.Queue()
        self._held = 0  # claimed and not yet committed
        self._returned: list[Claim] = []
        self._undecided: list[Waiting] = []  # judged when the rest was seen
        self._undecided_bytes = 0
        self._bodies = asyncio.Semaphore(BODIES)
        self._body_bytes = 0
        self._door = asyncio.Lock()
        self._smaller = asyncio.Event()
        self._unwritten: set[CrawlId] = set()  # claims that hold one of the bodies until they are written
        self._concluding: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()  # something was committed or taken
        self._batch = 2 * self._lanes
        self._turn = TURN
        self._done = 0
        self._last_progress = 0.0
        self._started = asyncio.get_running_loop().time()
        self._ear = Ear(kit.store)

    @property
    def _stops(self) -> bool:
        return self.over or self.stopping.is_set()

    @property
    def _lanes(self) -> int:
        return max(8, 2 * self.kit.pace.concurrency)  # one slow host leaves half of them to others

    @property
    def _limits(self) -> Limits:
        pace, budget = self.kit.pace, self.kit.budget(self.run.mode)
        room = 0 if self.kit.best_first else pace.max_pages  # else new pages wait for their turn
        return Limits(max_pages=room, max_depth=pace.max_depth, budget=budget)

    async def work(self) -> None:
        """Run to the end; on a stop, finish what is under way, write it down and give back the rest."""
        async with asyncio.TaskGroup() as tasks:
            committer = tasks.create_task(self._commit())
            lanes = [tasks.create_task(self._lane(tasks)) for _ in range(self._lanes)]
            await self._feed(tasks)
            await self._drain()
            for task in (*lanes, *self._concluding, committer):
                task.cancel()

    async def _feed(self, tasks: asyncio.TaskGroup) -> None:
        """Keep the lanes supplied until the run has nothing open or is stopped."""
        while not self._stops:
            await self._give_back()
            if not self._wants_more():
                await self._rest()
                continue
            claims = await self._claim()
            if claims:
                continue
            if self._held and self._held == len(self._undecided):
                if not await self._decide_last(tasks):
                    return
            elif self._held:
                await self._rest()
            elif not await self._wait_for_backlog():
                return

    def _wants_more(self) -> bool:
        """Whether too little is in line, or too much of it behind hosts that are slow."""
        if len(self._line) < self._lanes:
            return True
        if self._line.near >= self._lanes or len(self._line) > 2 * BATCH:
            return False
        beside, until = self._vain
        return self._line.crowded(self._lanes) != beside or asyncio.get_running_loop().time() >= until

    async def _claim(self) -> Sequence[Claim]:
        kit, crowded = self.kit, self._line.crowded(self._lanes)
        try:
            await kit.vigil.renew()
        except StoreWaits:  # what is asked of the store next waits until it is back
            return ()
        lapses = kit.vigil.lapses
        self._ear.look()
        claims = await kit.store.queue.claim(
            self.run.id,
            kit.worker,
            kit.clock(),
            limit=self._batch,
            crowded=crowded,
        )
        for claim in claims:
            if claim.arrived:
                kit.hosts.arrived(claim.domain)
            self._line.put((lapses, claim))
        self._held += len(claims)
        if claims:
            self._turn = TURN
            self._ear.found()
        self._vain = (crowded, 0.0 if claims else asyncio.get_running_loop().time() + POLL)
        self._resize()
        return claims

    async def _give_back(self) -> None:
        """Put back pages of hosts that rest, so that they are not claimed again before their time."""
        if self._returned:
            kit, claims, self._returned = self.kit, self._returned, []
            for domain in {claim.domain for claim in claims}:
                until = kit.clock() + timedelta(seconds=kit.hosts.rest_of(domain))
                await kit.store.queue.pause_host(domain, until)
            await kit.store.queue.give_back(claims, kit.worker, kit.clock())
            self._held -= len(claims)

    def _resize(self) -> None:
        """Claim about a second of work at a time, so that little is redone after a crash."""
        seconds = max(0.1, asyncio.get_running_loop().time() - self._started)
        rate = self._done / seconds
        self._batch = int(min(BATCH, max(2 * self._lanes, rate * AHEAD_SECONDS)))

    async def _rest(self) -> None:
        """Wait until something moves; where all pages keep us waiting, a cancelled run is noticed here."""
        if not await self._until_moved():
            self._heed(await self.kit.store.runs.get(self.run.id))

    async def _until_moved(self, seconds: float = POLL) -> bool:
        moved = await heard(self._moved, seconds)
        self._moved.clear()
        return moved

    async def _wait_for_backlog(self) -> bool:
        """Wait for rows that are not due yet or that another worker holds; False when none are left."""
        kit = self.kit
        self._heed(await kit.store.runs.get(self.run.id))
        backlog = await kit.store.queue.backlog(self.run.id)
        if backlog.open == 0 or self._stops:
            return False
        if backlog.held == len(self._undecided) and backlog.next_at is not None:
            pause = (backlog.next_at - kit.clock()).total_seconds()
            if pause > kit.pace.patience_seconds:
                self.left_waiting, self.waits_until = backlog.open, backlog.next_at
                return False
            if pause > 1:
                pages = "page waits" if backlog.open == 1 else "pages wait"
                kit.listener(Notice(text=f"{backlog.open} {pages} {pause:.0f} s for the next try"))
            if pause > 0:
                await self._ear.rest(pause, self.stopping)
                self._heed(await kit.store.runs.get(self.run.id))
            else:  # somebody else is at the host: alive?
                await kit.vigil.reclaim()
                await self._ear.rest(self._turn, self.stopping)
                self._turn = min(2 * self._turn, LONGEST_TURN)
        else:
            await kit.vigil.reclaim()
            await self._ear.rest(POLL, self.stopping)
        return True

    async def _lane(self, tasks: asyncio.TaskGroup) -> None:
        """Look at one page after the other; what brought a body is concluded beside the next look."""
        while True:
            lapses, claim = await self._line.get()
            if len(self._line) < self._lanes:
                self._moved.set()
            if self._stops:
                self._held -= 1
                continue
            if lapses != self.kit.vigil.lapses:
                self._return(claim)
                continue
            failpoint("page.claimed")
            try:
                fetched = await look(claim, self.kit)
            except StoreError:
                raise
            except Exception as error:
                log.exception("the look at %s failed", claim.page.url)
                self._finished.put_nowait(broken_visit(claim, error, self.kit))
                continue
            finally:
                self._line.done(claim.domain)
            if fetched is None:
                self._return(claim, looked=True)
            elif isinstance(fetched, Body):
                await self._make_room(claim, len(fetched.data))
                self._beside(tasks, self._conclude_body(claim, fetched))
            else:
                await self._conclude(claim, conclude(claim, fetched, self.kit))
            del fetched  # a body lives as long as it is needed, not until the next look

    def _return(self, claim: Claim, *, looked: bool = False) -> None:
        """Let a claim go back into the queue."""
        if not looked:
            self._line.done(claim.domain)
        self._returned.append(claim)
        self._moved.set()

    async def _make_room(self, claim: Claim, size: int) -> None:
        """Wait until few enough and small enough bodies are in work for one more."""
        await self._bodies.acquire()
        self._unwritten.add(claim.crawl_id)
        async with self._door:
            while self._body_bytes and self._body_bytes + size > BODY_BYTES:
                self._smaller.clear()
                await self._smaller.wait()
            self._body_bytes += size

    async def _conclude_body(self, claim: Claim, body: Body) -> None:
        size, work = len(body.data), conclude(claim, body, self.kit)
        del body
        try:
            await self._conclude(claim, work)
        finally:
            self._body_bytes -= size
            self._smaller.set()

    def _leave_room(self, claim: Claim) -> None:
        """Let another page be fetched in place of one that is written, or waits for the rest."""
        if claim.crawl_id in self._unwritten:
            self._unwritten.discard(claim.crawl_id)
            self._bodies.release()

    def _beside(self, tasks: asyncio.TaskGroup, work: Coroutine[None, None, None]) -> None:
        task = tasks.create_task(work)
        self._concluding.add(task)
        task.add_done_callback(self._concluding.discard)

    async def _decide_last(self, tasks: asyncio.TaskGroup) -> bool:
        """Judge the pages that became others once nothing else is open; False if the rest rests too long.

        What others hold may be undecided as well: who helps waits for none of it, so the leader is the last.
        """
        backlog = await self.kit.store.queue.backlog(self.run.id)
        others = backlog.open - (len(self._undecided) if self.leads else backlog.held)
        if others > 0:
            return await self._wait_for_backlog()
        last, self._undecided, self._undecided_bytes = self._undecided, [], 0
        for waiting in last:
            self._beside(tasks, self._conclude_last(waiting))
        return True

    async def _conclude_last(self, waiting: Waiting) -> None:
        async with self._bodies:
            await self._conclude(waiting.arrived.claim, conclude_last(waiting, self.kit))

    async def _conclude(self, claim: Claim, work: Awaitable[Visit | Waiting]) -> None:
        """Hand in what a look means; what shows only when the rest was seen waits while there is room."""
        try:
            done = await work
            if isinstance(done, Waiting) and self._undecided_bytes > UNDECIDED_BYTES:
                done = await conclude_last(done, self.kit)
        except StoreError:  # no fault of the page
            raise
        except Exception as error:
            log.exception("concluding the look at %s failed", claim.page.url)
            done = broken_visit(claim, error, self.kit)
        if isinstance(done, Waiting):
            self._undecided.append(done)
            self._leave_room(claim)
            self._undecided_bytes += done.weight
            self._moved.set()
        else:
            self._finished.put_nowait(done)

    async def _commit(self) -> None:
        while True:
            visits = [await self._finished.get()]
            if not self._bodies.locked():  # else fetching waits for this
                await asyncio.sleep(LINGER)
            while len(visits) < BATCH and not self._finished.empty():
                visits.append(self._finished.get_nowait())
            await asyncio.shield(self._write(visits))

    async def _write(self, visits: Sequence[Visit]) -> None:
        kit = self.kit
        for domain, seconds in _pauses(visits).items():
            await kit.store.queue.pause_host(domain, kit.clock() + timedelta(seconds=seconds))
            run_log.host_paused(domain, seconds)
        failpoint("commit.begin")
        written = await kit.store.visits.commit(
            self.run, visits, kit.worker, kit.clock(), limits=self._limits, keep_body=kit.keep_body
        )
        failpoint("commit.done")
        for done in written:
            kit.listener(Step(name="commit", url=done.claim.page.url))
        run_log.visits_written(written)
        if kit.scoring is not None:
            kit.scoring.note(written)
        for visit in visits:
            self._leave_room(visit.claim)
        self._held -= len(visits)
        self._done += len(written)
        self._moved.set()
        await self._tell()

    async def _tell(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._last_progress < PROGRESS_SECONDS:
            return
        self._last_progress = now
        run = await self.kit.store.runs.get(self.run.id)
        self._heed(run)
        if run is not None:
            checked = run.counts.get("checked", 0)
            self.kit.listener(
                Progress(
                    run=run.id,
                    source=self.source,
                    done=checked,
                    queued=max(0, run.queued - checked),
                    counts=run.counts,
                    seconds=now - self._started,
                )
            )

    def _heed(self, run: Run | None) -> None:
        """A run that was cancelled is over for all, and one that its leader ended for those who help."""
        if run is None or run.state not in (RunState.QUEUED, RunState.RUNNING):
            self.over = True
        self.over = self.over or (self.leads and run is not None and run.worker != self.kit.worker)

    async def _drain(self) -> None:
        """After a stop: let visits under way finish for a while, then write what is finished."""
        self._held -= self._line.dismiss()
        if self._under_way():
            with suppress(StoreWaits):  # told to stop while the database was away
                self._heed(await self.kit.store.runs.get(self.run.id))
        deadline = asyncio.get_running_loop().time() + (LAST_GRACE if self.over else GRACE)
        while self._under_way() and asyncio.get_running_loop().time() < deadline:
            await self._until_moved(0.05)

    def _under_way(self) -> bool:
        """Whether visits are under way that end by themselves."""
        return self._held > len(self._undecided) + len(self._returned)


def _pauses(visits: Sequence[Visit]) -> dict[str, float]:
    """The hosts that asked to be left alone, and for how long."""
    pauses: dict[str, float] = {}
    for done in visits:
        if done.pause is not None:
            domain = done.claim.domain
            pauses[domain] = max(pauses.get(domain, 0.0), done.pause)
    return pauses


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first, for people who need one sentence rather than a tree."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
