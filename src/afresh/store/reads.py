"""What the use cases ask of the store: answers, never decisions."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from afresh.core.doubt import SAME
from afresh.core.history import HistoryEntry, newest_first
from afresh.core.looks import Document
from afresh.core.model import Attempt, ChangeKind, Held, Page, PageId, RunId, Source, SourceId
from afresh.core.records import LIVE_PAGES, PageFilter
from afresh.core.sketch import WIDTH, likeness, sketch_of
from afresh.core.store_views import Workload
from afresh.core.views import ChangeView, HostQueue, LinkView, PageView, SourceView
from afresh.store.cases import in_any_case
from afresh.store.dialect import Database, Row
from afresh.store.listings import listings_of_page
from afresh.store.records import at, attempt_from, certain, history_from, page_from, page_view, source_from

MANY = 1_000_000_000  # "no limit", in SQL
SHOWN_PAGES = 20  # of the pages a link stands on
LOOKED_AT = 200  # of those pages, the first that were found: among them are the nearest


class Reads:
    """Lists and numbers."""

    db: Database

    async def source_view(self, source: Source) -> SourceView:
        """A source with its numbers."""
        async with self.db.read() as tx:
            numbers = await tx.one("source_numbers", source=source.id)
            run = await tx.one("last_run", source=source.id)
            assert numbers is not None  # noqa: S101 - an aggregate always has a row
            return SourceView(
                id=source.id,
                name=source.name,
                version=source.version,
                kind=source.kind,
                url=source.url,
                crawl_time=source.crawl_time,
                pages=numbers["pages"],
                chunks=numbers["chunks"],
                links=numbers["links"],
                errors=numbers["errors"],
                doubtful=numbers["doubtful"],
                oldest_check=at(numbers["oldest_check"]),
                last_run=RunId(run["id"]) if run else None,
                last_state=run["state"] if run else None,
                last_mode=run["mode"] if run else None,
                last_end=at(run["finished_at"]) if run else None,
                rules=source.rules,
                policy=source.policy,
            )

    async def oldest_checks(self) -> dict[SourceId, datetime]:
        """Of each source that has pages with content, when the one that waits longest was looked at."""
        async with self.db.read() as tx:
            rows = await tx.all("oldest_checks")
            found = ((SourceId(row["source_id"]), at(row["oldest"])) for row in rows)
            return {source: oldest for source, oldest in found if oldest is not None}

    async def pages(
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

    async def find_pages(
        self, url: str, source: SourceId | None = None
    ) -> list[tuple[Page, PageView, str, str | None]]:
        """The pages with this address, each with the name and version of its source."""
        async with self.db.read() as tx:
            rows = await tx.all("pages_by_url", url=url, source=source)
            return [
                (page_from(row), page_view(row), row["source_name"], row["source_version"] or None)
                for row in rows
            ]

    async def addresses_with(
        self, part: str, source: SourceId | None = None, *, limit: int = 500
    ) -> list[str]:
        """Addresses of pages with content that hold a part, whatever its case, nearest to the root first."""
        async with self.db.read() as tx:
            rows = await tx.all("addresses_with", part=part, source=source, limit=limit)
            return [row["url"] for row in rows]

    async def history(self, page: PageId) -> list[Attempt]:
        """All attempts of a page, newest first, and those of listings that show it unchanged."""
        async with self.db.read() as tx:
            own = map(attempt_from, await tx.all("history", page=page))
            return newest_first(own, await listings_of_page(tx, page))

    async def history_by_url(self, url: str, source: SourceId | None = None) -> list[HistoryEntry]:
        """All attempts of an address, newest first, also where the page is no more."""
        async with self.db.read() as tx:
            return [history_from(row) for row in await tx.all("history_by_url", url=url, source=source)]

    async def evidence(
        self, page: Page, shown: int = 5
    ) -> tuple[Attempt | None, datetime | None, tuple[str, ...], int]:
        """Latest attempt, next look, who links here, and how many attempts there were."""
        async with self.db.read() as tx:
            latest = await tx.one("latest_attempt", page=page.id)
            following = await tx.one("latest_open", page=page.id)
            linked = await tx.all(
                "linked_from", source=page.source_id, url=page.url, page=page.id, limit=shown, most=LOOKED_AT
            )
            count = await tx.one("attempts_count", page=page.id)
            listings = await tx.one("count_listings_of_page", page=page.id)
            own = [attempt_from(latest)] if latest else []
            newest = newest_first(own, await listings_of_page(tx, page.id, limit=1))
            return (
                newest[0] if newest else None,
                at(following["scheduled_for"]) if following else None,
                tuple(row["url"] for row in linked),
                (count["attempts"] if count else 0) + (listings["listings"] if listings else 0),
            )

    async def link_to(
        self, url: str, source: SourceId | None = None
    ) -> tuple[Source, str, int, bool, bool] | None:
        """The nearest page that links there: source, page, depth, may it be followed, does it belong."""
        async with self.db.read() as tx:
            row = await tx.one("links_to", url=url, source=source)
            if row is None:
                return None
            return (
                source_from(row),
                row["page"],
                row["page_depth"],
                bool(row["follow"]),
                bool(row["admitted"]),
            )

    async def links(
        self,
        source: SourceId,
        *,
        page: str | None = None,
        keyword: str | None = None,
        min_score: float | None = None,
        limit: int | None = None,
    ) -> list[LinkView]:
        """The links of a source or of one page, best first, with the pages they stand on."""
        which = {"source": source, "on_page": page, "keyword": keyword, "least": min_score}
        async with self.db.read() as tx:
            rows = await tx.all("links", **which, limit=limit or MANY)
            ids = [row["id"] for row in rows]
            found = {
                "texts": await tx.all("texts_of_links", links=ids),
                "pages": await tx.all("pages_of_links", links=ids, most=SHOWN_PAGES),
                "keywords": await tx.all("keywords_of_links", links=ids),
            }
        parts = {name: _by_link(part) for name, part in found.items()}
        return [_link(row, **{name: part[row["id"]] for name, part in parts.items()}) for row in rows]

    async def held(self, page: PageId) -> Held:
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

    async def alike(self, page: Page, document: Document, run: RunId) -> int:
        """How many other pages showed before a run what a page shows now, or were doubted for it."""
        where = {"source": page.source_id, "page": page.id}
        async with self.db.read() as tx:
            row = await tx.one("doubted_alike", content_hash=document.content_hash, **where)
            sketch = document.sketch
            rows = await tx.all("sketches_like", first=sketch[:WIDTH], run=run, **where) if sketch else []
            held = sum(1 for each in rows if likeness(each["sketch"], sketch) >= SAME)
            return held + (int(row["pages"]) if row else 0)

    async def totals(self) -> dict[str, Any]:
        """The numbers of the whole store."""
        async with self.db.read() as tx:
            return dict(await tx.one("totals") or {})

    async def workload(self, workers: Collection[str]) -> Workload:
        """What open runs still have to look at; only what these workers hold is in work."""
        async with self.db.read() as tx:
            row = await tx.one("workload", workers=list(workers))
            assert row is not None  # noqa: S101
            return Workload(waiting=row["waiting"], held=row["held"], oldest=at(row["oldest"]))

    async def held_by(self) -> dict[str, int]:
        """How many pages each worker holds that holds any."""
        async with self.db.read() as tx:
            return {row["locked_by"]: row["number"] for row in await tx.all("held_by")}

    async def busiest_hosts(self, limit: int, workers: Collection[str]) -> list[HostQueue]:
        """The hosts that most waits for in open runs, the longest queue first; these workers hold pages."""
        async with self.db.read() as tx:
            return [
                HostQueue(
                    domain=row["domain"],
                    waiting=row["waiting"],
                    held=row["held"],
                    oldest=at(row["oldest"]),
                )
                for row in await tx.all("busiest_hosts", limit=limit, workers=list(workers))
            ]

    async def size_bytes(self) -> int:
        """How much room the store takes."""
        return await self.db.size_bytes()

    async def integrity(self) -> str | None:
        """What is broken in the database or its text index, or None."""
        return await self.db.trouble()

    async def try_to_write(self) -> None:
        """Take the right to write for a moment; raises what keeps us from it."""
        async with self.db.write():
            pass

    async def latest_moment(self) -> datetime | None:
        """The latest time that a run or a worker has written down."""
        async with self.db.read() as tx:
            row = await tx.one("latest_moment")
            return at(row["at"]) if row else None

    async def pages_to_look_at(self, source: SourceId) -> list[Page]:
        """The pages that a refresh would queue at its start."""
        async with self.db.read() as tx:
            return [page_from(row) for row in await tx.all("pages_to_look_at", source=source)]


def _by_link(rows: Sequence[Row]) -> dict[int, list[Row]]:
    parts: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        parts[row["link_id"]].append(row)
    return parts


def _link(row: Row, texts: Sequence[Row], pages: Sequence[Row], keywords: Sequence[Row]) -> LinkView:
    return LinkView(
        url=row["url"],
        text=max((each["text"] for each in texts), key=lambda text: (len(text), text)),
        score=row["score"],
        keywords={each["keyword"]: each["score"] for each in keywords},
        comment=row["comment"],
        crawl_time=max(filter(None, (at(each["crawl_time"]) for each in texts)), default=None),
        pages=tuple(each["url"] for each in pages),
        page_count=sum(each["pages"] for each in texts),
    )


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


def change_from(row: Row) -> ChangeView:
    """A row of `changes` with its source."""
    return ChangeView(
        id=row["id"],
        source=row["source_name"],
        version=row["source_version"] or None,
        url=row["url"],
        kind=ChangeKind(row["kind"]),
        run=row["run_id"],
        at=certain(row["at"]),
        old_hash=row["old_hash"],
        new_hash=row["new_hash"],
        diff=row["diff"],
        moved_to=row["moved_to"],
    )
