"""Removing what is past its retention: by a run for its source, by the scheduler and by `afresh prune`."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

from afresh.events import Listener, Remaking, ignore
from afresh.model.records import SourceId
from afresh.model.retention import PruneCounts, Retention
from afresh.ports import Clock
from afresh.store.store import Store

PAGES_AT_ONCE = 200  # each with its attempts and changes
ROWS_AT_ONCE = 2_000


async def prune_source(store: Store, source: SourceId, retention: Retention, now: datetime) -> int:
    """Remove the records of deleted pages of one source; how many. Former texts go from all of them."""
    prunable, removed = retention.at(now), 0
    while prunable.former_texts and await store.retention.prune_former_texts(
        prunable.former_texts, limit=ROWS_AT_ONCE
    ):
        pass
    before = prunable.deleted_pages
    if before is None:
        return 0
    while number := await store.retention.prune_pages(source, before, now, limit=PAGES_AT_ONCE):
        removed += number
    return removed


class Prune:
    """One prune of a whole store, in short transactions; told to stop it ends between two of them."""

    def __init__(
        self,
        store: Store,
        retention: Retention,
        clock: Clock,
        stopping: asyncio.Event,
        listener: Listener = ignore,
        expected: PruneCounts | None = None,
    ) -> None:
        self._store = store
        self._retention = retention
        self._clock = clock
        self._stopping = stopping
        self._listener = listener
        self._expected = expected or PruneCounts()

    async def run(self) -> PruneCounts:
        """Remove what is past its retention; how many records of each table."""
        prunable, done = self._retention.at(self._clock()), PruneCounts()
        if prunable.deleted_pages is not None:
            done = replace(done, deleted_pages=await self._prune_pages(prunable.deleted_pages))
        if prunable.attempts is not None:
            done = replace(done, attempts=await self._prune_attempts(prunable.attempts))
        if (changes := prunable.changes) is not None:
            step = lambda: self._store.retention.prune_changes(changes, limit=ROWS_AT_ONCE)  # noqa: E731
            done = replace(done, changes=await self._repeat("changes", self._expected.changes, step))
        if (outbox := prunable.outbox) is not None:
            step = lambda: self._store.retention.prune_outbox(outbox, limit=ROWS_AT_ONCE)  # noqa: E731
            done = replace(done, messages=await self._repeat("messages", self._expected.messages, step))
        if (former := prunable.former_texts) is not None:
            step = lambda: self._store.retention.prune_former_texts(former, limit=ROWS_AT_ONCE)  # noqa: E731
            texts = await self._repeat("former texts", self._expected.former_texts, step)
            done = replace(done, former_texts=texts)
        return done

    async def _prune_pages(self, before: datetime) -> int:
        removed = 0
        for source in await self._store.sources.all():
            while not self._stopping.is_set():
                number = await self._store.retention.prune_pages(
                    source.id, before, self._clock(), limit=PAGES_AT_ONCE
                )
                if not number:
                    break
                removed += number
                self._tell("deleted pages", removed, self._expected.deleted_pages)
        return removed

    async def _prune_attempts(self, before: datetime) -> int:
        removed, place = 0, 0
        while not self._stopping.is_set():
            number, after = await self._store.retention.prune_attempts(
                before, after=place, limit=ROWS_AT_ONCE
            )
            removed += number
            if number:
                self._tell("attempts", removed, self._expected.attempts)
            if after is None:
                break
            place = after
        step = lambda: self._store.retention.prune_documents(before, limit=ROWS_AT_ONCE)  # noqa: E731
        return removed + await self._repeat("attempts", self._expected.attempts, step)

    async def _repeat(self, what: str, expected: int, step: Callable[[], Awaitable[int]]) -> int:
        removed = 0
        while not self._stopping.is_set() and (number := await step()):
            removed += number
            self._tell(what, removed, expected)
        return removed

    def _tell(self, what: str, done: int, expected: int) -> None:
        self._listener(Remaking(task="prune", what=what, done=done, of=max(done, expected)))
