"""Pages that wait for their next look, in memory."""

from datetime import datetime

from afresh.core.model import Attempt, Limits, Listed, Page, Run, SourceId
from afresh.core.records import LookPlace
from afresh.core.schedule import DueTally, Waiting, due_at
from afresh.core.views import BackingOff
from afresh.testing.memory.tables import LEFT, NOT_IN_INDEX, PageRow, Tables


class MemoryWaits:
    """Rows of the queue that belong to no run yet."""

    tables: Tables

    async def waiting(self, source: SourceId) -> list[Waiting]:
        """The pages of a source that wait for their next look, in no order."""
        return [waiting_of(row, page) for row, page in self.rows_waiting(source)]

    async def next_looks(
        self,
        source: SourceId,
        now: datetime,
        max_age: float | None,
        *,
        everything: bool,
        after: LookPlace | None,
        limit: int,
    ) -> list[Waiting]:
        """The pages of a source that are due, or all that wait, in the order in which they get their turn."""
        waits = [waiting_of(row, page) for row, page in self.tables.open_rows(source)]
        found = [each for each in waits if everything or due_at(each, now, max_age) <= now]
        rest = [each for each in found if after is None or (each.next_at, each.url) > after]
        return sorted(rest, key=lambda each: (each.next_at, each.url))[:limit]

    async def due_tally(self, source: SourceId, now: datetime, max_age: float | None) -> DueTally:
        """How many pages of a source are due, and when the next one will be."""
        rows = self.tables.open_rows(source)
        moments = [(due_at(waiting_of(row, page), now, max_age), page.page) for row, page in rows]
        due = [page for at, page in moments if at <= now]
        stale = sum(page.status not in NOT_IN_INDEX for page in due)
        return DueTally(len(due), stale, min((at for at, _ in moments if at > now), default=None))

    async def due_tallies(self, now: datetime) -> dict[SourceId, DueTally]:
        """The same for every source that has pages which wait, where none is too old for its age alone."""
        having = [source for source in self.tables.sources if self.tables.open_rows(source)]
        return {source: await self.due_tally(source, now, None) for source in having}

    async def backing_off(self, source: SourceId, now: datetime) -> list[BackingOff]:
        """The pages that failed and whose next look is still to come, soonest first."""
        found = []
        for row in self.tables.pages_of(source):
            page, waiting = row.page, self.tables.open.get(row.page.id)
            if not page.failures or waiting is None or page.status in LEFT:
                continue
            next_at = self.tables.crawls[waiting].scheduled_for
            done = [each for each in self.tables.crawls.values() if each.page_id == page.id and each.outcome]
            last = max(done, key=lambda each: each.id).reason if done else None
            if next_at > now:
                found.append(BackingOff(url=page.url, failures=page.failures, next_at=next_at, reason=last))
        return sorted(found, key=lambda each: (each.next_at, each.url))

    async def unlisted(self, source: SourceId) -> list[Listed]:
        """The pages with content that the listing on record does not name."""
        held = [row for row in self.tables.pages_of(source) if row.page.content_hash is not None]
        pages = [Listed(row.page.url, row.page.depth) for row in held if not row.listed]
        return sorted(pages, key=lambda item: item.url)

    def rows_waiting(self, source: SourceId) -> list[tuple[Attempt, PageRow]]:
        """The open rows of a source that no run and no worker has taken, with their pages."""
        rows = self.tables.open_rows(source)
        return [(row, page) for row, page in rows if row.locked_at is None and row.run_id is None]

    def room(self, run: Run, limits: Limits) -> int | None:
        """How many more pages a run may queue by its budget; None: any number."""
        if limits.budget is None:
            return None
        return max(0, limits.budget - self.tables.runs[run.id].queued)

    def await_look(self, page: Page, at: datetime, now: datetime) -> None:
        """Let a page wait for a look that a later run takes; one that does already goes on as it is."""
        if page.id not in self.tables.open:
            self.tables.open_attempt(page, None, at, now)


def waiting_of(row: Attempt, page: PageRow) -> Waiting:
    """What decides when a page is due."""
    return Waiting(
        url=page.page.url,
        next_at=row.scheduled_for,
        written_at=row.updated_at,
        answered_at=page.page.last_seen,
    )
