"""Rebuild chunks and vectors from stored text, without fetching; the old index serves meanwhile."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from afresh.errors import EmbedError
from afresh.events import Listener, MaintenanceProgress
from afresh.extract.pool.pool import ParserPool
from afresh.model.fetch import Chunk, Document
from afresh.model.records import Source, SourceId
from afresh.model.reports import ReindexReport
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock
from afresh.search.embedding import Embedding
from afresh.search.records import RechunkJob
from afresh.store.store import Store

PAGES = 50  # to chunk in one transaction
CHUNKS = 512  # maximum to embed before the next are read
AT_ONCE = 32  # to embed first, until the speed is known
SECONDS = 1.0  # of work between two checks for a stop
ROUNDS = 3  # to find chunks that concurrent runs added


@dataclass(slots=True, kw_only=True)
class ReindexTools:
    """The tools and counters of a reindex."""

    store: Store
    parsers: ParserPool
    chunk: Callable[[Document], Sequence[Chunk]]
    chunker: str  # version of the chunker
    serving: Embedding | None  # creates the vectors that serve searches until the end
    wanted: Embedding | None
    clock: Clock
    listener: Listener
    stopping: asyncio.Event
    cut: int = 0
    made: int = 0
    reused: int = 0
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)


async def reindex(remake: ReindexTools, source: Source | None) -> ReindexReport:
    """Update one source or all to the current recipe; a later call continues after a stop or failure."""
    number = source.id if source else None
    error = None
    try:
        await _cut_anew(remake, number)
        await _embed_anew(remake, number)
    except EmbedError as trouble:
        error = str(trouble)
    return await _report(remake, source, error)


async def _cut_anew(remake: ReindexTools, source: SourceId | None) -> None:
    store, after = remake.store, 0
    total, without_text = await store.chunks.count_cut_by_others(remake.chunker, source)
    if without_text:
        remake.notes.append(_needs_text(without_text, "page"))
    while not remake.stopping.is_set():
        cuts = await store.chunks.cut_by_others(remake.chunker, source=source, after=after, limit=PAGES)
        if not cuts:
            return
        cut = await asyncio.gather(*(cut_page(remake, each) for each in cuts))
        failpoint("reindex.cut")
        remake.cut += await store.chunks.recut(cut, remake.chunker, remake.clock())
        after = cuts[-1].page.id
        remake.listener(MaintenanceProgress(what="pages", done=remake.cut, of=total))


async def cut_page(remake: ReindexTools, cut: RechunkJob) -> RechunkJob:
    """Return the text of a page with its chunks, which have vectors."""
    page = cut.page
    document = Document(
        title=page.title or "",
        markdown=cut.markdown,
        language=page.language,
        content_hash=page.content_hash or "",
        links_hash="",
    )
    chunks = await remake.parsers.call(remake.chunk, document)
    if remake.serving is not None:
        made = await remake.serving.ensure(chunks)
        remake.made += made
        remake.reused += len(chunks) - made
    return cut._replace(chunks=tuple(chunks))


async def _embed_anew(remake: ReindexTools, source: SourceId | None) -> None:
    """Create vectors of the wanted model for all chunks; another round finds chunks added meanwhile."""
    if remake.wanted is None:
        return
    for _ in range(ROUNDS):
        await _embed_all(remake, remake.wanted, source)
        if remake.stopping.is_set() or await remake.store.vectors.serve(remake.wanted.model):
            return


async def _embed_all(remake: ReindexTools, wanted: Embedding, source: SourceId | None) -> None:
    total, without_text = await remake.store.stats.lack(wanted.model, source)
    after, done, size = 0, 0, AT_ONCE
    while total > without_text and not remake.stopping.is_set():
        lacking = await remake.store.vectors.unembedded(wanted.model, source=source, after=after, limit=size)
        if not lacking:
            return
        began = time.monotonic()
        made = await wanted.fill(lacking)
        rate = made / max(time.monotonic() - began, 0.001)
        size = int(min(CHUNKS, max(AT_ONCE, rate * SECONDS)))  # about one second of work, to stop quickly
        remake.made += made
        remake.reused += len(lacking) - made
        after, done = lacking[-1].chunk, done + len(lacking)
        remake.listener(MaintenanceProgress(what="chunks", done=done, of=total - without_text))
        failpoint("reindex.embedded")


async def _report(remake: ReindexTools, source: Source | None, error: str | None) -> ReindexReport:
    store, wanted = remake.store, remake.wanted
    serving = await store.vectors.serving_model()
    lack = await store.stats.lack(wanted.model, source.id if source else None) if wanted else None
    pages = await store.chunks.count_cut_by_others(remake.chunker, source.id if source else None)
    if lack and lack.without_text:
        remake.notes.append(_needs_text(lack.without_text, "chunk"))
    textless = pages.without_text + (lack.without_text if lack else 0)
    left = pages.number + (lack.number if lack else 0) - textless
    switched = wanted is None or (serving is not None and serving.name == wanted.model)
    if not left and not switched and source is not None:
        remake.notes.append("other sources lack vectors of the model: run `afresh reindex` without a name")
    elif not left:
        switched = True  # nothing to search yet: the first vectors will be of this model
    return ReindexReport(
        source=source.label if source else None,
        state="failed" if error else "partial" if left or textless or not switched else "completed",
        pages_cut=remake.cut,
        chunks_embedded=remake.made,
        chunks_reused=remake.reused,
        left=left,
        model=wanted.model if wanted else None,
        serving=serving.name if serving else None,
        seconds=round(time.monotonic() - remake.began, 3),
        error=error,
        notes=tuple(dict.fromkeys(remake.notes)),
    )


def _needs_text(number: int, what: str) -> str:
    which = f"1 {what} has" if number == 1 else f"{number:,} {what}s have"
    return f"{which} no stored text (`storage.body: none`): `afresh refresh` reads such sources again"
