"""The end of a run in memory: what was not reached, what is to go, and letting it go."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.looks import Outcome, Validators
from afresh.core.model import Attempt, ChangeKind, Listed, Page, PageId, PageStatus, RunId, SourceId
from afresh.core.sweep import by_reason, final_status, leads_on, pair_moves
from afresh.testing.memory.commit import MemoryCommits
from afresh.testing.memory.identity import exchange
from afresh.testing.memory.tables import Edge


class MemorySweeps(MemoryCommits):
    """Reading and writing what `core/sweep.py` decides about."""

    async def frontier_is_open(self, source: SourceId, rules: str) -> tuple[bool, bool]:
        """Whether links wait beyond a limit, and whether the rules changed since they were judged."""
        row = self.tables.sources.get(source)
        return (False, False) if row is None else (row.frontier_open, row.rules_seen not in ("", rules))

    async def judge_links(self, source: SourceId, admits: Callable[[str, str | None], bool]) -> None:
        """Judge every link anew, by its address and, if it was left out, the nearest page it is on."""
        with self.tables.transaction():
            for (owner, url), admitted in list(self.tables.links.items()):
                if owner == source:
                    found_on = None if admitted else self._found_on(source, url)
                    self.tables.links[owner, url] = admits(url, found_on)

    async def lists_pages(self, source: SourceId) -> bool:
        """Whether a listing named pages beside the root when it was last read."""
        root = self.tables.sources[source].source.url
        return any(row.listed and row.page.url != root for row in self.tables.pages_of(source))

    def _found_on(self, source: SourceId, url: str) -> str | None:
        rows = self.tables.pages_of(source)
        pages = [row.page for row in rows if any(e.url == url and e.follow for e in self._edges(row.page.id))]
        nearest = min(pages, key=lambda page: (page.depth, page.id), default=None)
        return None if nearest is None else nearest.url

    async def addresses(self, source: SourceId) -> list[tuple[str, bool]]:
        """Every address that is a page or waits to become one, and whether the source itself lists it."""
        pages = {row.page.url: row.listed for row in self.tables.pages_of(source)}
        followed = self._followed(source)
        waiting = [
            url
            for (owner, url), admitted in self.tables.links.items()
            if owner == source and admitted and url in followed
        ]
        return [*pages.items(), *((url, False) for url in waiting if url not in pages)]

    async def left_out(self, source: SourceId) -> list[str]:
        """The links that could be followed but do not belong."""
        followed = self._followed(source)
        links = self.tables.links.items()
        return [
            url for (owner, url), admitted in links if owner == source and not admitted and url in followed
        ]

    def _followed(self, source: SourceId) -> set[str]:
        rows = self.tables.pages_of(source)
        return {edge.url for row in rows for edge in self._edges(row.page.id) if edge.follow}

    async def close_frontier(self, source: SourceId, rules: str, max_depth: int) -> None:
        """Note under which rules links were judged, and whether some still wait beyond a limit."""
        row = self.tables.sources[source]
        waiting = await self.frontier(source) if row.frontier_open else []
        still_open = any(link.depth <= max_depth for link in waiting)
        self.tables.sources[source] = replace(row, frontier_open=still_open, rules_seen=rules)

    async def record_listing(
        self, source: SourceId, listed: Sequence[Listed], *, complete: bool = True
    ) -> None:
        """Remember which pages the source lists by itself; an incomplete listing takes none off the list."""
        urls = {item.url for item in listed}
        for row in self.tables.pages_of(source):
            kept = row.listed and not complete
            self.tables.pages[row.page.id] = replace(row, listed=row.page.url in urls or kept)

    async def root_attempt(self, source: SourceId, root: str) -> tuple[Page | None, Attempt | None]:
        """The root page and the last finished attempt to look at it."""
        row = self.tables.page_at(source, root)
        if row is None:
            return None, None
        open_or_cancelled = (None, Outcome.CANCELLED)
        done = [
            attempt
            for attempt in self.tables.crawls.values()
            if attempt.page_id == row.page.id and attempt.outcome not in open_or_cancelled
        ]
        return row.page, max(done, key=lambda attempt: attempt.id, default=None)

    async def unreached(self, source: SourceId, root: str, max_depth: int) -> list[Page]:
        """Pages with content that no way leads to from the root or the listing."""
        rows = self.tables.pages_of(source)
        todo = [row.page for row in rows if row.page.url == root or row.listed]
        reached: set[PageId] = set()
        while todo:
            page = todo.pop()
            if page.id not in reached:
                reached.add(page.id)
                todo += [child for child in self._next_of(page) if child.depth <= max_depth]
        held = [row.page for row in rows if row.page.content_hash is not None and row.page.doomed_by is None]
        return [page for page in held if page.id not in reached]

    def _next_of(self, page: Page) -> list[Page]:
        """Where the links of a page lead; a page that is to go leads nowhere unless it moved."""
        if page.doomed_by is not None and not leads_on(page):
            return []
        edges = [edge.url for edge in self._edges(page.id) if edge.follow]
        admitted = [url for url in edges if self.tables.links.get((page.source_id, url))]
        rows = [self.tables.page_at(page.source_id, url) for url in admitted]
        return [row.page for row in rows if row is not None]

    def record_missing(self, source: SourceId, pages: Sequence[Page], now: datetime) -> None:
        """Write the missing counts of unreached pages, and clear those of all others."""
        decided = {page.id: page for page in pages}
        for row in self.tables.pages_of(source):
            free = row.page if row.page.doomed_by is not None else replace(row.page, missing_count=0)
            page = decided.get(row.page.id, free)
            at = now if page.id in decided else row.page.updated_at
            counted = {"missing_count": page.missing_count, "doomed_by": page.doomed_by}
            self.tables.change_page(row.page.id, updated_at=at, **counted)
        ends = {edge.url for row in self.tables.pages_of(source) for edge in self._edges(row.page.id)}
        lonely = [key for key in self.tables.links if key[0] == source and key[1] not in ends]
        for key in lonely:
            del self.tables.links[key]
            self.tables.worths.pop(key, None)
        ways = {(source, url) for source, url in lonely}
        answers = self.tables.answers.items()
        self.tables.answers = {k: a for k, a in answers if (k[0], k[1].url) not in ways}

    async def doomed(
        self, source: SourceId, missed: Sequence[Page] = ()
    ) -> list[tuple[Page, PageStatus | None]]:
        """Pages whose content is to go, those just missed too often included, with where their moves end."""
        pages = [row.page for row in self.tables.pages_of(source)]
        moves = {page.url: (page.status, page.moved_to) for page in pages}
        going = [page for page in pages if page.doomed_by is not None and page.content_hash is not None]
        going += [page for page in missed if page.doomed_by is not None]
        return [(page, final_status(page.moved_to, moves) if page.moved_to else None) for page in going]

    async def live_count(self, source: SourceId) -> int:
        """How many pages have content."""
        return sum(row.page.content_hash is not None for row in self.tables.pages_of(source))

    async def heirs(self, source: SourceId, pages: Sequence[Page]) -> dict[PageId, Page]:
        """Pair pages that moved with the pages that take their identity (core/sweep.py)."""
        rows = [row.page for row in self.tables.pages_of(source)]
        found: dict[str, datetime] = {}
        for owner, change in self.tables.changes.values():
            if owner == source and change.kind is ChangeKind.NEW and change.run in self.tables.runs:
                began = self.tables.runs[RunId(change.run or 0)].started_at
                found[change.url] = max(began, found.get(change.url, began))
        moves = {page.url: page.moved_to for page in rows if page.moved_to is not None}
        return pair_moves(
            pages, moves, {page.url: (page, found[page.url]) for page in rows if page.url in found}
        )

    async def root_places(self, source: SourceId, root: str) -> tuple[tuple[str, ...], str | None]:
        """Return the former roots of a source, and where its root was read if that was elsewhere."""
        roots = [row.page for row in self.tables.pages_of(source) if row.page.depth == 0]
        former = tuple(page.url for page in roots if page.moved_to is not None and page.url != root)
        return former, next((page.validators.url for page in roots if page.url == root), None)

    def drop(
        self, source: SourceId, run: RunId | None, page: Page, now: datetime, heir: Page | None = None
    ) -> None:
        """Take a page out of the index; its history stays, or moves with it."""
        tables = self.tables
        tables.leave_vectors(page.id, now)
        tables.unseal_links(source)
        tables.pieces.pop(page.id, None)
        tables.documents.pop(page.id, None)
        tables.told.pop(page.id, None)
        if not leads_on(page):
            tables.edges.pop(page.id, None)
        if page.moved_to is None and page.id in tables.open:
            [reason] = by_reason([page])
            tables.close_attempt(tables.open[page.id], Outcome.CANCELLED, now, reason=reason)
        tables.change_page(
            page.id,
            status=PageStatus.REDIRECT if page.moved_to else PageStatus.DELETED,
            content_hash=None,
            links_hash=None,
            recipe=None,
            validators=Validators(),
            doomed_by=None,
            missing_count=0,
            crashes=0,
            doubt=None,
            doubt_hash=None,
            doubt_run=None,
            refused_hash=None,
            changed_at=now,
            updated_at=now,
        )
        if heir is not None:
            exchange(tables, page, heir.id, now)
        kind = ChangeKind.MOVED if page.moved_to else ChangeKind.DELETED
        shown = heir.content_hash if heir is not None else None
        self.note_change(run, page, kind, now, new_hash=shown, moved_to=page.moved_to)

    def _edges(self, page: PageId) -> Sequence[Edge]:
        return self.tables.edges.get(page, ())
