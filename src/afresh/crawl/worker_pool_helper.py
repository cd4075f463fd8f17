"""Lending a hand in a run that another worker leads."""

import asyncio

from afresh.crawl.tools import Kit
from afresh.crawl.worker import Worker, first_of
from afresh.errors import SourceError
from afresh.model.records import Run, RunMode, Source

SHARED = "web"  # of all other kinds only who has listed them knows what a page is


async def lend_a_hand(kit: Kit, source: Source, run: Run, stopping: asyncio.Event) -> None:
    """Take pages of a run until none is left or its leader ends it."""
    joined = await kit.store.runs.join(run.id, kit.worker)
    if joined is None:
        return
    kit.full = joined.full
    if joined.mode is not RunMode.DUE or kit.tells_news:
        await _listed(kit)
    try:
        await Worker(kit, joined, source.label, stopping, leads=False).work()
    except BaseExceptionGroup as group:
        raise first_of(group) from group


async def _listed(kit: Kit) -> None:
    """Hear what the site lists: it says which pages are read as Markdown, and what has not changed."""
    try:
        async for _ in kit.lister.list():
            pass
    except SourceError:
        return
