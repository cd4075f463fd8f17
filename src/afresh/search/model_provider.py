"""Provide the embedding models for queries, new text and reindexes, and the AI models of a run."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from afresh.config import Config
from afresh.config.models import LinksSettings
from afresh.crawl.run_log import unfailing
from afresh.errors import StoreError
from afresh.events import Listener
from afresh.extract.pool.pool import ParserPool
from afresh.ports import Clock, Embedder, JsonApi, LinkScorer, Summarizer
from afresh.search.embedding import EMBED, Embedding
from afresh.search.records import SearchMode
from afresh.search.reindex import ReindexTools
from afresh.store.repository import FOREVER, RetryPolicy
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.models.choose import StoreEmbedders
    from afresh.models.completions import CallBudget, DailyCalls

MAX_CHAT_BYTES = 4 * 1024 * 1024  # of an answer
MAX_VECTORS_BYTES = 16 * 1024 * 1024  # 256 vectors of 3,072 numbers


class ModelProvider:
    """Opens models, chosen by the settings and by the model whose vectors are stored."""

    def __init__(self, config: Config, store: Store, clock: Clock) -> None:
        self._config = config
        self._store = store
        self._clock = clock
        self._day: DailyCalls | None = None

    def wanted(self) -> str | None:
        """Return the fingerprint of the model in the settings; None for keyword search only."""
        from afresh.models.choose import wanted_model

        return wanted_model(self._config.embedding)

    @asynccontextmanager
    async def for_queries(
        self, mode: SearchMode = SearchMode.HYBRID
    ) -> AsyncIterator[tuple[Embedder | None, Sequence[str]]]:
        """Yield the embedder for queries, or None, and notes for the user."""
        async with self._chosen() as models:
            notes = models.notes
            if mode is SearchMode.HYBRID:  # a text search shows no notes, a vector search shows all of them
                notes = await self._new_notes(notes)
            if models.for_queries is None and models.wanted is not None and not notes:
                missing = await self._store.stats.missing_vectors(models.wanted.model)
                note = "keyword search only: run `afresh reindex` to enable semantic search"
                notes = (note,) if missing.number else ()
            yield models.for_queries, notes

    async def _new_notes(self, notes: Sequence[str]) -> tuple[str, ...]:
        """Return the notes to show; the one on unusable vectors only once, and only if a model is set."""
        missing = self._store.vectors.no_vectors
        if missing is None or missing not in notes:
            return tuple(notes)
        others = tuple(note for note in notes if note != missing)
        if self.wanted() is None:
            return others
        try:
            first = await self._store.vectors.is_first_notice("vectors", self._clock())
        except StoreError:  # a read-only store cannot remember it
            first = True
        return (*others, missing) if first else others

    @asynccontextmanager
    async def for_run(
        self, body: str, store: Store, parsers: ParserPool
    ) -> AsyncIterator[tuple[Embedding | None, Sequence[str]]]:
        """Yield the embedding for new text (None if no model is set), and notes for the user.

        New vectors are made by the model that answers searches. If `body` (the setting `storage.body`) is "none", no
        text is stored and a reindex is impossible, so the model in the settings is used at once.
        """
        async with self._chosen(store) as models:
            model = models.wanted if body == "none" else models.for_new_text
            async with self._embedding(model, store, parsers) as embedding:
                yield embedding, await self._new_notes(models.notes)

    @asynccontextmanager
    async def for_texts(
        self, links: LinksSettings, *, summaries: bool
    ) -> AsyncIterator[tuple[Summarizer | None, LinkScorer | None]]:
        """Yield the summarizer and the link scorer of a run; each is None if the run does not need it."""
        if not summaries and not links.keywords:
            yield None, None
            return
        from afresh.models.link_scorer import link_scorer_for
        from afresh.models.summarizer import summarizer_for

        settings = self._config.ai
        scorer = summarizer = None
        async with self._caller(settings.address, MAX_CHAT_BYTES) as caller, self._budget() as budget:
            if links.keywords:  # in a thread, as prompts are read from files
                scorer = await asyncio.to_thread(link_scorer_for, links, settings, caller, budget)
            if summaries:
                summarizer = await asyncio.to_thread(summarizer_for, settings, caller, budget)
            yield summarizer, scorer

    def guesser(self, scorer: LinkScorer) -> LinkScorer | None:
        """Return a free scorer that estimates links without a score; None if `scorer` itself is free."""
        if scorer.is_free:
            return None
        from afresh.models.offline_scorer import OfflineLinkScorer

        return OfflineLinkScorer()

    @asynccontextmanager
    async def _budget(self) -> AsyncIterator["CallBudget"]:
        """Yield the call budget of a run; concurrent runs share the remaining budget of the day."""
        from afresh.models.completions import CallBudget, DailyCalls

        settings = self._config.ai
        if self._day is None or not self._day.runs:
            limit = settings.budget_per_day
            spent = await self._store.link_scores.calls_since(self._clock() - timedelta(1)) if limit is not None else 0
            self._day = DailyCalls(limit, spent)
        day = self._day
        day.runs += 1
        try:
            yield CallBudget(settings.budget_per_run, day)
        finally:
            day.runs -= 1

    async def warm_up(self, parsers: ParserPool) -> None:
        """Load a local model in advance: in this process for queries, in the parser processes for pages."""
        from afresh.models.choose import FAST
        from afresh.models.local import LocalEmbedder

        async with self._chosen() as models:
            if isinstance(models.for_new_text, LocalEmbedder):
                await models.for_new_text.embed(["warm"])
                if models.for_new_text.model == FAST:
                    await parsers.everywhere(EMBED, [((), "warm")])

    @asynccontextmanager
    async def for_reindex(self, listener: Listener, stopping: asyncio.Event) -> AsyncIterator[ReindexTools]:
        """Yield the parsers and embedders for a reindex of this store."""
        retry = RetryPolicy(busy_seconds=FOREVER, full_seconds=FOREVER, listener=listener, stopping=stopping)
        store, parsers = self._store.with_retries(retry), ParserPool()
        async with self._chosen(store) as (_, old, wanted, _):
            is_switch = old is not None and wanted is not None and old.model != wanted.model
            try:
                async with (
                    self._embedding(wanted, store, parsers) as target,
                    self._embedding(old if is_switch else None, store, parsers) as serving,
                ):
                    yield ReindexTools(
                        store=store,
                        parsers=parsers,
                        serving=serving or target,
                        wanted=target,
                        clock=self._clock,
                        listener=unfailing(listener),
                        stopping=stopping,
                    )
            finally:
                await parsers.close()

    @asynccontextmanager
    async def _embedding(
        self, model: Embedder | None, store: Store, parsers: ParserPool
    ) -> AsyncIterator[Embedding | None]:
        from afresh.models.choose import FAST

        if model is None:
            yield None
            return
        if model.model == FAST:
            embedding = Embedding(store, model, self._clock, parsers=parsers)
        else:  # expensive vectors are stored in small batches
            embedding = Embedding(store, model, self._clock, batch=self._config.embedding.batch_size)
        try:
            yield embedding
        finally:
            await embedding.close()

    @asynccontextmanager
    async def _chosen(self, store: Store | None = None) -> AsyncIterator["StoreEmbedders"]:
        from afresh.models.choose import StoreEmbedders, choose_embedders

        store = store or self._store
        if store.vectors.no_vectors is not None:
            yield StoreEmbedders(notes=(store.vectors.no_vectors,))
            return
        settings, serving = self._config.embedding, await store.vectors.serving_model()
        async with self._caller(settings.address, MAX_VECTORS_BYTES) as caller:
            yield choose_embedders(settings, serving.name if serving else None, caller)

    @asynccontextmanager
    async def _caller(self, url: str | None, max_bytes: int) -> AsyncIterator[JsonApi | None]:
        if url is None:
            yield None
            return
        from afresh.sources.web.api_client import ApiClient

        client = ApiClient([url], user_agent=self._config.network.agent, largest_answer=max_bytes)
        try:
            yield client
        finally:
            await client.close()
