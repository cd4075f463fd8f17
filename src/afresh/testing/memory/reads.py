"""What the use cases ask of a store, answered from memory."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from afresh.core.doubt import SAME
from afresh.core.history import HistoryEntry, history_entry
from afresh.core.httpdate import http_date_of, time_of
from afresh.core.link_score import Worth
from afresh.core.looks import Document
from afresh.core.model import Attempt, Held, Page, PageId, PageStatus, Run, RunId, RunMode, Source, SourceId
from afresh.core.records import LIVE_PAGES, PageFilter
from afresh.core.sketch import WIDTH, likeness
from afresh.core.views import HostQueue, LinkView, PageView, SourceView
from afresh.testing.memory.listings import attempts_of_page
from afresh.testing.memory.tables import NOT_IN_INDEX, Tables

SHOWN_PAGES = 20
LOOKED_AT = 200  # of those pages, the first that were found: among them are the nearest


class MemoryReads:
    """Lists and numbers."""

    tables: Tables

    async def source_view(self, source: Source) -> SourceView:
        """A source with its numbers."""
        pages = [row.page for row in self.tables.pages_of(source.id)]
        checks = [p.checked_at for p in pages if p.status is PageStatus.ACTIVE and p.checked_at]
        runs = [run for run in self.tables.runs.values() if run.source_id == source.id]
        looks: list[Run | None] = [run for run in runs if run.mode not in (RunMode.CHECK, RunMode.SYNC)]
        last = [None, *looks][-1]
        return SourceView(
            id=source.id,
            name=source.name,
            version=source.version,
            kind=source.kind,
            url=source.url,
            crawl_time=source.crawl_time,
            pages=sum(page.status not in NOT_IN_INDEX for page in pages),
            chunks=sum(len(self.tables.pieces.get(page.id, ())) for page in pages),
            links=sum(key[0] == source.id for key in self.tables.links),
            errors=sum(page.status is PageStatus.ERROR for page in pages),
            doubtful=sum(p.doubt is not None and p.status is not PageStatus.DELETED for p in pages),
            oldest_check=min(checks, default=None),
            last_run=last.id if last else None,
            last_state=last.state if last else None,
            last_mode=last.mode if last else None,
            last_end=last.finished_at if last else None,
            rules=source.rules,
            policy=source.policy,
        )

    async def oldest_checks(self) -> dict[SourceId, datetime]:
        """Of each source that has pages with content, when the one that waits longest was looked at."""
        views = [await self.source_view(row.source) for row in self.tables.sources.values()]
        return {view.id: view.oldest_check for view in views if view.oldest_check is not None}

    async def pages(
        self,
        source: SourceId,
        which: PageFilter = LIVE_PAGES,
        *,
        limit: int | None = None,
    ) -> list[PageView]:
        """The pages of a source, nearest to the root first."""
        pages = [row.page for row in self.tables.pages_of(source)]
        views = [view_of(page, self.tables.next_look(page.id)) for page in pages]
        nearest = sorted(views, key=lambda view: (view.depth, view.url))
        return [view for view in nearest if which.fits(view)][:limit]

    async def find_pages(
        self, url: str, source: SourceId | None = None
    ) -> list[tuple[Page, PageView, str, str | None]]:
        """The pages with this address, each with the name and version of its source."""
        found = []
        for row in self.tables.pages.values():
            if row.page.url == url and source in (None, row.page.source_id):
                owner = self.tables.sources[row.page.source_id].source
                view = view_of(row.page, self.tables.next_look(row.page.id))
                found.append((row.page, view, owner.name, owner.version))
        return sorted(found, key=lambda each: each[0].status is not PageStatus.ACTIVE)

    async def addresses_with(
        self, part: str, source: SourceId | None = None, *, limit: int = 500
    ) -> list[str]:
        """Addresses of pages with content that hold a part, whatever its case, nearest to the root first."""
        pages = [row.page for row in self.tables.pages.values() if source in (None, row.page.source_id)]
        found = [p for p in pages if p.content_hash is not None and part.lower() in p.url.lower()]
        urls = [page.url for page in sorted(found, key=lambda page: (page.depth, page.url))]
        return list(dict.fromkeys(urls))[:limit]

    async def history(self, page: PageId) -> list[Attempt]:
        """All attempts of a page, newest first, and those of listings that show it unchanged."""
        return attempts_of_page(self.tables, page)

    async def history_by_url(self, url: str, source: SourceId | None = None) -> list[HistoryEntry]:
        """All attempts of an address, newest first, also where the page is no more."""
        rows = self._newest_first([row for row in self.tables.crawls.values() if row.url == url])
        owned = [(row, self._owner_of(row)) for row in rows]
        return [
            history_entry(row, owner.name if owner else None, owner.version if owner else None)
            for row, owner in owned
            if source is None or (owner is not None and owner.id == source)
        ]

    def _owner_of(self, attempt: Attempt) -> Source | None:
        page = self.tables.pages.get(attempt.page_id) if attempt.page_id is not None else None
        run = self.tables.runs.get(attempt.run_id) if attempt.run_id is not None else None
        owner = page.page.source_id if page else run.source_id if run else None
        return self.tables.sources[owner].source if owner in self.tables.sources else None

    def _newest_first(self, rows: Sequence[Attempt]) -> list[Attempt]:
        return sorted(rows, key=lambda row: -row.id)

    async def evidence(
        self, page: Page, shown: int = 5
    ) -> tuple[Attempt | None, datetime | None, tuple[str, ...], int]:
        """Latest attempt, next look, who links here, and how many attempts there were."""
        rows = await self.history(page.id)
        done = [row for row in rows if row.outcome is not None]
        waiting = [row.scheduled_for for row in rows if row.outcome is None]
        others = [each for each in self._pages_with(page.source_id, page.url) if each.id != page.id]
        first = {each.id for each in sorted(others, key=lambda each: each.id)[:LOOKED_AT]}
        linked = [each.url for each in others if each.id in first]
        return (
            done[0] if done else None,
            waiting[0] if waiting else None,
            tuple(linked[:shown]),
            len(done),
        )

    def _pages_with(self, source: SourceId, url: str) -> list[Page]:
        """The pages of a source that link to an address, nearest first."""
        rows = self.tables.pages_of(source)
        found = [r.page for r in rows if any(e.url == url for e in self.tables.edges.get(r.page.id, ()))]
        return sorted(found, key=lambda page: (page.depth, page.url))

    async def link_to(
        self, url: str, source: SourceId | None = None
    ) -> tuple[Source, str, int, bool, bool] | None:
        """The nearest page that links there: source, page, depth, may it be followed, does it belong."""
        found = [
            (row.page.depth, not edge.follow, row.page.url, row.page.source_id)
            for row in self.tables.pages.values()
            for edge in self.tables.edges.get(row.page.id, ())
            if edge.url == url and source in (None, row.page.source_id)
        ]
        if not found:
            return None
        depth, closed, page, owner = min(found)
        belongs = bool(self.tables.links.get((owner, url)))
        return self.tables.sources[owner].source, page, depth, not closed, belongs

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
        owners = [row.page for row in self.tables.pages_of(source) if page in (None, row.page.url)]
        urls = {edge.url for owner in owners for edge in self.tables.edges.get(owner.id, ())}
        found = [self._link(source, url) for url in urls]
        found = [view for view in found if keyword is None or keyword in view.keywords]
        if min_score is not None:
            found = [view for view in found if view.score is not None and view.score >= min_score]
        return sorted(found, key=lambda view: (-(view.score or 0.0), view.url))[:limit]

    def _link(self, source: SourceId, url: str) -> LinkView:
        pages = self._pages_with(source, url)
        edges = [edge for each in pages for edge in self.tables.edges[each.id] if edge.url == url]
        found = self.tables.worths.get((source, url), Worth())
        times = [page.crawl_time for page in pages if page.crawl_time is not None]
        return LinkView(
            url=url,
            text=max((edge.text for edge in edges), key=lambda text: (len(text), text)),
            score=found.score,
            keywords=found.keywords,
            comment=found.comment,
            crawl_time=max(times, default=None),
            pages=tuple(page.url for page in pages[:SHOWN_PAGES]),
            page_count=len(pages),
        )

    async def held(self, page: PageId) -> Held:
        """The content on record of a page."""
        return self.tables.documents.get(page, Held())

    async def alike(self, page: Page, document: Document, run: RunId) -> int:
        """How many other pages showed before a run what a page shows now, or were doubted for it."""
        began = self.tables.runs[run].started_at
        others = [row.page for row in self.tables.pages_of(page.source_id) if row.page.id != page.id]
        doubted = sum(p.doubt is not None and p.doubt_hash == document.content_hash for p in others)
        older = [p for p in others if p.changed_at is not None and p.changed_at < began]
        sketches = [self.tables.documents.get(p.id, Held()).sketch for p in older]
        near = [each for each in sketches if document.sketch and each[:WIDTH] == document.sketch[:WIDTH]]
        return doubted + sum(likeness(each, document.sketch) >= SAME for each in near)

    async def held_by(self) -> dict[str, int]:
        """How many pages each worker holds that holds any."""
        return dict(Counter(row.locked_by for row in self.tables.waiting() if row.locked_by is not None))

    async def busiest_hosts(self, limit: int) -> list[HostQueue]:
        """The hosts that most waits for in open runs, the longest queue first."""
        queues: dict[str, list[Attempt]] = defaultdict(list)
        for row in self.tables.waiting():
            if row.run_id is not None:
                queues[row.domain].append(row)
        found = [_host_queue(domain, rows) for domain, rows in queues.items()]
        return sorted(found, key=lambda each: (-each.waiting, each.domain))[:limit]

    async def totals(self) -> dict[str, Any]:
        """The numbers of the whole store."""
        rows = self.tables.waiting()
        pending = [row.scheduled_for for row in rows if row.locked_at is None and row.run_id is not None]
        return {
            "sources": len(self.tables.sources),
            "pages": sum(row.page.status is PageStatus.ACTIVE for row in self.tables.pages.values()),
            "doubtful": sum(
                row.page.doubt is not None and row.page.status is not PageStatus.DELETED
                for row in self.tables.pages.values()
            ),
            "chunks": sum(len(pieces) for pieces in self.tables.pieces.values()),
            "attempts": len(self.tables.crawls) - len(rows),
            "pending": len(pending),
            "in_flight": sum(row.locked_at is not None for row in rows),
            "oldest_pending": min(pending, default=None),
        }

    async def size_bytes(self) -> int:
        """How much text is kept."""
        pieces = [piece for group in self.tables.pieces.values() for piece in group]
        return sum(len(piece.text.encode()) for piece in pieces)


def view_of(page: Page, next_look: datetime | None) -> PageView:
    """A page as it is listed."""
    files = page.validators
    return PageView(
        id=page.id,
        source_id=page.source_id,
        url=page.url,
        status=page.status,
        title=page.title,
        depth=page.depth,
        language=page.language,
        content_hash=page.content_hash,
        etag=page.validators.etag,
        last_modified=files.last_modified or http_date_of(files.mtime_ns),
        content_type=page.content_type,
        crawl_time=page.crawl_time,
        last_seen=page.last_seen,
        checked_at=page.checked_at,
        changed_at=page.changed_at,
        missing_count=page.missing_count,
        moved_to=page.moved_to,
        doubt=page.doubt,
        created_at=page.created_at,
        updated_at=page.updated_at,
        last_scraped=page.last_scraped,
        size=files.size,
        mtime=time_of(files.mtime_ns),
        next_look=next_look,
    )


def _host_queue(domain: str, rows: Sequence[Attempt]) -> HostQueue:
    free = [row.scheduled_for for row in rows if row.locked_at is None]
    return HostQueue(
        domain=domain, waiting=len(free), held=len(rows) - len(free), oldest=min(free, default=None)
    )
