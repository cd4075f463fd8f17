"""Update one external store (sink): delete old documents, upload new ones, then check their state.

Each step is stored before it begins and after it ends. If the process is killed in between, the next sync lists the
sink to find out whether the step was done.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, TypeVar

from afresh.aio import gather_all, wait_event
from afresh.backoff import next_wait, wait_to_retry
from afresh.config.server import SinkSettings
from afresh.dataclass import dataclass, field, replace
from afresh.errors import SinkBusy, SinkError, SinkRefused
from afresh.events import Listener, SyncProgress
from afresh.model.records import PageStatus, Run, RunState, SourceId
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock, Sink
from afresh.store.store import Store
from afresh.sync import reconcile
from afresh.sync.copy import Copy, DesiredCopy, OwnerTag, ReplaceOrder, Upload, UploadText, display_name
from afresh.sync.listing import Audit, list_documents
from afresh.sync.reconcile import CopyStep, SyncTimes
from afresh.sync.reports import DOCUMENTS, MAX_LISTED, AuditView, DocumentNote, DocumentOutcome, SyncFailure, SyncReport
from afresh.text.redact import mask_secrets

log = logging.getLogger(__name__)
T = TypeVar("T")
BATCH_SIZE = 500  # copies read at a time
MAX_LISTINGS = 3  # per sync, to find documents of uploads without an answer
MAX_REFUSALS = 3  # so many refusals without any success count as a problem of the whole sink
FIRST_CHECK_SECONDS, MAX_CHECK_SECONDS = 1.0, 15.0  # time between two checks of documents in processing
NO_TEXT = "the text of the page is not stored: set storage.body: markdown, then `afresh refresh` reads it again"
MAX_TRIES = 4
FIRST_PAUSE_SECONDS = 1.0
MAX_PAUSE_SECONDS = 60.0  # if the sink asks for a longer pause, the sync ends


@dataclass(slots=True)
class SyncTally:
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[SyncFailure] = field(default_factory=list)
    audit: AuditView | None = None

    def fail(self, copy: Copy) -> None:
        self.counts["failed"] += 1
        if len(self.failures) < MAX_LISTED:
            self.failures.append(SyncFailure(url=copy.url, why=copy.error or "unknown"))

    def end(self, left: Sequence[DesiredCopy]) -> None:
        for copy in (wanted.copy for wanted in left):
            if is_failed(copy):
                self.fail(copy)
            else:
                self.counts["waiting"] += 1
                self.counts["stuck"] += reconcile.is_stuck(copy)

    def intend(self, wanted: DesiredCopy, step: CopyStep) -> None:
        match step:
            case CopyStep.DROP if wanted.hash is None:
                self.counts["deleted"] += 1
            case CopyStep.DROP | CopyStep.PUT:
                self.counts["replaced" if is_replaced(wanted) else "uploaded"] += 1
            case CopyStep.LOOK | CopyStep.WAIT | CopyStep.ASK:
                self.end([wanted])

    def report(self, target: "ConfiguredSink", state: str, seconds: float, error: str | None = None) -> SyncReport:
        names = ("uploaded", "replaced", "deleted", "verified", "waiting", "failed", "stuck")
        found: dict[str, Any] = {name: self.counts[name] for name in names}
        found |= {"failures": tuple(self.failures), "audit": self.audit, "seconds": seconds}
        return SyncReport(sink=target.name, kind=target.settings.kind, state=state, error=error, **found)


def is_failed(copy: Copy) -> bool:
    """Return whether the upload of a copy failed, or the deletion of one of its documents."""
    return copy.state is PageStatus.ERROR or bool(copy.leftovers and copy.error)


def is_replaced(wanted: DesiredCopy) -> bool:
    """Return whether the sink may have a document with older content."""
    return wanted.copy.wanted_hash not in (None, wanted.hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredSink:
    name: str
    settings: SinkSettings
    sink: Sink
    times: SyncTimes

    @property
    def order(self) -> ReplaceOrder:
        return ReplaceOrder(self.settings.replace)

    def describe(self, error: SinkError) -> str:
        return mask_secrets(str(error), filter(None, [self.settings.api_key]))


@dataclass(slots=True, kw_only=True)
class SyncRuns:
    """Stores the outcome of a sync for each document, in one run per source."""

    store: Store
    worker: str
    clock: Clock
    sources: frozenset[SourceId]  # existing sources; documents of deleted sources belong to no run
    _runs: dict[SourceId, Run] = field(default_factory=dict)
    _errors: dict[SourceId, str] = field(default_factory=dict)

    async def open(self, sources: Iterable[SourceId]) -> None:
        for source in sources:
            if source not in self._runs and source in self.sources:
                self._runs[source] = await self.store.copies.start_run(source, self.worker, self.clock())

    async def note(self, documents: Sequence[tuple[Copy, DocumentOutcome]]) -> None:
        ours = [(copy, outcome) for copy, outcome in documents if copy.source_id in self.sources]
        await self.open(copy.source_id for copy, _ in ours)
        notes = [DocumentNote(run=self._runs[copy.source_id].id, copy=copy, outcome=each) for copy, each in ours]
        await self.store.copies.record_documents(notes, self.clock())

    def fail(self, sources: Iterable[SourceId], error: str) -> None:
        for source in sources:
            self._errors.setdefault(source, error)

    def numbers(self, sources: Iterable[SourceId]) -> tuple[int, ...]:
        return tuple(sorted(int(self._runs[each].id) for each in sources if each in self._runs))

    async def finish(self, *, stopped: bool) -> None:
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
    store: Store
    target: ConfiguredSink
    worker: str
    store_id: str
    sources: Sequence[SourceId]  # sources that the sink should contain
    only: Sequence[SourceId] | None  # the sources of this sync; None: all sources
    clock: Clock
    stopping: asyncio.Event
    listener: Listener
    sleep: Callable[[float], Awaitable[None]] | None  # replaced in tests
    runs: SyncRuns
    needs_listing: bool  # the sink has to be listed first
    tally: SyncTally = field(default_factory=SyncTally)
    audited_at: datetime | None = None  # when this sync listed the sink
    _refused: list[Copy] = field(default_factory=list)
    _taken: int = 0  # number of documents that the sink accepted
    _processed: bool = False  # documents in processing may be ready soon
    _undropped: int = 0  # number of refused deletions in a row
    _tried: set[int] = field(default_factory=set)  # copies to skip until the next sync

    async def run(self) -> None:
        listings, pause, waited = MAX_LISTINGS, FIRST_CHECK_SECONDS, 0.0
        while True:
            if self.needs_listing:
                await self._audit()
            self._processed = False
            await self._looks()
            await self._drops()
            lost = await self._puts()
            await self._drops()  # delete old documents whose replacement is active now
            if self.stopping.is_set():
                return
            if lost is not None:
                listings -= 1
                self.needs_listing = True
                if not listings:
                    raise lost
            elif not self._processed or waited >= self.target.settings.wait_seconds:
                return
            await self._pause(pause)
            waited, pause = waited + pause, next_wait(pause, FIRST_CHECK_SECONDS, MAX_CHECK_SECONDS)

    async def _pause(self, seconds: float) -> None:
        await (wait_event(self.stopping, seconds) if self.sleep is None else self.sleep(seconds))

    async def _retry(self, what: str, call: Callable[[], Awaitable[T]], *, only_with_delay: bool = False) -> T:
        """Repeat a call while the sink is busy; with `only_with_delay`, only if the sink says how long to wait."""
        for failures in count(1):
            try:
                return await call()
            except SinkBusy as busy:
                asked = busy.retry_after
                wait = wait_to_retry(
                    failures, asked, tries=MAX_TRIES, first=FIRST_PAUSE_SECONDS, max_seconds=MAX_PAUSE_SECONDS
                )
                if wait is None or (only_with_delay and asked is None) or self.stopping.is_set():
                    raise
                log.info("%s: %s; retrying in %.0f s", what, busy, wait)
                await self._pause(wait)
        raise AssertionError("the last try raises")

    async def _audit(self) -> None:
        name, call = self.target.name, partial(list_documents, self.target.sink, self.store_id)
        listing = await self._retry(f"{name}: list", call)
        log.info("%s: listed %d documents, of which %d are not from afresh", name, listing.listed, listing.foreign)
        failpoint("sync.audited")
        audit = Audit(listing, self.target.order, self.target.times)
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
        self.needs_listing, self.audited_at = False, self.clock()

    async def _drops(self) -> None:
        async for batch in self._steps(CopyStep.DROP):
            copies = [reconcile.to_drop(wanted, self.target.order) for wanted in batch]
            await self._record(copies)
            failpoint("sync.dropping")
            results = await gather_all(map(self._drop, copies))
            failpoint("sync.dropped")
            await self._record([copy for copy, _ in results])
            deleted = [
                (copy, DocumentOutcome.DELETED)
                for wanted, (copy, error) in zip(batch, results, strict=True)
                if error is None and wanted.hash is None and reconcile.holds_anything(wanted.copy)
            ]
            await self.runs.note(deleted)
            self.tally.counts["deleted"] += len(deleted)
            for copy, error in results:  # failed deletions stay in `leftovers`
                if error is not None:
                    self._tried.add(copy.id)
                    if not isinstance(error, SinkRefused) or self._undropped >= MAX_REFUSALS:
                        raise error  # if all fail, the sink is the problem
            self._report_progress()

    async def _drop(self, copy: Copy) -> tuple[Copy, SinkError | None]:
        for remote in copy.leftovers:
            try:
                await self._retry(f"{copy.sink}: delete", partial(self.target.sink.drop, remote))
            except SinkError as error:
                why = self.target.describe(error)
                log.info("%s: %s could not be deleted: %s", copy.sink, remote, why)
                self._undropped += 1
                return replace(copy, error=why), error
            log.info("%s: deleted %s (%s)", copy.sink, remote, copy.url)
            self._undropped = 0
            copy = reconcile.dropped(copy, remote)
        return copy, None

    async def _puts(self) -> SinkBusy | None:
        """Upload new and changed pages; stop after an error that may hide a successful upload, and return it."""
        lost: SinkBusy | None = None
        async for batch in self._steps(CopyStep.PUT):
            begun = await self._begun(batch)
            results = await gather_all(self._put(copy, text) for copy, text, _ in begun)
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
            self._report_progress()
            if lost is not None:
                break
        await self._judge_refusals(at_end=True)
        return lost

    async def _begun(self, batch: Sequence[DesiredCopy]) -> list[tuple[Copy, UploadText, bool]]:
        """Store that the uploads of a batch begin; return each copy, its text and whether it replaces older content."""
        begun, without = [], []
        for wanted in batch:
            page = wanted.copy.page_id
            text = None if page is None else await self.store.copies.page_text(page)
            if text is None:  # the page was just deleted: the next sync handles that
                continue
            if text.markdown is None:
                without.append(reconcile.refused(reconcile.to_put(wanted), NO_TEXT))
                continue
            current = replace(wanted, hash=text.hash)  # the page may have changed since the batch was read
            if reconcile.plan(current, self.target.order, self.clock()) is CopyStep.PUT:
                begun.append((reconcile.to_put(current), text, is_replaced(current)))
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
        call = partial(self.target.sink.put, upload)
        try:
            remote = await self._retry(f"{copy.sink}: upload", call, only_with_delay=True)
        except SinkError as error:
            why = self.target.describe(error)
            log.info("%s: %s could not be uploaded: %s", copy.sink, copy.url, why)
            if isinstance(error, SinkRefused):
                return replace(copy, putting=False, error=why), error
            sure = not isinstance(error, SinkBusy) or error.retry_after is not None
            return reconcile.unput(copy, why, sure=sure), error
        failpoint("sync.put")
        log.info("%s: uploaded %s as %s: %s", copy.sink, copy.url, remote.id, remote.state)
        return reconcile.put(copy, remote, self.clock(), self.target.times), None

    async def _judge_refusals(self, *, at_end: bool = False) -> None:
        """Record refused pages as failed; raise SinkRefused if the sink refused MAX_REFUSALS and accepted none.

        While the sink has accepted no page, do nothing until MAX_REFUSALS or the end of the uploads (`at_end`).
        """
        copies, refuses_all = self._refused, not self._taken and len(self._refused) >= MAX_REFUSALS
        if not copies or not (refuses_all or self._taken or at_end):
            return
        self._refused = []
        if refuses_all:
            reason = copies[-1].error or ""
            await self._record([reconcile.unput(copy, reason, sure=True) for copy in copies])
            raise SinkRefused(reason)
        await self._record([reconcile.refused(copy, copy.error or "refused") for copy in copies])

    async def _looks(self) -> None:
        async for batch in self._steps(CopyStep.LOOK):
            results = await gather_all(self._look(wanted.copy) for wanted in batch)
            failpoint("sync.looked")
            self._leave_stuck([wanted.copy for wanted in batch], results)
            await self._record(results)
            await self.runs.note([(copy, _looked(copy)) for copy in results])
            self.tally.counts["verified"] += sum(copy.state is PageStatus.ACTIVE for copy in results)
            self._processed = self._processed or any(map(_is_processed, results))
            self._report_progress()

    async def _look(self, copy: Copy) -> Copy:
        remote = await self._retry(f"{copy.sink}: look", partial(self.target.sink.look, str(copy.remote_id)))
        log.info("%s: %s is %s", copy.sink, copy.remote_id, remote.state if remote else "absent")
        return reconcile.seen(copy, remote, self.clock(), self.target.times)

    def _leave_stuck(self, before: Sequence[Copy], after: Sequence[Copy]) -> None:
        """Take no more steps in this sync for documents that have just become stuck, so that users see this state."""
        known = {copy.id for copy in before if reconcile.is_stuck(copy)}
        self._tried.update(copy.id for copy in after if reconcile.is_stuck(copy) and copy.id not in known)

    async def _read(self, *, to_do: bool, only: Sequence[SourceId] | None) -> AsyncIterator[Sequence[DesiredCopy]]:
        after = 0
        while batch := await self.store.copies.of_sink(
            self.target.name, self.sources, only=only, to_do=to_do, after=after, limit=BATCH_SIZE
        ):
            yield batch
            after = batch[-1].copy.id

    async def _steps(self, step: CopyStep) -> AsyncIterator[Sequence[DesiredCopy]]:
        """Yield the copies whose next step is `step`, in batches for concurrent calls."""
        size = max(1, self.target.sink.at_once)
        async for batch in self._read(to_do=True, only=self.only):
            now = self.clock()
            found = [each for each in batch if reconcile.plan(each, self.target.order, now) is step]
            found = [each for each in found if each.copy.id not in self._tried]
            for start in range(0, len(found), size):
                if self.stopping.is_set():
                    return
                yield found[start : start + size]

    async def count_left(self) -> None:
        """Count the unfinished copies, and store which of them have failed or are stuck."""
        async for batch in self._read(to_do=True, only=self.only):
            now = self.clock()
            left = [each for each in batch if reconcile.plan(each, self.target.order, now) is not CopyStep.NOTHING]
            self.tally.end(left)
            failed = [(each.copy, DocumentOutcome.FAILED) for each in left if is_failed(each.copy)]
            stuck = [(each.copy, DocumentOutcome.STUCK) for each in left if reconcile.is_stuck(each.copy)]
            await self.runs.note([*failed, *stuck])

    async def _record(self, copies: Sequence[Copy]) -> None:
        await self.store.copies.record(self.target.name, self.worker, copies, self.clock())

    def _report_progress(self) -> None:
        self.listener(SyncProgress(sink=self.target.name, counts=dict(self.tally.counts)))


def _looked(copy: Copy) -> DocumentOutcome:
    if copy.state is PageStatus.ACTIVE:
        return DocumentOutcome.VERIFIED
    return DocumentOutcome.STUCK if reconcile.is_stuck(copy) else DocumentOutcome.WAITING


def _is_processed(copy: Copy) -> bool:
    return copy.state is PageStatus.PROCESSING and copy.next_try_at is None and not reconcile.is_stuck(copy)
