"""Move the identity of pages: the number, the history and the changes of a page follow it to its new URL."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache

from afresh.model.records import Page, PageId
from afresh.store.dialect import Row, Session
from afresh.store.sql import queries

_OWN = ("observed_at", "change_count", "quiet_seconds", "span_seconds")  # how often the page changes


@cache
def _content_columns() -> tuple[str, ...]:
    """The columns that a visit writes and that stay with the URL."""
    written = re.findall(r"\{rows ([\w ]+)\}", queries("sqlite")["update_page"])[0].split()
    return tuple(name for name in written if name not in (*_OWN, "now", "page"))


async def exchange(tx: Session, dropped: Sequence[Page], heirs: Mapping[PageId, Page], now: datetime) -> None:
    """Give pages that moved the URL and the content of their heirs, which become the redirects."""
    before = {page.id: page for page in dropped if page.id in heirs}
    pairs = [{"page": page, "target": heirs[page].id} for page in before]
    if not pairs:
        return
    targets = [pair["target"] for pair in pairs]
    both = [*before, *targets]
    partner: dict[int, int] = {pair["page"]: pair["target"] for pair in pairs}
    partner |= {pair["target"]: pair["page"] for pair in pairs}
    await _exchange_history(tx, before, pairs, both, partner)
    await tx.many("hand_over_document", pairs)
    await tx.many("hand_over_kb", pairs)
    await tx.many("copy_chunks", pairs)  # under new numbers: an index in memory knows them by those
    await tx.run("drop_chunks", pages=targets)
    await tx.run("untell_new", pages=targets)
    await tx.many("hand_over_changes", pairs)
    edges = await tx.all("edges_of_pages", pages=both)
    await tx.run("delete_page_links", pages=both)
    await tx.many("insert_page_link", [_edge(row, partner) for row in edges])
    copies = await tx.all("copies_bound_to", pages=both)
    await tx.run("unbind_copies", pages=both)
    await tx.many("bind_copy", [{"copy": row["id"], "page": partner[row["page_id"]]} for row in copies])
    rows = {row["id"]: row for row in await tx.all("rows_of_pages", pages=both)}
    await tx.many("rename_page", [{"page": page, "url": f"moving:{page}"} for page in both])
    await tx.many("update_page", [_content(rows, page, partner[page], before, now) for page in both])
    await tx.many("place_page", [_place(page, rows[partner[page]], before) for page in both])


async def _exchange_history(
    tx: Session,
    before: Mapping[PageId, Page],
    pairs: Sequence[Mapping[str, object]],
    both: Sequence[int],
    partner: Mapping[int, int],
) -> None:
    """Finished attempts go with the page, except the redirects; the next check stays with the URL."""
    planned = await tx.all("open_rows_of_pages", pages=both)
    await tx.run("unbind_crawls", crawls=[row["id"] for row in planned])
    await tx.many("bind_crawl", [{"crawl": row["id"], "page": partner[row["page_id"]]} for row in planned])
    await tx.many("hand_over_crawls", pairs)
    moved = [{"page": page, "target": partner[page], "url": before[page].url} for page in before]
    await tx.many("leave_moved_crawls", moved)


def _edge(row: Row, partner: Mapping[int, int]) -> dict[str, object]:
    kept = {name: row[name] for name in ("position", "text", "follow")}
    return {"page": partner[row["page_id"]], "link": row["link_id"], **kept}


def _content(
    rows: Mapping[int, Row], page: int, other: int, before: Mapping[PageId, Page], now: datetime
) -> dict[str, object]:
    """What a page shows from now on: all that is bound to the URL of the other one."""
    shown = {name: rows[other][name] for name in _content_columns()} | {
        name: rows[page][name] for name in _OWN
    }
    moved = before.get(PageId(page))
    if moved is not None and moved.content_hash == shown["content_hash"]:
        shown["changed_at"] = moved.changed_at
    return {**shown, "page": page, "now": now}


def _place(page: int, other: Row, before: Mapping[PageId, Page]) -> dict[str, object]:
    """Where a page stands from now on; one that nothing links to stays missing for as long as it was."""
    place = {name: other[name] for name in ("url", "depth", "listed")}
    moved, missing = before.get(PageId(page)), other["missing_count"]
    if moved is not None and missing:
        missing += moved.missing_count
    return {"page": page, "run": other["queued_run"], "missing_count": missing, **place}
