"""All data of afresh, as repositories over one database."""

from afresh.store.access import AccessRepository
from afresh.store.content import ChunkRepository, VisitRepository
from afresh.store.copies import CopyRepository
from afresh.store.dialect import Database
from afresh.store.digest import DigestRepository
from afresh.store.history import HistoryRepository
from afresh.store.links import LinkRepository, LinkScoreRepository
from afresh.store.messages import MessageRepository
from afresh.store.pages import PageRepository
from afresh.store.queue import QueueRepository, WorkerRepository
from afresh.store.removal import RetentionRepository
from afresh.store.repository import Caches, RetryPolicy
from afresh.store.runs import RunRepository
from afresh.store.schedules import DueRepository, ScheduleRepository
from afresh.store.search import SearchRepository
from afresh.store.sources import ListingRepository, SourceRepository
from afresh.store.stats import StatsRepository
from afresh.store.vectors import VectorRepository


class Store:
    def __init__(
        self,
        db: Database,
        url: str,
        *,
        caches: Caches | None = None,
        retry: RetryPolicy | None = None,
        search: type[SearchRepository] = SearchRepository,
        vectors: type[VectorRepository] = VectorRepository,
    ) -> None:
        self.db = db
        self.url = url
        self._parts = db, caches or Caches(), retry
        self.sources = SourceRepository(*self._parts)
        self.pages = PageRepository(*self._parts)
        self.history = HistoryRepository(*self._parts)
        self.links = LinkRepository(*self._parts)
        self.link_scores = LinkScoreRepository(*self._parts)
        self.listings = ListingRepository(*self._parts)
        self.runs = RunRepository(*self._parts)
        self.workers = WorkerRepository(*self._parts)
        self.queue = QueueRepository(*self._parts)
        self.visits = VisitRepository(*self._parts)
        self.due = DueRepository(*self._parts)
        self.schedules = ScheduleRepository(*self._parts)
        self.search = search(*self._parts)
        self.vectors = vectors(*self._parts)
        self.chunks = ChunkRepository(*self._parts)
        self.copies = CopyRepository(*self._parts)
        self.digest = DigestRepository(*self._parts)
        self.messages = MessageRepository(*self._parts)
        self.access = AccessRepository(*self._parts)
        self.retention = RetentionRepository(*self._parts)
        self.stats = StatsRepository(*self._parts)

    def with_retries(self, retry: RetryPolicy) -> "Store":
        db, caches, _ = self._parts
        return Store(db, self.url, caches=caches, retry=retry, search=type(self.search), vectors=type(self.vectors))

    async def close(self) -> None:
        await self.stats.close()
        await self.db.close()
