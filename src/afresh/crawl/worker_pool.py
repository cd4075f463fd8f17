"""The crew: one process that works on whatever runs are open in the store."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from afresh.crawl import run_log
from afresh.crawl.factory import Tools
from afresh.crawl.heartbeat import Vigil, at_work
from afresh.crawl.run import run_source
from afresh.crawl.tools import RunOptions
from afresh.crawl.wakeups import Ear
from afresh.crawl.worker_pool_failures import fail_run
from afresh.crawl.worker_pool_helper import SHARED, lend_a_hand
from afresh.digest.update import KINDS
from afresh.errors import AfreshError, ConfigError, RunBusy, StoreWaits
from afresh.events import Listener, Notice
from afresh.model.records import Run, RunId, RunMode, RunState, Source
from afresh.model.reports import RunReport
from afresh.store.store import Store
from afresh.urls.files import is_file_url

log = logging.getLogger(__name__)

AT_ONCE = 4  # runs that one process works on
POLL = 1.0  # seconds between looks for something to do
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0  # before a run that failed for a reason of its own is tried again


@dataclass(slots=True)
class _Hand:
    """One run that this process works on."""

    leads: bool
    begun: bool = False  # the run was seen to be under way
    leader_died: bool = False  # while we helped
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Stop the work on the run in this process."""
        self.leader_died = False
        self.stopping.set()

    def replace_leader(self) -> None:
        """Stop helping in order to lead."""
        self.leader_died = True
        self.stopping.set()


