"""Chunks of stored pages."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from afresh.model.fetch import Chunk
from afresh.model.records import ChangeKind, ContentAction, Page, PageId, SourceId, Visit
from afresh.search.query import only_signals
from afresh.search.records import MissingCount, RechunkJob
from afresh.search.stemming import analysed, search_config
from afresh.store.dialect import Row, Transaction
from afresh.store.records import page_from
from afresh.store.repository import Repository
from afresh.text.normalize import sketch_of

Terms = tuple[str | None, ...]
NO_TERMS: Terms = (None, None, None)  # title, heading and content are indexed as they are
RESTORED_FIELDS = ("title", "content_hash", "refused_hash", "doubt", "chunker")


class ChunkRepository(Repository):
    async def outdated_pages(
        self, chunker: str, *, source: SourceId | None = None, after: int = 0, limit: int = 100
    ) -> list[RechunkJob]:
        """Return pages with stored text whose chunks another version of the chunker made, in order of their ids."""
        rows = await self._all("outdated_pages", chunker=chunker, source=source, after=after, limit=limit)
        return [RechunkJob(page_from(row), row["markdown"]) for row in rows]

    async def count_outdated(self, chunker: str, source: SourceId | None = None) -> MissingCount:
        """Count the pages whose chunks another version of the chunker made, and those of them without stored text."""
        [row] = await self._all("count_outdated", chunker=chunker, source=source)
        return MissingCount(row["pages"], row["without_text"])

    async def recut(self, cuts: Sequence[RechunkJob], chunker: str, now: datetime) -> int:
        """Replace the chunks of pages whose content is still the same; return the number of these pages."""
        async with self.db.write() as tx:
            ids = [cut.page.id for cut in cuts]
            hashes = {row["id"]: row["content_hash"] for row in await tx.all("hashes_of", pages=ids)}
            same = [cut for cut in cuts if hashes.get(cut.page.id) == cut.page.content_hash]
            await _replace(tx, [(cut.page, cut.chunks) for cut in same], now, keep_body=True)
            await tx.run("mark_recut", pages=[cut.page.id for cut in same], chunker=chunker, now=now)
            return len(same)

    async def restore(self, cut: RechunkJob, before: Page, now: datetime) -> bool:
        """Replace the content of a page by its former text and its chunks; return False if the page changed since."""
        page = cut.page
        async with self.db.write(page.source_id) as tx:
            rows = await tx.all("hashes_of", pages=[page.id])
            if not rows or rows[0]["content_hash"] != before.content_hash:
                return False
            await _replace(tx, [(page, cut.chunks)], now, keep_body=True)
            text = {"markdown": cut.markdown, "sketch": sketch_of(cut.markdown), "length": len(cut.markdown)}
            await tx.run("restore_document", page=page.id, **text)
            values = {name: getattr(page, name) for name in RESTORED_FIELDS}
            await tx.run("restore_page", page=page.id, now=now, **values)
            row = change_row(before, None, ChangeKind.CHANGED, page.content_hash, now)
            await tx.many("insert_change", [row])
            return True


async def swap_chunks(tx: Transaction, visits: Sequence[Visit], now: datetime, *, keep_body: bool) -> dict[str, int]:
    """Write the documents and chunks of changed pages; return the numbers of added and kept chunks."""
    kept = [visit for visit in visits if visit.decision.content is ContentAction.KEEP]
    pages = [visit.decision.page for visit in kept if visit.claim.page.title != visit.decision.page.title]
    if titles := {page.id: page.title or "" for page in pages}:  # updates the title of kept chunks
        rows = await tx.all("terms_of", pages=list(titles))
        await tx.many("retitle_chunk", [_retitled(row, titles[row["page_id"]]) for row in rows])
    replaced = [visit for visit in visits if visit.decision.content is ContentAction.REPLACE]
    if not replaced:
        return {}
    chunks = [(visit.decision.page, visit.content.chunks) for visit in replaced]
    counts = await _replace(tx, chunks, now, keep_body=keep_body)
    documents = []
    for visit in replaced:
        text: dict[str, object] = {"markdown": None, "sketch": None, "length": None}
        if (document := visit.content.document) is not None:
            markdown = document.markdown if keep_body else None
            text = {"markdown": markdown, "sketch": document.sketch, "length": len(document.markdown)}
        page, flagged = visit.claim.page, int(visit.decision.keeps_former)
        documents.append({"page": page.id, **text, "flagged": flagged, "former_title": page.title, "now": now})
    await tx.many("upsert_document", documents)
    if not keep_body:
        await tx.run("forget_diffs", pages=[visit.claim.page.id for visit in replaced])
    return counts


async def _replace(
    tx: Transaction, pages: Sequence[tuple[Page, Sequence[Chunk]]], now: datetime, *, keep_body: bool
) -> dict[str, int]:
    """Replace the chunks of pages; keep rows with the same text, and return the numbers of added and kept chunks."""
    rows: dict[PageId, list[Row]] = defaultdict(list)
    for row in await tx.all("chunks_of", pages=[page.id for page, _ in pages]):
        rows[row["page_id"]].append(row)
    dead, moved, made = list[int](), list[dict[str, object]](), list[dict[str, object]]()
    for page, chunks in pages:
        title, config = page.title or "", search_config(page.language)
        title_terms = analysed(title, config)
        spare: dict[object, list[Row]] = defaultdict(list)
        for row in rows[page.id]:
            fits = (row["title"], row["config"], bool(row["whole"])) == (title, config, keep_body)
            spare[fits and (row["text_hash"], row["content"], bool(row["analysed"]))].append(row)
        base = {"page": page.id, "title": title, "config": config, "whole": int(keep_body), "now": now}
        for order, chunk in enumerate(chunks if keep_body else map(only_signals, chunks)):
            terms = (title_terms, *chunk.terms)
            if not (like := spare[chunk.text_hash, chunk.content, terms != NO_TERMS]):
                metadata = {"level": chunk.level, "path": list(chunk.path), "types": list(chunk.types)}
                made.append(
                    base
                    | {
                        "sort_order": order,
                        "heading": chunk.heading,
                        "content": chunk.content,
                        "terms": json.dumps(terms, ensure_ascii=False) if terms != NO_TERMS else None,
                        "metadata": json.dumps(metadata),
                        "text_hash": chunk.text_hash,
                    }
                )
            elif (row := like.pop(0))["sort_order"] != order:
                moved.append({"chunk": row["id"], "sort_order": order})
        dead += [row["id"] for left in spare.values() for row in left]
    if dead:
        await tx.run("leave_vectors", chunks=dead, now=now)
        await tx.run("delete_chunks", chunks=dead)
    await tx.many("move_chunk", moved)
    await tx.many("insert_chunk", made)
    return {"chunks_kept": sum(map(len, rows.values())) - len(dead), "chunks_made": len(made)}


def _retitled(row: Row, title: str) -> dict[str, object]:
    _, *others = json.loads(row["terms"]) if row["terms"] else NO_TERMS
    terms = analysed(title, row["config"]), *others
    stored = json.dumps(terms, ensure_ascii=False) if terms != NO_TERMS else None
    return {"chunk": row["id"], "title": title, "config": row["config"], "terms": stored}


def change_row(
    page: Page, run: int | None, kind: ChangeKind, new_hash: str | None, now: datetime, moved_to: str | None = None
) -> dict[str, object]:
    """Return a row for the table `changes`; `page` is the page before the change."""
    whose = {"source": page.source_id, "page": page.id, "url": page.url, "run": run, "now": now}
    hashes = {"old_hash": page.content_hash, "new_hash": new_hash}
    return {**whose, **hashes, "kind": kind, "diff": None, "moved_to": moved_to}
