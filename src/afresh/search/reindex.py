"""Rebuild chunks and vectors from stored text, without fetching; searches use the old index meanwhile."""

import asyncio
import time

from afresh.dataclass import dataclass, field
from afresh.errors import EmbedError
from afresh.events import Listener, MaintenanceProgress
from afresh.extract.pool.pool import ParserPool
from afresh.extract.pool.wire import CHUNK
from afresh.model.fetch import CHUNKER, Document
from afresh.model.records import Source, SourceId
from afresh.model.reports import ReindexReport
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock
from afresh.search.embedding import Embedding
from afresh.search.records import RechunkJob
from afresh.store.store import Store

BATCH_PAGES = 50  # to chunk in one transaction
MAX_BATCH_CHUNKS = 512  # to read and embed together
MIN_BATCH_CHUNKS = 32  # to embed first, until the speed is known
BATCH_SECONDS = 1.0  # of work between two checks for a stop
MAX_ROUNDS = 3  # to find chunks that concurrent runs added


@dataclass(slots=True, kw_only=True)
class ReindexTools:
    store: Store
    parsers: ParserPool
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


async def reindex(tools: ReindexTools, source: Source | None) -> ReindexReport:
    """Rebuild outdated chunks and vectors of one source or all; after a stop or failure, a later call continues."""
    number = source.id if source else None
    error = None
    try:
        await _rechunk(tools, number)
        await _reembed(tools, number)
    except EmbedError as failure:
        error = str(failure)
    return await _report(tools, source, error)


async def _rechunk(tools: ReindexTools, source: SourceId | None) -> None:
    store, after = tools.store, 0
    total, without_text = await store.chunks.count_outdated(CHUNKER, source)
    if without_text:
        tools.notes.append(_needs_text(without_text, "page"))
    while not tools.stopping.is_set():
        cuts = await store.chunks.outdated_pages(CHUNKER, source=source, after=after, limit=BATCH_PAGES)
        if not cuts:
            return
        cut = await asyncio.gather(*(cut_page(tools, each) for each in cuts))
        failpoint("reindex.cut")
        tools.cut += await store.chunks.recut(cut, CHUNKER, tools.clock())
        after = cuts[-1].page.id
        tools.listener(MaintenanceProgress(what="pages", done=tools.cut, of=total))


async def cut_page(tools: ReindexTools, cut: RechunkJob) -> RechunkJob:
    """Return the job with new chunks, made from the text of the page and embedded."""
    page = cut.page
    document = Document(
        title=page.title or "",
        markdown=cut.markdown,
        language=page.language,
        content_hash=page.content_hash or "",
        links_hash="",
    )
    chunks = await tools.parsers.call(CHUNK, document)
    if tools.serving is not None:
        made = await tools.serving.ensure(chunks)
        tools.made += made
        tools.reused += len(chunks) - made
    return cut._replace(chunks=tuple(chunks))


async def _reembed(tools: ReindexTools, source: SourceId | None) -> None:
    """Embed all chunks with the wanted model, and make it the serving model; repeat for chunks added meanwhile."""
    if tools.wanted is None:
        return
    for _ in range(MAX_ROUNDS):
        await _embed_all(tools, tools.wanted, source)
        if tools.stopping.is_set() or await tools.store.vectors.serve(tools.wanted.embedder.model):
            return


async def _embed_all(tools: ReindexTools, wanted: Embedding, source: SourceId | None) -> None:
    total, without_text = await tools.store.stats.missing_vectors(wanted.embedder.model, source)
    after, done, size = 0, 0, MIN_BATCH_CHUNKS
    while total > without_text and not tools.stopping.is_set():
        unembedded = await tools.store.vectors.unembedded(wanted.embedder.model, source=source, after=after, limit=size)
        if not unembedded:
            return
        began = time.monotonic()
        made = await wanted.ensure(unembedded.values())
        rate = made / max(time.monotonic() - began, 0.001)
        # about one second of work, to stop quickly
        size = int(min(MAX_BATCH_CHUNKS, max(MIN_BATCH_CHUNKS, rate * BATCH_SECONDS)))
        tools.made += made
        tools.reused += len(unembedded) - made
        after, done = max(unembedded), done + len(unembedded)
        tools.listener(MaintenanceProgress(what="chunks", done=done, of=total - without_text))
        failpoint("reindex.embedded")


async def _report(tools: ReindexTools, source: Source | None, error: str | None) -> ReindexReport:
    store, wanted = tools.store, tools.wanted
    serving = await store.vectors.serving_model()
    missing = (
        await store.stats.missing_vectors(wanted.embedder.model, source.id if source else None) if wanted else None
    )
    pages = await store.chunks.count_outdated(CHUNKER, source.id if source else None)
    if missing and missing.without_text:
        tools.notes.append(_needs_text(missing.without_text, "chunk"))
    textless = pages.without_text + (missing.without_text if missing else 0)
    left = pages.number + (missing.number if missing else 0) - textless
    switched = wanted is None or (serving is not None and serving.name == wanted.embedder.model)
    if not left and not switched and source is not None:
        tools.notes.append("other sources have no embeddings of this model: run `afresh reindex` without a name")
    elif not left:
        switched = True  # nothing to search yet: the first vectors will be of this model
    return ReindexReport(
        source=source.label if source else None,
        state="failed" if error else "partial" if left or textless or not switched else "completed",
        pages_cut=tools.cut,
        chunks_embedded=tools.made,
        chunks_reused=tools.reused,
        left=left,
        model=wanted.embedder.model if wanted else None,
        serving=serving.name if serving else None,
        seconds=round(time.monotonic() - tools.began, 3),
        error=error,
        notes=tuple(dict.fromkeys(tools.notes)),
    )


def _needs_text(number: int, what: str) -> str:
    which = f"1 {what} has" if number == 1 else f"{number:,} {what}s have"
    return f"{which} no stored text (`storage.body: none`): run `afresh refresh` to fetch such sources again"
