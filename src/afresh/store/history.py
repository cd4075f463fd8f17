"""Attempts and changes in the store."""

from collections.abc import Sequence
from datetime import UTC, datetime

from afresh.model.fetch import Outcome
from afresh.model.filters import (
    AttemptPlace,
    Sources,
    parts_of_run,
)
from afresh.model.history import HistoryEntry, newest_first
from afresh.model.records import Attempt, ChangeKind, Page, PageId, RunId, SourceId
from afresh.model.reports import ChangeView
from afresh.store.dialect import Row
from afresh.store.links import LOOKED_AT
from afresh.store.listings import listings_of_page
from afresh.store.records import at, attempt_from, certain, history_from, page_from
from afresh.store.repository import Repository
from afresh.store.sql import among_sources

LAST_MOMENT = datetime(9999, 1, 1, tzinfo=UTC)  # behind a row that is still open come all that are over


class HistoryRepository(Repository):
    """Read what was tried and what changed."""

    async def of_page(self, page: PageId) -> list[Attempt]:
        """All attempts of a page, newest first, and those of listings that show it unchanged."""
        async with self.db.read() as tx:
            own = map(attempt_from, await tx.all("history", page=page))
            return newest_first(own, await listings_of_page(tx, page))

    async def of_url(self, url: str, source: SourceId | None = None) -> list[HistoryEntry]:
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

    async def attempts(self, page: PageId, *, below: int | None = None, limit: int) -> list[Attempt]:
        """Attempts of a page behind that with a number, newest first; listings that show it unchanged too."""
        async with self.db.read() as tx:
            place = await tx.one("attempt_place", top=below) if below is not None else None
            until = (at(place["completed_at"]) or LAST_MOMENT) if place else None
            asked = {"page": page, "top": below, "until": until, "limit": limit}
            own = map(attempt_from, await tx.all("attempt_records", **asked))
            listings = map(attempt_from, await tx.all("listings_of_page", **asked))
            return newest_first(own, listings)[:limit]

    async def attempts_of_run(
        self,
        run: RunId,
        *,
        outcome: Outcome | None = None,
        after: AttemptPlace | None = None,
        limit: int,
    ) -> list[Attempt]:
        """Attempts of a run that are over, those that went wrong first, and by number."""
        rows: list[Row] = []
        async with self.db.read() as tx:
            for part in parts_of_run(outcome, after):
                if (left := limit - len(rows)) > 0:
                    asked = {"outcome": part.outcome, "after": part.id, "limit": left}
                    rows += await tx.all("attempts_with_outcome", run=run, **asked)
            return [attempt_from(row) for row in rows]

    async def root_attempt(self, source: SourceId, root: str) -> tuple[Page | None, Attempt | None]:
        """The root page and the last finished attempt to look at it."""
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
        """Changes with a number below, newest first."""
        one = sources[0] if sources is not None and len(sources) == 1 else None
        asked = {"source": one, "run": run, "url": url, "kind": kind, "top": below, "limit": limit}
        name = _by_index(run=run, url=url, kind=kind, one=one is not None)
        async with self.db.read() as tx:
            return [change_from(row) for row in await tx.all(name, **among_sources(sources), **asked)]

    async def changes_of_run(
        self, run: RunId, kinds: Sequence[ChangeKind], *, limit: int
    ) -> list[ChangeView]:
        """The changes of some kinds that a run found, oldest first, without their differences."""
        async with self.db.read() as tx:
            rows = await tx.all("changes_of_run", run=run, kinds=list(kinds), limit=limit)
            return [change_from(row) for row in rows]


def _by_index(*, run: int | None, url: str | None, kind: ChangeKind | None, one: bool) -> str:
    """The statement that finds changes in the order of an index; `one`: of one source."""
    if url is not None:
        return "changes_of_url"
    if run is not None:
        return "changes_in_run" if kind is None else "changes_of_kind_in_run"
    if kind is not None:
        return "changes_of_kind" if one else "every_change_of_kind"
    return "changes_of_source" if one else "change_records"


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
