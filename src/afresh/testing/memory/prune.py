"""Removing what is past its retention, in memory."""

from dataclasses import replace
from datetime import datetime

from afresh.core.copies import Copy
from afresh.core.looks import Outcome
from afresh.core.model import Attempt, PageId, PageStatus, RunId, RunState, SourceId
from afresh.core.outbox import Letter, LetterState
from afresh.core.retention import REMOVED, Prunable, PruneCounts
from afresh.testing.memory.tables import LEFT, Edge, PageRow, Tables

TO_GO_ON = (RunState.QUEUED, RunState.RUNNING, RunState.CANCELLED)
OPEN = (*TO_GO_ON, RunState.NEEDS_CONFIRMATION)


class MemoryPruning:
    """Deleted pages, attempts, changes and messages whose time is over."""

    tables: Tables

    async def prune_pages(self, source: SourceId, before: datetime, now: datetime, *, limit: int) -> int:
        """Remove records of pages of a source that were deleted before; their attempts stay."""
        tables = self.tables
        rows = self._prunable_pages(source, before)[:limit]
        gone = {row.page.id for row in rows}
        for page in gone & tables.open.keys():
            tables.close_attempt(tables.open[page], Outcome.CANCELLED, now, reason=REMOVED)
        for row in rows:
            del tables.pages[row.page.id], tables.addresses[source, row.page.url]
            tables.edges.pop(row.page.id, None)
            tables.told.pop(row.page.id, None)
        tables.copies = {key: copy for key, copy in tables.copies.items() if copy.page_id not in gone}
        urls = {row.page.id: row.page.url for row in rows}
        for crawl, attempt in tables.crawls.items():
            if attempt.page_id is not None and attempt.page_id in gone:
                run = attempt.run_id or self._last_run(source, urls[attempt.page_id])
                tables.crawls[crawl] = replace(attempt, page_id=None, run_id=run)
        followed = {edge.url for row in tables.pages_of(source) for edge in self._ways_of(row)}
        if any(tables.links.get((source, row.page.url)) and row.page.url in followed for row in rows):
            tables.sources[source] = replace(tables.sources[source], frontier_open=True)
        return len(rows)

    def _last_run(self, source: SourceId, url: str) -> RunId | None:
        """Return the run that last changed a page, or else the last of its source."""
        changes = [each for owner, each in self.tables.changes.values() if (owner, each.url) == (source, url)]
        told = [each.run for each in changes if each.run is not None]
        runs = [run.id for run in self.tables.runs.values() if run.source_id == source]
        return max(told or runs, default=None)

    def _ways_of(self, row: PageRow) -> list[Edge]:
        return [edge for edge in self.tables.edges.get(row.page.id, ()) if edge.follow]

    def _prunable_pages(self, source: SourceId, before: datetime) -> list[PageRow]:
        rows = self.tables.pages_of(source)
        return [row for row in rows if row.page.status in LEFT and self._is_over(row, before)]

    def _is_over(self, row: PageRow, before: datetime) -> bool:
        tables, page = self.tables, row.page
        gone_at = page.changed_at or page.created_at
        if page.url == tables.sources[page.source_id].source.url or gone_at is None or gone_at > before:
            return False
        if page.content_hash is not None or self._leads_somewhere(row) or self._is_in_a_run(row):
            return False
        return not any(_holds(copy) for copy in tables.copies.values() if copy.page_id == page.id)

    def _leads_somewhere(self, row: PageRow) -> bool:
        page, tables = row.page, self.tables
        if page.status is PageStatus.REDIRECT:
            target = tables.page_at(page.source_id, page.moved_to or "")
            return target is not None and target.page.status is not PageStatus.DELETED
        if page.gone_count or not tables.edges.get(page.id):
            return False
        others = [each for each in tables.pages_of(page.source_id) if each.page.id != page.id]
        alive = [each for each in others if each.page.status is not PageStatus.DELETED]
        return row.listed or any(edge.url == page.url for each in alive for edge in self._ways_of(each))

    def _is_in_a_run(self, row: PageRow) -> bool:
        tables = self.tables
        waiting = tables.crawls[tables.open[row.page.id]] if row.page.id in tables.open else None
        if waiting is not None and (waiting.run_id is not None or waiting.locked_at is not None):
            return True
        run = tables.runs.get(row.queued_run) if row.queued_run is not None else None
        return run is not None and run.state in TO_GO_ON

    async def prune_attempts(self, before: datetime, *, after: int, limit: int) -> tuple[int, int | None]:
        """Remove old attempts among the next rows; how many, and the place to go on at, None at the end."""
        crawls = self.tables.crawls
        part = [crawls[number] for number in sorted(crawls) if number > after][:limit]
        if not part or min(each.created_at for each in part) > before:
            return 0, None
        over = [each.id for each in part if self._is_outlived(each, before)]
        for number in over:
            del crawls[number]
        return len(over), int(part[-1].id)

    def _is_outlived(self, attempt: Attempt, before: datetime) -> bool:
        crawls = self.tables.crawls.values()
        if attempt.outcome is None or attempt.completed_at is None or attempt.completed_at > before:
            return False
        if self._is_open(attempt.run_id) or attempt.id == max(self.tables.crawls):
            return False
        if attempt.unchanged is not None:
            return self._has_newer_listing(attempt)
        return attempt.page_id is None or any(
            each.page_id == attempt.page_id
            and each.id > attempt.id
            and each.outcome not in (None, Outcome.CANCELLED)
            for each in crawls
        )

    def _has_newer_listing(self, listing: Attempt) -> bool:
        runs = self.tables.runs
        mine = runs.get(listing.run_id) if listing.run_id is not None else None
        newer = [
            runs[each.run_id].source_id
            for each in self.tables.crawls.values()
            if each.unchanged is not None and each.id > listing.id and each.run_id in runs
        ]
        return mine is None or mine.source_id in newer

    def _is_open(self, run: RunId | None) -> bool:
        found = self.tables.runs.get(run) if run is not None else None
        return found is not None and found.state in OPEN

    async def prune_documents(self, before: datetime, *, limit: int) -> int:
        """Remove old documents of syncs; those of the latest sync of a source into a store stay."""
        over = self._outlived_documents(before)[:limit]
        for key in over:
            del self.tables.sync_documents[key]
        return len(over)

    def _outlived_documents(self, before: datetime) -> list[tuple[RunId, int]]:
        documents, runs, latest = self.tables.sync_documents, self.tables.runs, {}
        for (run, _), (copy, _, _) in sorted(documents.items()):
            latest[runs[run].source_id, copy.sink] = run
        return [
            (run, number)
            for (run, number), (copy, _, at) in sorted(documents.items())
            if at <= before and not self._is_open(run) and latest[runs[run].source_id, copy.sink] != run
        ]

    async def prune_changes(self, before: datetime, *, limit: int) -> int:
        """Remove old changes, unless a message about them waits; the newest stays."""
        over = self._told_changes(before)[:limit]
        for number in over:
            del self.tables.changes[number]
        return len(over)

    def _told_changes(self, before: datetime) -> list[int]:
        changes, newest = self.tables.changes, max(self.tables.changes, default=0)
        waiting = {each.run_id for each in self.tables.letters.values() if each.state is LetterState.WAITING}
        return [
            number
            for number, (_, change) in sorted(changes.items())
            if change.at <= before
            and number != newest
            and change.run not in waiting
            and not self._is_open(change.run)
        ]

    async def prune_outbox(self, before: datetime, *, limit: int) -> int:
        """Remove messages that were delivered or given up before."""
        over = [each for each in self.tables.letters.values() if _is_ended(each, before)][:limit]
        for each in over:
            del self.tables.letters[each.id]
        return len(over)

    async def prune_former_texts(self, before: datetime, *, limit: int) -> int:
        """Remove texts that pages had before they lost nearly all of it."""
        over = self._old_former_texts(before)[:limit]
        for page in over:
            held = self.tables.documents[page]
            self.tables.documents[page] = replace(held, former=None, former_title=None, former_at=None)
        return len(over)

    def _old_former_texts(self, before: datetime | None) -> list[PageId]:
        if before is None:
            return []
        held = self.tables.documents.items()
        return [
            page for page, each in held if each.former is not None and (each.former_at or before) < before
        ]

    async def count_prunable(self, prunable: Prunable) -> PruneCounts:
        """Count what the others would remove."""
        tables, attempts, changes = self.tables, prunable.attempts, prunable.changes
        pages, outbox = prunable.deleted_pages, prunable.outbox
        return PruneCounts(
            former_texts=len(self._old_former_texts(prunable.former_texts)),
            deleted_pages=sum(len(self._prunable_pages(source, pages)) for source in tables.sources)
            if pages
            else 0,
            attempts=sum(self._is_outlived(each, attempts) for each in tables.crawls.values())
            + len(self._outlived_documents(attempts))
            if attempts
            else 0,
            changes=len(self._told_changes(changes)) if changes else 0,
            messages=sum(_is_ended(each, outbox) for each in tables.letters.values()) if outbox else 0,
        )

    async def reclaim_space(self) -> int | None:
        """Memory has nothing to give back."""
        return None


def _holds(copy: Copy) -> bool:
    return bool(copy.remote_id is not None or copy.putting or copy.former or copy.leftovers)


def _is_ended(letter: Letter, before: datetime) -> bool:
    ended = letter.ended_at
    return letter.state is not LetterState.WAITING and ended is not None and ended <= before
