"""Attempts and changes in the store."""

from collections.abc import Sequence
from datetime import UTC, datetime

from afresh.model.fetch import Outcome
from afresh.model.filters import AttemptCursor, Sources, parts_of_run
from afresh.model.records import Attempt, ChangeKind, Page, PageId, RunId, SourceId
from afresh.model.reports import ChangeView, HistoryEntry, newest_first
from afresh.store.dialect import Row, among_sources
from afresh.store.links import MAX_CANDIDATES
from afresh.store.records import at, attempt_from, page_from
from afresh.store.repository import MANY, Repository

LAST_MOMENT = datetime(9999, 1, 1, tzinfo=UTC)  # time of an open attempt, which is newer than all finished ones


class HistoryRepository(Repository):
    async def of_page(self, page: PageId) -> list[Attempt]:
        """Return all attempts to check a page, and all listings that showed it unchanged, newest first."""
        return await self.attempts(page, limit=MANY)

    async def of_url(self, url: str, source: SourceId | None = None) -> list[HistoryEntry]:
        """Return all attempts at a URL, newest first, even if its page is no longer stored."""
        return await self._records(HistoryEntry, "history_by_url", url=url, source=source)

    async def evidence(
        self, page: Page, max_links: int = 5
    ) -> tuple[Attempt | None, datetime | None, tuple[str, ...], int]:
        """Return the latest check of a page, its next check, pages that link to it, and its number of checks."""
        async with self.db.read() as tx:
            latest = await tx.one("latest_attempt", page=page.id)
            following = await tx.one("latest_open", page=page.id)
            which = {"source": page.source_id, "url": page.url, "page": page.id}
            linked = await tx.all("linked_from", **which, limit=max_links, most=MAX_CANDIDATES)
            count = await tx.number("attempts_count", page=page.id)
            count += await tx.number("count_listings_of_page", page=page.id)
            listings = await tx.all("listings_of_page", page=page.id, top=None, until=None, limit=1)
            newest = newest_first(map(attempt_from, [latest] if latest else []), map(attempt_from, listings))
            next_at = at(following["scheduled_for"]) if following else None
            return next(iter(newest), None), next_at, tuple(row["url"] for row in linked), count

    async def linked_from_count(self, page: Page) -> int:
        async with self.db.read() as tx:
            return await tx.number("count_linked_from", source=page.source_id, url=page.url, page=page.id)

    async def attempts(self, page: PageId, *, below: int | None = None, limit: int) -> list[Attempt]:
        """Return attempts at a page and listings showing it unchanged, newest first, after the one with id `below`."""
        async with self.db.read() as tx:
            place = await tx.one("attempt_place", top=below) if below is not None else None
            until = (at(place["completed_at"]) or LAST_MOMENT) if place else None
            asked = {"page": page, "top": below, "until": until, "limit": limit}
            own = map(attempt_from, await tx.all("attempt_records", **asked))
            listings = map(attempt_from, await tx.all("listings_of_page", **asked))
            return newest_first(own, listings)[:limit]

    async def attempts_of_run(
        self, run: RunId, *, outcome: Outcome | None = None, after: AttemptCursor | None = None, limit: int
    ) -> list[Attempt]:
        """Return finished attempts of a run, failures first, then by id."""
        rows: list[Row] = []
        async with self.db.read() as tx:
            for part in parts_of_run(outcome, after):
                if (left := limit - len(rows)) > 0:
                    asked = {"outcome": part.outcome, "after": part.id, "limit": left}
                    rows += await tx.all("attempts_with_outcome", run=run, **asked)
            return [attempt_from(row) for row in rows]

    async def root_attempt(self, source: SourceId, root: str) -> tuple[Page | None, Attempt | None]:
        async with self.db.read() as tx:
            row = await tx.one("root_page", source=source, root=root)
            if row is None:
                return None, None
            latest = await tx.one("latest_attempt", page=row["id"])
            return page_from(row), attempt_from(latest) if latest else None

    async def changes(
        self,
        sources: Sources,
        *,
        run: int | None = None,
        url: str | None = None,
        kind: ChangeKind | None = None,
        below: int | None = None,
        limit: int,
    ) -> list[ChangeView]:
        """Return changes with an id below `below`, newest first."""
        one = sources[0] if sources is not None and len(sources) == 1 else None
        asked = {"source": one, "run": run, "url": url, "kind": kind, "top": below, "limit": limit}
        if url is not None:  # each statement reads its rows in the order of an index
            name = "changes_of_url"
        elif run is not None:
            name = "changes_in_run" if kind is None else "changes_of_kind_in_run"
        elif kind is not None:
            name = "every_change_of_kind" if one is None else "changes_of_kind"
        else:
            name = "change_records" if one is None else "changes_of_source"
        return await self._records(ChangeView, name, **among_sources(sources), **asked)

    async def changes_of_run(self, run: RunId, kinds: Sequence[ChangeKind], *, limit: int) -> list[ChangeView]:
        """Return the changes of some kinds that a run found, oldest first, without diffs."""
        return await self._records(ChangeView, "changes_of_run", run=run, kinds=list(kinds), limit=limit)
