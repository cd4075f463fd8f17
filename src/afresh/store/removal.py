"""Remove pages from the index, transfer the id and history of moved pages, and delete old records."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Literal

from afresh.crawl.run_verdict import by_reason, keeps_links
from afresh.model.records import ChangeKind, Page, PageId, PageStatus, RunId, SourceId
from afresh.model.retention import REMOVED, Prunable, PruneCounts
from afresh.store.content import change_row
from afresh.store.dialect import Row, Transaction, queries
from afresh.store.records import certain
from afresh.store.repository import MANY, Repository

_OWN = ("observed_at", "change_count", "quiet_seconds", "span_seconds")  # statistics on how often the page changes
PrunedTable = Literal["documents", "changes", "outbox", "former_texts"]


@cache
def _content_columns() -> tuple[str, ...]:
    """Return the columns with results of checks, which stay with the URL when a page moves to another URL."""
    written = re.findall(r"\{rows ([\w ]+)\}", queries("sqlite")["update_page"])[0].split()
    return tuple(name for name in written if name not in (*_OWN, "now", "page"))


async def exchange(tx: Transaction, dropped: Sequence[Page], heirs: Mapping[PageId, Page], now: datetime) -> None:
    """Move each dropped page that has an heir to the heir's URL, with its id and history.

    `heirs` maps the id of a moved page to the page that was found at the new URL. This heir gets the old URL and
    becomes the redirect. Dropped pages without an heir are ignored.
    """
    before = {page.id: page for page in dropped if page.id in heirs}
    pairs = [{"page": page, "target": heirs[page].id} for page in before]
    if not pairs:
        return
    targets = [pair["target"] for pair in pairs]
    both = [*before, *targets]
    partner: dict[int, int] = dict(zip(both, [*targets, *before], strict=True))
    await _exchange_history(tx, before, pairs, both, partner)
    await tx.many("hand_over_document", pairs)
    await tx.many("hand_over_kb", pairs)
    await tx.many("copy_chunks", pairs)  # with new ids, because caches in memory use the old ones
    await tx.run("drop_chunks", pages=targets)
    await tx.run("untell_new", pages=targets)
    await tx.many("hand_over_changes", pairs)
    edges = await tx.all("edges_of_pages", pages=both)
    await tx.run("delete_page_links", pages=both)
    kept = ((row, {name: row[name] for name in ("position", "text", "follow")}) for row in edges)
    swapped = [{"page": partner[row["page_id"]], "link": row["link_id"], **edge} for row, edge in kept]
    await tx.many("insert_page_link", swapped)
    copies = await tx.all("copies_bound_to", pages=both)
    await tx.run("unbind_copies", pages=both)
    await tx.many("bind_copy", [{"copy": row["id"], "page": partner[row["page_id"]]} for row in copies])
    rows = {row["id"]: row for row in await tx.all("rows_of_pages", pages=both)}
    await tx.many("rename_page", [{"page": page, "url": f"moving:{page}"} for page in both])
    await tx.many("update_page", [_content(rows, page, partner[page], before, now) for page in both])
    await tx.many("place_page", [_place(page, rows[partner[page]], before) for page in both])


async def _exchange_history(
    tx: Transaction,
    before: Mapping[PageId, Page],
    pairs: Sequence[Mapping[str, object]],
    both: Sequence[int],
    partner: Mapping[int, int],
) -> None:
    """Give the moved pages the attempts at their new URLs.

    Planned checks, and the attempts that found the redirects, stay with their URLs. `both` are the ids of the moved
    pages and of the pages found at the new URLs; `partner` maps each id to that of the page with which it swaps URLs.
    """
    planned = await tx.all("open_rows_of_pages", pages=both)
    await tx.run("unbind_crawls", crawls=[row["id"] for row in planned])
    await tx.many("bind_crawl", [{"crawl": row["id"], "page": partner[row["page_id"]]} for row in planned])
    await tx.many("hand_over_crawls", pairs)
    moved = [{"page": page, "target": partner[page], "url": before[page].url} for page in before]
    await tx.many("leave_moved_crawls", moved)


def _content(
    rows: Mapping[int, Row], page: int, other: int, before: Mapping[PageId, Page], now: datetime
) -> dict[str, object]:
    """Return the new content columns of a page: those of `other`, with which it swaps URLs."""
    values = {name: rows[other][name] for name in _content_columns()} | {name: rows[page][name] for name in _OWN}
    moved = before.get(PageId(page))
    if moved is not None and moved.content_hash == values["content_hash"]:
        values["changed_at"] = moved.changed_at
    return {**values, "page": page, "now": now}


def _place(page: int, other: Row, before: Mapping[PageId, Page]) -> dict[str, object]:
    """Return the values that `page` takes over from `other` when they swap URLs, such as URL and missing count.

    If `page` moved and `other` is missing, the missing count is the sum of both. The removal has reset the count of
    `page`, so it is read from `before`: the moved pages before their removal.
    """
    place = {name: other[name] for name in ("url", "depth", "listed")}
    moved, missing = before.get(PageId(page)), other["missing_count"]
    if moved is not None and missing:
        missing += moved.missing_count
    return {"page": page, "run": other["queued_run"], "missing_count": missing, **place}


async def record_missing(tx: Transaction, source: SourceId, pages: Sequence[Page], now: datetime) -> None:
    """Store the missing counts of pages that were not reached, and reset those of all other pages."""
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
    tx: Transaction,
    source: SourceId,
    run: RunId | None,
    pages: Sequence[Page],
    now: datetime,
    heirs: Mapping[PageId, Page] | None = None,
) -> None:
    """Remove pages from the index, in a run or on request; keep their history, at the new URL if a page moved."""
    heirs = heirs or {}
    ids = [page.id for page in pages]
    await tx.run("leave_vectors_of_pages", pages=ids, now=now)
    await tx.run("drop_chunks", pages=ids)
    await tx.run("forget_kb", pages=ids)
    await tx.run("drop_documents", pages=ids)
    await tx.run("drop_page_links", pages=[page.id for page in pages if not keeps_links(page)])
    for reason, gone in by_reason([page for page in pages if page.moved_to is None]).items():
        await tx.run("cancel_open", pages=gone, now=now, reason=reason)
    await tx.run("unseal_links", source=source)
    states = {page.id: PageStatus.REDIRECT if page.moved_to else PageStatus.DELETED for page in pages}
    await tx.many("drop_page", [{"page": page, "status": state, "now": now} for page, state in states.items()])
    await exchange(tx, pages, heirs, now)
    await tx.many("insert_change", [_change(run, page, heirs.get(page.id), now) for page in pages])
    await tx.run("mark_graph", source=source, changed=1)


def _change(run: RunId | None, page: Page, heir: Page | None, now: datetime) -> dict[str, object]:
    kind = ChangeKind.MOVED if page.moved_to else ChangeKind.DELETED
    return change_row(page, run, kind, heir.content_hash if heir else None, now, page.moved_to)


class RetentionRepository(Repository):
    async def prune_pages(self, source: SourceId, before: datetime, now: datetime, *, limit: int) -> int:
        """Delete the records of pages deleted before a time, except their attempts; return their number."""
        async with self.db.write(source) as tx:
            rows = await tx.all("prunable_pages", source=source, before=before, limit=limit)
            if not rows:
                return 0
            pages = [row["id"] for row in rows]
            await tx.run("cancel_open", pages=pages, now=now, reason=REMOVED)
            await tx.run("tie_attempts_to_runs", pages=pages, source=source)  # a run tells the source of an attempt
            await tx.run("drop_copies_of_pages", pages=pages)
            await tx.run("remember_page_number", pages=pages)
            await tx.run("delete_pages", pages=pages)
            await tx.run("open_frontier_to", source=source, urls=[row["url"] for row in rows])
            if any(row["leads_on"] for row in rows):
                await tx.run("mark_graph", source=source, changed=1)
            return len(pages)

    async def prune_attempts(self, before: datetime, *, after: int, limit: int) -> tuple[int, int | None]:
        """Delete old ones of the next `limit` attempts above `after`; return how many, and the next `after`, if any."""
        async with self.db.write() as tx:
            row = await tx.one("next_attempts", after=after, limit=limit)
            if row is None or row["last"] is None or certain(row["oldest"]) > before:
                return 0, None
            removed = await tx.run("prune_attempts", after=after, top=row["last"], before=before)
            return removed, int(row["last"])

    async def prune(self, table: PrunedTable, before: datetime, *, limit: int) -> int:
        """Delete old records of a table; return their number.

        Some records are kept: the documents of the latest sync of a source into a sink, unsent messages, the changes
        that such messages report, and the newest change.
        """
        return await self._run(f"prune_{table}", before=before, limit=limit)

    async def count_prunable(self, prunable: Prunable) -> PruneCounts:
        """Return how many records of each kind the prune methods would delete."""
        async with self.db.read() as tx:
            pages = 0
            for row in await tx.all("sources") if prunable.deleted_pages is not None else ():
                asked = {"source": row["id"], "before": prunable.deleted_pages, "limit": MANY}
                pages += len(await tx.all("prunable_pages", **asked))

            async def count(what: str, before: datetime | None) -> int:
                return 0 if before is None else await tx.number(f"count_prunable_{what}", before=before)

            return PruneCounts(
                deleted_pages=pages,
                attempts=await count("attempts", prunable.attempts) + await count("documents", prunable.attempts),
                changes=await count("changes", prunable.changes),
                messages=await count("outbox", prunable.outbox),
                former_texts=await count("former_texts", prunable.former_texts),
            )

    async def reclaim_space(self) -> int | None:
        """Free unused disk space of the database; return the bytes freed, or None if the database does so by itself."""
        return await self.db.reclaim_space()
