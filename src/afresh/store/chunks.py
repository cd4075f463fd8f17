"""Swapping the chunks of changed pages; a chunk whose text stays keeps its row and its vector."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from afresh.core.analysis import analysed, search_config
from afresh.core.looks import Chunk
from afresh.core.model import Content, Page, Visit
from afresh.core.signals import signals
from afresh.core.text import headings_over
from afresh.store.dialect import Row, Session


async def swap_chunks(
    tx: Session, visits: Sequence[Visit], now: datetime, *, keep_body: bool
) -> dict[str, int]:
    """Write documents and chunks of replaced pages; counts what was made and what was kept."""
    await _retitle(tx, [visit.decision.page for visit in visits if _is_renamed(visit)])
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
    return {"chunk": row["id"], "title": title, "terms": _terms(analysed(title, row["config"]), *others)}


def _terms(*parts: str | None) -> str | None:
    """The terms of title, heading and content in one value; None if there are none at all."""
    return None if parts == (None, None, None) else json.dumps(parts, ensure_ascii=False)


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
    title_terms = analysed(title, config)
    spare: dict[tuple[str, bool], list[Row]] = defaultdict(list)
    for row in old:
        if (row["title"], row["config"], bool(row["whole"])) == (title, config, keep_body):
            spare[row["text_hash"], bool(row["analysed"])].append(row)
        else:
            dead.append(row["id"])
    kept = 0
    for order, chunk in enumerate(visit.harvest.chunks):
        like = spare[chunk.text_hash, (title_terms, *chunk.terms) != (None, None, None)]
        if like:
            row = like.pop(0)
            kept += 1
            if row["sort_order"] != order:
                moved.append({"chunk": row["id"], "sort_order": order})
        else:
            new = _chunk_row(visit, chunk, keep_body, title_terms)
            made.append({**new, "sort_order": order, "title": title, "config": config, "now": now})
    dead.extend(row["id"] for rows in spare.values() for row in rows)
    return kept


def _chunk_row(visit: Visit, chunk: Chunk, keep_body: bool, title_terms: str | None) -> dict[str, object]:
    metadata = {"level": chunk.level, "path": list(chunk.path), "types": list(chunk.types)}
    content, terms = chunk.content, chunk.terms.content
    if not keep_body:
        content, terms = signals(terms or content), None if terms is None else signals(terms)
    return {
        "page": visit.claim.page.id,
        "heading": headings_over(chunk),
        "content": content,
        "terms": _terms(title_terms, chunk.terms.heading, terms),
        "metadata": json.dumps(metadata),
        "whole": int(keep_body),
        "text_hash": chunk.text_hash,
        "embedding": None,
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
