"""Delete records past their retention: in one source after a run, in the whole store daily or by `afresh prune`."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

from afresh.dataclass import dataclass
from afresh.events import Listener, MaintenanceProgress, ignore
from afresh.model.records import SourceId
from afresh.model.retention import PruneCounts, Retention
from afresh.ports import Clock
from afresh.store.removal import PrunedTable
from afresh.store.store import Store

PAGES_AT_ONCE = 200  # deleted in one transaction, each with its attempts and changes
ROWS_AT_ONCE = 2_000


async def prune_source(store: Store, source: SourceId, retention: Retention, now: datetime) -> None:
    """Delete the expired deleted pages of `source`, and every expired former text in the store."""
    prunable = retention.at(now)
    former, deleted = prunable.former_texts, prunable.deleted_pages
    while former and await store.retention.prune("former_texts", former, limit=ROWS_AT_ONCE):
        pass
    while deleted and await store.retention.prune_pages(source, deleted, now, limit=PAGES_AT_ONCE):
        pass


@dataclass(frozen=True, slots=True)
class StorePruner:
    """Prunes a whole store in short transactions; a stop takes effect between two of them."""

    store: Store
    retention: Retention
    clock: Clock
    stopping: asyncio.Event
    listener: Listener = ignore
    expected: PruneCounts = PruneCounts()  # how many records will probably be deleted, for the progress

    async def run(self) -> PruneCounts:
        prunable, done = self.retention.at(self.clock()), dict[str, int]()
        if (before := prunable.deleted_pages) is not None:
            for source in await self.store.sources.all():
                prune, now = self.store.retention.prune_pages, self.clock()
                step = partial(prune, source.id, before, now, limit=PAGES_AT_ONCE)
                done["deleted_pages"] = await self._repeat("deleted_pages", step, done.get("deleted_pages", 0))
        if prunable.attempts is not None:
            done["attempts"] = await self._prune_attempts(prunable.attempts)
        tables: tuple[tuple[str, PrunedTable, datetime | None], ...] = (
            ("changes", "changes", prunable.changes),
            ("messages", "outbox", prunable.outbox),
            ("former_texts", "former_texts", prunable.former_texts),
        )
        for name, table, before in tables:
            if before is not None:
                step = partial(self.store.retention.prune, table, before, limit=ROWS_AT_ONCE)
                done[name] = await self._repeat(name, step)
        return PruneCounts(**done)

    async def _prune_attempts(self, before: datetime) -> int:
        removed, place = 0, 0
        while not self.stopping.is_set():
            number, after = await self.store.retention.prune_attempts(before, after=place, limit=ROWS_AT_ONCE)
            removed += number
            if number:
                self._report("attempts", removed)
            if after is None:
                break
            place = after
        step = partial(self.store.retention.prune, "documents", before, limit=ROWS_AT_ONCE)
        return removed + await self._repeat("attempts", step)

    async def _repeat(self, name: str, step: Callable[[], Awaitable[int]], removed: int = 0) -> int:
        while not self.stopping.is_set() and (number := await step()):
            removed += number
            self._report(name, removed)
        return removed

    def _report(self, name: str, done: int) -> None:
        expected = max(done, getattr(self.expected, name))
        self.listener(MaintenanceProgress(task="prune", what=name.replace("_", " "), done=done, of=expected))
