"""What the command line calls to change single records, and to see and stop runs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import EllipsisType
from typing import Protocol

from afresh.core.looks import Outcome
from afresh.core.model import Attempt, Source
from afresh.core.records import ALL_LINKS, LIVE_PAGES, LinkFilter, LinkRecord, PageFilter, Sources
from afresh.core.sync_views import DocumentOutcome, SyncedDocument
from afresh.core.views import PageView, RunReport


class ByHand(Protocol):
    """The use cases of records by their numbers."""

    async def source(self, number: int) -> Source: ...

    async def change_settings(
        self, source: Source, settings: Mapping[str, object], reset: Sequence[str]
    ) -> Source: ...

    async def change_source(
        self,
        source: Source,
        *,
        name: str | None = None,
        version: str | EllipsisType | None = ...,
        url: str | None = None,
        again: bool = False,
        settings: Mapping[str, object],
        reset: Sequence[str] = (),
        by_operator: bool = False,
    ) -> tuple[Source, list[str]]: ...

    async def page(self, number: int) -> PageView: ...

    async def page_list(
        self, sources: Sources, which: PageFilter = LIVE_PAGES, *, url: str | None = None, limit: int
    ) -> list[PageView]: ...

    async def add_page(self, source: Source, url: str) -> PageView: ...

    async def set_next_look(self, number: int, at: datetime) -> PageView: ...

    async def drop_page(self, number: int) -> None: ...

    async def link(self, number: int) -> LinkRecord: ...

    async def link_list(
        self, sources: Sources, which: LinkFilter = ALL_LINKS, *, limit: int
    ) -> list[LinkRecord]: ...

    async def add_link(self, page: int, url: str, text: str) -> LinkRecord: ...

    async def set_link(
        self,
        number: int,
        score: float | None,
        comment: str | None,
        keywords: Mapping[str, float] | None = None,
    ) -> LinkRecord: ...

    async def remove_link(self, number: int) -> None: ...

    async def attempts_of_run(
        self, number: int, *, outcome: Outcome | None = None, limit: int
    ) -> list[Attempt]: ...

    async def documents_of_run(
        self, number: int, *, outcome: DocumentOutcome | None = None, limit: int
    ) -> list[SyncedDocument]: ...

    async def run(self, number: int) -> RunReport: ...

    async def runs(self, label: str | None = None) -> list[RunReport]: ...

    async def cancel(self, number: int) -> RunReport: ...
