"""Pages in the store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.crawl.judge import final_status, pair_moves
from afresh.crawl.plausibility import SAME
from afresh.model.fetch import Document
from afresh.model.filters import (
    LIVE_PAGES,
    PageFilter,
    Sources,
)
from afresh.model.records import Held, Page, PageId, PageStatus, RunId, SourceId
from afresh.model.reports import PageView
from afresh.store.cases import in_any_case
from afresh.store.records import at, page_from, page_view
from afresh.store.removal import drop
from afresh.store.repository import Repository
from afresh.store.sql import of_sources
from afresh.text.similarity import WIDTH, likeness, sketch_of
from afresh.urls.canonical import domain_of

MANY = 1_000_000_000  # "no limit", in SQL


class PageRepository(Repository):
    """Read pages, and change single ones."""

    async def of_source(
        self,
        source: SourceId,
        which: PageFilter = LIVE_PAGES,
        *,
        limit: int | None = None,
    ) -> list[PageView]:
        """The pages of a source, nearest to the root first."""
        async with self.db.read() as tx:
            rows = await tx.all("pages", source=source, **asked_pages(which), limit=limit or MANY)
            return [page_view(row) for row in rows]

    async def find(
        self, url: str, source: SourceId | None = None
    ) -> list[tuple[Page, PageView, str, str | None]]:
        """The pages with this address, each with the name and version of its source."""
        async with self.db.read() as tx:
            rows = await tx.all("pages_by_url", url=url, source=source)
            return [
                (page_from(row), page_view(row), row["source_name"], row["source_version"] or None)
                for row in rows
            ]

    async def urls_with(self, part: str, source: SourceId | None = None, *, limit: int = 500) -> list[str]:
        """Addresses of pages with content that hold a part, whatever its case, nearest to the root first."""
        async with self.db.read() as tx:
            rows = await tx.all("addresses_with", part=part, source=source, limit=limit)
            return [row["url"] for row in rows]

    async def records(
        self, sources: Sources, which: PageFilter = LIVE_PAGES, *, after: int = 0, limit: int
    ) -> list[PageView]:
        """Pages with a number above `after`, in the order of their numbers."""
        name, among = of_sources("page_records", sources)
        async with self.db.read() as tx:
            rows = await tx.all(name, **among, **asked_pages(which), after=after, limit=limit)
            return [page_view(row) for row in rows]

    async def get(self, page: PageId) -> PageView | None:
        """One page."""
        async with self.db.read() as tx:
            row = await tx.one("page_record", page=page)
            return page_view(row) if row else None

    async def content(self, page: PageId) -> Held:
        """The content on record of a page."""
        async with self.db.read() as tx:
            row = await tx.one("held_document", page=page)
            if row is None:
                return Held()
            sketch = row["sketch"] or sketch_of(row["markdown"] or "")
            return Held(
                markdown=row["markdown"],
                sketch=sketch,
                length=row["length"],
                former=row["former"],
                former_title=row["former_title"],
                former_at=at(row["former_at"]),
            )

    async def count_alike(self, page: Page, document: Document, run: RunId) -> int:
        """How many other pages showed before a run what a page shows now, or were doubted for it."""
        where = {"source": page.source_id, "page": page.id}
        async with self.db.read() as tx:
            row = await tx.one("doubted_alike", content_hash=document.content_hash, **where)
            sketch = document.sketch
            rows = await tx.all("sketches_like", first=sketch[:WIDTH], run=run, **where) if sketch else []
            held = sum(1 for each in rows if likeness(each["sketch"], sketch) >= SAME)
            return held + (int(row["pages"]) if row else 0)

    async def add(self, source: SourceId, url: str, depth: int, now: datetime) -> PageId:
        """Make an address known, to be looked at as soon as what is due is."""
        async with self.db.write(source) as tx:
            row = {"source": source, "url": url, "now": now}
            await tx.many("insert_page", [{**row, "depth": depth, "run": None}])
            await tx.many("await_look", [{**row, "domain": domain_of(url), "at": now}])
            found = await tx.all("pages_by_url", url=url, source=source)
            return PageId(found[0]["id"])

    async def check_at(self, page: PageId, at: datetime, now: datetime) -> bool:
        """Set when a page is looked at next; False if it is being looked at or in a run."""
        async with self.db.write() as tx:
            row = await tx.one("open_row", page=page)
            if row is not None and (row["run_id"] is not None or row["locked_by"] is not None):
                return False
            if row is not None:
                await tx.run("postpone", crawl=row["id"], at=at, now=now)
                return True
            found = await tx.one("page_record", page=page)
            if found is None:
                return False
            place = {"source": found["source_id"], "url": found["url"], "domain": domain_of(found["url"])}
            await tx.many("await_look", [{**place, "at": at, "now": now}])
            return True

    async def drop(self, page: PageId, now: datetime) -> bool:
        """Take a page out of the index; False if it is not in it. Its history stays."""
        async with self.db.read() as tx:
            seen = await tx.one("page_record", page=page)
        if seen is None:
            return False
        async with self.db.write(SourceId(seen["source_id"])) as tx:
            row = await tx.one("page_record", page=page)
            if row is None or row["status"] == PageStatus.DELETED:
                return False
            await drop(tx, SourceId(row["source_id"]), None, [replace(page_from(row), moved_to=None)], now)
            return True

    async def to_check(self, source: SourceId) -> list[Page]:
        """The pages that a refresh would queue at its start."""
        async with self.db.read() as tx:
            return [page_from(row) for row in await tx.all("pages_to_look_at", source=source)]

    async def unreached(self, source: SourceId, root: str, max_depth: int) -> list[Page]:
        """Pages with content that no way leads to; walked anew only if a link or a listing changed."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_id", source=source)
            if row is not None and not row["graph_changed"]:
                rows = await tx.all("missing_pages", source=source)
            else:
                rows = await tx.all("unreached", source=source, root=root, max_depth=max_depth)
            return [page_from(row) for row in rows]

    async def doomed(
        self, source: SourceId, missed: Sequence[Page] = ()
    ) -> list[tuple[Page, PageStatus | None]]:
        """Pages whose content is to go, those just missed too often included, with where their moves end."""
        async with self.db.read() as tx:
            pages = [page_from(row) for row in await tx.all("doomed", source=source)]
            pages += [page for page in missed if page.doomed_by is not None]
            if not pages:
                return []
            rows = await tx.all("moves", source=source)
            moves = {row["url"]: (PageStatus(row["status"]), row["moved_to"]) for row in rows}
            return [(page, final_status(page.moved_to, moves) if page.moved_to else None) for page in pages]

    async def live_count(self, source: SourceId) -> int:
        """How many pages have content."""
        async with self.db.read() as tx:
            row = await tx.one("live_count", source=source)
            return int(row["live"]) if row else 0

    async def heirs(self, source: SourceId, pages: Sequence[Page]) -> dict[PageId, Page]:
        """Pair pages that moved with the pages that take their identity (crawl/judge.py)."""
        if not any(page.moved_to for page in pages):
            return {}
        async with self.db.read() as tx:
            moves = {row["url"]: row["moved_to"] for row in await tx.all("moves_of_source", source=source)}
            urls = sorted({page.moved_to for page in pages if page.moved_to} | set(moves.values()))
            rows = await tx.all("move_targets", source=source, urls=urls)
        targets = {row["url"]: (page_from(row), found) for row in rows if (found := at(row["found_at"]))}
        return pair_moves(pages, moves, targets)


def asked_pages(which: PageFilter) -> dict[str, object]:
    """What the queries for pages are told of those that are wanted."""
    return {
        "status": which.status,
        "everything": int(which.everything),
        "doubtful": int(which.doubtful),
        "language": which.language,
        "depth": which.depth,
        **in_any_case(which.text),
    }
