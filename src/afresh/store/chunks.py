"""Chunks of stored pages."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from afresh.model.fetch import Chunk
from afresh.model.records import ChangeKind, Content, Page, PageId, SourceId, Visit
from afresh.search.bodyless import only_signals
from afresh.search.stemming import analysed, search_config
from afresh.search.vectors import Cut, Lack
from afresh.store.dialect import Row, Session
from afresh.store.records import page_from
from afresh.store.repository import Repository
from afresh.text.normalize import headings_over
from afresh.text.similarity import sketch_of

RESTORED_FIELDS = ("title", "content_hash", "refused_hash", "doubt", "chunker")


class ChunkRepository(Repository):
    """Cut pages anew from their stored text."""

    async def cut_by_others(
        self, chunker: str, *, source: SourceId | None = None, after: int = 0, limit: int = 100
    ) -> list[Cut]:
        """Pages with a text whose chunks another version cut, in their order."""
        async with self.db.read() as tx:
            rows = await tx.all("cut_by_others", chunker=chunker, source=source, after=after, limit=limit)
            return [Cut(page_from(row), row["markdown"]) for row in rows]

    async def count_cut_by_others(self, chunker: str, source: SourceId | None = None) -> Lack:
        """How many pages another version cut, and how many of them have no text to cut anew."""
        async with self.db.read() as tx:
            row = await tx.one("count_cut_by_others", chunker=chunker, source=source)
            return Lack(row["pages"], row["without_text"]) if row else Lack(0, 0)

    async def recut(self, cuts: Sequence[Cut], chunker: str, now: datetime) -> int:
        """Swap the chunks of pages that are as they were when they were cut; the answer is how many were."""
        async with self.db.write() as tx:
            ids = [cut.page.id for cut in cuts]
            hashes = {row["id"]: row["content_hash"] for row in await tx.all("hashes_of", pages=ids)}
            same = [cut for cut in cuts if hashes.get(cut.page.id) == cut.page.content_hash]
            old = await chunks_of(tx, [cut.page.id for cut in same])
            swap = Swap(now, keep_body=True)
            for cut in same:
                swap.plan(cut.page, cut.chunks, old[cut.page.id])
            await swap.write(tx)
            await tx.run("mark_recut", pages=[cut.page.id for cut in same], chunker=chunker, now=now)
            return len(same)

    async def restore(self, cut: Cut, before: Page, now: datetime) -> bool:
        """Put a former text with its chunks in the place of what a page shows; False if that changed."""
        page = cut.page
        async with self.db.write(page.source_id) as tx:
            rows = await tx.all("hashes_of", pages=[page.id])
            if not rows or rows[0]["content_hash"] != before.content_hash:
                return False
            swap = Swap(now, keep_body=True)
            swap.plan(page, cut.chunks, (await chunks_of(tx, [page.id]))[page.id])
            await swap.write(tx)
            text = {"markdown": cut.markdown, "sketch": sketch_of(cut.markdown), "length": len(cut.markdown)}
            await tx.run("restore_document", page=page.id, **text)
            values = {name: getattr(page, name) for name in RESTORED_FIELDS}
            await tx.run("restore_page", page=page.id, now=now, **values)
            change = {"source": page.source_id, "page": page.id, "url": page.url, "kind": ChangeKind.CHANGED}
            hashes = {"old_hash": before.content_hash, "new_hash": page.content_hash}
            empty = {"run": None, "diff": None, "moved_to": None}
            await tx.many("insert_change", [{**change, **hashes, **empty, "now": now}])
            return True


@dataclass(slots=True)
class Swap:
    """What becomes of the chunks of some pages: gathered for all of them, written at once."""

    now: datetime
    keep_body: bool
    dead: list[int] = field(default_factory=list)
    moved: list[dict[str, object]] = field(default_factory=list)
    made: list[dict[str, object]] = field(default_factory=list)
    kept: int = 0

    def plan(self, page: Page, chunks: Sequence[Chunk], old: Sequence[Row]) -> None:
        """Keep rows whose text and links stay, in whatever place; make the others, let go of what is left."""
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

    async def write(self, tx: Session) -> None:
        """Carry out what was planned."""
        if self.dead:
            await tx.run("leave_vectors", chunks=self.dead, now=self.now)
            await tx.run("delete_chunks", chunks=self.dead)
        await tx.many("move_chunk", self.moved)
        await tx.many("insert_chunk", self.made)


async def swap_chunks(
    tx: Session, visits: Sequence[Visit], now: datetime, *, keep_body: bool
) -> dict[str, int]:
    """Write documents and chunks of replaced pages; counts what was made and what was kept."""
    await _retitle(tx, [visit.decision.page for visit in visits if _is_renamed(visit)])
    replaced = [visit for visit in visits if visit.decision.content is Content.REPLACE]
    if not replaced:
        return {}
    old = await chunks_of(tx, [visit.claim.page.id for visit in replaced])
    swap = Swap(now, keep_body)
    for visit in replaced:
        swap.plan(visit.decision.page, visit.harvest.chunks, old[visit.claim.page.id])
    await swap.write(tx)
    await tx.many("upsert_document", [_document(visit, now, keep_body) for visit in replaced])
    if not keep_body:
        await tx.run("forget_diffs", pages=[visit.claim.page.id for visit in replaced])
    return {"chunks_kept": swap.kept, "chunks_made": len(swap.made)}


async def chunks_of(tx: Session, pages: Sequence[PageId]) -> dict[PageId, list[Row]]:
    """The chunks on record of some pages."""
    old: dict[PageId, list[Row]] = defaultdict(list)
    for row in await tx.all("chunks_of", pages=list(pages)):
        old[row["page_id"]].append(row)
    return old


async def _retitle(tx: Session, pages: Sequence[Page]) -> None:
    """Pages whose title alone changed are found by their new one; their chunks stay."""
    if not pages:
        return
    titles = {page.id: page.title or "" for page in pages}
    rows = await tx.all("terms_of", pages=list(titles))
    await tx.many("retitle_chunk", [_retitled(row, titles[row["page_id"]]) for row in rows])


def _is_renamed(visit: Visit) -> bool:
    before, after = visit.claim.page, visit.decision.page
    return visit.decision.content is Content.KEEP and before.title != after.title


def _retitled(row: Row, title: str) -> dict[str, object]:
    _, *others = json.loads(row["terms"]) if row["terms"] else (None, None, None)
    config = row["config"]
    terms = _terms(analysed(title, config), *others)
    return {"chunk": row["id"], "title": title, "config": config, "terms": terms}


def _terms(*parts: str | None) -> str | None:
    """The terms of title, heading and content in one value; None if there are none at all."""
    return None if parts == (None, None, None) else json.dumps(parts, ensure_ascii=False)


def _document(visit: Visit, now: datetime, keep_body: bool) -> dict[str, object]:
    document = visit.harvest.document
    return {
        "page": visit.claim.page.id,
        "markdown": document.markdown if document is not None and keep_body else None,
        "sketch": document.sketch if document is not None else None,
        "length": len(document.markdown) if document is not None else None,
        "flagged": int(visit.decision.keeps_former),
        "former_title": visit.claim.page.title,
        "now": now,
    }
