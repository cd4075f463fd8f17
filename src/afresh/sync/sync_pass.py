"""Update one external store (sink): delete what has to go, upload what is new, then check its state.

Every step is stored before it is made and again when its outcome is known. A sync that dies at any point
therefore leaves either a known state or an intent that a listing of the sink settles.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, TypeVar

from afresh.aio import heard
from afresh.backoff import next_wait, wait_to_retry
from afresh.errors import SinkBusy, SinkError, SinkRefused
from afresh.events import Listener, SyncProgress
from afresh.model.records import PageStatus, Run, RunState, SourceId
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock, Sink
from afresh.store.store import Store
from afresh.sync.copy import Copy, DesiredCopy, OwnerTag, ReplaceOrder, Upload, UploadText, display_name
from afresh.sync.listing import Audit, listed
from afresh.sync.reconcile import (
    USUAL,
    CopyStep,
    SyncTimes,
    dropped,
    holds_anything,
    is_stuck,
    plan,
    put,
    refused,
    seen,
    to_drop,
    to_put,
    unput,
)
from afresh.sync.reports import (
    DOCUMENTS,
    SHOWN,
    AuditView,
    DocumentNote,
    DocumentOutcome,
    SyncFailure,
    SyncReport,
)
from afresh.text.redact import mask_secrets

log = logging.getLogger(__name__)
T = TypeVar("T")
BATCH = 500  # copies read at a time
LISTINGS = 3  # per sync, to settle uploads whose answer was lost
REFUSALS = 3  # in a row without any success, after which the sink counts as refusing everything
FIRST_LOOK, LONGEST_LOOK = 1.0, 15.0  # seconds between two checks of documents in processing
NO_TEXT = "its text is not stored: storage.body is none, or was when it was read"
TRIES = 4
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0  # seconds; longer waits are left to the next sync


@dataclass(slots=True)
class SyncTally:
    """The counts of one sync."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[SyncFailure] = field(default_factory=list)
    audit: AuditView | None = None
    notes: list[str] = field(default_factory=list)

    def fail(self, copy: Copy) -> None:
        """Count a page that could not be updated."""
        self.counts["failed"] += 1
        if len(self.failures) < SHOWN:
            self.failures.append(SyncFailure(url=copy.url, why=copy.error or "unknown"))

    def end(self, left: Sequence[DesiredCopy]) -> None:
        """Count what is left to do."""
        for wanted in left:
            copy = wanted.copy
            if is_failed(copy):
                self.fail(copy)
            else:
                self.counts["waiting"] += 1
                self.counts["stuck"] += is_stuck(copy)

    def intend(self, wanted: DesiredCopy, step: CopyStep) -> None:
        """Count what a sync would do with a copy."""
        match step:
            case CopyStep.DROP if wanted.hash is None:
                self.counts["deleted"] += 1
            case CopyStep.DROP | CopyStep.PUT:
                self.counts["replaced" if is_replaced(wanted) else "uploaded"] += 1
            case CopyStep.LOOK | CopyStep.WAIT | CopyStep.ASK:
                self.end([wanted])

    def report(self, sink: str, kind: str, state: str, seconds: float, error: str | None) -> SyncReport:
        """Return the report of the sync."""
        names = ("uploaded", "replaced", "deleted", "verified", "waiting", "failed", "stuck")
        found: dict[str, Any] = {name: self.counts[name] for name in names}
        found |= {"failures": tuple(self.failures), "audit": self.audit, "notes": tuple(self.notes)}
        return SyncReport(sink=sink, kind=kind, state=state, seconds=seconds, error=error, **found)


def is_failed(copy: Copy) -> bool:
    """Return whether a page could not be updated, or a document of it could not be deleted."""
    return copy.state is PageStatus.ERROR or bool(copy.leftovers and copy.error)


