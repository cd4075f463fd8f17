"""Read and change pages in the store."""

from collections.abc import Sequence
from datetime import datetime

from afresh.crawl.plausibility import SAME
from afresh.crawl.run_verdict import final_status, pair_moves
from afresh.dataclass import replace
from afresh.model.fetch import Document
from afresh.model.filters import LIVE_PAGES, PageFilter, Sources
from afresh.model.records import Page, PageId, PageStatus, RunId, SourceId, StoredContent
from afresh.model.reports import PageView
from afresh.store.dialect import in_any_case, of_sources
from afresh.store.records import at, page_from, page_view, record
from afresh.store.removal import drop
from afresh.store.repository import MANY, Repository
from afresh.text.normalize import WIDTH, likeness, sketch_of
from afresh.urls.canonical import domain_of


class PageRepository(Repository):
    async def of_source(
        self, source: SourceId, which: PageFilter = LIVE_PAGES, *, limit: int | None = None
    ) -> list[PageView]:
        """Return the matching pages of a source, nearest to the root first."""
        return await self._list(page_view, "pages", source=source, **asked_pages(which), limit=limit or MANY)

    async def find(self, url: str, source: SourceId | None = None) -> list[tuple[Page, PageView, str, str | None]]:
        """Return the pages with this URL, each with the name and version of its source."""
        rows = await self._all("pages_by_url", url=url, source=source)
        return [(page_from(row), page_view(row), row["source_name"], row["source_version"] or None) for row in rows]

    async def urls_with(self, part: str, source: SourceId | None = None, *, limit: int = 500) -> list[str]:
        """Return the URLs that contain `part`, ignoring case, nearest to the root first; skip pages without content."""
        rows = await self._all("addresses_with", part=part, source=source, limit=limit)
        return [row["url"] for row in rows]

    async def records(
        self, sources: Sources, which: PageFilter = LIVE_PAGES, *, after: int = 0, limit: int
    ) -> list[PageView]:
        """Return pages with an id above `after`, in order of their ids."""
        name, among = of_sources("page_records", sources)
        return await self._list(page_view, name, **among, **asked_pages(which), after=after, limit=limit)

    async def get(self, page: PageId) -> PageView | None:
        return await self._find(page_view, "page_record", page=page)

    async def content(self, page: PageId) -> StoredContent:
        row = await self._one("held_document", page=page)
        if row is None:
            return StoredContent()
        sketch = row["sketch"] or sketch_of(row["markdown"] or "")
        return record(StoredContent, row, sketch=sketch)

    async def count_alike(self, page: Page, document: Document, run: RunId) -> int:
        """Return how many other pages of the source have had almost the text of `document` since before the run.

        Pages are also counted if they are flagged because a response had exactly this text.
        """
        where = {"source": page.source_id, "page": page.id}
        async with self.db.read() as tx:
            doubted = await tx.number("doubted_alike", content_hash=document.content_hash, **where)
            sketch = document.sketch
            rows = await tx.all("sketches_like", first=sketch[:WIDTH], run=run, **where) if sketch else []
            return doubted + sum(likeness(row["sketch"], sketch) >= SAME for row in rows)

    async def add(self, source: SourceId, url: str, depth: int, now: datetime) -> PageId:
        async with self.db.write(source) as tx:
            row = {"source": source, "url": url, "now": now}
            await tx.many("insert_page", [{**row, "depth": depth, "run": None}])
            await tx.many("await_look", [{**row, "domain": domain_of(url), "at": now}])
            return PageId((await tx.only("pages_by_url", url=url, source=source))["id"])

    async def check_at(self, page: PageId, at: datetime, now: datetime) -> bool:
        """Set the next check of a page; return False if it is being checked, queued in a run or no longer stored."""
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
        """Remove a page from the index but keep its history; return False if it is not in the index."""
        seen = await self._one("page_record", page=page)
        if seen is None:
            return False
        async with self.db.write(SourceId(seen["source_id"])) as tx:
            row = await tx.one("page_record", page=page)
            if row is None or row["status"] == PageStatus.DELETED:
                return False
            await drop(tx, SourceId(row["source_id"]), None, [replace(page_from(row), moved_to=None)], now)
            return True

    async def to_check(self, source: SourceId) -> list[Page]:
        """Return the pages that a refresh would queue at its start."""
        return await self._list(page_from, "pages_to_look_at", source=source)

    async def unreached(self, source: SourceId, root: str, max_depth: int) -> list[Page]:
        """Return pages with content to which no link or listing leads; cached until links or pages change."""
        async with self.db.read() as tx:
            row = await tx.one("source_by_id", source=source)
            if row is not None and not row["graph_changed"]:
                rows = await tx.all("missing_pages", source=source)
            else:
                rows = await tx.all("unreached", source=source, root=root, max_depth=max_depth)
            return [page_from(row) for row in rows]

    async def doomed(self, source: SourceId, missed: Sequence[Page] = ()) -> list[tuple[Page, PageStatus | None]]:
        """Return the pages marked for deletion: those marked in the store, and those in `missed` with a new mark.

        `missed` are pages that a run did not reach; their new marks (`doomed_by`) are not stored yet. Each page comes
        with the status of the page where its redirects end; None: there is no redirect, or they end outside the source.
        """
        async with self.db.read() as tx:
            pages = [page_from(row) for row in await tx.all("doomed", source=source)]
            pages += [page for page in missed if page.doomed_by is not None]
            if not pages:
                return []
            rows = await tx.all("moves", source=source)
            moves = {row["url"]: (PageStatus(row["status"]), row["moved_to"]) for row in rows}
            return [(page, final_status(page.moved_to, moves) if page.moved_to else None) for page in pages]

    async def live_count(self, source: SourceId) -> int:
        return await self._number("live_count", source=source)

    async def heirs(self, source: SourceId, pages: Sequence[Page]) -> dict[PageId, Page]:
        """Return by id of a moved page its heir: the page at the new URL, whose content the moved page takes over."""
        if not any(page.moved_to for page in pages):
            return {}
        async with self.db.read() as tx:
            moves = {row["url"]: row["moved_to"] for row in await tx.all("moves_of_source", source=source)}
            urls = sorted({page.moved_to for page in pages if page.moved_to} | set(moves.values()))
            rows = await tx.all("move_targets", source=source, urls=urls)
        targets = {row["url"]: (page_from(row), found) for row in rows if (found := at(row["found_at"]))}
        return pair_moves(pages, moves, targets)


def asked_pages(which: PageFilter) -> dict[str, object]:
    own = {name: getattr(which, name) for name in ("status", "language", "depth")}
    flags = {"everything": int(which.everything), "doubtful": int(which.doubtful)}
    return {**own, **flags, **in_any_case(which.text)}
