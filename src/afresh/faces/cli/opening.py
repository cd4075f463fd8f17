"""How a command gets its knowledge base: the one seam that tests replace."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from afresh.config import Config
from afresh.core.access import MadeToken, Scope, Token
from afresh.core.events import Listener, ignore
from afresh.core.history import HistoryEntry
from afresh.core.model import ChangeKind
from afresh.core.outbox import Letter, LetterState
from afresh.core.records import LIVE_PAGES, PageFilter
from afresh.core.store_views import Finding
from afresh.core.sync_views import SyncReport
from afresh.core.views import (
    Answer,
    ChangeView,
    FoundVersion,
    KbReport,
    LinkView,
    OpenedPage,
    PageView,
    Plan,
    Reindexed,
    RunReport,
    ScheduleView,
    SourceView,
    StoreStatus,
    Why,
)
from afresh.core.watching import USUAL, Sights, WatchTimes, ignore_sight
from afresh.faces.cli.by_hand import ByHand
from afresh.ports import Access

if TYPE_CHECKING:
    from afresh.core.overview import Preview
    from afresh.core.retention import PruneReport


class Knowledge(ByHand, Protocol):
    """The use cases that the command line calls."""

    async def crawl(
        self,
        target: str,
        *,
        name: str | None = None,
        version: str | None = None,
        rules: Mapping[str, object] = ...,
        policy: Mapping[str, object] = ...,
        full: bool = False,
        trust: bool = False,
        redetect: bool = False,
        follow_move: bool = False,
        keep: bool = True,
        again: bool = True,
        listener: Listener = ignore,
    ) -> RunReport: ...

    async def refresh(
        self,
        labels: Sequence[str] = (),
        *,
        due: bool = False,
        budget: int | None = None,
        full: bool = False,
        trust: bool = False,
        redetect: bool = False,
        follow_move: bool = False,
        listener: Listener = ignore,
    ) -> list[RunReport]: ...

    async def queue_crawl(
        self,
        target: str,
        *,
        name: str | None = None,
        version: str | None = None,
        rules: Mapping[str, object] = ...,
        policy: Mapping[str, object] = ...,
        full: bool = False,
        keep: bool = True,
        again: bool = True,
    ) -> RunReport: ...

    async def queue_refresh(
        self,
        labels: Sequence[str] = (),
        *,
        due: bool = False,
        full: bool = False,
        listener: Listener = ignore,
    ) -> list[RunReport]: ...

    async def work(
        self,
        labels: Sequence[str] = (),
        *,
        at_once: int = ...,
        once: bool = False,
        tell: Callable[[RunReport], None] = ...,
        listener: Listener = ignore,
    ) -> bool: ...

    async def keep_schedules(
        self,
        labels: Sequence[str] = (),
        *,
        once: bool = False,
        tell: Callable[[RunReport], None] = ...,
        tell_sync: Callable[[SyncReport], None] = ...,
        listener: Listener = ignore,
    ) -> bool: ...

    async def set_schedule(
        self, labels: Sequence[str], rule: str | None, time_zone: str | None = None
    ) -> list[ScheduleView]: ...

    async def schedules(self, labels: Sequence[str] = ()) -> list[ScheduleView]: ...

    async def init_kb(self, *, listener: Listener = ignore) -> KbReport: ...

    async def watch_kb(self, *, tell: Sights = ignore_sight, listener: Listener = ignore) -> KbReport: ...

    async def watch(
        self,
        labels: Sequence[str] = (),
        *,
        times: WatchTimes = USUAL,
        tell: Sights = ignore_sight,
        listener: Listener = ignore,
    ) -> None: ...

    async def search(
        self,
        query: str,
        *,
        within: Sequence[str] = (),
        language: str | None = None,
        path: str | None = None,
        changed_within: timedelta | None = None,
        checked_within: timedelta | None = None,
        mode: str = "hybrid",
        max_age: timedelta | None = None,
        limit: int = 10,
        every_chunk: bool = False,
        context: bool = False,
        listener: Listener = ignore,
    ) -> Answer: ...

    async def reindex(
        self, labels: Sequence[str] = (), *, listener: Listener = ignore
    ) -> list[Reindexed]: ...

    async def sync(
        self,
        labels: Sequence[str] = (),
        *,
        to: Sequence[str] = (),
        dry_run: bool = False,
        verify: bool = False,
        listener: Listener = ignore,
    ) -> list[SyncReport]: ...

    async def open(self, url: str, *, within: str | None = None, former: bool = False) -> OpenedPage: ...

    async def restore(self, url: str, *, within: str | None = None) -> OpenedPage: ...

    async def find_version(self, label: str) -> FoundVersion: ...

    async def sources(self) -> list[SourceView]: ...

    async def show(self, label: str) -> SourceView: ...

    async def pages(
        self,
        label: str,
        which: PageFilter = LIVE_PAGES,
        *,
        limit: int | None = None,
    ) -> list[PageView]: ...

    async def links(
        self,
        label: str,
        *,
        page: str | None = None,
        keyword: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
    ) -> list[LinkView]: ...

    async def history(self, url: str, *, within: str | None = None) -> list[HistoryEntry]: ...

    async def changes(
        self,
        label: str | None = None,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        limit: int = 50,
    ) -> list[ChangeView]: ...

    async def why(self, url: str, *, within: str | None = None) -> Why: ...

    async def status(self) -> StoreStatus: ...

    async def plan(self, label: str) -> Plan: ...

    async def preview(
        self, target: str, settings: Mapping[str, object] | None = None, *, here: bool = False
    ) -> "Preview": ...

    async def version_note(self, label: str) -> str | None: ...

    async def remove(self, label: str) -> int: ...

    async def confirm(self, run: int) -> RunReport: ...

    async def prune(
        self,
        *,
        kept: Mapping[str, timedelta | None] | None = None,
        dry_run: bool = False,
        vacuum: bool = False,
        listener: Listener = ignore,
    ) -> "PruneReport": ...

    async def doctor(self) -> list[Finding]: ...

    async def create_token(
        self,
        scope: Scope,
        *,
        sources: Sequence[str] = (),
        expires: timedelta | None = None,
        name: str = "",
    ) -> MadeToken: ...

    async def tokens(self) -> list[Token]: ...

    async def revoke_token(self, token: int) -> None: ...

    async def letters(self, *, state: LetterState | None = None, limit: int = 100) -> list[Letter]: ...

    async def send_letters(self) -> int: ...

    def stop(self) -> None: ...

    async def close(self) -> None: ...


async def open_kb(config: Config, access: Access) -> Knowledge:
    """The knowledge base of these settings; the engine is imported only now."""
    from afresh.app import build

    return await build(config, access=access)
