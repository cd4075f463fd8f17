"""The end of a run in the store: what was not reached, what is to go, and letting it go."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from afresh.core.model import Attempt, ChangeKind, Listed, Page, PageId, PageStatus, RunId, SourceId
from afresh.core.sweep import by_reason, final_status, leads_on
from afresh.store.dialect import Database, Session
from afresh.store.identity import exchange
from afresh.store.records import attempt_from, page_from


class Sweeps:
    """Reading and writing what `core/sweep.py` decides about."""

    db: Database

    async def record_listing(
        self, source: SourceId, listed: Sequence[Listed], *, complete: bool = True
    ) -> None:
        """Remember which pages the source lists by itself; an incomplete listing takes none off the list."""
        urls = [item.url for item in listed]
        async with self.db.write(source) as tx:
            changed = await tx.run("set_listed", source=source, urls=urls)
            if complete:
                changed += await tx.run("clear_listed", source=source, urls=urls)
            if changed:
                await tx.run("mark_graph", source=source, changed=1)

    async def lists_pages(self, source: SourceId) -> bool:
        """Whether a listing named pages beside the root when it was last read."""
        async with self.db.read() as tx:
            row = await tx.one("listed_pages", source=source)
            return bool(row and row["number"])

    async def unreached(self, source: SourceId, root: str, max_depth: int) -> list[Page]:
        """Pages with content that no way leads to; walked anew only if a link or a listing changed."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_id", source=source)
            if row is not None and not row["graph_changed"]:
                rows = await tx.all("missing_pages", source=source)
            else:
                rows = await tx.all("unreached", source=source, root=root, max_depth=max_depth)
            return [page_from(row) for row in rows]

    async def doomed(
        self, source: SourceId, missed: Sequence[Page] = ()
    ) -> list[tuple[Page, PageStatus | None]]:
        """Pages whose content is to go, those just missed too often included, with where their moves end."""
        async with self.db.read() as tx:
            pages = [page_from(row) for row in await tx.all("doomed", source=source)]
            pages += [page for page in missed if page.doomed_by is not None]
            if not pages:
                return []
            rows = await tx.all("moves", source=source)
            moves = {row["url"]: (PageStatus(row["status"]), row["moved_to"]) for row in rows}
            return [(page, final_status(page.moved_to, moves) if page.moved_to else None) for page in pages]

    async def live_count(self, source: SourceId) -> int:
        """How many pages have content."""
        async with self.db.read() as tx:
            row = await tx.one("live_count", source=source)
            return int(row["live"]) if row else 0

    async def root_attempt(self, source: SourceId, root: str) -> tuple[Page | None, Attempt | None]:
        """The root page and the last finished attempt to look at it."""
        async with self.db.read() as tx:
            row = await tx.one("root_page", source=source, root=root)
            if row is None:
                return None, None
            latest = await tx.one("latest_attempt", page=row["id"])
            return page_from(row), attempt_from(latest) if latest else None


async def record_missing(tx: Session, source: SourceId, pages: Sequence[Page], now: datetime) -> None:
    """Write the missing counts of unreached pages, and clear those of all others."""
    row = await tx.one("source_by_id", source=source)
    if not pages and row is not None and not row["graph_changed"]:
        return
    await tx.run("reset_missing", source=source, pages=[page.id for page in pages])
    counted = [
        {"page": page.id, "missing_count": page.missing_count, "doomed_by": page.doomed_by, "now": now}
        for page in pages
    ]
    await tx.many("record_missing", counted)
    await tx.run("drop_lonely_links", source=source)
    await tx.run("mark_graph", source=source, changed=0)


async def drop(
    tx: Session,
    source: SourceId,
    run: RunId | None,
    pages: Sequence[Page],
    now: datetime,
    heirs: Mapping[PageId, Page] | None = None,
) -> None:
    """Take pages out of the index, in a run or by hand; their history stays, or moves with them."""
    heirs = heirs or {}
    ids = [page.id for page in pages]
    await tx.run("leave_vectors_of_pages", pages=ids, now=now)
    await tx.run("drop_chunks", pages=ids)
    await tx.run("forget_kb", pages=[page.id for page in pages])
    await tx.run("drop_documents", pages=ids)
    await tx.run("drop_page_links", pages=[page.id for page in pages if not leads_on(page)])
    for reason, gone in by_reason([page for page in pages if page.moved_to is None]).items():
        await tx.run("cancel_open", pages=gone, now=now, reason=reason)
    await tx.run("unseal_links", source=source)
    await tx.many("drop_page", [_dropped(page, now) for page in pages])
    await exchange(tx, pages, heirs, now)
    await tx.many("insert_change", [_change(source, run, page, heirs.get(page.id), now) for page in pages])
    await tx.run("mark_graph", source=source, changed=1)


def _dropped(page: Page, now: datetime) -> dict[str, object]:
    status = PageStatus.REDIRECT if page.moved_to else PageStatus.DELETED
    return {"page": page.id, "status": status, "now": now}


def _change(
    source: SourceId, run: RunId | None, page: Page, heir: Page | None, now: datetime
) -> dict[str, object]:
    return {
        "source": source,
        "page": page.id,
        "url": page.url,
        "kind": ChangeKind.MOVED if page.moved_to else ChangeKind.DELETED,
        "run": run,
        "now": now,
        "old_hash": page.content_hash,
        "new_hash": heir.content_hash if heir is not None else None,
        "diff": None,
        "moved_to": page.moved_to,
    }
