"""Copies of pages in external stores, and the runs that sync them."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from afresh.errors import RunBusy
from afresh.model.filters import PageFilter
from afresh.model.records import PageId, PageStatus, Run, RunId, RunMode, RunState, SourceId
from afresh.model.reports import PageView
from afresh.store.dialect import Row, Session
from afresh.store.pages import asked_pages
from afresh.store.records import at, certain, page_view, run_from
from afresh.store.repository import Repository
from afresh.store.sql import of_sources
from afresh.sync.copy import Copy, PageText, SinkRecord, Wanted
from afresh.sync.page_status import copy_view, synced_document
from afresh.sync.reports import SYNC_INTERRUPTED, DocumentNote, DocumentOutcome, PageCopy, SyncedDocument


class CopyRepository(Repository):
    """Read and write copies, and record syncs."""

    async def store_id(self, made: str | None = None) -> str | None:
        """What tells the documents of this store from those of others; `made` where there is none yet."""
        if made is not None:
            async with self.db.write() as tx:
                await tx.run("make_store_id", text=made)
        async with self.db.read() as tx:
            row = await tx.one("store_id")
            return None if row is None else str(row["id"])

    async def sink_records(self) -> list[SinkRecord]:
        """What is on record of every store."""
        async with self.db.read() as tx:
            return [_sink(row) for row in await tx.all("sinks")]

    async def take_sink(self, sink: str, place: str, worker: str) -> SinkRecord:
        """Be the one who syncs a store; RunBusy while another living worker is."""
        async with self.db.write() as tx:
            await tx.run("add_sink", name=sink, place=place)
            row = await tx.one("sink", name=sink)
            alive = {each["name"] for each in await tx.all("workers")}
            if row is not None and row["worker"] in alive - {worker}:
                raise RunBusy(f"{sink} is being synced by another process ({row['worker']}); wait or stop it")
            await tx.run("take_sink", name=sink, place=place, worker=worker)
            row = await tx.one("sink", name=sink)
            assert row is not None  # noqa: S101 - inserted above
            return _sink(row)

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
        """Leave a store to the next; copies with nothing left in it are forgotten with their pages."""
        async with self.db.write() as tx:
            left = await tx.run(
                "leave_sink",
                name=sink,
                worker=worker,
                now=now,
                audit=int(audit),
                at=audited_at,
                until=resume_at,
                error=error,
            )
            if left:
                await tx.run("forget_copies", name=sink)

    async def add(self, sink: str, worker: str, sources: Sequence[SourceId], now: datetime) -> int:
        """Give every page with content a copy that waits for its upload; how many are new."""
        async with self._taken(sink, worker) as tx:
            return await tx.run("add_copies", name=sink, sources=list(sources), now=now)

    async def count_uncopied(self, sink: str, sources: Sequence[SourceId]) -> int:
        """How many pages with content have no copy yet."""
        async with self.db.read() as tx:
            row = await tx.one("count_uncopied", name=sink, sources=list(sources))
            return int(row["number"]) if row else 0

    async def add_orphans(
        self, sink: str, worker: str, orphans: Sequence[tuple[str, str, str]], now: datetime
    ) -> None:
        """Documents of no page, to be dropped: label of the source, name and id of each."""
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
    ) -> list[Wanted]:
        """Copies in a store in the order of their numbers; `sources` are those that it is to hold."""
        async with self.db.read() as tx:
            rows = await tx.all(
                "copies_to_do" if to_do else "copies_of_sink",
                name=sink,
                sources=list(sources),
                everything=int(only is None),
                others=list(only or ()),
                after=after,
                limit=limit,
            )
            return [wanted_from(row) for row in rows]

    async def record(self, sink: str, worker: str, copies: Sequence[Copy], now: datetime) -> None:
        """Write copies as they are now."""
        if copies:
            async with self._taken(sink, worker) as tx:
                await tx.many("record_copy", [_row(copy, now) for copy in copies])

    async def page_text(self, page: PageId) -> PageText | None:
        """What is to be uploaded of a page, as it is at this moment; None: nothing."""
        async with self.db.read() as tx:
            row = await tx.one("page_text", page=page)
            if row is None:
                return None
            return PageText(
                hash=row["content_hash"],
                url=row["url"],
                title=row["title"],
                language=row["language"],
                markdown=row["markdown"],
            )

    async def pages(
        self, sink: str, source: SourceId, *, state: PageStatus | None, after: int, limit: int
    ) -> list[PageCopy]:
        """The pages of a source that have content, in order, and how each stands in a store."""
        async with self.db.read() as tx:
            rows = await tx.all(
                "pages_copied", name=sink, source=source, state=state, after=after, limit=limit
            )
            return [_page_copy(row, sink) for row in rows]

    async def of_pages(self, pages: Sequence[PageId]) -> list[Wanted]:
        """The copies of some pages."""
        async with self.db.read() as tx:
            return [wanted_from(row) for row in await tx.all("copies_of_pages", pages=list(pages))]

    async def pages_by_state(
        self, sinks: Sequence[str], sources: Sequence[SourceId], which: PageFilter, *, after: int, limit: int
    ) -> list[PageView]:
        """Pages in the order of their numbers, where the status asked for is that of their copies."""
        held = {"sinks": list(sinks), "number": len(sinks)}
        name, among = of_sources("pages_by_copies", sources)
        asked = {**asked_pages(which), "after": after, "limit": limit}
        async with self.db.read() as tx:
            return [page_view(row) for row in await tx.all(name, **among, **held, **asked)]

    @asynccontextmanager
    async def _taken(self, sink: str, worker: str) -> AsyncIterator[Session]:
        """A transaction of the one who syncs a store; what another may have put meanwhile is to be listed."""
        async with self.db.write() as tx:
            row = await tx.one("sink", name=sink)
            mine = row is not None and row["worker"] == worker
            if mine:
                yield tx
            else:
                await tx.run("doubt_sink", name=sink)
        if not mine:
            raise RunBusy(f"the sync of {sink} was taken over by another process")

    async def start_run(self, source: SourceId, worker: str, now: datetime) -> Run:
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
                await tx.many("record_document", [_document_row(note, now) for note in notes])

    async def count_documents(self, run: RunId) -> dict[str, int]:
        """How many documents of a sync ended how."""
        async with self.db.read() as tx:
            return {row["outcome"]: int(row["number"]) for row in await tx.all("count_documents", run=run)}

    async def finish_run(
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


def _sink(row: Row) -> SinkRecord:
    return SinkRecord(
        name=row["name"],
        place=row["place"],
        worker=row["worker"],
        audit=bool(row["audit"]),
        audited_at=at(row["audited_at"]),
        resume_at=at(row["resume_at"]),
        synced_at=at(row["synced_at"]),
        error=row["error"],
        failing_since=at(row["failing_since"]),
    )


def wanted_from(row: Row) -> Wanted:
    """A copy, and what its store should hold."""
    moved = row["page_status"] == PageStatus.REDIRECT
    return Wanted(copy=_copy(row), hash=row["page_hash"], moved=moved)


def _page_copy(row: Row, sink: str) -> PageCopy:
    copy = None if row["id"] is None else wanted_from(row)
    return PageCopy(
        id=PageId(row["page"]), url=row["page_url"], title=row["title"], copy=copy_view(copy, sink)
    )


def _copy(row: Row) -> Copy:
    return Copy(
        id=row["id"],
        sink=row["sink"],
        source_id=SourceId(row["source_id"]),
        source=row["source"],
        page_id=None if row["page_id"] is None else PageId(row["page_id"]),
        url=row["url"],
        state=PageStatus(row["state"]),
        wanted_hash=row["wanted_hash"],
        held_hash=row["held_hash"],
        remote_id=row["remote_id"],
        remote_name=row["remote_name"],
        putting=bool(row["putting"]),
        former=tuple(json.loads(row["former"])),
        leftovers=tuple(json.loads(row["leftovers"])),
        attempts=row["attempts"],
        put_at=at(row["put_at"]),
        failed_at=at(row["failed_at"]),
        next_try_at=at(row["next_try_at"]),
        error=row["error"],
        created_at=certain(row["created_at"]),
        updated_at=certain(row["updated_at"]),
    )


def _row(copy: Copy, now: datetime) -> dict[str, object]:
    return {
        "copy": copy.id,
        "state": copy.state,
        "wanted_hash": copy.wanted_hash,
        "held_hash": copy.held_hash,
        "remote_id": copy.remote_id,
        "remote_name": copy.remote_name,
        "putting": int(copy.putting),
        "former": json.dumps(copy.former),
        "leftovers": json.dumps(copy.leftovers),
        "attempts": copy.attempts,
        "put_at": copy.put_at,
        "failed_at": copy.failed_at,
        "next_try_at": copy.next_try_at,
        "error": copy.error,
        "now": now,
    }


def _document_row(note: DocumentNote, now: datetime) -> dict[str, object]:
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
