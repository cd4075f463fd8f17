"""What the store remembers of external stores: who syncs them, and the state of each page there."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from afresh.core.copies import Copy, PageText, SinkRecord, Wanted
from afresh.core.model import PageId, PageStatus, SourceId
from afresh.core.records import PageFilter
from afresh.core.sync_views import PageCopy
from afresh.core.views import PageView


class Copies(Protocol):
    """Copies and their stores; whoever writes has taken the store before, or is told RunBusy."""

    async def store_id(self, made: str | None = None) -> str | None:
        """What tells the documents of this store from those of others; `made` where there is none yet."""
        ...

    async def sink_records(self) -> Sequence[SinkRecord]: ...

    async def take_sink(self, sink: str, place: str, worker: str) -> SinkRecord:
        """Be the one who syncs a store; RunBusy while another living worker is."""
        ...

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
        ...

    async def add_copies(self, sink: str, worker: str, sources: Sequence[SourceId], now: datetime) -> int:
        """Give every page with content a copy that waits for its upload; how many are new."""
        ...

    async def count_uncopied(self, sink: str, sources: Sequence[SourceId]) -> int: ...

    async def count_copies(self, sink: str, sources: Sequence[SourceId]) -> Mapping[str, int]:
        """How many pages with content stand how in a store, as `core.shown.copy_state` says."""
        ...

    async def count_stuck(self, sink: str, sources: Sequence[SourceId]) -> int:
        """How many pages are processed by a store for longer than it may take."""
        ...

    async def add_orphans(
        self, sink: str, worker: str, orphans: Sequence[tuple[str, str, str]], now: datetime
    ) -> None:
        """Documents of no page, to be dropped: label of the source, name and id of each."""
        ...

    async def copies(
        self,
        sink: str,
        sources: Sequence[SourceId],
        *,
        only: Sequence[SourceId] | None = None,
        to_do: bool = False,
        after: int = 0,
        limit: int = 500,
    ) -> Sequence[Wanted]:
        """Copies in a store in the order of their numbers; `sources` are those that it is to hold."""
        ...

    async def record_copies(self, sink: str, worker: str, copies: Sequence[Copy], now: datetime) -> None:
        """Write copies as they are now."""
        ...

    async def page_text(self, page: PageId) -> PageText | None:
        """What is to be uploaded of a page, as it is at this moment; None: nothing."""
        ...

    async def pages_copied(
        self, sink: str, source: SourceId, *, state: PageStatus | None, after: int, limit: int
    ) -> Sequence[PageCopy]:
        """The pages of a source that have content, in order, and how each stands in a store."""
        ...

    async def copies_of_pages(self, pages: Sequence[PageId]) -> Sequence[Wanted]: ...

    async def pages_by_copies(
        self, sinks: Sequence[str], sources: Sequence[SourceId], which: PageFilter, *, after: int, limit: int
    ) -> Sequence[PageView]:
        """Pages in the order of their numbers, where the status asked for is that of their copies."""
        ...
