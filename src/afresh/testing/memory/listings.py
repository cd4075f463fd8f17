"""Listings in memory: what they are compared with, and what they show unchanged."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.history import listing_reason, newest_first, recency
from afresh.core.listing import OnRecord
from afresh.core.looks import Outcome
from afresh.core.model import (
    Attempt,
    ChangeKind,
    CrawlId,
    Listed,
    Page,
    PageId,
    PageStatus,
    Run,
    RunId,
    SourceId,
)
from afresh.core.tally import total
from afresh.core.urls import domain_of
from afresh.testing.memory.tables import PageRow, Tables


class MemoryListings:
    """The same for dictionaries."""

    tables: Tables

    async def on_record(self, source: SourceId, recipe: str) -> list[OnRecord]:
        """The pages of a source that may be there still, as they were last read."""
        return [
            OnRecord(page.id, page.url, page.depth, page.validators, _is_sound(page, recipe), page.checked_at)
            for page in self._there(source)
        ]

    async def unsound(self, source: SourceId, recipe: str) -> list[Listed]:
        """The pages that are to be looked at although the source is as it was."""
        return [Listed(page.url, page.depth) for page in self._there(source) if not _is_sound(page, recipe)]

    async def on_record_at(self, source: SourceId, urls: Sequence[str]) -> list[Listed]:
        """The pages that may be there still at some addresses, or below them as files in folders."""
        there = sorted((page.url, page.depth) for page in self._there(source))
        found = [each for url in urls for each in there if each[0] == url or each[0].startswith(f"{url}/")]
        return [Listed(*each) for each in dict.fromkeys(found)]

    async def believe_listing(self, run: Run, now: datetime, others: Sequence[PageId] = ()) -> int:
        """Stamp all pages that the run has not queued as checked and unchanged; how many that were."""
        told = [
            row.page
            for row in self.tables.pages_of(run.source_id)
            if _is_told(row, run) and row.page.id not in set(others)
        ]
        for page in told:
            self.tables.change_page(
                page.id,
                crawl_time=run.started_at,
                last_seen=run.started_at,
                checked_at=now,
            )
        current, number = self.tables.runs[run.id], len(told)
        found = {"checked": number, "not_modified": number, "known_asked": number}
        self.tables.runs[run.id] = replace(current, counts=total([current.counts, found]), worked_at=now)
        self._note_listing(run, now, number, others)
        return number

    def _note_listing(self, run: Run, now: datetime, number: int, others: Sequence[PageId]) -> None:
        """Write the one attempt that stands for the pages a listing shows unchanged."""
        tables = self.tables
        if not number:
            return
        mine = [row for row in tables.crawls.values() if row.run_id == run.id and row.unchanged is not None]
        number += sum(row.unchanged or 0 for row in mine)
        url = tables.sources[run.source_id].source.url
        crawl = mine[0].id if mine else CrawlId(next(tables.numbers))
        tables.crawls[crawl] = Attempt(
            id=crawl,
            page_id=None,
            run_id=run.id,
            url=url,
            domain=domain_of(url) if "://" in url else "",
            scheduled_for=mine[0].scheduled_for if mine else now,
            completed_at=now,
            outcome=Outcome.NOT_MODIFIED,
            reason=listing_reason(number),
            created_at=mine[0].created_at if mine else now,
            updated_at=now,
            unchanged=number,
        )
        tables.untold[crawl] = frozenset(others) if others else None

    async def tell_unchanged(self, run: Run, now: datetime, others: Sequence[PageId] = ()) -> None:
        """Note that a source is as it was; its pages but `others` are counted as checked, once in a run."""
        if "told" in self.tables.runs[run.id].counts:
            return
        rows = self.tables.pages_of(run.source_id)
        unlisted = {row.page.id for row in rows if not row.listed} | set(others)
        number = await self.believe_listing(run, now, sorted(unlisted))
        current = self.tables.runs[run.id]
        self.tables.runs[run.id] = replace(current, counts=total([current.counts, {"told": number}]))

    async def has_mark(self, source: SourceId, mark: str | None) -> bool:
        """Whether the record is still what a mark names."""
        row = self.tables.sources.get(source)
        return row is not None and row.source.mark == mark

    async def forget_mark(self, source: SourceId) -> None:
        """From now on the record may differ from the state that the mark names."""
        self.set_mark(source, None)

    def set_mark(self, source: SourceId, mark: str | None) -> None:
        """Remember the state that was read whole."""
        row = self.tables.sources[source]
        self.tables.sources[source] = replace(row, source=replace(row.source, mark=mark))

    def _there(self, source: SourceId) -> list[Page]:
        return [row.page for row in self.tables.pages_of(source) if _is_there(row.page)]


def attempts_of_page(tables: Tables, page: PageId) -> list[Attempt]:
    """Return the attempts of a page and those of listings that show it unchanged, newest first."""
    own = [row for row in tables.crawls.values() if row.page_id == page]
    listings = [row for row in tables.crawls.values() if row.unchanged is not None]
    return newest_first(own, [row for row in listings if _stands_for(tables, row, page, own)])


def _stands_for(tables: Tables, listing: Attempt, page: PageId, own: Sequence[Attempt]) -> bool:
    row, run = tables.pages.get(page), tables.runs.get(listing.run_id or RunId(0))
    if row is None or run is None or run.source_id != row.page.source_id:
        return False
    untold = tables.untold[listing.id]
    if untold is not None and (not row.listed or page in untold):
        return False
    ended = (Outcome.CANCELLED, Outcome.ABANDONED)
    before = [
        each
        for each in own
        if each.completed_at is not None
        and each.completed_at <= recency(listing)[1]
        and (each.outcome not in ended or (each.reason or "").startswith("no link led here"))
    ]
    last = max(before, key=recency, default=None)
    if last is None or last.outcome not in (Outcome.SUCCESS, Outcome.NOT_MODIFIED):
        return False
    dropped = [
        change.at
        for owner, change in tables.changes.values()
        if (owner, change.url, change.kind) == (run.source_id, row.page.url, ChangeKind.DELETED)
    ]
    since, until = recency(last)[1], recency(listing)[1]
    gone = [at for at in dropped if since <= at <= until]
    return not gone and all(each.run_id != listing.run_id for each in own)


def _is_there(page: Page) -> bool:
    return page.status not in (PageStatus.DELETED, PageStatus.REDIRECT)


def _is_sound(page: Page, recipe: str) -> bool:
    shown = page.validators.etag is not None or page.validators.size is not None
    held = page.content_hash is not None or shown
    counted = page.failures or page.gone_count
    well = not counted and page.doomed_by is None and page.doubt is None and page.moved_to is None
    return held and well and page.recipe == recipe


def _is_told(row: PageRow, run: Run) -> bool:
    page = row.page
    return (
        page.content_hash is not None
        and _is_there(page)
        and row.queued_run != run.id
        and page.crawl_time != run.started_at
    )
