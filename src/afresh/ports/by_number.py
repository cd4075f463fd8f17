"""What is asked of a store by numbers: records, and lists that go on where the last part ended."""

from collections.abc import Sequence
from typing import Protocol

from afresh.core.model import Attempt, ChangeKind, PageId, Run, RunId, RunState
from afresh.core.records import ALL_LINKS, LIVE_PAGES, LinkFilter, LinkPlace, LinkRecord, PageFilter, Sources
from afresh.core.views import ChangeView, PageView


class Numbered(Protocol):
    """Pages, links, runs, changes and attempts by their numbers."""

    async def page_records(
        self, sources: Sources, which: PageFilter = LIVE_PAGES, *, after: int = 0, limit: int
    ) -> Sequence[PageView]: ...
    async def page_record(self, page: PageId) -> PageView | None: ...
    async def link_records(
        self,
        sources: Sources,
        which: LinkFilter = ALL_LINKS,
        *,
        after: LinkPlace | None = None,
        limit: int,
    ) -> Sequence[LinkRecord]: ...
    async def link_record(self, link: int) -> LinkRecord | None: ...
    async def run_records(
        self, sources: Sources, *, state: RunState | None = None, below: int | None = None, limit: int
    ) -> Sequence[Run]: ...
    async def change_records(
        self,
        sources: Sources,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        below: int | None = None,
        limit: int,
    ) -> Sequence[ChangeView]: ...
    async def changes_of_run(
        self, run: RunId, kinds: Sequence[ChangeKind], *, limit: int
    ) -> Sequence[ChangeView]: ...
    async def attempt_records(
        self, page: PageId, *, below: int | None = None, limit: int
    ) -> Sequence[Attempt]: ...
