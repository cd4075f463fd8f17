"""Write the content of pages: the results of visits (checks of claimed pages), rebuilt chunks, and restored text."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from afresh.model.fetch import Chunk, Outcome, SearchTerms
from afresh.model.records import (
    ChangeKind,
    ContentAction,
    Decision,
    Page,
    PageId,
    Run,
    RunLimits,
    RunMode,
    SourceId,
    Visit,
)
from afresh.model.reports import REFUSED
from afresh.ops.failpoints import failpoint
from afresh.search.query import only_signals
from afresh.search.records import UNEMBEDDED, MissingCount, RechunkJob
from afresh.search.stemming import analysed, search_config
from afresh.store.dialect import Database, Row, Transaction
from afresh.store.digest import record_digests
from afresh.store.queue import QueueRepository
from afresh.store.records import page_from
from afresh.store.repository import Caches, Repository, RetryPolicy
from afresh.text.normalize import sketch_of

_WRITTEN = (  # fields of a page with a column of the same name
    *("status", "title", "language", "content_type", "content_hash", "links_hash", "links_left_out"),
    *("recipe", "chunker", "failures", "gone_count", "crashes", "doubt", "doubt_hash", "doubt_run"),
    *("refused_hash", "moved_to", "last_scraped", "changed_at"),
)

_VALIDATORS = ("etag", "last_modified", "size", "mtime_ns")
NO_TERMS: tuple[str | None, ...] = SearchTerms()  # title, heading and content are indexed as they are


class VisitRepository(Repository):
    def __init__(self, db: Database, caches: Caches, retry: RetryPolicy | None) -> None:
        super().__init__(db, caches, retry)
        self._queue = QueueRepository(db, caches, retry)

    async def commit(
        self, run: Run, visits: Sequence[Visit], worker: str, now: datetime, *, limits: RunLimits, keep_body: bool
    ) -> list[Visit]:
        """Write finished visits (checks of claimed pages) in one transaction, and return them.

        Visits for which the worker lost its lease are left out. Newly found pages are queued within `limits`. The
        source is locked only if a visit may change more than its own page.
        """
        locks = any(
            visit.content.links is not None
            or visit.decision.content is not ContentAction.KEEP
            or visit.claim.page.doomed_by is not None
            for visit in visits
        )
        try:
            async with self.db.write(run.source_id if locks else None) as tx:
                crawls = [visit.claim.crawl_id for visit in visits]
                held = {row["id"] for row in await tx.all("held_crawls", crawls=crawls, worker=worker)}
                mine = [visit for visit in visits if visit.claim.crawl_id in held]
                await _stamp(tx, run, mine, now)
                failpoint("commit.next")
                await _write_pages(tx, run, mine, now)
                failpoint("commit.pages")
                reused = await swap_chunks(tx, mine, now, keep_body=keep_body)
                failpoint("commit.chunks")
                if any(visit.content.digest for visit in mine):
                    await record_digests(tx, mine)
                await self.caches.links.write(tx, run, mine)
                failpoint("commit.links")
                counts = [tally(visit, run) for visit in mine]
                rows = [
                    change_row(visit.claim.page, run.id, kind, visit.decision.page.content_hash, now)
                    | {"diff": visit.content.diff if keep_body else None}
                    for visit, numbers in zip(mine, counts, strict=True)
                    for kind in (ChangeKind.NEW, ChangeKind.CHANGED)
                    if kind in numbers
                ]
                await tx.many("insert_change", rows)
                failpoint("commit.changes")
                children = await _children(tx, mine)
                if run.mode is not RunMode.CHECK:
                    await self._queue.queue_pages(tx, run, children, limits, now)
                elif children:  # links found by a check of a few pages wait for the next run
                    await tx.many("open_frontier", [{"source": run.source_id}])
                failpoint("commit.children")
                if mine:
                    await add_counts(tx, run, [*counts, reused], now)
                failpoint("commit.counts")
        except BaseException:
            self.caches.links.forget()
            self.caches.depths.pop(run.id, None)
            raise
        return mine


async def _stamp(tx: Transaction, run: Run, visits: Sequence[Visit], now: datetime) -> None:
    stamps = [
        {
            "crawl": visit.claim.crawl_id,
            "outcome": visit.decision.outcome,
            "status_code": visit.decision.status_code,
            "error_message": visit.decision.error_message,
            "reason": visit.decision.reason,
            "now": now,
        }
        for visit in visits
    ]
    await tx.many("stamp_crawl", stamps)
    failpoint("commit.stamp")
    following = [
        {
            "page": visit.claim.page.id,
            "run": run.id if visit.decision.retry else None,
            "domain": visit.claim.domain,
            "at": visit.decision.next_at,
            "now": now,
        }
        for visit in visits
        if visit.decision.next_at is not None
    ]
    await tx.many("next_crawl", following)


async def _write_pages(tx: Transaction, run: Run, visits: Sequence[Visit], now: datetime) -> None:
    checked, written = list[dict[str, object]](), list[dict[str, object]]()
    for visit in visits:
        page, decision = visit.decision.page, visit.decision
        row = {
            "page": page.id,
            "crawl_time": run.started_at,
            "checked_at": page.checked_at,
            "observed_at": page.observed_at,
            "quiet_seconds": page.rhythm.quiet,
        }
        if decision.outcome is Outcome.NOT_MODIFIED and only_checked(visit):
            checked.append(row)
            continue
        answered = decision.outcome in (Outcome.SUCCESS, Outcome.NOT_MODIFIED)
        # Content to be deleted stays until the run ends, because the deletion limit may still prevent it.
        drops = decision.content is ContentAction.DROP and page.content_hash is not None
        row |= {name: getattr(page, name) for name in _WRITTEN}
        row |= {name: getattr(page.validators, name) for name in _VALIDATORS}
        row |= {
            "validators_url": page.validators.url,
            "doomed_by": run.id if drops else page.doomed_by,
            "last_seen": run.started_at if answered else page.last_seen,
            "change_count": page.rhythm.changes,
            "span_seconds": page.rhythm.spans,
            "now": now,
        }
        written.append(row)
    await tx.many("check_page", checked)
    await tx.many("update_page", written)


async def swap_chunks(tx: Transaction, visits: Sequence[Visit], now: datetime, *, keep_body: bool) -> dict[str, int]:
    """Write the documents, chunks and titles of changed pages; return the numbers of added and kept chunks."""
    kept = [visit for visit in visits if visit.decision.content is ContentAction.KEEP]
    pages = [visit.decision.page for visit in kept if visit.claim.page.title != visit.decision.page.title]
    if titles := {page.id: page.title or "" for page in pages}:  # updates the title of kept chunks
        rows = await tx.all("terms_of", pages=list(titles))
        await tx.many("retitle_chunk", [_retitled(row, titles[row["page_id"]]) for row in rows])
    replaced = [visit for visit in visits if visit.decision.content is ContentAction.REPLACE]
    if not replaced:
        return {}
    chunks = [(visit.decision.page, visit.content.chunks) for visit in replaced]
    counts = await _replace(tx, chunks, now, keep_body=keep_body)
    documents = []
    for visit in replaced:
        text: dict[str, object] = {"markdown": None, "sketch": None, "length": None}
        if (document := visit.content.document) is not None:
            markdown = document.markdown if keep_body else None
            text = {"markdown": markdown, "sketch": document.sketch, "length": len(document.markdown)}
        page, flagged = visit.claim.page, int(visit.decision.keeps_former)
        documents.append({"page": page.id, **text, "flagged": flagged, "former_title": page.title, "now": now})
    await tx.many("upsert_document", documents)
    if not keep_body:
        await tx.run("forget_diffs", pages=[visit.claim.page.id for visit in replaced])
    return counts


async def _replace(
    tx: Transaction, pages: Sequence[tuple[Page, Sequence[Chunk]]], now: datetime, *, keep_body: bool
) -> dict[str, int]:
    """Replace the chunks of pages; keep rows with the same text, and return the numbers of added and kept chunks."""
    rows: dict[PageId, list[Row]] = defaultdict(list)
    for row in await tx.all("chunks_of", pages=[page.id for page, _ in pages]):
        rows[row["page_id"]].append(row)
    dead, moved, made = list[int](), list[dict[str, object]](), list[dict[str, object]]()
    for page, chunks in pages:
        title, config = page.title or "", search_config(page.language)
        spare: dict[object, list[Row]] = defaultdict(list)
        for row in rows[page.id]:
            fits = (row["title"], row["config"], bool(row["whole"])) == (title, config, keep_body)
            spare[fits and (row["text_hash"], row["content"], bool(row["analysed"]))].append(row)
        base = {"page": page.id, "title": title, "config": config, "whole": int(keep_body), "now": now}
        for order, chunk in enumerate(chunks if keep_body else map(only_signals, chunks)):
            if not (like := spare[chunk.text_hash, chunk.content, chunk.terms != NO_TERMS]):
                metadata = {"level": chunk.level, "path": list(chunk.path), "types": list(chunk.types)}
                made.append(
                    base
                    | {
                        "sort_order": order,
                        "heading": chunk.heading,
                        "content": chunk.content,
                        "terms": json.dumps(chunk.terms, ensure_ascii=False) if chunk.terms != NO_TERMS else None,
                        "metadata": json.dumps(metadata),
                        "text_hash": chunk.text_hash,
                    }
                )
            elif (row := like.pop(0))["sort_order"] != order:
                moved.append({"chunk": row["id"], "sort_order": order})
        dead += [row["id"] for left in spare.values() for row in left]
    if dead:
        await tx.run("leave_vectors", chunks=dead, now=now)
        await tx.run("delete_chunks", chunks=dead)
    await tx.many("move_chunk", moved)
    await tx.many("insert_chunk", made)
    return {"chunks_kept": sum(map(len, rows.values())) - len(dead), "chunks_made": len(made)}


def _retitled(row: Row, title: str) -> dict[str, object]:
    _, *others = json.loads(row["terms"]) if row["terms"] else NO_TERMS
    terms = analysed(title, row["config"]), *others
    stored = json.dumps(terms, ensure_ascii=False) if terms != NO_TERMS else None
    return {"chunk": row["id"], "title": title, "config": row["config"], "terms": stored}


def change_row(
    page: Page, run: int | None, kind: ChangeKind, new_hash: str | None, now: datetime, moved_to: str | None = None
) -> dict[str, object]:
    """Return a row for the table `changes`; `page` is the page before the change."""
    whose = {"source": page.source_id, "page": page.id, "url": page.url, "run": run, "now": now}
    hashes = {"old_hash": page.content_hash, "new_hash": new_hash}
    return {**whose, **hashes, "kind": kind, "diff": None, "moved_to": moved_to}


async def _children(tx: Transaction, visits: Sequence[Visit]) -> dict[str, int]:
    """Return the URLs to which visited pages link, each with its smallest depth."""
    parents = [visit.claim.page.id for visit in visits if visit.content.links]
    rows = await tx.all("depths_of", pages=parents) if parents else []
    current = {row["id"]: row["depth"] for row in rows}  # a page may have got a smaller depth since the claim
    depths: dict[str, int] = {}
    for visit in visits:
        step = 0 if visit.decision.outcome is Outcome.MOVED else 1
        depth = current.get(visit.claim.page.id, visit.claim.page.depth) + step
        for link in visit.content.links or ():
            if link.follow and link.url in visit.content.children and depths.get(link.url, depth) >= depth:
                depths[link.url] = depth
    return depths


async def add_counts(tx: Transaction, run: Run, parts: Sequence[Mapping[str, int]], now: datetime) -> None:
    rows = await tx.all("counts_of_run", run=run.id)
    counts: dict[str, int] = json.loads(rows[0]["counts"]) if rows else {}
    for part in parts:
        for key, number in part.items():
            counts[key] = counts.get(key, 0) + number
    await tx.many("count_run", [{"run": run.id, "now": now, "counts": json.dumps(counts)}])


def _why_refused(decision: Decision) -> str:
    status = decision.status_code or 0
    if decision.outcome is Outcome.SUCCESS:
        return "noindex"
    if decision.outcome is Outcome.BLOCKED_ROBOTS:
        return "robots.txt"
    if status in (401, 403, 407):
        return "401/403"
    if status >= 400:
        return str(status)
    if status >= 300:
        return "redirect"
    if "network.allow" in decision.reason:
        return "private (network.allow)"
    return "not fetched" if decision.reason.startswith("not fetched") else "unreadable"


def tally(visit: Visit, run: Run) -> dict[str, int]:
    """Return the numbers that a visit adds to the counts of its run.

    A failure that will be retried counts only as a retry. A page that the run checked before, and that has not changed
    since, is not counted again: a run that continues checks the start page again. Pages that had content are also
    counted separately (`known_…`), because many failures among them mean an outage.
    """
    decision, content = visit.decision, visit.content
    if decision.retry:
        return {"retried": 1, "bytes": content.body_bytes}
    before, known, change = visit.claim.page, visit.claim.page.content_hash is not None, None
    if decision.content is ContentAction.REPLACE and before.content_hash != decision.page.content_hash:
        change = ChangeKind.CHANGED if known else ChangeKind.NEW
    match decision.outcome:
        case Outcome.NOT_MODIFIED:
            kind = "not_modified"
        case Outcome.SUCCESS:  # dropped content is a page with noindex
            kind = "refused" if decision.content is ContentAction.DROP else str(change or "unchanged")
        case Outcome.GONE:
            kind = "gone" if known else "dead"
        case Outcome.MOVED:
            kind = "redirects"
        case _:
            kind = "refused" if decision.refused else "doubtful" if decision.doubtful else "failed"
    has_read = before.last_seen == run.started_at and before.observed_at and before.observed_at > run.started_at
    if has_read and kind in ("not_modified", "unchanged") and decision.content is ContentAction.KEEP:
        return {"bytes": content.body_bytes}
    unembedded = decision.reason.startswith(UNEMBEDDED)  # the page was fetched, only the embedder failed
    flagged = decision.page.doubt is not None and decision.content is ContentAction.REPLACE
    made, digest, cut = content.embedded, content.digest, decision.page.links_left_out
    counts = {
        "checked": 1,
        "bytes": content.body_bytes,
        kind: 1,
        "known_asked": known,
        "known_barred": known and kind == "refused" and decision.status_code in (401, 403, 407),
        f"known_{kind}": known and kind in ("failed", "doubtful") and not unembedded,
        "trapped": content.trapped,
        "long_links": content.long_links,
        "cut_links": cut,
        "cut_pages": cut > 0,
        "unembedded": unembedded,
        "chunks_embedded": made or 0,
        "chunks_reused": 0 if made is None else len(content.chunks) - made,
        "summaries": digest is not None and digest.summary is not None,
        "ai_calls": digest is not None and digest.summary is not None and digest.asked_model,
        "rendered": content.rendered,
        "hinted": visit.hinted,
        "hinted_changed": visit.hinted and change is ChangeKind.CHANGED,
        "flagged": flagged,
        "flagged_new": flagged and change is ChangeKind.NEW,
    }
    if kind == "refused":
        counts[f"{REFUSED}{_why_refused(decision)}"] = 1
    return {name: int(number) for name, number in counts.items() if number}


def only_checked(visit: Visit) -> bool:
    """Return whether a visit of an unmodified page changes only times and counts; a cheaper statement stores these."""
    before, after = visit.claim.page, visit.decision.page
    return (
        after.validators == before.validators
        and not (after.failures or after.gone_count or after.doomed_by or before.moved_to)
        and (after.crashes, after.doubt, after.doubt_hash, after.doubt_run)
        == (before.crashes, before.doubt, before.doubt_hash, before.doubt_run)
    )


class ChunkRepository(Repository):
    async def outdated_pages(
        self, chunker: str, *, source: SourceId | None = None, after: int = 0, limit: int = 100
    ) -> list[RechunkJob]:
        """Return pages with stored text and chunks of another chunker version, in order of their ids."""
        rows = await self._all("outdated_pages", chunker=chunker, source=source, after=after, limit=limit)
        return [RechunkJob(page_from(row), row["markdown"]) for row in rows]

    async def count_outdated(self, chunker: str, source: SourceId | None = None) -> MissingCount:
        """Count the pages with chunks of another chunker version, and how many of these have no stored text."""
        [row] = await self._all("count_outdated", chunker=chunker, source=source)
        return MissingCount(row["pages"], row["without_text"])

    async def recut(self, cuts: Sequence[RechunkJob], chunker: str, now: datetime) -> int:
        """Replace the chunks of pages whose content has not changed meanwhile; return the number of these pages."""
        async with self.db.write() as tx:
            ids = [cut.page.id for cut in cuts]
            hashes = {row["id"]: row["content_hash"] for row in await tx.all("hashes_of", pages=ids)}
            same = [cut for cut in cuts if hashes.get(cut.page.id) == cut.page.content_hash]
            await _replace(tx, [(cut.page, cut.chunks) for cut in same], now, keep_body=True)
            await tx.run("mark_recut", pages=[cut.page.id for cut in same], chunker=chunker, now=now)
            return len(same)

    async def restore(self, cut: RechunkJob, before: Page, now: datetime) -> bool:
        """Replace text and chunks of a page by those in `cut`; return False if the page is no longer as in `before`."""
        page = cut.page
        async with self.db.write(page.source_id) as tx:
            rows = await tx.all("hashes_of", pages=[page.id])
            if not rows or rows[0]["content_hash"] != before.content_hash:
                return False
            await _replace(tx, [(page, cut.chunks)], now, keep_body=True)
            text = {"markdown": cut.markdown, "sketch": sketch_of(cut.markdown), "length": len(cut.markdown)}
            await tx.run("restore_document", page=page.id, **text)
            names = ("title", "content_hash", "refused_hash", "doubt", "chunker")
            await tx.run("restore_page", page=page.id, now=now, **{name: getattr(page, name) for name in names})
            row = change_row(before, None, ChangeKind.CHANGED, page.content_hash, now)
            await tx.many("insert_change", [row])
            return True
