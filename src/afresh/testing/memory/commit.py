"""Writing what visits meant, in memory: each page whole or absent."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.doubt import loses_text
from afresh.core.looks import Outcome
from afresh.core.model import ChangeKind, Content, Held, Limits, Page, Run, RunId, RunMode, Visit
from afresh.core.tally import change_of, only_checked, tally, total
from afresh.core.views import ChangeView
from afresh.testing.memory.kb import tell
from afresh.testing.memory.queue import MemoryQueue
from afresh.testing.memory.tables import Edge


class MemoryCommits(MemoryQueue):
    """The choke point through which every outcome becomes state."""

    async def commit(
        self,
        run: Run,
        visits: Sequence[Visit],
        worker: str,
        now: datetime,
        *,
        limits: Limits,
        keep_body: bool,
    ) -> list[Visit]:
        """Write finished visits of one run; those whose lease was lost are left out of the answer."""
        mine = [visit for visit in visits if self._is_held(visit, worker)]
        if not mine:
            return []
        with self.tables.transaction():
            counts = [tally(visit) for visit in mine]
            for visit in mine:
                self._stamp(run, visit, now)
                self._write_page(run, visit, now)
                self._write_links(run, visit)
                counts.append(self._write_content(visit, keep_body, now))
                self._record_change(run, visit, now, keep_body)
                lost = visit.decision.content is Content.DROP and visit.claim.page.content_hash is None
                tell(self.tables, visit, forgotten=lost)
            targets = self._targets(mine)
            if run.mode is not RunMode.CHECK:
                self.queue_pages(run, targets, limits, now)
            elif targets:
                self.open_frontier(run.source_id)
            self._count(run, counts, now)
        return mine

    def _is_held(self, visit: Visit, worker: str) -> bool:
        row = self.tables.crawls.get(visit.claim.crawl_id)
        return row is not None and row.outcome is None and row.locked_by == worker

    def _stamp(self, run: Run, visit: Visit, now: datetime) -> None:
        decision, page = visit.decision, self.tables.pages[visit.claim.page.id].page
        self.tables.close_attempt(
            visit.claim.crawl_id,
            decision.outcome,
            now,
            status_code=decision.status_code,
            error_message=decision.error_message,
            reason=decision.reason,
        )
        if decision.next_at is not None:
            self.tables.open_attempt(page, run.id if decision.retry else None, decision.next_at, now)

    def _write_page(self, run: Run, visit: Visit, now: datetime) -> None:
        """The page as decided; where it lies and how often it was missed is not for a visit to say."""
        page, now_stored = visit.decision.page, self.tables.pages[visit.claim.page.id]
        answered = visit.decision.outcome in (Outcome.SUCCESS, Outcome.NOT_MODIFIED)
        written = replace(
            page,
            depth=now_stored.page.depth,
            missing_count=now_stored.page.missing_count,
            doomed_by=run.id if _drops(visit) else page.doomed_by,
            crawl_time=run.started_at,
            last_seen=run.started_at if answered else page.last_seen,
            updated_at=page.updated_at if only_checked(visit) else now,
        )
        self.tables.pages[page.id] = replace(now_stored, page=written)

    def _write_content(self, visit: Visit, keep_body: bool, now: datetime) -> dict[str, int]:
        """Swap the chunks of a page whose content is replaced; a chunk whose text stays keeps its number."""
        if visit.decision.content is not Content.REPLACE:
            self._retitle(visit)
            return {}
        page, document = visit.decision.page, visit.harvest.document
        kept, made = self.tables.swap_pieces(page, visit.harvest.chunks, now, keep_body)
        if not keep_body:
            self._forget_diffs(page)
        before = self.tables.documents.get(page.id, Held())
        held = Held(
            markdown=document.markdown if document and keep_body else None,
            sketch=document.sketch if document else "",
            length=len(document.markdown) if document else None,
        )
        self.tables.documents[page.id] = _with_former(held, before, visit, now)
        return {"chunks_kept": kept, "chunks_made": made}

    def _forget_diffs(self, page: Page) -> None:
        for number, (source, change) in list(self.tables.changes.items()):
            if (source, change.url) == (page.source_id, page.url):
                self.tables.changes[number] = (source, replace(change, diff=None))

    def _retitle(self, visit: Visit) -> None:
        """A page whose title alone changed is found by its new one."""
        page = visit.decision.page
        if visit.decision.content is Content.KEEP and page.id in self.tables.pieces:
            pieces = [replace(piece, title=page.title or "") for piece in self.tables.pieces[page.id]]
            self.tables.pieces[page.id] = tuple(pieces)

    def _write_links(self, run: Run, visit: Visit) -> None:
        """Replace the links of a page; a link that some page admits belongs to the source."""
        if visit.harvest.links is None:
            return
        edges: dict[str, Edge] = {}
        for link in visit.harvest.links:
            edges.setdefault(link.url, Edge(link.url, link.text, link.follow))
            key = run.source_id, link.url
            admitted = link.url in visit.harvest.children
            self.tables.links[key] = self.tables.links.get(key, False) or admitted
        if edges or self.tables.edges.get(visit.claim.page.id):
            self.tables.unseal_links(run.source_id)
        self.tables.edges[visit.claim.page.id] = tuple(edges.values())

    def _record_change(self, run: Run, visit: Visit, now: datetime, keep_body: bool) -> None:
        kind = change_of(visit)
        if kind is not None:
            new_hash, diff = visit.decision.page.content_hash, visit.harvest.diff if keep_body else None
            self.note_change(run.id, visit.claim.page, kind, now, new_hash=new_hash, diff=diff)

    def note_change(
        self,
        run: RunId | None,
        page: Page,
        kind: ChangeKind,
        now: datetime,
        *,
        new_hash: str | None = None,
        diff: str | None = None,
        moved_to: str | None = None,
    ) -> None:
        """Tell the readers of the index what happened to a page."""
        source = self.tables.sources[page.source_id].source
        number = next(self.tables.numbers)
        self.tables.changes[number] = (
            page.source_id,
            ChangeView(
                id=number,
                source=source.name,
                version=source.version,
                url=page.url,
                kind=kind,
                run=run,
                at=now,
                old_hash=page.content_hash,
                new_hash=new_hash,
                diff=diff,
                moved_to=moved_to,
            ),
        )

    def _targets(self, visits: Sequence[Visit]) -> dict[str, int]:
        """The addresses that visits lead to, counted from where their pages lie by now."""
        depths: dict[str, int] = {}
        for visit in visits:
            step = 0 if visit.decision.outcome is Outcome.MOVED else 1
            depth = self.tables.pages[visit.claim.page.id].page.depth + step
            for link in visit.harvest.links or ():
                if link.follow and link.url in visit.harvest.children:
                    depths[link.url] = min(depth, depths.get(link.url, depth))
        return depths

    def _count(self, run: Run, parts: Sequence[dict[str, int]], now: datetime) -> None:
        current = self.tables.runs[run.id]
        counts = total([current.counts, *parts])
        self.tables.runs[run.id] = replace(current, counts=counts, worked_at=now)


def _with_former(held: Held, before: Held, visit: Visit, now: datetime) -> Held:
    """The new content, with the text before a flagged change; a stub does not replace the text before it."""
    if held.markdown is None or held.markdown == before.former:
        return held
    flagged = loses_text(visit.claim.page, visit.decision.page)
    lost = flagged and before.markdown not in (None, "", held.markdown)
    if lost and len(before.markdown or "") >= len(before.former or "") // 20:
        return replace(held, former=before.markdown, former_title=visit.claim.page.title, former_at=now)
    return replace(held, former=before.former, former_title=before.former_title, former_at=before.former_at)


def _drops(visit: Visit) -> bool:
    """Whether content is to go: it stays until the run's sweep, where the brake can still hold it."""
    return visit.decision.content is Content.DROP and visit.decision.page.content_hash is not None
