"""Searching a store under test by words, as `kb.search` does without a model."""

from afresh.model.records import SourceId
from afresh.model.reports import SearchHit
from afresh.search.records import SearchFilter, SearchRequest
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
) -> list[SearchHit]:
    """The hits for a query."""
    within = SearchFilter(sources=None if source is None else (source,), language=language)
    asked = SearchRequest(query=query, within=within, limit=limit, every_chunk=every_chunk)
    return list((await answer(store, asked)).hits)
