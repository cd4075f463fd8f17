"""Listings in memory: what they are compared with, and what they show unchanged."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.listing import OnRecord
from afresh.core.model import Listed, Page, PageId, PageStatus, Run, SourceId
from afresh.core.tally import total
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
        return number

    async def tell_unchanged(self, run: Run, now: datetime, *, others: int = 0) -> None:
        """Note that a source is as it was; its pages but `others` are counted as checked, once in a run."""
        if "told" in self.tables.runs[run.id].counts:
            return
        unlisted = [row.page.id for row in self.tables.pages_of(run.source_id) if not row.listed]
        number = await self.believe_listing(run, now, unlisted)
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
