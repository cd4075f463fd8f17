"""What the digest of files and links (init-kb) keeps in the store."""

from collections.abc import Sequence
from datetime import datetime

from afresh.digest.cache import STATUSES, SeenCache
from afresh.digest.records import KbPage, Told
from afresh.model.records import Content, PageId, SourceId, Visit
from afresh.store.dialect import Row, Session
from afresh.store.records import at
from afresh.store.repository import Repository
from afresh.urls.canonical import domain_of

_PLACE = ("source", "url", "depth", "run", "now")


class DigestRepository(Repository):
    """Read and write records of the digest."""

    async def pages(self, source: SourceId) -> list[KbPage]:
        """The pages of a source that are there or listed, with their records."""
        async with self.db.read() as tx:
            return [_page(row) for row in await tx.all("kb_pages", source=source)]

    async def records(self, page: PageId) -> Told | None:
        """What was told of a page so far."""
        async with self.db.read() as tx:
            row = await tx.one("kb_told", page=page)
            return None if row is None else _told(row)

    async def impose(self, source: SourceId, pages: Sequence[KbPage], now: datetime) -> None:
        """Make pages what the cache says they are; those that are not known yet are added."""
        base = {"source": source, "now": now, "run": None}
        rows = [{**base, **_row(page)} for page in pages]
        looks = [
            {**base, "url": page.url, "domain": domain_of(page.url), "at": page.next_at}
            for page in pages
            if page.next_at is not None
        ]
        async with self.db.write(source) as tx:
            await tx.many("insert_page", [{key: row[key] for key in _PLACE} for row in rows])
            await tx.many("impose_page", rows)
            await tx.many("impose_record", rows)
            await tx.many("impose_look", looks)
            await tx.run("set_mark", source=source, mark=None)

    async def cache_seen(self) -> SeenCache | None:
        """The cache file that the store last agreed with."""
        async with self.db.read() as tx:
            row = await tx.one("cache_seen")
            return None if row is None else SeenCache(row["path"], row["digest"])

    async def see_cache(self, cache: SeenCache) -> None:
        """Note that the store agrees with this cache file, and with no other."""
        async with self.db.write() as tx:
            await tx.run("forget_caches")
            await tx.run("see_cache", path=cache.path, digest=cache.digest)


async def tell(tx: Session, visits: Sequence[Visit]) -> None:
    """Write what visits tell of pages of the knowledge base, and forget those that are not there."""
    told = [(visit.claim.page.id, visit.harvest.told) for visit in visits if visit.harvest.told is not None]
    if not told:
        return
    await tx.many("tell_kb", [{"page": page, **_columns(each)} for page, each in told])
    gone = [visit.claim.page.id for visit in visits if is_forgotten(visit)]
    if gone:
        await tx.run("forget_kb", pages=gone)


def is_forgotten(visit: Visit) -> bool:
    """Whether a page without content is gone: with content, the sweep says so."""
    return visit.decision.content is Content.DROP and visit.claim.page.content_hash is None


def _columns(told: Told) -> dict[str, object]:
    return {
        "text_hash": told.text_hash,
        "summary": told.summary,
        "indexed_at": told.indexed_at,
        "fetched_at": told.fetched_at,
        "status": told.status,
    }


def _row(page: KbPage) -> dict[str, object]:
    return {name: getattr(page, name) for name in KbPage.__slots__ if name != "next_at"}


def _told(row: Row) -> Told:
    return Told(
        text_hash=row["text_hash"],
        summary=row["summary"],
        indexed_at=at(row["indexed_at"]),
        fetched_at=at(row["fetched_at"]),
        status=STATUSES.get(row["fetch_status"]),
    )


def _page(row: Row) -> KbPage:
    return KbPage(
        url=row["url"],
        depth=row["depth"],
        size=row["size"],
        mtime_ns=row["mtime_ns"],
        etag=row["etag"],
        last_modified=row["last_modified"],
        failures=row["failures"],
        next_at=at(row["next_at"]),
        text_hash=row["text_hash"],
        summary=row["summary"],
        indexed_at=at(row["indexed_at"]),
        fetched_at=at(row["fetched_at"]),
        status=STATUSES.get(row["fetch_status"]),
    )
