"""What is asked of a store by numbers: records, and lists that go on where the last part ended."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from afresh.core.looks import Outcome
from afresh.core.model import Attempt, ChangeKind, PageId, Run, RunId, RunState, SourceId
from afresh.core.records import (
    ALL_LINKS,
    LIVE_PAGES,
    AttemptPlace,
    LinkFilter,
    LinkPlace,
    LinkRecord,
    LookPlace,
    PageFilter,
    Sources,
)
from afresh.core.schedule import Waiting
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
    async def next_looks(
        self,
        source: SourceId,
        now: datetime,
        max_age: float | None,
        *,
        everything: bool,
        after: LookPlace | None,
        limit: int,
    ) -> Sequence[Waiting]: ...
    async def attempt_records(
        self, page: PageId, *, below: int | None = None, limit: int
    ) -> Sequence[Attempt]: ...
    async def attempts_of_run(
        self,
        run: RunId,
        *,
        outcome: Outcome | None = None,
        after: AttemptPlace | None = None,
        limit: int,
    ) -> Sequence[Attempt]: ...
