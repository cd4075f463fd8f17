"""What the store remembers of syncs: each is a run of its source, with what became of its documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from afresh.core.copies import Copy
from afresh.core.model import Run, RunId, RunState, SourceId
from afresh.core.sync_views import DocumentOutcome, SyncedDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentNote:
    """What a sync did about a copy, and how that stands now."""

    run: RunId
    copy: Copy
    outcome: DocumentOutcome


class SyncRecords(Protocol):
    """Syncs on record; no look goes on with one or waits for one."""

    async def start_sync_run(self, source: SourceId, worker: str, now: datetime) -> Run:
        """A run for a sync; those of workers that are gone are closed."""
        ...

    async def record_documents(self, notes: Sequence[DocumentNote], now: datetime) -> None:
        """Write down documents; what is verified or waits keeps the outcome that it had."""
        ...

    async def count_documents(self, run: RunId) -> Mapping[str, int]:
        """How many documents of a sync ended how."""
        ...

    async def finish_sync_run(
        self, run: Run, state: RunState, counts: Mapping[str, int], error: str | None, now: datetime
    ) -> None:
        """End a sync, unless another process closed it."""
        ...

    async def documents_of_run(
        self, run: RunId, *, outcome: DocumentOutcome | None = None, after: int, limit: int
    ) -> Sequence[SyncedDocument]:
        """The documents of a sync in the order of their numbers, as it left them and as they are now."""
        ...
