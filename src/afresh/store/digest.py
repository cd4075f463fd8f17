"""Records of the knowledge base folder (`afresh init-kb`)."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from afresh.dataclass import fields
from afresh.digest.cache import STATUSES, SeenCache
from afresh.digest.records import DigestPage, DigestUpdate
from afresh.model.records import ContentAction, PageId, SourceId, Visit
from afresh.store.dialect import Transaction
from afresh.store.records import record
from afresh.store.repository import Repository
from afresh.urls.canonical import domain_of


class DigestRepository(Repository):
    async def pages(self, source: SourceId) -> list[DigestPage]:
        """Return pages with their records for `index.txt`; leave out deleted or moved pages, unless still listed."""
        rows = await self._all("kb_pages", source=source)
        return [record(DigestPage, row, status=STATUSES.get(row["fetch_status"])) for row in rows]

    async def records(self, page: PageId) -> DigestUpdate | None:
        row = await self._one("kb_record", page=page)
        if row is None:
            return None
        return record(DigestUpdate, row, status=STATUSES.get(row["fetch_status"]), asked_model=False)

    async def apply_cache(self, source: SourceId, pages: Sequence[DigestPage], now: datetime) -> None:
        """Change the stored pages to the values in the cache file of `init-kb`; add pages that are not stored yet."""
        base = {"source": source, "now": now, "run": None}
        rows = [{**base, **_columns(page)} for page in pages]
        looks = [
            {**base, "url": page.url, "domain": domain_of(page.url), "at": page.next_at}
            for page in pages
            if page.next_at is not None
        ]
        async with self.db.write(source) as tx:
            await tx.many("insert_page", rows)
            await tx.many("impose_page", rows)
            await tx.many("impose_record", rows)
            await tx.many("impose_look", looks)
            await tx.run("set_mark", source=source, mark=None)

    async def recorded_cache(self) -> SeenCache | None:
        """Return what `record_cache` stored last, or None if nothing is stored."""
        return await self._find(partial(record, SeenCache), "recorded_cache")

    async def record_cache(self, cache: SeenCache) -> None:
        """Record path and hash of the cache file of `init-kb`, after its content was imported or written."""
        async with self.db.write() as tx:
            await tx.run("forget_caches")
            await tx.run("record_cache", path=cache.path, digest=cache.digest)


async def record_digests(tx: Transaction, visits: Sequence[Visit]) -> None:
    """Store the records for `index.txt` that checks of pages (`visits`) made; delete those of deleted pages."""
    found = [(visit.claim.page.id, visit.content.digest) for visit in visits if visit.content.digest is not None]
    await tx.many("record_kb", [{"page": page, **_columns(each)} for page, each in found])
    dropped = [visit.claim.page for visit in visits if visit.decision.content is ContentAction.DROP]
    gone = [page.id for page in dropped if page.content_hash is None]  # pages with content are removed by the sweep
    if gone:
        await tx.run("forget_kb", pages=gone)


def _columns(found: DigestUpdate | DigestPage) -> dict[str, object]:
    names = [each.name for each in fields(found)]
    return {name: getattr(found, name) for name in names if name not in ("asked_model", "next_at")}
