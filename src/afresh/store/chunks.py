"""Chunks of stored pages."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from afresh.model.fetch import Chunk
from afresh.model.records import ChangeKind, ContentAction, Page, PageId, SourceId, Visit
from afresh.search.query import only_signals
from afresh.search.records import MissingCount, RechunkJob
from afresh.search.stemming import analysed, search_config
from afresh.store.dialect import Row, Transaction
from afresh.store.records import change_row, page_from
from afresh.store.repository import Repository
from afresh.text.normalize import headings_over, sketch_of

RESTORED_FIELDS = ("title", "content_hash", "refused_hash", "doubt", "chunker")


class ChunkRepository(Repository):
    """Chunks pages again from their stored text."""

    async def cut_by_others(
        self, chunker: str, *, source: SourceId | None = None, after: int = 0, limit: int = 100
    ) -> list[RechunkJob]:
        """Return pages with text that another version of the chunker has split, in order."""
        rows = await self._all("cut_by_others", chunker=chunker, source=source, after=after, limit=limit)
        return [RechunkJob(page_from(row), row["markdown"]) for row in rows]

    async def count_cut_by_others(self, chunker: str, source: SourceId | None = None) -> MissingCount:
        """Return how many pages another version has split, and how many of them have no text."""
        [row] = await self._all("count_cut_by_others", chunker=chunker, source=source)
        return MissingCount(row["pages"], row["without_text"])

    async def recut(self, cuts: Sequence[RechunkJob], chunker: str, now: datetime) -> int:
        """Replace the chunks of pages that have not changed since they were read; return how many."""
        async with self.db.write() as tx:
            ids = [cut.page.id for cut in cuts]
            hashes = {row["id"]: row["content_hash"] for row in await tx.all("hashes_of", pages=ids)}
            same = [cut for cut in cuts if hashes.get(cut.page.id) == cut.page.content_hash]
            old = await chunks_of(tx, [cut.page.id for cut in same])
            swap = ChunkSwap(now, keep_body=True)
            for cut in same:
                swap.plan(cut.page, cut.chunks, old[cut.page.id])
            await swap.write(tx)
            await tx.run("mark_recut", pages=[cut.page.id for cut in same], chunker=chunker, now=now)
            return len(same)

    async def restore(self, cut: RechunkJob, before: Page, now: datetime) -> bool:
        """Replace the content of a page by a former text and its chunks; return False if it changed."""
        page = cut.page
        async with self.db.write(page.source_id) as tx:
            rows = await tx.all("hashes_of", pages=[page.id])
            if not rows or rows[0]["content_hash"] != before.content_hash:
                return False
            swap = ChunkSwap(now, keep_body=True)
            swap.plan(page, cut.chunks, (await chunks_of(tx, [page.id]))[page.id])
            await swap.write(tx)
            text = {"markdown": cut.markdown, "sketch": sketch_of(cut.markdown), "length": len(cut.markdown)}
            await tx.run("restore_document", page=page.id, **text)
            values = {name: getattr(page, name) for name in RESTORED_FIELDS}
            await tx.run("restore_page", page=page.id, now=now, **values)
            row = change_row(before, None, ChangeKind.CHANGED, page.content_hash, now)
            await tx.many("insert_change", [row])
            return True


@dataclass(slots=True)
class ChunkSwap:
    """Collects changes to the chunks of some pages and writes them together."""

    now: datetime
    keep_body: bool
    dead: list[int] = field(default_factory=list)
    moved: list[dict[str, object]] = field(default_factory=list)
    made: list[dict[str, object]] = field(default_factory=list)
    kept: int = 0

    def plan(self, page: Page, chunks: Sequence[Chunk], old: Sequence[Row]) -> None:
        """Keep rows with the same text and links at any position, add the others and delete the rest."""
        title, config = page.title or "", search_config(page.language)
        title_terms = analysed(title, config)
        spare: dict[tuple[str, str, bool], list[Row]] = defaultdict(list)
        for row in old:
            if (row["title"], row["config"], bool(row["whole"])) == (title, config, self.keep_body):
                spare[row["text_hash"], row["content"], bool(row["analysed"])].append(row)
            else:
                self.dead.append(row["id"])
        for order, chunk in enumerate(chunks if self.keep_body else map(only_signals, chunks)):
            is_analysed = (title_terms, *chunk.terms) != (None, None, None)
            like = spare[chunk.text_hash, chunk.content, is_analysed]
            if not like:
                place = {"page": page.id, "sort_order": order, "title": title, "config": config}
                self.made.append({**place, **self._row(chunk, title_terms)})
                continue
            row = like.pop(0)
            self.kept += 1
            if row["sort_order"] != order:
                self.moved.append({"chunk": row["id"], "sort_order": order})
        self.dead.extend(row["id"] for rows in spare.values() for row in rows)

    def _row(self, chunk: Chunk, title_terms: str | None) -> dict[str, object]:
        metadata = {"level": chunk.level, "path": list(chunk.path), "types": list(chunk.types)}
        return {
            "heading": headings_over(chunk),
            "content": chunk.content,
            "terms": _terms(title_terms, *chunk.terms),
            "metadata": json.dumps(metadata),
            "whole": int(self.keep_body),
            "text_hash": chunk.text_hash,
            "now": self.now,
        }

    async def write(self, tx: Transaction) -> None:
        """Write the planned changes."""
        if self.dead:
            await tx.run("leave_vectors", chunks=self.dead, now=self.now)
            await tx.run("delete_chunks", chunks=self.dead)
        await tx.many("move_chunk", self.moved)
        await tx.many("insert_chunk", self.made)


async def swap_chunks(
    tx: Transaction, visits: Sequence[Visit], now: datetime, *, keep_body: bool
) -> dict[str, int]:
    """Write documents and chunks of changed pages; return how many chunks were added and kept."""
    kept = [visit for visit in visits if visit.decision.content is ContentAction.KEEP]
    pages = [visit.decision.page for visit in kept if visit.claim.page.title != visit.decision.page.title]
    if titles := {page.id: page.title or "" for page in pages}:  # updates the title of kept chunks
        rows = await tx.all("terms_of", pages=list(titles))
        await tx.many("retitle_chunk", [_retitled(row, titles[row["page_id"]]) for row in rows])
    replaced = [visit for visit in visits if visit.decision.content is ContentAction.REPLACE]
    if not replaced:
        return {}
    old = await chunks_of(tx, [visit.claim.page.id for visit in replaced])
    swap = ChunkSwap(now, keep_body)
    for visit in replaced:
        swap.plan(visit.decision.page, visit.harvest.chunks, old[visit.claim.page.id])
    await swap.write(tx)
    await tx.many("upsert_document", [_document(visit, now, keep_body) for visit in replaced])
    if not keep_body:
        await tx.run("forget_diffs", pages=[visit.claim.page.id for visit in replaced])
    return {"chunks_kept": swap.kept, "chunks_made": len(swap.made)}


async def chunks_of(tx: Transaction, pages: Sequence[PageId]) -> dict[PageId, list[Row]]:
    """Return the stored chunks of some pages."""
    old: dict[PageId, list[Row]] = defaultdict(list)
    for row in await tx.all("chunks_of", pages=list(pages)):
        old[row["page_id"]].append(row)
    return old


def _retitled(row: Row, title: str) -> dict[str, object]:
    _, *others = json.loads(row["terms"]) if row["terms"] else (None, None, None)
    terms = _terms(analysed(title, row["config"]), *others)
    return {"chunk": row["id"], "title": title, "config": row["config"], "terms": terms}


def _terms(*parts: str | None) -> str | None:
    """Return the terms of title, heading and content as one value, or None if there are none."""
    return None if parts == (None, None, None) else json.dumps(parts, ensure_ascii=False)


def _document(visit: Visit, now: datetime, keep_body: bool) -> dict[str, object]:
    text: dict[str, object] = {"markdown": None, "sketch": None, "length": None}
    if (document := visit.harvest.document) is not None:
        markdown = document.markdown if keep_body else None
        text = {"markdown": markdown, "sketch": document.sketch, "length": len(document.markdown)}
    page, flagged = visit.claim.page, int(visit.decision.keeps_former)
    return {"page": page.id, **text, "flagged": flagged, "former_title": page.title, "now": now}
