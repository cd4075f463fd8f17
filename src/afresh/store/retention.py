"""Removal of what is past its retention."""

from datetime import datetime

from afresh.model.records import SourceId
from afresh.model.retention import REMOVED, Prunable, PruneCounts
from afresh.store.dialect import Session
from afresh.store.records import certain
from afresh.store.repository import Repository

EVERY_PAGE = 1_000_000_000


class RetentionRepository(Repository):
    """Count and remove old records."""

    async def prune_pages(self, source: SourceId, before: datetime, now: datetime, *, limit: int) -> int:
        """Remove records of pages of a source that were deleted before; their attempts stay."""
        async with self.db.write(source) as tx:
            rows = await tx.all("prunable_pages", source=source, before=before, limit=limit)
            if not rows:
                return 0
            pages = [row["id"] for row in rows]
            await tx.run("cancel_open", pages=pages, now=now, reason=REMOVED)
            await tx.run("tie_attempts_to_runs", pages=pages, source=source)  # which tell their source
            await tx.run("drop_copies_of_pages", pages=pages)
            await tx.run("remember_page_number", pages=pages)
            await tx.run("delete_pages", pages=pages)
            await tx.run("open_frontier_to", source=source, urls=[row["url"] for row in rows])
            if any(row["leads_on"] for row in rows):
                await tx.run("mark_graph", source=source, changed=1)
            return len(pages)

    async def prune_attempts(self, before: datetime, *, after: int, limit: int) -> tuple[int, int | None]:
        """Remove old attempts among the next rows; how many, and the place to go on at, None at the end."""
        async with self.db.write() as tx:
            row = await tx.one("next_attempts", after=after, limit=limit)
            if row is None or row["last"] is None or certain(row["oldest"]) > before:
                return 0, None
            removed = await tx.run("prune_attempts", after=after, top=row["last"], before=before)
            return removed, int(row["last"])

    async def prune_documents(self, before: datetime, *, limit: int) -> int:
        """Remove old documents of syncs; those of the latest sync of a source into a store stay."""
        async with self.db.write() as tx:
            return await tx.run("prune_documents", before=before, limit=limit)

    async def prune_changes(self, before: datetime, *, limit: int) -> int:
        """Remove old changes, unless a message about them waits; the newest stays."""
        async with self.db.write() as tx:
            return await tx.run("prune_changes", before=before, limit=limit)

    async def prune_outbox(self, before: datetime, *, limit: int) -> int:
        """Remove messages that were delivered or given up before."""
        async with self.db.write() as tx:
            return await tx.run("prune_outbox", before=before, limit=limit)

    async def prune_former_texts(self, before: datetime, *, limit: int) -> int:
        """Remove texts that pages had before they lost nearly all of it."""
        async with self.db.write() as tx:
            return await tx.run("prune_former_texts", before=before, limit=limit)

    async def count_prunable(self, prunable: Prunable) -> PruneCounts:
        """Count what the others would remove."""
        async with self.db.read() as tx:
            pages = 0
            for row in await tx.all("sources") if prunable.deleted_pages is not None else ():
                asked = {"source": row["id"], "before": prunable.deleted_pages, "limit": EVERY_PAGE}
                pages += len(await tx.all("prunable_pages", **asked))
            return PruneCounts(
                deleted_pages=pages,
                attempts=await _count(tx, "count_prunable_attempts", prunable.attempts)
                + await _count(tx, "count_prunable_documents", prunable.attempts),
                changes=await _count(tx, "count_prunable_changes", prunable.changes),
                messages=await _count(tx, "count_prunable_outbox", prunable.outbox),
                former_texts=await _count(tx, "count_prunable_former_texts", prunable.former_texts),
            )

    async def reclaim_space(self) -> int | None:
        """Give free room back to the disk; how many bytes, None where the database does so by itself."""
        return await self.db.reclaim_space()


async def _count(tx: Session, name: str, before: datetime | None) -> int:
    row = await tx.one(name, before=before) if before is not None else None
    return int(row["number"]) if row else 0