class Crew:
    """Leads runs that nobody leads, oldest first, and lends a hand in others while there is room."""

    def __init__(
        self,
        tools: Tools,
        stopping: asyncio.Event,
        *,
        tell: Callable[[RunReport], None],
        listener: Listener,
        labels: Sequence[str] = (),
        at_once: int = AT_ONCE,
        once: bool = False,
    ) -> None:
        self._tools = tools
        self._stopping = stopping
        self._tell = tell
        self._listener = listener
        self._labels = frozenset(labels)
        self._at_once = at_once
        self._once = once  # end when there is nothing to do
        self._hands: dict[RunId, _Hand] = {}
        self._moved = asyncio.Event()
        self._put_off: dict[RunId, tuple[float, float]] = {}  # when a run may be tried again; the pause
        self.failed = False  # whether a run could not be worked on

    async def work(self) -> None:
        """Work until told to stop; then finish or give back what is under way."""
        store, vigil = self._tools.standing(self._listener, self._stopping)
        ear = Ear(store)
        with suppress(StoreWaits):  # told to stop while the database was away: nothing is left to write
            async with self._tools.kept_warm(), at_work(vigil, self._stopping):
                try:
                    while not self._stopping.is_set() and await self._look_around(store, vigil, ear):
                        await ear.rest(POLL, self._moved, self._stopping)
                        self._moved.clear()
                finally:
                    await self._dismiss()

    async def _look_around(self, store: Store, vigil: Vigil, ear: Ear) -> bool:
        """Take up what there is to do; False if there is nothing and nothing is waited for."""
        ear.look()
        before = len(self._hands)
        await vigil.reclaim()
        alive = {worker.name for worker in await store.workers.all()}
        led: list[tuple[Run, Source]] = []
        for run, source in await self._open_runs(store, alive):
            if run.state is RunState.RUNNING and run.worker in alive:
                led.append((run, source))
            elif not self._has_room():
                self._dismiss_helper()
            else:
                self._take(store, vigil, run, source, leads=True)
        for run, source in led:
            if self._has_room() and await self._needs_a_hand(store, vigil, run, source):
                self._take(store, vigil, run, source, leads=False)
        if len(self._hands) > before:
            ear.found()
        return bool(self._hands) or not self._once

    async def _open_runs(self, store: Store, alive: set[str]) -> list[tuple[Run, Source]]:
        """Runs that this process may work on and does not, oldest first."""
        sources = {source.id: source for source in await store.sources.all()}
        found, live = [], await store.runs.live()
        await self._drop_cancelled(store, live)
        self._drop_unled(live, alive)
        for run in reversed(live):
            workable = run.state in (RunState.QUEUED, RunState.RUNNING) and run.mode is not RunMode.CHECK
            if not workable or run.id in self._hands or self._is_put_off(run.id):
                continue
            source = sources.get(run.source_id)
            if source is not None and self._is_ours(source) and await self._sees(source):
                found.append((run, source))
        return found

    async def _drop_cancelled(self, store: Store, live: Sequence[Run]) -> None:
        """Let go of runs that were cancelled or removed, or queued anew since then, whatever they are at."""
        for run in live:
            hand = self._hands.get(run.id)
            if hand is None:
                continue
            if run.state is RunState.CANCELLED or (
                run.state is RunState.QUEUED and hand.leads and hand.begun
            ):
                hand.stop()
            hand.begun = hand.begun or run.state is RunState.RUNNING
        for number in self._hands.keys() - {run.id for run in live}:
            if await store.runs.get(number) is None and number in self._hands:
                self._hands[number].stop()

    def _drop_unled(self, live: Sequence[Run], alive: set[str]) -> None:
        """Stop helping in runs whose leader died, so that one of those who helped leads them."""
        for run in live:
            hand = self._hands.get(run.id)
            if (
                hand is not None
                and not hand.leads
                and run.state is RunState.RUNNING
                and run.worker not in alive
                and not hand.stopping.is_set()
            ):
                hand.replace_leader()

    async def _sees(self, source: Source) -> bool:
        """Files are somewhere; everything else can be reached from anywhere."""
        return not is_file_url(source.url) or await asyncio.to_thread(self._tools.sees, source)

    def _is_ours(self, source: Source) -> bool:
        if source.name in KINDS:  # its runs are part of an update that writes files
            return False
        return not self._labels or not self._labels.isdisjoint((source.label, source.name))

    async def _needs_a_hand(self, store: Store, vigil: Vigil, run: Run, source: Source) -> bool:
        if source.kind != SHARED:
            return False
        backlog = await store.queue.backlog(run.id)
        return (
            backlog.open > backlog.held and backlog.next_at is not None and backlog.next_at <= vigil.clock()
        )

    def _has_room(self) -> bool:
        return len(self._hands) < self._at_once

    def _dismiss_helper(self) -> None:
        """Make room for a run that nobody leads: those with a leader go on without us."""
        for hand in self._hands.values():
            if not hand.leads:
                hand.stop()
                return

    def _take(self, store: Store, vigil: Vigil, run: Run, source: Source, *, leads: bool) -> None:
        hand = self._hands[run.id] = _Hand(leads)
        hand.task = asyncio.create_task(self._hold(store, vigil, hand, run, source))

    async def _hold(self, store: Store, vigil: Vigil, hand: _Hand, run: Run, source: Source) -> None:
        try:
            try:
                await self._work_on(store, vigil, hand, run, source)
            except ConfigError as wrong:
                await self._fail(store, vigil, hand, run, source, wrong)
        except RunBusy as busy:  # another worker was faster
            log.info("run %s is left alone: %s", run.id, busy)
        except StoreWaits as trouble:  # told to stop while the database was away
            log.info("run %s is left as it is: %s", run.id, trouble)
        except Exception as error:
            self._put_off_run(run, source, error)
        finally:
            self._hands.pop(run.id, None)
            self._moved.set()

    async def _work_on(self, store: Store, vigil: Vigil, hand: _Hand, run: Run, source: Source) -> None:
        opened = self._tools.open(
            source, RunOptions(mode=run.mode, full=run.full), self._listener, hand.stopping
        )
        async with opened as (kit, rules):
            if not hand.leads:
                await lend_a_hand(kit, source, run, hand.stopping)
                if hand.leader_died:  # while a live worker is known to help, nobody takes the run for dead
                    await store.runs.join(run.id, vigil.me.name)
            else:
                with run_log.run_span(source, run.mode) as ended:
                    report = ended(await run_source(kit, source, rules, run.mode, hand.stopping, only=run.id))
        if not hand.leads:
            if hand.leader_died:
                hand.leads, hand.leader_died, hand.stopping = True, False, asyncio.Event()
                await self._work_on(store, vigil, hand, run, source)
            return
        if report.state is not RunState.QUEUED:
            self._put_off.pop(run.id, None)
            self._tell(report)

    async def _fail(
        self, store: Store, vigil: Vigil, hand: _Hand, run: Run, source: Source, wrong: ConfigError
    ) -> None:
        """End a run that the settings do not allow: trying again would change nothing."""
        if hand.leads:
            self.failed = True
            targets = self._tools.targets()
            self._tell(await fail_run(store, vigil.me.name, run, source, str(wrong), vigil.clock(), targets))

    def _put_off_run(self, run: Run, source: Source, error: Exception) -> None:
        """Trouble with one run is no reason to leave the others alone."""
        if not isinstance(error, AfreshError):
            log.error("work on run %s failed", run.id, exc_info=error)
        self.failed = True
        _, before = self._put_off.get(run.id, (0.0, FIRST_PAUSE / 2))
        pause = min(LONGEST_PAUSE, 2 * before)
        self._put_off[run.id] = (asyncio.get_running_loop().time() + pause, pause)
        again = "" if self._once else f"; tried again in {pause:.0f} s"
        self._listener(Notice(text=f"run {run.id} of {source.label}: {error}{again}"))

    def _is_put_off(self, run: RunId) -> bool:
        until, _ = self._put_off.get(run, (0.0, 0.0))
        return asyncio.get_running_loop().time() < until

    async def _dismiss(self) -> None:
        hands = list(self._hands.values())
        for hand in hands:
            hand.stop()
        tasks = [hand.task for hand in hands if hand.task is not None]
        if tasks:
            await asyncio.wait(tasks)
