"""Records by their numbers, in memory."""

from collections.abc import Sequence
from dataclasses import replace

from afresh.core.link_score import Worth
from afresh.core.looks import WORST_FIRST, Outcome
from afresh.core.model import Attempt, ChangeKind, Page, PageId, Run, RunId, RunState, SourceId
from afresh.core.records import (
    ALL_LINKS,
    LIVE_PAGES,
    AttemptPlace,
    LinkedPage,
    LinkFilter,
    LinkPlace,
    LinkRecord,
    PageFilter,
    Sources,
)
from afresh.core.views import ChangeView, PageView
from afresh.testing.memory.listings import attempts_of_page
from afresh.testing.memory.reads import LOOKED_AT, SHOWN_PAGES, view_of
from afresh.testing.memory.tables import Tables


class MemoryByNumber:
    """Pages, links, runs, changes and attempts."""

    tables: Tables

    async def page_records(
        self, sources: Sources, which: PageFilter = LIVE_PAGES, *, after: int = 0, limit: int
    ) -> list[PageView]:
        """Pages with a number above `after`, in the order of their numbers."""
        pages = [row.page for row in self.tables.pages.values() if _is_among(row.page.source_id, sources)]
        views = [
            view_of(page, self.tables.next_look(page.id))
            for page in sorted(pages, key=lambda page: page.id)
            if page.id > after
        ]
        return [view for view in views if which.fits(view)][:limit]

    async def page_record(self, page: PageId) -> PageView | None:
        """One page."""
        row = self.tables.pages.get(page)
        return view_of(row.page, self.tables.next_look(row.page.id)) if row else None

    async def link_records(
        self,
        sources: Sources,
        which: LinkFilter = ALL_LINKS,
        *,
        after: LinkPlace | None = None,
        limit: int,
    ) -> list[LinkRecord]:
        """Links behind a place, those worth most first."""
        found = [each for each in self._all_links() if _is_among(each.source_id, sources)]
        found = [each for each in found if which.url in (None, each.url)]
        if which.page is not None:
            urls = {edge.url for edge in self.tables.edges.get(which.page, ())}
            row = self.tables.pages.get(which.page)
            owner = row.page.source_id if row else None
            found = [each for each in found if each.source_id == owner and each.url in urls]
        found = [each for each in found if which.keyword is None or which.keyword in each.keywords]
        if (least := which.min_score) is not None:
            found = [each for each in found if each.score is not None and each.score >= least]
        found = [each for each in found if after is None or _rank(each) > (-after.score, after.url, after.id)]
        return sorted(found, key=_rank)[:limit]

    async def link_record(self, link: int) -> LinkRecord | None:
        """One link."""
        return next((each for each in self._all_links() if each.id == link), None)

    def _all_links(self) -> list[LinkRecord]:
        owners: dict[tuple[SourceId, str], list[Page]] = {}
        for row in self.tables.pages.values():
            for edge in self.tables.edges.get(row.page.id, ()):
                owners.setdefault((row.page.source_id, edge.url), []).append(row.page)
        return [self._record(*key, pages) for key, pages in owners.items()]

    def _record(self, source: SourceId, url: str, pages: list[Page]) -> LinkRecord:
        if (source, url) not in self.tables.link_ids:
            self.tables.link_ids[source, url] = next(self.tables.numbers)
        first = sorted(pages, key=lambda page: page.id)[:LOOKED_AT]
        nearest = sorted(first, key=lambda page: (page.depth, page.url))
        worth = self.tables.worths.get((source, url), Worth())
        times = [page.crawl_time for page in first if page.crawl_time is not None]
        return LinkRecord(
            id=self.tables.link_ids[source, url],
            source_id=source,
            url=url,
            score=worth.score,
            keywords=worth.keywords,
            comment=worth.comment,
            crawl_time=max(times, default=None),
            page_count=len(pages),
            pages=tuple(self._place(page, url) for page in nearest[:SHOWN_PAGES]),
        )

    def _place(self, page: Page, url: str) -> LinkedPage:
        text = next(edge.text for edge in self.tables.edges[page.id] if edge.url == url)
        return LinkedPage(id=page.id, url=page.url, title=page.title, text=text)

    async def run_records(
        self, sources: Sources, *, state: RunState | None = None, below: int | None = None, limit: int
    ) -> list[Run]:
        """Runs with a number below, newest first."""
        runs = [run for run in self.tables.runs.values() if _is_among(run.source_id, sources)]
        runs = [run for run in runs if state in (None, run.state) and (below is None or run.id < below)]
        return sorted(runs, key=lambda run: -run.id)[:limit]

    async def change_records(
        self,
        sources: Sources,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        below: int | None = None,
        limit: int,
    ) -> list[ChangeView]:
        """Changes with a number below, newest first."""
        rows = [view for owner, view in self.tables.changes.values() if _is_among(owner, sources)]
        rows = [view for view in rows if run in (None, view.run) and url in (None, view.url)]
        rows = [view for view in rows if kind in (None, view.kind) and (below is None or view.id < below)]
        return sorted(rows, key=lambda view: -view.id)[:limit]

    async def changes_of_run(
        self, run: RunId, kinds: Sequence[ChangeKind], *, limit: int
    ) -> list[ChangeView]:
        """The changes of some kinds that a run found, oldest first, without their differences."""
        rows = [view for _, view in self.tables.changes.values() if view.run == run and view.kind in kinds]
        return [replace(view, diff=None) for view in sorted(rows, key=lambda view: view.id)[:limit]]

    async def attempt_records(self, page: PageId, *, below: int | None = None, limit: int) -> list[Attempt]:
        """Attempts of a page behind that with a number, newest first; listings that show it unchanged too."""
        rows = attempts_of_page(self.tables, page)
        numbers = [int(row.id) for row in rows]
        if below in numbers:
            rows = rows[numbers.index(below) + 1 :]
        elif below is not None:
            rows = [row for row in rows if row.id < below]
        return rows[:limit]

    async def attempts_of_run(
        self,
        run: RunId,
        *,
        outcome: Outcome | None = None,
        after: AttemptPlace | None = None,
        limit: int,
    ) -> list[Attempt]:
        """Attempts of a run that are over, those that went wrong first, and by number."""
        rows = [(row.outcome, row.id, row) for row in self.tables.crawls.values() if row.run_id == run]
        told = {AttemptPlace(ended, number): row for ended, number, row in rows if ended is not None}
        behind = [
            place
            for place in sorted(told, key=_rank_of_attempt)
            if outcome in (None, place.outcome)
            and (after is None or _rank_of_attempt(place) > _rank_of_attempt(after))
        ]
        return [told[place] for place in behind[:limit]]


def _rank_of_attempt(place: AttemptPlace) -> tuple[int, int]:
    return WORST_FIRST.index(place.outcome), place.id


def _is_among(source: SourceId, sources: Sources) -> bool:
    return sources is None or source in sources


def _rank(link: LinkRecord) -> tuple[float, str, int]:
    return -(link.score or 0.0), link.url, link.id
