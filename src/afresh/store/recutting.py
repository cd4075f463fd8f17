"""Cutting pages anew from their stored text, for another way of cutting."""

from collections.abc import Sequence
from datetime import datetime

from afresh.core.embedding import Cut, Lack
from afresh.core.model import ChangeKind, Page, SourceId
from afresh.core.sketch import sketch_of
from afresh.store.chunks import Swap, chunks_of
from afresh.store.dialect import Database
from afresh.store.records import page_from

RESTORED_FIELDS = ("title", "content_hash", "refused_hash", "doubt", "chunker")


class Recutting:
    """Pages whose chunks were cut by another version, and their new chunks."""

    db: Database

    async def cut_by_others(
        self, chunker: str, *, source: SourceId | None = None, after: int = 0, limit: int = 100
    ) -> list[Cut]:
        """Pages with a text whose chunks another version cut, in their order."""
        async with self.db.read() as tx:
            rows = await tx.all("cut_by_others", chunker=chunker, source=source, after=after, limit=limit)
            return [Cut(page_from(row), row["markdown"]) for row in rows]

    async def count_cut_by_others(self, chunker: str, source: SourceId | None = None) -> Lack:
        """How many pages another version cut, and how many of them have no text to cut anew."""
        async with self.db.read() as tx:
            row = await tx.one("count_cut_by_others", chunker=chunker, source=source)
            return Lack(row["pages"], row["without_text"]) if row else Lack(0, 0)

    async def recut(self, cuts: Sequence[Cut], chunker: str, now: datetime) -> int:
        """Swap the chunks of pages that are as they were when they were cut; the answer is how many were."""
        async with self.db.write() as tx:
            ids = [cut.page.id for cut in cuts]
            hashes = {row["id"]: row["content_hash"] for row in await tx.all("hashes_of", pages=ids)}
            same = [cut for cut in cuts if hashes.get(cut.page.id) == cut.page.content_hash]
            old = await chunks_of(tx, [cut.page.id for cut in same])
            swap = Swap(now, keep_body=True)
            for cut in same:
                swap.plan(cut.page, cut.chunks, old[cut.page.id])
            await swap.write(tx)
            await tx.run("mark_recut", pages=[cut.page.id for cut in same], chunker=chunker, now=now)
            return len(same)

    async def restore(self, cut: Cut, before: Page, now: datetime) -> bool:
        """Put a former text with its chunks in the place of what a page shows; False if that changed."""
        page = cut.page
        async with self.db.write(page.source_id) as tx:
            rows = await tx.all("hashes_of", pages=[page.id])
            if not rows or rows[0]["content_hash"] != before.content_hash:
                return False
            swap = Swap(now, keep_body=True)
            swap.plan(page, cut.chunks, (await chunks_of(tx, [page.id]))[page.id])
            await swap.write(tx)
            text = {"markdown": cut.markdown, "sketch": sketch_of(cut.markdown), "length": len(cut.markdown)}
            await tx.run("restore_document", page=page.id, **text)
            values = {name: getattr(page, name) for name in RESTORED_FIELDS}
            await tx.run("restore_page", page=page.id, now=now, **values)
            change = {"source": page.source_id, "page": page.id, "url": page.url, "kind": ChangeKind.CHANGED}
            hashes = {"old_hash": before.content_hash, "new_hash": page.content_hash}
            empty = {"run": None, "diff": None, "moved_to": None}
            await tx.many("insert_change", [{**change, **hashes, **empty, "now": now}])
            return True
