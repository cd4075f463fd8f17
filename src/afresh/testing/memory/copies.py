"""Copies in memory: one record for each page in each external store, and who syncs which store."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.copies import Copy, PageText, SinkRecord, Wanted
from afresh.core.errors import RunBusy
from afresh.core.model import PageId, PageStatus, SourceId
from afresh.core.reconcile import GONE, holds_anything
from afresh.core.records import PageFilter
from afresh.core.shown import copy_state, copy_view, with_copies
from afresh.core.sync_views import PageCopy
from afresh.core.views import PageView
from afresh.testing.memory.reads import view_of
from afresh.testing.memory.tables import Tables


class MemoryCopies:
    """Reading and writing what is known of external stores."""

    tables: Tables

    async def store_id(self, made: str | None = None) -> str | None:
        """What tells the documents of this store from those of others; `made` where there is none yet."""
        if made is not None:
            self.tables.ids.setdefault("store", made)
        return self.tables.ids.get("store")

    async def sink_records(self) -> list[SinkRecord]:
        """What is on record of every store."""
        return [self.tables.sinks[name] for name in sorted(self.tables.sinks)]

    async def take_sink(self, sink: str, place: str, worker: str) -> SinkRecord:
        """Be the one who syncs a store; RunBusy while another living worker is."""
        record = self.tables.sinks.get(sink, SinkRecord(name=sink, place=place))
        if record.worker in self.tables.workers.keys() - {worker}:
            raise RunBusy(f"{sink} is being synced by another process ({record.worker}); wait or stop it")
        audit = record.audit or record.place != place or record.worker is not None
        self.tables.sinks[sink] = replace(record, place=place, worker=worker, audit=audit)
        return self.tables.sinks[sink]

    async def leave_sink(
        self,
        sink: str,
        worker: str,
        now: datetime,
        *,
        audit: bool,
        audited_at: datetime | None = None,
        resume_at: datetime | None = None,
        error: str | None = None,
    ) -> None:
        """Leave a store to the next; copies with nothing left in it are forgotten with their pages."""
        record = self.tables.sinks.get(sink)
        if record is None or record.worker != worker:
            return
        self.tables.sinks[sink] = replace(
            record,
            worker=None,
            audit=audit,
            audited_at=audited_at or record.audited_at,
            resume_at=resume_at,
            synced_at=now,
            error=error,
            failing_since=(record.failing_since or now) if error is not None else None,
        )
        for copy in self._of(sink):
            if self._page_of(copy) is None and not holds_anything(copy):
                del self.tables.copies[copy.id]

    async def add_copies(self, sink: str, worker: str, sources: Sequence[SourceId], now: datetime) -> int:
        """Give every page with content a copy that waits for its upload; how many are new."""
        self._check(sink, worker)
        pages = self._uncopied(sink, sources)
        for page in pages:
            row = self.tables.pages[page].page
            number = next(self.tables.numbers)
            self.tables.copies[number] = Copy(
                id=number,
                sink=sink,
                source_id=row.source_id,
                source=self.tables.sources[row.source_id].source.label,
                page_id=page,
                url=row.url,
                created_at=now,
                updated_at=now,
            )
        return len(pages)

    async def count_uncopied(self, sink: str, sources: Sequence[SourceId]) -> int:
        """How many pages with content have no copy yet."""
        return len(self._uncopied(sink, sources))

    async def count_copies(self, sink: str, sources: Sequence[SourceId]) -> dict[str, int]:
        """How many pages with content stand how in a store."""
        uncopied = len(self._uncopied(sink, sources))
        found = Counter({str(PageStatus.READY_FOR_INDEXING): uncopied} if uncopied else {})
        for each in await self.copies(sink, sources, limit=len(self.tables.copies)):
            if each.hash is not None:
                found[str(copy_state(each))] += 1
        return dict(found)

    async def count_stuck(self, sink: str, sources: Sequence[SourceId]) -> int:
        """How many pages are processed by a store for longer than it may take."""
        copies = await self.copies(sink, sources, limit=len(self.tables.copies))
        return sum(each.hash is not None and copy_view(each, sink).stuck for each in copies)

    async def add_orphans(
        self, sink: str, worker: str, orphans: Sequence[tuple[str, str, str]], now: datetime
    ) -> None:
        """Documents of no page, to be dropped: label of the source, name and id of each."""
        self._check(sink, worker)
        for label, name, remote in orphans:
            number = next(self.tables.numbers)
            self.tables.copies[number] = Copy(
                id=number,
                sink=sink,
                source_id=SourceId(0),
                source=label,
                page_id=None,
                url=name,
                state=PageStatus.DELETED,
                leftovers=(remote,),
                created_at=now,
                updated_at=now,
            )

    async def copies(
        self,
        sink: str,
        sources: Sequence[SourceId],
        *,
        only: Sequence[SourceId] | None = None,
        to_do: bool = False,
        after: int = 0,
        limit: int = 500,
    ) -> list[Wanted]:
        """Copies in a store in the order of their numbers; `sources` are those that it is to hold."""
        found = [
            self._wanted(copy, sources)
            for copy in self._of(sink)
            if copy.id > after and (only is None or copy.source_id in only)
        ]
        return [wanted for wanted in found if not to_do or _is_to_do(wanted)][:limit]

    async def record_copies(self, sink: str, worker: str, copies: Sequence[Copy], now: datetime) -> None:
        """Write copies as they are now."""
        if copies:
            self._check(sink, worker)
        for copy in copies:
            if copy.id in self.tables.copies:
                self.tables.copies[copy.id] = replace(copy, updated_at=now)

    async def page_text(self, page: PageId) -> PageText | None:
        """What is to be uploaded of a page, as it is at this moment; None: nothing."""
        row = self.tables.pages.get(page)
        if row is None or row.page.content_hash is None:
            return None
        held = self.tables.documents.get(page)
        return PageText(
            hash=row.page.content_hash,
            url=row.page.url,
            title=row.page.title,
            language=row.page.language,
            markdown=held.markdown if held else None,
        )

    async def pages_copied(
        self, sink: str, source: SourceId, *, state: PageStatus | None, after: int, limit: int
    ) -> list[PageCopy]:
        """The pages of a source that have content, in order, and how each stands in a store."""
        copies = {each.copy.page_id: each for each in self._copies_of([source]) if each.copy.sink == sink}
        rows = [row.page for _, row in sorted(self.tables.pages.items()) if row.page.source_id == source]
        shown = [
            PageCopy(id=page.id, url=page.url, title=page.title, copy=copy_view(copies.get(page.id), sink))
            for page in rows
            if page.content_hash is not None and page.id > after
        ]
        return [each for each in shown if state is None or each.copy.state is state][:limit]

    async def copies_of_pages(self, pages: Sequence[PageId]) -> list[Wanted]:
        """The copies of some pages."""
        return [each for each in self._copies_of(list(self.tables.sources)) if each.copy.page_id in pages]

    def _copies_of(self, sources: Sequence[SourceId]) -> list[Wanted]:
        found = [self._wanted(copy, sources) for copy in self.tables.copies.values()]
        mine = [each for each in found if self._source_of(each.copy) in sources]
        return sorted(mine, key=lambda each: (each.copy.page_id or 0, each.copy.sink))

    async def pages_by_copies(
        self, sinks: Sequence[str], sources: Sequence[SourceId], which: PageFilter, *, after: int, limit: int
    ) -> list[PageView]:
        """Pages in the order of their numbers, where the status asked for is that of their copies."""
        found = []
        for number, row in sorted(self.tables.pages.items()):
            view, copies = self._view(number), await self.copies_of_pages([number])
            fits = which.fits(with_copies(view, sinks, copies))
            found += [view] if fits and number > after and row.page.source_id in sources else []
        return found[:limit]

    def _of(self, sink: str) -> list[Copy]:
        return [copy for _, copy in sorted(self.tables.copies.items()) if copy.sink == sink]

    def _page_of(self, copy: Copy) -> PageId | None:
        """Its page; None once that is no longer on record."""
        return copy.page_id if copy.page_id in self.tables.pages else None

    def _source_of(self, copy: Copy) -> SourceId | None:
        page = self._page_of(copy)
        return None if page is None else self.tables.pages[page].page.source_id

    def _wanted(self, copy: Copy, sources: Sequence[SourceId]) -> Wanted:
        page = self._page_of(copy)
        if page is None:
            return Wanted(copy=replace(copy, page_id=None), hash=None)
        row = self.tables.pages[page].page
        wanted = row.content_hash if row.source_id in sources else None
        return Wanted(copy=copy, hash=wanted, moved=row.status is PageStatus.REDIRECT)

    def _view(self, page: PageId) -> PageView:
        return view_of(self.tables.pages[page].page, self.tables.next_look(page))

    def _uncopied(self, sink: str, sources: Sequence[SourceId]) -> list[PageId]:
        copied = {copy.page_id for copy in self._of(sink)}
        return [
            page
            for page, row in self.tables.pages.items()
            if row.page.source_id in sources and row.page.content_hash is not None and page not in copied
        ]

    def _check(self, sink: str, worker: str) -> None:
        record = self.tables.sinks.get(sink)
        if record is None or record.worker != worker:
            if record is not None:
                self.tables.sinks[sink] = replace(record, audit=True)
            raise RunBusy(f"the sync of {sink} was taken over by another process")


def _is_to_do(wanted: Wanted) -> bool:
    copy = wanted.copy
    if copy.putting or copy.leftovers or copy.former:
        return True
    if wanted.hash is None:
        return copy.remote_id is not None or copy.state not in GONE or copy.page_id is None
    return copy.state is not PageStatus.ACTIVE or copy.remote_id is None or copy.held_hash != wanted.hash
