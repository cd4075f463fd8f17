"""What the engine asks of a store to remove records that are past their retention."""

from datetime import datetime
from typing import Protocol

from afresh.core.embedding import Cut
from afresh.core.model import Page, SourceId
from afresh.core.retention import Prunable, PruneCounts


class PrunableStore(Protocol):
    """Removes what is past its retention, each call one transaction of so many rows at most."""

    async def prune_pages(self, source: SourceId, before: datetime, now: datetime, *, limit: int) -> int:
        """Remove records of pages of a source that were deleted before; their attempts stay."""
        ...

    async def prune_attempts(self, before: datetime, *, after: int, limit: int) -> tuple[int, int | None]:
        """Remove old attempts among the next rows; how many, and the place to go on at, None at the end."""
        ...

    async def prune_documents(self, before: datetime, *, limit: int) -> int:
        """Remove old documents of syncs; those of the latest sync of a source into a store stay."""
        ...

    async def prune_changes(self, before: datetime, *, limit: int) -> int: ...

    async def prune_outbox(self, before: datetime, *, limit: int) -> int: ...

    async def prune_former_texts(self, before: datetime, *, limit: int) -> int: ...

    async def restore(self, cut: Cut, before: Page, now: datetime) -> bool:
        """Put a former text with its chunks in the place of what a page shows; False if that changed."""
        ...

    async def count_prunable(self, prunable: Prunable) -> PruneCounts:
        """Count what the others would remove."""
        ...

    async def reclaim_space(self) -> int | None:
        """Give free room back to the disk; how many bytes, None where the database does so by itself."""
        ...
