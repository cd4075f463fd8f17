"""Swapping the chunks of changed pages; a chunk whose text stays keeps its row and its vector."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from afresh.core.looks import Chunk
from afresh.core.model import Content, Visit
from afresh.core.signals import signals
from afresh.core.text import headings_in
from afresh.store.dialect import Row, Session


def search_config(language: str | None) -> str:
    """The text-search configuration for a language: English is stemmed, the rest is taken as it is."""
    return "english" if language is None or language.lower().split("-")[0] == "en" else "simple"


async def swap_chunks(
    tx: Session, visits: Sequence[Visit], now: datetime, *, keep_body: bool
) -> dict[str, int]:
    """Write documents and chunks of replaced pages; counts what was made and what was kept."""
    await tx.many("retitle_chunks", [new for visit in visits if (new := _new_title(visit))])
    replaced = [visit for visit in visits if visit.decision.content is Content.REPLACE]
    if not replaced:
        return {}
    rows = await tx.all("chunks_of", pages=[visit.claim.page.id for visit in replaced])
    old: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        old[row["page_id"]].append(row)
    dead: list[int] = []
    moved: list[dict[str, object]] = []
    made: list[dict[str, object]] = []
    kept = 0
    for visit in replaced:
        kept += _plan(visit, old[visit.claim.page.id], now, keep_body, dead, moved, made)
    await tx.run("delete_chunks", chunks=dead)
    await tx.many("move_chunk", moved)
    await tx.many("insert_chunk", made)
    await tx.many("upsert_document", [_document(visit, keep_body) for visit in replaced])
    return {"chunks_reused": kept, "chunks_made": len(made)}


def _new_title(visit: Visit) -> dict[str, object] | None:
    """A page whose title alone changed is found by its new one; its chunks stay."""
    before, after = visit.claim.page, visit.decision.page
    if visit.decision.content is not Content.KEEP or before.title == after.title:
        return None
    return {"page": after.id, "title": after.title or ""}


def _plan(
    visit: Visit,
    old: Sequence[Row],
    now: datetime,
    keep_body: bool,
    dead: list[int],
    moved: list[dict[str, object]],
    made: list[dict[str, object]],
) -> int:
    page = visit.decision.page
    title, config = page.title or "", search_config(page.language)
    spare: dict[str, list[Row]] = defaultdict(list)
    for row in old:
        if (row["title"], row["config"], bool(row["whole"])) == (title, config, keep_body):
            spare[row["text_hash"]].append(row)
        else:
            dead.append(row["id"])
    kept = 0
    for order, chunk in enumerate(visit.harvest.chunks):
        if spare[chunk.text_hash]:
            row = spare[chunk.text_hash].pop(0)
            kept += 1
            if row["sort_order"] != order:
                moved.append({"chunk": row["id"], "sort_order": order})
        else:
            made.append(_chunk_row(visit, chunk, order, title, config, now, keep_body))
    dead.extend(row["id"] for rows in spare.values() for row in rows)
    return kept


def _chunk_row(
    visit: Visit, chunk: Chunk, order: int, title: str, config: str, now: datetime, keep_body: bool
) -> dict[str, object]:
    metadata = {"level": chunk.level, "path": list(chunk.path), "types": list(chunk.types)}
    return {
        "page": visit.claim.page.id,
        "sort_order": order,
        "title": title,
        "heading": "\n".join(dict.fromkeys([*chunk.path, *headings_in(chunk.content)])),
        "content": chunk.content if keep_body else signals(chunk.content),
        "metadata": json.dumps(metadata),
        "config": config,
        "whole": int(keep_body),
        "text_hash": chunk.text_hash,
        "embedding": None,
        "now": now,
    }


def _document(visit: Visit, keep_body: bool) -> dict[str, object]:
    document = visit.harvest.document
    return {
        "page": visit.claim.page.id,
        "markdown": document.markdown if document is not None and keep_body else None,
        "sketch": document.sketch if document is not None else None,
        "length": len(document.markdown) if document is not None else None,
        "flagged": int(visit.decision.page.doubt is not None),
    }
