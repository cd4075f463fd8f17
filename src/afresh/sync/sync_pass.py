"""Bringing one external store in line: what is to go leaves first, then what is new is put, then looked at.

Every step is written down before it is made and again when its outcome is known, so a sync that dies at any
point leaves either a known state or an intent that a listing of the store settles.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from afresh.errors import SinkBusy, SinkError, SinkRefused
from afresh.events import Listener, Syncing
from afresh.model.records import PageStatus, SourceId
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock
from afresh.ports.sinks import Sink
from afresh.store.store import Store
from afresh.sync.copy import Copy, PageText, Replace, Wanted, display_name
from afresh.sync.listing import Audit, listed
from afresh.sync.reconcile import (
    USUAL,
    Step,
    Times,
    dropped,
    is_stuck,
    plan,
    put,
    refused,
    seen,
    to_drop,
    to_put,
    unput,
)
from afresh.sync.remote import Mark, Upload
from afresh.sync.reports import DocumentOutcome
from afresh.sync.retry import Calls
from afresh.sync.runs import SyncRuns
from afresh.sync.tally import Tally, is_failed, is_replaced
from afresh.text.redact import mask_secrets

log = logging.getLogger(__name__)
T = TypeVar("T")
BATCH = 500  # copies read at a time
LISTINGS = 3  # that one sync makes to settle puts whose answer was lost
REFUSALS = 3  # in a row, with nothing taken, after which a store refuses everything
LONGEST_LOOK = 15.0  # seconds between two looks at what is processed
NO_TEXT = "its text is not stored: storage.body is none, or was when it was read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """An external store with its settings."""

    name: str
    kind: str
    place: str  # where it is: another place holds other documents
    sink: Sink
    sources: tuple[str, ...] = ()  # names or labels of those it is to hold; none: all
    order: Replace = Replace.DELETE_FIRST
    wait_seconds: float = 60.0  # how long a sync waits for what the store processes
    times: Times = USUAL
    secrets: tuple[str, ...] = ()  # that no message may show

    def said(self, error: SinkError) -> str:
        """What a store said, without what is nobody's business."""
        return mask_secrets(str(error), self.secrets)


