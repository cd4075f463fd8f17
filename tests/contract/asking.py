"""Searching a store under test by words, as `kb.search` does without a model."""

from afresh.core.asking import Asked, Narrowed
from afresh.core.model import SourceId
from afresh.core.views import Hit
from afresh.engine.search import answer
from afresh.store.store import Store


async def search(
    store: Store,
    query: str,
    *,
    source: SourceId | None = None,
    language: str | None = None,
    limit: int = 10,
    every_chunk: bool = False,
) -> list[Hit]:
    """The hits for a query."""
    within = Narrowed(sources=None if source is None else (source,), language=language)
    asked = Asked(query=query, within=within, limit=limit, every_chunk=every_chunk)
    return list((await answer(store, asked)).hits)
