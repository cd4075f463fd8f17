"""The records of the knowledge base in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.kb_cache import SeenCache
from afresh.core.kb_pages import KbPage, Told
from afresh.core.looks import Validators
from afresh.core.model import Page, PageId, SourceId, Visit
from afresh.testing.memory.tables import LEFT, PageRow, Tables


class MemoryKb:
    """Reading and writing the records behind the cache of the knowledge base."""

    tables: Tables

    async def kb_pages(self, source: SourceId) -> list[KbPage]:
        """The pages of a source that are there or listed, with their records."""
        rows = self.tables.pages_of(source)
        return [self._kb_page(row.page) for row in rows if row.page.status not in LEFT or row.listed]

    async def kb_told(self, page: PageId) -> Told | None:
        """What was told of a page so far."""
        return self.tables.told.get(page)

    async def impose(self, source: SourceId, pages: Sequence[KbPage], now: datetime) -> None:
        """Make pages what the cache says they are; those that are not known yet are added."""
        with self.tables.transaction():
            for page in pages:
                self._impose(source, page, now)
            row = self.tables.sources[source]
            self.tables.sources[source] = replace(row, source=replace(row.source, mark=None))

    async def cache_seen(self) -> SeenCache | None:
        """The cache file that the store last agreed with."""
        return next((SeenCache(path, digest) for path, digest in self.tables.caches.items()), None)

    async def see_cache(self, cache: SeenCache) -> None:
        """Note that the store agrees with this cache file, and with no other."""
        with self.tables.transaction():
            self.tables.caches.clear()
            self.tables.caches[cache.path] = cache.digest

    def _impose(self, source: SourceId, given: KbPage, now: datetime) -> None:
        tables = self.tables
        row = tables.page_at(source, given.url) or self._added(source, given, now)
        page, old = row.page, row.page.validators
        same = (old.etag, old.last_modified) == (given.etag, given.last_modified)
        validators = Validators(
            etag=given.etag,
            last_modified=given.last_modified,
            size=given.size,
            mtime_ns=given.mtime_ns,
            url=old.url if same else None,
        )
        seen = given.fetched_at or page.last_seen
        tables.change_page(
            page.id, validators=validators, failures=given.failures, last_seen=seen, updated_at=now
        )
        tables.told[page.id] = Told(
            text_hash=given.text_hash,
            summary=given.summary,
            indexed_at=given.indexed_at,
            fetched_at=given.fetched_at,
            status=given.status,
        )
        if given.next_at is None:
            return
        if page.id in tables.open:
            tables.change_attempt(tables.open[page.id], now, scheduled_for=given.next_at)
        else:
            tables.open_attempt(page, None, given.next_at, now)

    def _added(self, source: SourceId, given: KbPage, now: datetime) -> PageRow:
        row = PageRow(page=self.tables.new_page(source, given.url, given.depth, now))
        self.tables.pages[row.page.id] = row
        self.tables.addresses[source, given.url] = row.page.id
        return row

    def _kb_page(self, page: Page) -> KbPage:
        told = self.tables.told.get(page.id, Told())
        waiting = self.tables.open.get(page.id)
        return KbPage(
            url=page.url,
            depth=page.depth,
            size=page.validators.size,
            mtime_ns=page.validators.mtime_ns,
            etag=page.validators.etag,
            last_modified=page.validators.last_modified,
            failures=page.failures,
            next_at=page.checked_at if waiting is None else self.tables.crawls[waiting].scheduled_for,
            text_hash=told.text_hash,
            summary=told.summary,
            indexed_at=told.indexed_at,
            fetched_at=told.fetched_at,
            status=told.status,
        )


def tell(tables: Tables, visit: Visit, *, forgotten: bool) -> None:
    """Write what a visit tells of a page of the knowledge base, or forget a page that is not there."""
    page, new = visit.claim.page.id, visit.harvest.told
    if new is None:
        return
    if forgotten:
        tables.told.pop(page, None)
        return
    old = tables.told.get(page, Told())
    tables.told[page] = Told(
        text_hash=new.text_hash or old.text_hash,
        summary=old.summary if new.summary is None else new.summary,
        indexed_at=new.indexed_at or old.indexed_at,
        fetched_at=new.fetched_at or old.fetched_at,
        status=new.status or old.status,
    )
