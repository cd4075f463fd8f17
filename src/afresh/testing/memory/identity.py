"""Move the identity of a page in memory: its number, history and changes follow it to its new URL."""

from dataclasses import replace
from datetime import datetime

from afresh.core.looks import Outcome
from afresh.core.model import ChangeKind, Page, PageId
from afresh.testing.memory.tables import PageRow, Tables


def exchange(tables: Tables, before: Page, heir: PageId, now: datetime) -> None:
    """Give a page that moved the URL and the content of its heir, which becomes the redirect."""
    moved, target = tables.pages[before.id], tables.pages[heir]
    url = target.page.url
    same = target.page.content_hash == before.content_hash
    changed_at = before.changed_at if same else target.page.changed_at
    missing = target.page.missing_count and target.page.missing_count + before.missing_count
    tables.pages[before.id] = _at_place_of(moved, target, changed_at=changed_at, missing=missing)
    tables.pages[heir] = _at_place_of(
        target, moved, changed_at=moved.page.changed_at, missing=moved.page.missing_count
    )
    tables.addresses[before.source_id, url] = before.id
    tables.addresses[before.source_id, before.url] = heir
    if heir in tables.documents:
        tables.documents[before.id] = tables.documents.pop(heir)
    if heir in tables.pieces:
        tables.pieces[before.id] = tables.pieces.pop(heir)
    if heir in tables.told:
        tables.told[before.id] = tables.told.pop(heir)
    edges = tables.edges.get(before.id, ()), tables.edges.get(heir, ())
    tables.edges[heir], tables.edges[before.id] = edges
    _exchange_attempts(tables, before, heir)
    for number, copy in list(tables.copies.items()):
        if copy.page_id in (before.id, heir):
            tables.copies[number] = replace(copy, page_id=heir if copy.page_id == before.id else before.id)
    for number, (source, change) in list(tables.changes.items()):
        if (source, change.url, change.kind) == (before.source_id, url, ChangeKind.NEW):
            del tables.changes[number]


def _at_place_of(row: PageRow, other: PageRow, *, changed_at: datetime | None, missing: int) -> PageRow:
    page = replace(
        other.page,
        id=row.page.id,
        missing_count=missing,
        observed_at=row.page.observed_at,
        rhythm=row.page.rhythm,
        changed_at=changed_at,
    )
    return replace(other, page=page, created_run=row.created_run)


def _exchange_attempts(tables: Tables, before: Page, heir: PageId) -> None:
    for crawl, attempt in list(tables.crawls.items()):
        if attempt.page_id not in (before.id, heir):
            continue
        met_move = attempt.outcome is Outcome.MOVED and attempt.url == before.url
        if attempt.outcome is None:
            page = heir if attempt.page_id == before.id else before.id
        else:
            page = heir if met_move else before.id
        tables.crawls[crawl] = replace(attempt, page_id=page)
    waiting = {page: tables.open.pop(page, None) for page in (before.id, heir)}
    for page, crawl_id in zip((heir, before.id), waiting.values(), strict=True):
        if crawl_id is not None:
            tables.open[page] = crawl_id
