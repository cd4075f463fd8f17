"""Syncs on record, in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.copies import Copy, Wanted
from afresh.core.model import PageStatus, Run, RunId, RunMode, RunState, SourceId
from afresh.core.shown import synced_document
from afresh.core.sync_views import SYNC_INTERRUPTED, DocumentOutcome, SyncedDocument
from afresh.ports.sync_runs import DocumentNote
from afresh.testing.memory.tables import Tables

KEEPS = (DocumentOutcome.VERIFIED, DocumentOutcome.WAITING)  # the outcome of a document that was noted before


class MemorySyncRuns:
    """Reading and writing syncs."""

    tables: Tables

    async def start_sync_run(self, source: SourceId, worker: str, now: datetime) -> Run:
        """A run for a sync; those of workers that are gone are closed."""
        for run in list(self.tables.runs.values()):
            going = (run.source_id, run.mode, run.state) == (source, RunMode.SYNC, RunState.RUNNING)
            if going and (run.worker == worker or run.worker not in self.tables.workers):
                closed = replace(run, state=RunState.FAILED, finished_at=now, error=SYNC_INTERRUPTED)
                self.tables.runs[run.id] = closed
        made = Run(
            id=RunId(next(self.tables.numbers)),
            source_id=source,
            mode=RunMode.SYNC,
            state=RunState.RUNNING,
            worker=worker,
            taken_at=now,
            known=sum(row.page.content_hash is not None for row in self.tables.pages_of(source)),
            started_at=now,
        )
        self.tables.runs[made.id] = made
        return made

    async def record_documents(self, notes: Sequence[DocumentNote], now: datetime) -> None:
        """Write down documents; what is verified or waits keeps the outcome that it had."""
        for note in notes:
            key = (note.run, note.copy.id)
            before = self.tables.sync_documents.get(key)
            outcome = before[1] if before and note.outcome in KEEPS else note.outcome
            self.tables.sync_documents[key] = (note.copy, outcome, now)

    async def count_documents(self, run: RunId) -> dict[str, int]:
        """How many documents of a sync ended how."""
        kept = self.tables.sync_documents.items()
        return dict(Counter(str(outcome) for (of, _), (_, outcome, _) in kept if of == run))

    async def finish_sync_run(
        self, run: Run, state: RunState, counts: Mapping[str, int], error: str | None, now: datetime
    ) -> None:
        """End a sync, unless another process closed it."""
        found = self.tables.runs.get(run.id)
        if found is not None and (found.worker, found.state) == (run.worker, run.state):
            ended = replace(found, state=state, finished_at=now, counts=dict(counts), error=error)
            self.tables.runs[run.id] = ended

    async def documents_of_run(
        self, run: RunId, *, outcome: DocumentOutcome | None = None, after: int, limit: int
    ) -> list[SyncedDocument]:
        """The documents of a sync in the order of their numbers, as it left them and as they are now."""
        if run not in self.tables.runs:
            return []
        found = [
            self._document(then, how, at)
            for (of, number), (then, how, at) in sorted(self.tables.sync_documents.items())
            if of == run and number > after and outcome in (None, how)
        ]
        return found[:limit]

    def _document(self, then: Copy, outcome: DocumentOutcome, at: datetime) -> SyncedDocument:
        copy = self.tables.copies.get(then.id)
        row = self.tables.pages.get(copy.page_id) if copy and copy.page_id is not None else None
        now = None
        if copy is not None and row is None:
            now = Wanted(copy=replace(copy, page_id=None), hash=None)
        elif copy is not None and row is not None:
            moved = row.page.status is PageStatus.REDIRECT
            now = Wanted(copy=copy, hash=row.page.content_hash, moved=moved)
        return synced_document(
            now,
            id=then.id,
            sink=then.sink,
            url=then.url,
            outcome=outcome,
            state=then.state,
            remote_id=then.remote_id,
            remote_name=then.remote_name,
            error=then.error,
            at=at,
        )
