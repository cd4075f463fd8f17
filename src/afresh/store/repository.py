"""The base of all repositories: database, caches and retries.

Every method of a repository is one query or one transaction. A call that failed can be repeated: it has changed
nothing, or has changed everything and lost only its result. A repeated `claim` would claim other pages, so it is
repeated as `claim_again`.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from afresh.aio import wait_event
from afresh.dataclass import dataclass, field
from afresh.errors import StoreFull, StoreUnavailable, StoreUnreachable
from afresh.events import Listener, Notice, ignore
from afresh.model.records import ContentAction, Run, RunId, SourceId, Visit
from afresh.store.dialect import Database, Row, Transaction
from afresh.store.records import record

if TYPE_CHECKING:
    from afresh.ports import Matrix
    from afresh.store.compact import VectorCodes
    from afresh.store.search import IndexStats

T = TypeVar("T")
FOREVER = float("inf")
MANY = 1_000_000_000  # stands for "no limit" in SQL
Call = Callable[..., Awaitable[Any]]
Method = TypeVar("Method", bound=Call)


class LinkCache:
    """Writes links and caches their ids, because most links of a site are on every page."""

    def __init__(self) -> None:
        self._ids: dict[tuple[SourceId, str], int] = {}
        self._admitted: set[int] = set()

    def forget(self) -> None:
        """Clear the cache, as needed after a rollback or after links were deleted."""
        self._ids.clear()
        self._admitted.clear()

    async def write(self, tx: Transaction, run: Run, visits: Sequence[Visit]) -> None:
        """Replace the links of visited pages; mark the link graph as changed if links changed or pages were removed."""
        linked = [visit for visit in visits if visit.content.links is not None]
        actions = {visit.decision.content for visit in visits}
        doomed = [visit for visit in visits if visit.claim.page.doomed_by is not None]
        changes_graph = ContentAction.DROP in actions or any(v.decision.page.doomed_by is None for v in doomed)
        if linked:
            await self._make(tx, run, linked)
            edges = [
                {
                    "page": visit.claim.page.id,
                    "link": self._ids[run.source_id, link.url],
                    "position": position,
                    "text": link.text,
                    "follow": int(link.follow),
                }
                for visit in linked
                for position, link in enumerate(visit.content.links or ())
            ]
            pages = [visit.claim.page.id for visit in linked]
            if edges:
                await tx.many("delete_page_links", [{"pages": pages}])
                await tx.many("insert_page_link", edges)
            if edges or await tx.run("delete_page_links", pages=pages):
                changes_graph = True
                await tx.many("unseal_links", [{"source": run.source_id}])
        if changes_graph:
            await tx.many("mark_graph", [{"source": run.source_id, "changed": 1}])
        if len(self._ids) > MAX_CACHED_LINKS:
            self.forget()

    async def _make(self, tx: Transaction, run: Run, visits: Sequence[Visit]) -> None:
        """Store links that are new or newly admitted, and cache their ids."""
        wanted: dict[str, bool] = {}
        for visit in visits:
            for link in visit.content.links or ():
                wanted[link.url] = wanted.get(link.url, False) or link.url in visit.content.children
        source, unknown = run.source_id, dict[str, bool]()
        for url, belongs in wanted.items():
            number = self._ids.get((source, url))
            if number is None or (belongs and number not in self._admitted):
                unknown[url] = belongs
        base = {"source": source, "crawl_time": run.started_at}
        rows = [{**base, "url": url, "admitted": int(belongs)} for url, belongs in unknown.items()]
        await tx.many("upsert_link", rows)
        for row in await tx.all("link_ids", source=source, urls=list(unknown)):
            self._ids[source, row["url"]] = row["id"]
            if unknown[row["url"]]:
                self._admitted.add(row["id"])


MAX_CACHED_LINKS = 10_000
PAUSE = 0.5  # seconds between attempts while the disk is full or the server is down
PAUSE_BUSY = 0.05  # seconds; the database itself waits for locks
REPORT_BUSY_SECONDS = 5.0  # shorter locks are not reported
LAST_TRIES_SECONDS = 3.0  # to retry a locked store after a stop was requested
FULL = "disk full: waiting for space; Ctrl-C stops"
DOWN = "{why}: waiting; Ctrl-C stops"
BUSY = "another process keeps the store locked: waiting; Ctrl-C stops"
GOING_ON = "the store is available again: continuing"


@dataclass(slots=True, kw_only=True)
class RetryPolicy:
    """Retries after temporary errors, for `full_seconds` if the disk is full, else `busy_seconds`; tells `listener`."""

    busy_seconds: float = 30.0
    full_seconds: float = 0.0
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    listener: Listener = ignore
    clock: Callable[[], float] = time.monotonic
    _reported: str | None = None

    async def retry(self, error: StoreUnavailable, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a failed call until it succeeds, and return its result; after the time limit, raise its error."""
        since = self.clock()
        while True:
            await self._wait(error, self.clock() - since)
            try:
                result = await call()
            except StoreUnavailable as again:
                error = again
            else:
                if self._reported is not None:
                    self._reported = None
                    self.listener(Notice(text=GOING_ON))
                return result

    async def _wait(self, error: StoreUnavailable, waited: float) -> None:
        full, down = isinstance(error, StoreFull), isinstance(error, StoreUnreachable)
        lasts = full or down  # the problem lasts until a person fixes it
        limit = self.full_seconds if full else self.busy_seconds
        if self.stopping.is_set():
            limit = 0.0 if lasts else LAST_TRIES_SECONDS
        if waited >= limit:
            raise error
        text = FULL if full else DOWN.format(why=error) if down else BUSY
        if text != self._reported and (lasts or waited >= REPORT_BUSY_SECONDS):
            self._reported = text
            self.listener(Notice(text=text))
        await (wait_event(self.stopping, PAUSE) if lasts else asyncio.sleep(PAUSE_BUSY))


