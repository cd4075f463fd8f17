"""Copies of pages in external stores (sinks), and the runs that sync them."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial

from afresh.crawl.run_verdict import RunEnding
from afresh.errors import RunBusy
from afresh.model.filters import PageFilter
from afresh.model.records import PageId, PageStatus, Run, RunId, RunMode, RunState, SourceId
from afresh.model.reports import PageView
from afresh.store.dialect import Row, Transaction, of_sources
from afresh.store.pages import asked_pages
from afresh.store.records import certain, page_view, record, run_from
from afresh.store.repository import Repository
from afresh.store.runs import close_run, insert_run
from afresh.sync.copy import Copy, DesiredCopy, SinkRecord, UploadText
from afresh.sync.reconcile import copy_view, synced_document
from afresh.sync.reports import SYNC_INTERRUPTED, DocumentNote, DocumentOutcome, PageCopy, SyncedDocument

_NOTED = ("sink", "url", "state", "remote_id", "remote_name", "error")
_DOCUMENT = {  # columns of a synced document, by field
    "id": "copy_id",
    "outcome": "outcome",
    "remote_id": "document_id",
    "remote_name": "document_name",
    **{name: f"document_{name}" for name in ("sink", "url", "state", "error")},
}
_WRITTEN = (
    *("state", "wanted_hash", "held_hash", "remote_id", "remote_name", "attempts"),
    *("put_at", "failed_at", "next_try_at", "error"),
)


class CopyRepository(Repository):
    async def store_id(self, made: str | None = None) -> str | None:
        """Return the id that marks this store's documents in sinks; if none is stored, store `made` first."""
        if made is not None:
            await self._run("make_store_id", text=made)
        row = await self._one("store_id")
        return None if row is None else str(row["id"])

    async def sink_records(self) -> list[SinkRecord]:
        return await self._records(SinkRecord, "sinks")

    async def take_sink(self, sink: str, place: str, worker: str) -> SinkRecord:
        """Reserve a sink, or raise RunBusy; if `place`, the external store, has changed, all documents are listed."""
        async with self.db.write() as tx:
            await tx.run("add_sink", name=sink, place=place)
            row = await tx.only("sink", name=sink)
            alive = {each["name"] for each in await tx.all("workers")}
            if row["worker"] in alive - {worker}:
                raise RunBusy(f"{sink} is being synced by another process ({row['worker']}); wait for it or stop it")
            await tx.run("take_sink", name=sink, place=place, worker=worker)
            return record(SinkRecord, await tx.only("sink", name=sink))

    async def leave_sink(
        self,
        sink: str,
        worker: str,
        now: datetime,
        *,
        audit: bool,
        audited_at: datetime | None = None,
        resume_at: datetime | None = None,
        error: str | None = None,
    ) -> None:
        """Release a sink, store how its sync ended, and delete the copies that have neither a page nor a document.

        `audit` tells whether the next sync has to list all documents, `audited_at` is when this sync listed them, and
        `resume_at` is the end of a pause that the sink asked for.
        """
        async with self.db.write() as tx:
            state = {"audit": int(audit), "at": audited_at, "until": resume_at, "error": error}
            if await tx.run("leave_sink", name=sink, worker=worker, now=now, **state):
                await tx.run("forget_copies", name=sink)

    async def add(self, sink: str, worker: str, sources: Sequence[SourceId], now: datetime) -> int:
        """Record a copy for each page with content that has none in the sink yet; return their number."""
        async with self._taken(sink, worker) as tx:
            return await tx.run("add_copies", name=sink, sources=list(sources), now=now)

    async def count_uncopied(self, sink: str, sources: Sequence[SourceId]) -> int:
        return await self._number("count_uncopied", name=sink, sources=list(sources))

    async def add_orphans(self, sink: str, worker: str, orphans: Sequence[tuple[str, str, str]], now: datetime) -> None:
        """Record documents (source label, name or URL, id) that belong to no page, so that they are deleted."""
        async with self._taken(sink, worker) as tx:
            for label, name, remote in orphans:
                ids = json.dumps([remote])
                await tx.run("add_orphan", name=sink, source=0, label=label, url=name, leftovers=ids, now=now)

    async def of_sink(
        self,
        sink: str,
        sources: Sequence[SourceId],
        *,
        only: Sequence[SourceId] | None = None,
        to_do: bool = False,
        after: int = 0,
        limit: int = 500,
    ) -> list[DesiredCopy]:
        """Return the copies for a sink, in order of their ids; with `only`, those of these sources.

        `sources` are all sources that the sink should contain: copies of other sources are to be deleted. With `to_do`,
        return only copies that differ from the state that they should have in the sink.
        """
        held = {"name": sink, "sources": list(sources)}
        asked = {"everything": int(only is None), "others": list(only or ()), "after": after, "limit": limit}
        return await self._list(wanted_from, "copies_to_do" if to_do else "copies_of_sink", **held, **asked)

    async def record(self, sink: str, worker: str, copies: Sequence[Copy], now: datetime) -> None:
        if copies:
            async with self._taken(sink, worker) as tx:
                await tx.many("record_copy", [_row(copy, now) for copy in copies])

    async def page_text(self, page: PageId) -> UploadText | None:
        return await self._find(partial(record, UploadText), "page_text", page=page)

    async def pages(
        self, sink: str, source: SourceId, *, state: PageStatus | None, after: int, limit: int
    ) -> list[PageCopy]:
        """Return the pages of a source with content, in order of their ids, each with its copy in a sink."""
        asked = {"name": sink, "source": source, "state": state, "after": after, "limit": limit}
        return await self._list(partial(_page_copy, sink), "pages_copied", **asked)

    async def of_pages(self, pages: Sequence[PageId]) -> list[DesiredCopy]:
        return await self._list(wanted_from, "copies_of_pages", pages=list(pages))

    async def pages_by_state(
        self, sinks: Sequence[str], sources: Sequence[SourceId], which: PageFilter, *, after: int, limit: int
    ) -> list[PageView]:
        """Return pages in order of their ids, filtered by the state of their copies."""
        held = {"sinks": list(sinks), "number": len(sinks)}
        name, among = of_sources("pages_by_copies", sources)
        asked = {**asked_pages(which), "after": after, "limit": limit}
        return await self._list(page_view, name, **among, **held, **asked)

    @asynccontextmanager
    async def _taken(self, sink: str, worker: str) -> AsyncIterator[Transaction]:
        """Open a transaction; if the worker has lost the sink, let the next sync list the sink, and raise RunBusy."""
        async with self.db.write() as tx:
            row = await tx.one("sink", name=sink)
            mine = row is not None and row["worker"] == worker
            if mine:
                yield tx
            else:  # two workers may have written to it
                await tx.run("doubt_sink", name=sink)
        if not mine:
            raise RunBusy(f"the sync of {sink} was taken over by another process")

    async def start_run(self, source: SourceId, worker: str, now: datetime) -> Run:
        """Start the run of a sync; close the sync runs of dead workers."""
        async with self.db.write(source) as tx:
            await tx.run("close_dead_syncs", source=source, worker=worker, error=SYNC_INTERRUPTED, now=now)
            return run_from(await insert_run(tx, source, RunMode.SYNC, worker, now))

    async def record_documents(self, notes: Sequence[DocumentNote], now: datetime) -> None:
        """Store the outcome of each document in its run; `verified` and `waiting` do not replace an earlier outcome."""
        if notes:
            async with self.db.write() as tx:
                rows = [
                    {"run": note.run, "copy": note.copy.id, "outcome": note.outcome, "now": now}
                    | {name: getattr(note.copy, name) for name in _NOTED}
                    for note in notes
                ]
                await tx.many("record_document", rows)

    async def count_documents(self, run: RunId) -> dict[str, int]:
        return {row["outcome"]: int(row["number"]) for row in await self._all("count_documents", run=run)}

    async def finish_run(
        self, run: Run, state: RunState, counts: Mapping[str, int], error: str | None, now: datetime
    ) -> None:
        """End the run of a sync, unless another process has ended it already."""
        async with self.db.write(run.source_id) as tx:
            await close_run(tx, run, RunEnding(state=state, counts=counts, error=error), now)

    async def documents_of_run(
        self, run: RunId, *, outcome: DocumentOutcome | None = None, after: int, limit: int
    ) -> list[SyncedDocument]:
        """Return the documents of a sync in order of their ids, each as the sync left it and as it is now."""
        asked = {"outcome": outcome, "after": after, "limit": limit}
        return await self._list(_document, "documents_of_run", run=run, **asked)


def wanted_from(row: Row) -> DesiredCopy:
    moved = row["page_status"] == PageStatus.REDIRECT
    return DesiredCopy(copy=record(Copy, row), hash=row["page_hash"], moved=moved)


def _page_copy(sink: str, row: Row) -> PageCopy:
    copy = copy_view(None if row["id"] is None else wanted_from(row), sink)
    return PageCopy(id=PageId(row["page"]), url=row["page_url"], title=row["title"], copy=copy)


def _row(copy: Copy, now: datetime) -> dict[str, object]:
    return {
        **{name: getattr(copy, name) for name in _WRITTEN},
        "copy": copy.id,
        "putting": int(copy.putting),
        "former": json.dumps(copy.former),
        "leftovers": json.dumps(copy.leftovers),
        "now": now,
    }


def _document(row: Row) -> SyncedDocument:
    then = {name: row[column] for name, column in _DOCUMENT.items()}
    now = wanted_from(row) if row["id"] is not None else None
    return synced_document(now, **then, at=certain(row["at"]))
