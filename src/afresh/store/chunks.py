"""Swapping the chunks of changed pages; a chunk whose text stays keeps its row and its vector."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from afresh.core.looks import Chunk
from afresh.core.model import Content, Page, PageId, Visit
from afresh.core.signals import signals
from afresh.core.text import headings_in
from afresh.store.dialect import Row, Session


def search_config(language: str | None) -> str:
    """The text-search configuration for a language: English is stemmed, the rest is taken as it is."""
    return "english" if language is None or language.lower().split("-")[0] == "en" else "simple"


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
        """Keep rows whose text stays, in whatever place; make the others, and let go of what is left over."""
        title, config = page.title or "", search_config(page.language)
        spare: dict[str, list[Row]] = defaultdict(list)
        for row in old:
            if (row["title"], row["config"], bool(row["whole"])) == (title, config, self.keep_body):
                spare[row["text_hash"]].append(row)
            else:
                self.dead.append(row["id"])
        for order, chunk in enumerate(chunks):
            if not spare[chunk.text_hash]:
                self.made.append(self._row(page, chunk, order, title, config))
                continue
            row = spare[chunk.text_hash].pop(0)
            self.kept += 1
            if row["sort_order"] != order:
                self.moved.append({"chunk": row["id"], "sort_order": order})
        self.dead.extend(row["id"] for rows in spare.values() for row in rows)

    def _row(self, page: Page, chunk: Chunk, order: int, title: str, config: str) -> dict[str, object]:
        metadata = {"level": chunk.level, "path": list(chunk.path), "types": list(chunk.types)}
        return {
            "page": page.id,
            "sort_order": order,
            "title": title,
            "heading": "\n".join(dict.fromkeys([*chunk.path, *headings_in(chunk.content)])),
            "content": chunk.content if self.keep_body else signals(chunk.content),
            "metadata": json.dumps(metadata),
            "config": config,
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
    await tx.many("retitle_chunks", [new for visit in visits if (new := _new_title(visit))])
    replaced = [visit for visit in visits if visit.decision.content is Content.REPLACE]
    if not replaced:
        return {}
    old = await chunks_of(tx, [visit.claim.page.id for visit in replaced])
    swap = Swap(now, keep_body)
    for visit in replaced:
        swap.plan(visit.decision.page, visit.harvest.chunks, old[visit.claim.page.id])
    await swap.write(tx)
    await tx.many("upsert_document", [_document(visit, keep_body) for visit in replaced])
    return {"chunks_kept": swap.kept, "chunks_made": len(swap.made)}


async def chunks_of(tx: Session, pages: Sequence[PageId]) -> dict[PageId, list[Row]]:
    """The chunks on record of some pages."""
    old: dict[PageId, list[Row]] = defaultdict(list)
    for row in await tx.all("chunks_of", pages=list(pages)):
        old[row["page_id"]].append(row)
    return old


def _new_title(visit: Visit) -> dict[str, object] | None:
    """A page whose title alone changed is found by its new one; its chunks stay."""
    before, after = visit.claim.page, visit.decision.page
    if visit.decision.content is not Content.KEEP or before.title == after.title:
        return None
    return {"page": after.id, "title": after.title or ""}


def _document(visit: Visit, keep_body: bool) -> dict[str, object]:
    document = visit.harvest.document
    return {
        "page": visit.claim.page.id,
        "markdown": document.markdown if document is not None and keep_body else None,
        "sketch": document.sketch if document is not None else None,
        "length": len(document.markdown) if document is not None else None,
        "flagged": int(visit.decision.page.doubt is not None),
    }