def is_replaced(wanted: DesiredCopy) -> bool:
    """Return whether a document with other content was there, or was to be there, before."""
    return wanted.copy.wanted_hash not in (None, wanted.hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredSink:
    """An external store with its settings."""

    name: str
    kind: str
    place: str  # its location: another location has other documents
    sink: Sink
    sources: tuple[str, ...] = ()  # names or labels of the sources to upload; empty: all
    order: ReplaceOrder = ReplaceOrder.DELETE_FIRST
    wait_seconds: float = 60.0  # how long a sync waits for documents in processing
    times: SyncTimes = USUAL
    secrets: tuple[str, ...] = ()  # never shown in messages

    def said(self, error: SinkError) -> str:
        """Return the message of an error without secrets."""
        return mask_secrets(str(error), self.secrets)


@dataclass(slots=True, kw_only=True)
class SyncRetries:
    """Retries calls and waits until told to stop."""

    stopping: asyncio.Event
    sleep: Callable[[float], Awaitable[None]] | None = None  # for tests

    async def pause(self, seconds: float) -> None:
        """Wait some seconds, or until stopping."""
        await (heard(self.stopping, seconds) if self.sleep is None else self.sleep(seconds))

    async def make(self, what: str, call: Callable[[], Awaitable[T]], *, only_if_told: bool = False) -> T:
        """Return the result of a retried call; with `only_if_told`, retry only if the sink names a delay."""
        for failures in count(1):
            try:
                return await call()
            except SinkBusy as busy:
                asked = busy.retry_after
                wait = wait_to_retry(failures, asked, tries=TRIES, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
                if wait is None or (only_if_told and asked is None) or self.stopping.is_set():
                    raise
                log.info("%s: %s; again in %.0f s", what, busy, wait)
                await self.pause(wait)
        raise AssertionError("the last try raises")


@dataclass(slots=True, kw_only=True)
class SyncRuns:
    """Stores what a sync does, document by document, in one run per source."""

    store: Store
    worker: str
    clock: Clock
    sources: frozenset[SourceId]  # existing sources: documents of others belong to no run
    _runs: dict[SourceId, Run] = field(default_factory=dict)
    _errors: dict[SourceId, str] = field(default_factory=dict)

    async def open(self, sources: Iterable[SourceId]) -> None:
        """Start the runs of some sources."""
        for source in sources:
            if source not in self._runs and source in self.sources:
                self._runs[source] = await self.store.copies.start_run(source, self.worker, self.clock())

    async def note(self, documents: Sequence[tuple[Copy, DocumentOutcome]]) -> None:
        """Store what was done with some copies."""
        ours = [(copy, outcome) for copy, outcome in documents if copy.source_id in self.sources]
        await self.open(dict.fromkeys(copy.source_id for copy, _ in ours))
        noted = ((self._runs[copy.source_id].id, copy, outcome) for copy, outcome in ours)
        notes = [DocumentNote(run=run, copy=copy, outcome=outcome) for run, copy, outcome in noted]
        await self.store.copies.record_documents(notes, self.clock())

    def fail(self, sources: Iterable[SourceId], error: str) -> None:
        """Remember why documents of some sources were left; the first reason is reported."""
        for source in sources:
            self._errors.setdefault(source, error)

    def numbers(self, sources: Iterable[SourceId]) -> tuple[int, ...]:
        """Return the ids of the runs of some sources."""
        return tuple(sorted(int(self._runs[each].id) for each in sources if each in self._runs))

    async def finish(self, *, stopped: bool) -> None:
        """End all runs."""
        for source, run in self._runs.items():
            counts = await self.store.copies.count_documents(run.id)
            error = self._errors.get(source)
            wrong = counts.get(DocumentOutcome.FAILED) or counts.get(DocumentOutcome.STUCK)
            left = RunState.PARTIAL if stopped or wrong else RunState.COMPLETED
            state = RunState.FAILED if error else left
            kept = {f"{DOCUMENTS}{name}": number for name, number in counts.items()}
            await self.store.copies.finish_run(run, state, kept, error, self.clock())


@dataclass(slots=True, kw_only=True)
class SyncPass:
    """One sync of one sink, by the worker that has reserved it."""

    store: Store
    outlet: ConfiguredSink
    worker: str
    store_id: str
    sources: Sequence[SourceId]  # sources that the sink should contain
    only: Sequence[SourceId] | None  # sources of this sync; None: all
    clock: Clock
    stopping: asyncio.Event
    listener: Listener
    calls: SyncRetries
    runs: SyncRuns
    doubt: bool  # list the sink first
    tally: SyncTally = field(default_factory=SyncTally)
    audited_at: datetime | None = None  # by this sync
    _refused: list[Copy] = field(default_factory=list)
    _taken: int = 0  # documents that the sink accepted
    _processed: bool = False  # whether documents in processing are worth another check soon
    _undropped: int = 0  # refused deletions in a row
    _tried: set[int] = field(default_factory=set)  # copies to skip until the next sync

    async def go(self) -> None:
        """Do everything that is to do; raise SinkError if the sink prevents it."""
        listings, pause, waited = LISTINGS, FIRST_LOOK, 0.0
        while True:
            if self.doubt:
                await self.audit()
            self._processed = False
            await self._looks()
            await self._drops()
            lost = await self._puts()
            await self._drops()  # former documents that were replaced
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
            waited, pause = waited + pause, next_wait(pause, FIRST_LOOK, LONGEST_LOOK)

    # ---- listing

    async def audit(self) -> None:
        """List the sink, adopt our documents, and store what has to be deleted or uploaded again."""
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

    # ---- deletions

    async def _drops(self) -> None:
        async for batch in self._steps(CopyStep.DROP):
            copies = [to_drop(wanted, self.outlet.order) for wanted in batch]
            await self._record(copies)
            failpoint("sync.dropping")
            results = await self._together([partial(self._drop, copy) for copy in copies])
            failpoint("sync.dropped")
            await self._record([copy for copy, _ in results])
            deleted = [
                (copy, DocumentOutcome.DELETED)
                for wanted, (copy, error) in zip(batch, results, strict=True)
                if error is None and wanted.hash is None and holds_anything(wanted.copy)
            ]
            await self.runs.note(deleted)
            self.tally.counts["deleted"] += len(deleted)
            for copy, error in results:  # failed deletions are remembered
                if error is not None:
                    self._tried.add(copy.id)
                    if not isinstance(error, SinkRefused) or self._undropped >= REFUSALS:
                        raise error  # if all fail, the sink is the problem
            self._tell()

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

    # ---- uploads

    async def _puts(self) -> SinkBusy | None:
        """Upload what is missing; return the error that left an upload in doubt, or None."""
        lost: SinkBusy | None = None
        async for batch in self._steps(CopyStep.PUT):
            begun = await self._begun(batch)
            results = await self._together([partial(self._put, copy, text) for copy, text, _ in begun])
            await self._record([copy for copy, _ in results])
            failpoint("sync.kept")
            taken = [
                (copy, DocumentOutcome.REPLACED if replaces else DocumentOutcome.UPLOADED)
                for (_, _, replaces), (copy, error) in zip(begun, results, strict=True)
                if error is None
            ]
            await self.runs.note(taken)
            for copy, outcome in taken:
                self._taken += 1
                self.tally.counts[outcome.value] += 1
                self.tally.counts["verified"] += copy.state is PageStatus.ACTIVE
                self._processed = self._processed or _is_processed(copy)
            for copy, error in results:
                if isinstance(error, SinkRefused):
                    self._refused.append(copy)
                    self._tried.add(copy.id)
                elif isinstance(error, SinkBusy) and copy.putting:
                    lost = error
                elif error is not None:
                    raise error
            await self._judge_refusals()
            self._tell()
            if lost is not None:
                break
        await self._judge_refusals(at_end=True)
        return lost

    async def _begun(self, batch: Sequence[DesiredCopy]) -> list[tuple[Copy, UploadText, bool]]:
        """Return the pages of a batch in their current state, after storing the intent to upload them."""
        begun, without = [], []
        for wanted in batch:
            page = wanted.copy.page_id
            text = None if page is None else await self.store.copies.page_text(page)
            if text is None:  # just deleted: for the next sync
                continue
            if text.markdown is None:
                without.append(refused(to_put(wanted), NO_TEXT))
                continue
            current = replace(wanted, hash=text.hash)  # it may have changed since the batch was read
            if plan(current, self.outlet.order, self.clock()) is CopyStep.PUT:
                begun.append((to_put(current), text, is_replaced(current)))
        self._tried.update(copy.id for copy in without)
        await self._record([*without, *(copy for copy, _, _ in begun)])
        failpoint("sync.putting")
        return begun

    async def _put(self, copy: Copy, text: UploadText) -> tuple[Copy, SinkError | None]:
        upload = Upload(
            mark=OwnerTag(self.store_id, copy.source, int(copy.page_id or 0), text.hash),
            url=text.url,
            title=text.title or "",
            name=display_name(text.title, text.url),
            markdown=text.markdown or "",
            language=text.language,
        )
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

    async def _judge_refusals(self, *, at_end: bool = False) -> None:
        """Fail refused pages one by one, or the whole sink if it has accepted nothing at all."""
        if not self._taken and len(self._refused) >= REFUSALS:
            reason = self._refused[-1].error or ""
            copies, self._refused = self._refused, []
            await self._record([unput(copy, reason, sure=True) for copy in copies])
            raise SinkRefused(reason)
        if self._refused and (self._taken or at_end):
            copies, self._refused = self._refused, []
            await self._record([refused(copy, copy.error or "refused") for copy in copies])

    # ---- documents in processing

    async def _looks(self) -> None:
        async for batch in self._steps(CopyStep.LOOK):
            results = await self._together([partial(self._look, wanted.copy) for wanted in batch])
            failpoint("sync.looked")
            self._leave_stuck([wanted.copy for wanted in batch], results)
            await self._record(results)
            await self.runs.note([(copy, _looked(copy)) for copy in results])
            self.tally.counts["verified"] += sum(copy.state is PageStatus.ACTIVE for copy in results)
            self._processed = self._processed or any(map(_is_processed, results))
            self._tell()

    async def _look(self, copy: Copy) -> Copy:
        look = partial(self.outlet.sink.look, str(copy.remote_id))
        remote = await self.calls.make(f"{copy.sink}: look", look)
        log.info("%s: %s is %s", copy.sink, copy.remote_id, remote.state if remote else "absent")
        return seen(copy, remote, self.clock(), self.outlet.times)

    def _leave_stuck(self, before: Sequence[Copy], after: Sequence[Copy]) -> None:
        """Skip documents newly found stuck until the next sync, so that users see them first."""
        known = {copy.id for copy in before if is_stuck(copy)}
        self._tried.update(copy.id for copy in after if is_stuck(copy) and copy.id not in known)

    # ---- reading and writing

    async def _read(
        self, *, to_do: bool, only: Sequence[SourceId] | None
    ) -> AsyncIterator[Sequence[DesiredCopy]]:
        after = 0
        while batch := await self.store.copies.of_sink(
            self.outlet.name, self.sources, only=only, to_do=to_do, after=after, limit=BATCH
        ):
            yield batch
            after = batch[-1].copy.id

    async def _steps(self, step: CopyStep) -> AsyncIterator[Sequence[DesiredCopy]]:
        """Yield the copies whose next step is this one, in batches of concurrent calls."""
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
        """Count what is left to do."""
        async for batch in self._read(to_do=True, only=self.only):
            now = self.clock()
            left = [each for each in batch if plan(each, self.outlet.order, now) is not CopyStep.NOTHING]
            self.tally.end(left)
            failed = [(each.copy, DocumentOutcome.FAILED) for each in left if is_failed(each.copy)]
            stuck = [(each.copy, DocumentOutcome.STUCK) for each in left if is_stuck(each.copy)]
            await self.runs.note([*failed, *stuck])

    async def _record(self, copies: Sequence[Copy]) -> None:
        await self.store.copies.record(self.outlet.name, self.worker, copies, self.clock())

    async def _together(self, calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
        """Return all results; every call ends before the first exception is raised."""
        results = await asyncio.gather(*(call() for call in calls), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    def _tell(self) -> None:
        self.listener(SyncProgress(sink=self.outlet.name, counts=dict(self.tally.counts)))


def _looked(copy: Copy) -> DocumentOutcome:
    if copy.state is PageStatus.ACTIVE:
        return DocumentOutcome.VERIFIED
    return DocumentOutcome.STUCK if is_stuck(copy) else DocumentOutcome.WAITING


def _is_processed(copy: Copy) -> bool:
    return copy.state is PageStatus.PROCESSING and copy.next_try_at is None and not is_stuck(copy)
