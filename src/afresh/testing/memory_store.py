"""A store in plain dictionaries: the executable specification of what every store must do."""

import asyncio

from afresh.testing.memory.answers import MemoryAnswers
from afresh.testing.memory.by_hand import MemoryByHand
from afresh.testing.memory.by_number import MemoryByNumber
from afresh.testing.memory.copies import MemoryCopies
from afresh.testing.memory.hooks import MemoryHooks
from afresh.testing.memory.kb import MemoryKb
from afresh.testing.memory.link_scores import MemoryLinkScores
from afresh.testing.memory.measures import MemoryMeasures
from afresh.testing.memory.pictures import MemoryPictures
from afresh.testing.memory.prune import MemoryPruning
from afresh.testing.memory.reads import MemoryReads
from afresh.testing.memory.runs import MemoryRuns
from afresh.testing.memory.schedules import MemorySchedules
from afresh.testing.memory.search import MemorySearches
from afresh.testing.memory.sync_runs import MemorySyncRuns
from afresh.testing.memory.tables import Tables
from afresh.testing.memory.tokens import MemoryTokens
from afresh.testing.memory.vectors import MemoryVectors


class MemoryStore(
    MemoryRuns,
    MemoryReads,
    MemorySearches,
    MemoryVectors,
    MemoryKb,
    MemoryLinkScores,
    MemoryCopies,
    MemorySyncRuns,
    MemoryTokens,
    MemoryByHand,
    MemoryByNumber,
    MemoryAnswers,
    MemoryHooks,
    MemoryMeasures,
    MemoryPictures,
    MemorySchedules,
    MemoryPruning,
):
    """Fulfils `ports.Library` and forgets everything when it goes; simple first, fast second."""

    no_vectors: str | None = None  # why there are none, where a store cannot compare them

    def __init__(self) -> None:
        self.tables = Tables()
        self.url = "memory:"
        self.closed = False
        self.news = 0

    async def hear(self, since: int, seconds: float) -> None:
        """Wait for so long: there is nobody else who could bring news."""
        del since
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Remember that the owner closed it."""
        self.closed = True
