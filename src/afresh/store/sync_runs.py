"""Syncs on record: a run for each source, and a row for each document that the sync did something about."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from afresh.core.model import Run, RunId, RunMode, RunState, SourceId
from afresh.core.shown import synced_document
from afresh.core.sync_views import SYNC_INTERRUPTED, DocumentNote, DocumentOutcome, SyncedDocument
from afresh.store.copies import wanted_from
from afresh.store.dialect import Database, Row
from afresh.store.records import certain, run_from


class SyncRunRecords:
    """Reading and writing syncs."""

    db: Database

    async def start_sync_run(self, source: SourceId, worker: str, now: datetime) -> Run:
        """A run for a sync; those of workers that are gone are closed."""
        async with self.db.write(source) as tx:
            await tx.run("close_dead_syncs", source=source, worker=worker, error=SYNC_INTERRUPTED, now=now)
            mode, state = RunMode.SYNC, RunState.RUNNING
            row = await tx.one(
                "insert_run",
                source=source,
                mode=mode,
                state=state,
                full=0,
                worker=worker,
                taken_at=now,
                now=now,
            )
            assert row is not None  # noqa: S101 - `returning` gives the row
            return run_from(row)

    async def record_documents(self, notes: Sequence[DocumentNote], now: datetime) -> None:
        """Write down documents; what is verified or waits keeps the outcome that it had."""
        if notes:
            async with self.db.write() as tx:
                await tx.many("record_document", [_row(note, now) for note in notes])

    async def count_documents(self, run: RunId) -> dict[str, int]:
        """How many documents of a sync ended how."""
        async with self.db.read() as tx:
            return {row["outcome"]: int(row["number"]) for row in await tx.all("count_documents", run=run)}

    async def finish_sync_run(
        self, run: Run, state: RunState, counts: Mapping[str, int], error: str | None, now: datetime
    ) -> None:
        """End a sync, unless another process closed it."""
        async with self.db.write(run.source_id) as tx:
            await tx.one(
                "finish_run",
                run=run.id,
                worker=run.worker,
                was=run.state,
                state=state,
                now=now,
                counts=json.dumps(dict(counts)),
                notes="[]",
                error=error,
            )

    async def documents_of_run(
        self, run: RunId, *, outcome: DocumentOutcome | None = None, after: int, limit: int
    ) -> list[SyncedDocument]:
        """The documents of a sync in the order of their numbers, as it left them and as they are now."""
        async with self.db.read() as tx:
            rows = await tx.all("documents_of_run", run=run, outcome=outcome, after=after, limit=limit)
            return [_document(row) for row in rows]


def _row(note: DocumentNote, now: datetime) -> dict[str, object]:
    copy = note.copy
    return {
        "run": note.run,
        "copy": copy.id,
        "sink": copy.sink,
        "url": copy.url,
        "outcome": note.outcome,
        "state": copy.state,
        "remote_id": copy.remote_id,
        "remote_name": copy.remote_name,
        "error": copy.error,
        "now": now,
    }


def _document(row: Row) -> SyncedDocument:
    return synced_document(
        wanted_from(row) if row["id"] is not None else None,
        id=row["copy_id"],
        sink=row["document_sink"],
        url=row["document_url"],
        outcome=row["outcome"],
        state=row["document_state"],
        remote_id=row["document_id"],
        remote_name=row["document_name"],
        error=row["document_error"],
        at=certain(row["at"]),
    )
