"""The store: one façade over its tables, blind to the database behind it."""

import asyncio
from datetime import datetime

from afresh.core.model import Run, RunId, RunMode, SourceId
from afresh.store.answers import Answers
from afresh.store.by_hand import ByHand
from afresh.store.by_number import ByNumber
from afresh.store.commit import Commits
from afresh.store.copies import CopyRecords
from afresh.store.dialect import Database
from afresh.store.endings import Endings
from afresh.store.frontier import Frontiers
from afresh.store.hooks import HookRecords
from afresh.store.identity import Identities
from afresh.store.kb import KbRecords
from afresh.store.link_scores import LinkScores
from afresh.store.links import LinkBook
from afresh.store.listings import Listings
from afresh.store.matching import Known
from afresh.store.measures import Measures
from afresh.store.nearby import Nearby
from afresh.store.outbox import OutboxRecords
from afresh.store.pictures import Pictures
from afresh.store.prune import Pruning
from afresh.store.reads import Reads
from afresh.store.recutting import Recutting
from afresh.store.runs import Runs
from afresh.store.schedules import Schedules
from afresh.store.search import Searches
from afresh.store.sweep import Sweeps
from afresh.store.sync_runs import SyncRunRecords
from afresh.store.tokens import TokenRecords
from afresh.store.vectors import Vectors


class Store(
    Runs,
    Commits,
    Sweeps,
    Identities,
    Listings,
    Endings,
    Frontiers,
    Reads,
    ByNumber,
    ByHand,
    Answers,
    Searches,
    Vectors,
    Recutting,
    KbRecords,
    LinkScores,
    CopyRecords,
    SyncRunRecords,
    TokenRecords,
    HookRecords,
    OutboxRecords,
    Measures,
    Pictures,
    Schedules,
    Pruning,
):
    """Everything afresh remembers; every method is one query or one transaction."""

    no_vectors: str | None = None  # why meanings cannot be compared here, if so

    def __init__(self, db: Database, url: str) -> None:
        self.db = db
        self.url = url
        self._links = LinkBook()
        self._known = Known()
        self._nearby: dict[str, tuple[int, Nearby]] = {}
        self._renewing = asyncio.Lock()
        self._depths: dict[RunId, dict[int, int]] = {}

    async def start_run(
        self,
        source: SourceId,
        mode: RunMode,
        *,
        full: bool,
        worker: str | None,
        now: datetime,
        slot: datetime | None = None,
        only: RunId | None = None,
    ) -> tuple[Run, bool]:
        """A run to work on; what is remembered of links may be older than another process's clean-up."""
        self._links.forget()
        run, resumed = await super().start_run(
            source, mode, full=full, worker=worker, now=now, slot=slot, only=only
        )
        self._depths.pop(run.id, None)
        return run, resumed

    async def join_run(self, run: RunId, worker: str) -> Run | None:
        """A run to lend a hand in; what is remembered of links may be older than it."""
        self._links.forget()
        async with self.db.write() as tx:
            await tx.run("help_run", run=run, worker=worker)
        return await self.run_by_id(run)

    async def release(self, worker: str, now: datetime) -> None:
        """Give back everything a worker holds; its runs are over, and so is what was remembered of them."""
        self._depths.clear()
        await super().release(worker, now)

    @property
    def news(self) -> int:
        """How much news of work came so far."""
        return self.db.news.count

    async def hear(self, since: int, seconds: float) -> None:
        """Wait until there is more news than `since`, or for so long."""
        await self.db.news.hear(since, seconds)

    async def close(self) -> None:
        """Close the database."""
        await self.db.close()
