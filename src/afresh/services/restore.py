"""Putting the former text of a page back that was emptied or lost nearly all of its text."""

from dataclasses import replace

from afresh.crawl.plausibility import RESTORED
from afresh.errors import RunBusy, Unknown, UsageError, without_former_text
from afresh.model.records import SourceId
from afresh.model.reports import OpenedPage
from afresh.search.reindex import Remake, cut_page
from afresh.search.vectors import Cut
from afresh.services.read_page import open_page
from afresh.text.normalize import text_hash


async def restore_page(remake: Remake, url: str, source: SourceId | None) -> OpenedPage:
    """Put the former text of a page back, searchable, until the page shows something else."""
    found = await remake.store.pages.find(url, source)
    if not found:
        raise UsageError(f"{url} is not on record; `afresh pages NAME --doubtful` lists pages that lost text")
    for page, *_ in found:
        held = await remake.store.pages.content(page.id)
        if held.former is None or page.content_hash is None:
            continue
        restored = replace(
            page,
            title=held.former_title or page.title,
            content_hash=text_hash(held.former),
            refused_hash=page.content_hash,
            doubt=RESTORED,
            chunker=remake.chunker,
        )
        cut = await cut_page(remake, Cut(restored, held.former))
        if not await remake.store.chunks.restore(cut, page, remake.clock()):
            raise RunBusy(f"{url} was read again just now: look at it first, `afresh why {url}`")
        if await remake.store.digest.records(page.id) is not None:  # the next update makes a summary of it
            await remake.store.pages.check_at(page.id, remake.clock(), remake.clock())
        opened = await open_page(remake.store, url, page.source_id)
        if opened is not None:
            return opened
    if any(page.content_hash is not None and page.doubt and page.doubt_hash for page, *_ in found):
        raise Unknown(
            f"{url} still has its text: its last check was not believed, so there is nothing to put back "
            f"(why: `afresh why {url}`)"
        )
    raise Unknown(without_former_text(url))