@dataclass(slots=True)
class Caches:
    links: LinkCache = field(default_factory=LinkCache)
    known: "IndexStats | None" = None
    codes: "VectorCodes | None" = None  # of the model that answered last
    middles: "dict[int, tuple[int, Matrix]]" = field(default_factory=dict)  # newest vector and mean by model
    renewing: asyncio.Lock = field(default_factory=asyncio.Lock)
    depths: dict[RunId, dict[int, int]] = field(default_factory=dict)  # of URLs queued by each run


class Repository:
    """Reads and writes records of one kind; each public method is one query or transaction, and is retried."""

    def __init__(self, db: Database, caches: Caches, retry: RetryPolicy | None) -> None:
        self.db = db
        self.caches = caches
        self.retry = retry

    async def _all(self, name: str, /, **params: object) -> Sequence[Row]:
        async with self.db.read() as tx:
            return await tx.all(name, **params)

    async def _one(self, name: str, /, **params: object) -> Row | None:
        async with self.db.read() as tx:
            return await tx.one(name, **params)

    async def _number(self, name: str, /, **params: object) -> int:
        async with self.db.read() as tx:
            return await tx.number(name, **params)

    async def _find(self, make: Callable[[Row], T], name: str, /, **params: object) -> T | None:
        row = await self._one(name, **params)
        return make(row) if row else None

    async def _records(self, cls: type[T], name: str, /, **params: object) -> list[T]:
        return [record(cls, row) for row in await self._all(name, **params)]

    async def _list(self, make: Callable[[Row], T], name: str, /, **params: object) -> list[T]:
        return [make(row) for row in await self._all(name, **params)]

    async def _run(self, name: str, /, **params: object) -> int:
        async with self.db.write() as tx:
            return await tx.run(name, **params)

    def __init_subclass__(cls) -> None:
        own = dict(vars(cls))
        for name, method in own.items():
            is_call = inspect.iscoroutinefunction(method) and not name.startswith("_")
            if is_call and not hasattr(method, "is_not_retried"):
                setattr(cls, name, retried(method, own.get(f"{name}_again", method)))


def not_retried(method: Method) -> Method:
    """Mark a method that must not be retried: it runs inside a transaction of its caller, or must not be delayed."""
    method.is_not_retried = True  # type: ignore[attr-defined]
    return method


def retried(method: Call, again: Call) -> Call:
    """Return a method that calls `again` after a temporary error, as the retry policy says."""

    @wraps(method)
    async def call(self: Repository, *args: Any, **kwargs: Any) -> Any:
        try:
            return await method(self, *args, **kwargs)
        except StoreUnavailable as error:
            if self.retry is None:
                raise
            return await self.retry.retry(error, lambda: again(self, *args, **kwargs))

    return call
