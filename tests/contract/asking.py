"""Searching a store under test by words, as `kb.search` does without a model."""

from afresh.model.records import SourceId
from afresh.model.reports import Hit
from afresh.search.request import Asked, Narrowed
from afresh.search.search import answer
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
