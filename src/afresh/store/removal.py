"""Take pages out of the index."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from afresh.crawl.judge import by_reason, leads_on
from afresh.model.records import ChangeKind, Page, PageId, PageStatus, RunId, SourceId
from afresh.store.dialect import Session
from afresh.store.identity import exchange


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
