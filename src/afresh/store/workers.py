"""Workers in the store: heartbeats, and what dead workers held."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from afresh.model.records import Worker
from afresh.store.dialect import Session
from afresh.store.records import at, worker_from
from afresh.store.repository import Repository, not_retried


class WorkerRepository(Repository):
    """Make workers known, renew their leases and free what the dead held."""

    async def join(self, worker: Worker) -> None:
        """Make a worker known; its heart beats from now on."""
        async with self.db.write() as tx:
            await tx.run(
                "upsert_worker", name=worker.name, host=worker.host, pid=worker.pid, now=worker.heartbeat_at
            )

    @not_retried  # a delayed heartbeat would report an old time
    async def beat(self, worker: Worker) -> bool:
        """Renew every lease of a worker at once; False if others took it for dead."""
        now = worker.heartbeat_at
        async with self.db.write() as tx:
            known = await tx.run("beat", worker=worker.name, now=now)
            if not known:
                await tx.run("upsert_worker", name=worker.name, host=worker.host, pid=worker.pid, now=now)
            return bool(known)

    async def all(self) -> list[Worker]:
        """All workers that are known, the dead among them."""
        async with self.db.read() as tx:
            return [worker_from(row) for row in await tx.all("workers")]

    async def release(self, worker: str, now: datetime) -> None:
        """Give back everything a worker holds, unfinished, and forget the worker."""
        self.caches.depths.clear()
        async with self.db.write() as tx:
            await tx.run("release_crawls", worker=worker, now=now)
            await self._free_hosts(tx, [worker])
            await tx.run("forget_workers", workers=[worker])

    async def reclaim(
        self, dead: Sequence[str], now: datetime, hearts: Mapping[str, datetime | None] | None = None
    ) -> int:
        """Put back what dead workers held: the attempt is stamped as abandoned, a new one is queued.

        Who says by what heartbeats it took them for dead (those without were unknown) takes from nobody whose
        heart has moved since.
        """
        async with self.db.write() as tx:
            if hearts is not None:
                rows = await tx.all("hearts", workers=list(dead))
                beats = {row["name"]: at(row["heartbeat_at"]) for row in rows}
                dead = [name for name in dead if beats.get(name) == hearts.get(name)]
            rows = await tx.all("abandon_crawls", workers=list(dead), now=now)
            await tx.many("reopen_crawl", [{**dict(row), "now": now} for row in rows if row["page_id"]])
            await self._free_hosts(tx, dead)
            await tx.run("forget_workers", workers=list(dead))
            return len(rows)

    async def _free_hosts(self, tx: Session, workers: Sequence[str]) -> None:
        await tx.run("unwant_hosts", workers=list(workers))  # first: what is just handed to them is seen then
        await tx.run("release_hosts", workers=list(workers))

    async def lock_owners(self) -> set[str]:
        """The names of all who hold a page or a host."""
        async with self.db.read() as tx:
            return {row["locked_by"] for row in await tx.all("lock_owners")}

    async def held_by(self) -> dict[str, int]:
        """How many pages each worker holds that holds any."""
        async with self.db.read() as tx:
            return {row["locked_by"]: row["number"] for row in await tx.all("held_by")}

    async def latest_moment(self) -> datetime | None:
        """The latest time that a run or a worker has written down."""
        async with self.db.read() as tx:
            row = await tx.one("latest_moment")
            return at(row["at"]) if row else None