@dataclass(slots=True, kw_only=True)
class SyncWork:
    """One sync of one store, by the worker that has taken it."""

    store: Store
    outlet: Outlet
    worker: str
    store_id: str
    sources: Sequence[SourceId]  # what the store is to hold
    only: Sequence[SourceId] | None  # what this sync is about; None: everything
    clock: Clock
    stopping: asyncio.Event
    listener: Listener
    calls: Calls
    runs: SyncRuns
    doubt: bool  # what the store holds has to be listed first
    tally: Tally = field(default_factory=Tally)
    audited_at: datetime | None = None  # by this sync
    _refused: list[Copy] = field(default_factory=list)
    _taken: int = 0  # documents that the store took
    _processed: bool = False  # whether the store works on something that is worth another look soon
    _undropped: int = 0  # drops refused in a row
    _tried: set[int] = field(default_factory=set)  # copies that are refused until the next sync

    async def go(self) -> None:
        """Everything there is to do; SinkError where the store does not let us."""
        listings, pause, waited = LISTINGS, 1.0, 0.0
        while True:
            if self.doubt:
                await self.audit()
            self._processed = False
            await self._looks()
            await self._drops()
            lost = await self._puts()
            await self._drops()  # those whose place was taken
            if self.stopping.is_set():
                return
            if lost is not None:
                listings -= 1
                self.doubt = True
                if not listings:
                    raise lost
            elif not self._processed or waited >= self.outlet.wait_seconds:
                return
            await self.calls.pause(pause)
            waited, pause = waited + pause, min(2 * pause, LONGEST_LOOK)

    # ---- listing

    async def audit(self) -> None:
        """List the store, adopt what is ours, and note what has to go or to come again."""
        sink, name = self.outlet.sink, self.outlet.name
        listing = await self.calls.make(f"{name}: list", partial(listed, sink.all, self.store_id))
        log.info("%s: listed %d documents, %d of others", name, listing.listed, listing.foreign)
        failpoint("sync.audited")
        audit = Audit(listing, self.outlet.order, self.outlet.times)
        async for batch in self._read(to_do=False, only=None):
            changed = audit.judge(batch, self.clock())
            self._leave_stuck([each.copy for each in batch], changed)
            await self._record(changed)
            known = {each.copy.id: each.copy.remote_id for each in batch}
            adopted = [copy for copy in changed if copy.remote_id not in (None, known[copy.id])]
            await self.runs.note([(copy, DocumentOutcome.ADOPTED) for copy in adopted])
        orphans = audit.orphans()
        await self.store.copies.add_orphans(name, self.worker, orphans, self.clock())
        self.tally.audit = audit.view(len(orphans))
        self.tally.counts["verified"] = audit.verified
        self.doubt, self.audited_at = False, self.clock()

    # ---- what is to leave

    async def _drops(self) -> None:
        async for batch in self._steps(Step.DROP):
            copies = [to_drop(wanted, self.outlet.order) for wanted in batch]
            await self._record(copies)
            failpoint("sync.dropping")
            results = await self._together([partial(self._drop, copy) for copy in copies])
            failpoint("sync.dropped")
            await self._record([copy for copy, _ in results])
            deleted = [
                (copy, DocumentOutcome.DELETED)
                for wanted, (copy, error) in zip(batch, results, strict=True)
                if error is None and wanted.hash is None and _held_some(wanted.copy)
            ]
            await self.runs.note(deleted)
            for wanted, (_, error) in zip(batch, results, strict=True):
                self._count_drop(wanted, error)
            self._tell()

    def _count_drop(self, wanted: Wanted, error: SinkError | None) -> None:
        """A document that cannot be deleted is kept in mind; if none can, it is the trouble of the store."""
        if error is None:
            self.tally.counts["deleted"] += wanted.hash is None and _held_some(wanted.copy)
            return
        self._tried.add(wanted.copy.id)
        if not isinstance(error, SinkRefused) or self._undropped >= REFUSALS:
            raise error

    async def _drop(self, copy: Copy) -> tuple[Copy, SinkError | None]:
        gone: set[str] = set()
        for remote in copy.leftovers:
            try:
                await self.calls.make(f"{copy.sink}: delete", partial(self.outlet.sink.drop, remote))
            except SinkError as error:
                log.info("%s: %s could not be deleted: %s", copy.sink, remote, self.outlet.said(error))
                self._undropped += 1
                return replace(dropped(copy, frozenset(gone)), error=self.outlet.said(error)), error
            log.info("%s: deleted %s (%s)", copy.sink, remote, copy.url)
            self._undropped = 0
            gone.add(remote)
        return dropped(copy, frozenset(gone)), None

    # ---- what is to come

    async def _puts(self) -> SinkBusy | None:
        """Put what is missing; what is returned is the trouble that left some of it in the dark."""
        lost: SinkBusy | None = None
        async for batch in self._steps(Step.PUT):
            begun = await self._begun(batch)
            results = await self._together([partial(self._put, *each) for each in begun])
            await self._record([copy for copy, _ in results])
            failpoint("sync.kept")
            taken = [
                (copy, DocumentOutcome.REPLACED if replaces else DocumentOutcome.UPLOADED)
                for (_, _, replaces), (copy, error) in zip(begun, results, strict=True)
                if error is None
            ]
            await self.runs.note(taken)
            for (_, _, replaces), (copy, error) in zip(begun, results, strict=True):
                self._count_put(copy, error, replaces)
                if isinstance(error, SinkBusy) and copy.putting:
                    lost = error
                elif error is not None and not isinstance(error, SinkRefused):
                    raise error
            await self._judge_refusals()
            self._tell()
            if lost is not None:
                break
        await self._judge_refusals(at_end=True)
        return lost

    async def _begun(self, batch: Sequence[Wanted]) -> list[tuple[Copy, PageText, bool]]:
        """The pages of a batch as they are now, with the intent to put them on record."""
        begun, without = [], []
        for wanted in batch:
            page = wanted.copy.page_id
            text = None if page is None else await self.store.copies.page_text(page)
            if text is None:  # it went a moment ago: the next sync sees that
                continue
            if text.markdown is None:
                without.append(refused(to_put(wanted), NO_TEXT))
                continue
            current = replace(wanted, hash=text.hash)  # it may have changed since the batch was read
            if plan(current, self.outlet.order, self.clock()) is Step.PUT:
                begun.append((to_put(current), text, is_replaced(current)))
        self._tried.update(copy.id for copy in without)
        await self._record([*without, *(copy for copy, _, _ in begun)])
        failpoint("sync.putting")
        return begun

    async def _put(self, copy: Copy, text: PageText, replaces: bool) -> tuple[Copy, SinkError | None]:
        upload = self._upload(copy, text)
        try:
            remote = await self.calls.make(
                f"{copy.sink}: upload", partial(self.outlet.sink.put, upload), only_if_told=True
            )
        except SinkRefused as error:
            log.info("%s: %s was refused: %s", copy.sink, copy.url, self.outlet.said(error))
            return replace(copy, putting=False, error=self.outlet.said(error)), error
        except SinkError as error:
            log.info("%s: %s could not be uploaded: %s", copy.sink, copy.url, self.outlet.said(error))
            sure = not isinstance(error, SinkBusy) or error.retry_after is not None
            return unput(copy, self.outlet.said(error), sure=sure), error
        failpoint("sync.put")
        log.info("%s: uploaded %s as %s: %s", copy.sink, copy.url, remote.id, remote.state)
        return put(copy, remote, self.clock(), self.outlet.times), None

    def _upload(self, copy: Copy, text: PageText) -> Upload:
        mark = Mark(store=self.store_id, source=copy.source, page=int(copy.page_id or 0), hash=text.hash)
        return Upload(
            mark=mark,
            url=text.url,
            title=text.title or "",
            name=display_name(text.title, text.url),
            markdown=text.markdown or "",
            language=text.language,
        )

    def _count_put(self, copy: Copy, error: SinkError | None, replaces: bool) -> None:
        if error is None:
            self._taken += 1
            self.tally.counts["replaced" if replaces else "uploaded"] += 1
            self.tally.counts["verified"] += copy.state is PageStatus.ACTIVE
            self._processed = self._processed or _is_processed(copy)
        elif isinstance(error, SinkRefused):
            self._refused.append(copy)
            self._tried.add(copy.id)

    async def _judge_refusals(self, *, at_end: bool = False) -> None:
        """A page that is refused is its own trouble; if nothing is taken at all, it is that of the store."""
        if not self._taken and len(self._refused) >= REFUSALS:
            reason = self._refused[-1].error or ""
            copies, self._refused = self._refused, []
            await self._record([unput(copy, reason, sure=True) for copy in copies])
            raise SinkRefused(reason)
        if self._refused and (self._taken or at_end):
            copies, self._refused = self._refused, []
            await self._record([refused(copy, copy.error or "refused") for copy in copies])

    # ---- what is under way

    async def _looks(self) -> None:
        """Look at what the store processes."""
        async for batch in self._steps(Step.LOOK):
            results = await self._together([partial(self._look, wanted.copy) for wanted in batch])
            failpoint("sync.looked")
            self._leave_stuck([wanted.copy for wanted in batch], results)
            await self._record(results)
            await self.runs.note([(copy, _looked(copy)) for copy in results])
            self.tally.counts["verified"] += sum(copy.state is PageStatus.ACTIVE for copy in results)
            self._processed = self._processed or any(map(_is_processed, results))
            self._tell()

    async def _look(self, copy: Copy) -> Copy:
        remote = await self.calls.make(
            f"{copy.sink}: look", partial(self.outlet.sink.look, str(copy.remote_id))
        )
        log.info("%s: %s is %s", copy.sink, copy.remote_id, remote.state if remote else "absent")
        return seen(copy, remote, self.clock(), self.outlet.times)

    def _leave_stuck(self, before: Sequence[Copy], after: Sequence[Copy]) -> None:
        """Leave what is found to be stuck to the next sync, so that people see it and no sync puts twice."""
        known = {copy.id for copy in before if is_stuck(copy)}
        self._tried.update(copy.id for copy in after if is_stuck(copy) and copy.id not in known)

    # ---- reading and writing

    async def _read(self, *, to_do: bool, only: Sequence[SourceId] | None) -> AsyncIterator[Sequence[Wanted]]:
        after = 0
        while batch := await self.store.copies.of_sink(
            self.outlet.name, self.sources, only=only, to_do=to_do, after=after, limit=BATCH
        ):
            yield batch
            after = batch[-1].copy.id

    async def _steps(self, step: Step) -> AsyncIterator[Sequence[Wanted]]:
        """The copies whose next step is this one, as many at a time as the store takes side by side."""
        size = max(1, self.outlet.sink.at_once)
        async for batch in self._read(to_do=True, only=self.only):
            now = self.clock()
            found = [each for each in batch if plan(each, self.outlet.order, now) is step]
            found = [each for each in found if each.copy.id not in self._tried]
            for start in range(0, len(found), size):
                if self.stopping.is_set():
                    return
                yield found[start : start + size]

    async def count_left(self) -> None:
        """Count what is still to do."""
        async for batch in self._read(to_do=True, only=self.only):
            now = self.clock()
            left = [each for each in batch if plan(each, self.outlet.order, now) is not Step.NOTHING]
            self.tally.end(left)
            failed = [(each.copy, DocumentOutcome.FAILED) for each in left if is_failed(each.copy)]
            stuck = [(each.copy, DocumentOutcome.STUCK) for each in left if is_stuck(each.copy)]
            await self.runs.note([*failed, *stuck])

    async def _record(self, copies: Sequence[Copy]) -> None:
        await self.store.copies.record(self.outlet.name, self.worker, copies, self.clock())

    async def _together(self, calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
        """All results; every call ends before the first exception is raised."""
        results = await asyncio.gather(*(call() for call in calls), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    def _tell(self) -> None:
        self.listener(Syncing(sink=self.outlet.name, counts=dict(self.tally.counts)))


def _held_some(copy: Copy) -> bool:
    return copy.remote_id is not None or bool(copy.former or copy.leftovers)


def _looked(copy: Copy) -> DocumentOutcome:
    if copy.state is PageStatus.ACTIVE:
        return DocumentOutcome.VERIFIED
    return DocumentOutcome.STUCK if is_stuck(copy) else DocumentOutcome.WAITING


def _is_processed(copy: Copy) -> bool:
    return copy.state is PageStatus.PROCESSING and copy.next_try_at is None and not is_stuck(copy)
