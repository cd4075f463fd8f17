"""Provide models: for search queries, for new text of a run, and for a reindex."""

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
from afresh.extract.pool.wire import CHUNK
from afresh.model.recipe import CHUNKER
from afresh.ports import Clock, Embedder, JsonApi, LinkScorer, Summarizer
from afresh.search.embedding import BATCH, Embedding
from afresh.search.records import SearchMode
from afresh.search.reindex import ReindexTools
from afresh.store.repository import FOREVER, RetryPolicy
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.models.choose import StoreEmbedders
    from afresh.models.completions import CallBudget, DailyCalls

DAY = timedelta(days=1)
MAX_CHAT_BYTES = 4 * 1024 * 1024  # of an answer
MAX_VECTORS_BYTES = 16 * 1024 * 1024  # 256 vectors of 3,072 numbers


class ModelProvider:
    """Chooses models by the settings and by what the store contains."""

    def __init__(self, config: Config, store: Store, clock: Clock) -> None:
        self._config = config
        self._store = store
        self._clock = clock
        self._day: DailyCalls | None = None

    def wanted(self) -> str | None:
        """Return the model of the settings; None if search uses words only."""
        from afresh.models.choose import wanted_model

        return wanted_model(self._config.embedding)

    @asynccontextmanager
    async def for_questions(
        self, mode: SearchMode = SearchMode.HYBRID
    ) -> AsyncIterator[tuple[Embedder | None, Sequence[str]]]:
        """Yield the embedder for queries, or None, and notes for the user."""
        async with self._chosen() as models:
            notes = models.notes
            if mode is SearchMode.HYBRID:  # a text search has no notes, a vector search always has them
                notes = await self._unsaid(notes)
            if models.asking is None and models.wanted is not None and not notes:
                lack = await self._store.stats.lack(models.wanted.model)
                words = "answered by words alone: run `afresh reindex` to search by meaning"
                notes = (words,) if lack.number else ()
            yield models.asking, notes

    async def _unsaid(self, notes: Sequence[str]) -> tuple[str, ...]:
        """Return notes; say only once that the store cannot hold vectors, and only if they are wanted."""
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
    async def for_run(self, body: str, store: Store) -> AsyncIterator[tuple[Embedding | None, Sequence[str]]]:
        """Yield the embedding for new text and notes; if no text is stored, that of the wanted model."""
        async with self._chosen(store) as models:
            model = models.wanted if body == "none" else models.acting
            embedding = self._embedding(model, store)
            try:
                yield embedding, await self._unsaid(models.notes)
            finally:
                await _close(embedding)

    @asynccontextmanager
    async def for_texts(
        self, links: LinksSettings, *, summaries: bool
    ) -> AsyncIterator[tuple[Summarizer | None, LinkScorer | None]]:
        """Yield the summarizer and the link scorer of a run; None for what is not wanted."""
        if not summaries and not links.keywords:
            yield None, None
            return
        from afresh.models.link_scorer import link_scorer_for
        from afresh.models.summarizer import summarizer_for

        settings = self._config.ai
        caller = self._caller(settings.address, MAX_CHAT_BYTES) if settings.address else None
        scorer = None
        try:
            async with self._allowance() as allowance:
                if links.keywords:  # in a thread, as prompts are read from files
                    scorer = await asyncio.to_thread(link_scorer_for, links, settings, caller, allowance)
                summarizer = None
                if summaries:
                    summarizer = await asyncio.to_thread(summarizer_for, settings, caller, allowance)
                yield summarizer, scorer
        finally:
            if scorer is not None:
                await scorer.close()
            if caller is not None:
                await caller.close()

    def guesser(self, scorer: LinkScorer) -> LinkScorer | None:
        """Return a free scorer for links that the scorer has not scored yet; None if it is free itself."""
        if scorer.is_free:
            return None
        from afresh.models.offline_scorer import OfflineLinkScorer

        return OfflineLinkScorer()

    @asynccontextmanager
    async def _allowance(self) -> AsyncIterator["CallBudget"]:
        """Yield the call budget of a run; concurrent runs share the rest of the day."""
        from afresh.models.completions import CallBudget, DailyCalls

        settings = self._config.ai
        if self._day is None or not self._day.runs:
            limit = settings.budget_per_day
            spent = await self._store.link_scores.calls_since(self._clock() - DAY) if limit is not None else 0
            self._day = DailyCalls(limit, spent)
        day = self._day
        day.runs += 1
        try:
            yield CallBudget(settings.budget_per_run, day)
        finally:
            day.runs -= 1

    async def warm_up(self) -> None:
        """Load the model for new text if it runs in this process."""
        from afresh.models.local import LocalEmbedder

        async with self._chosen() as models:
            if isinstance(models.acting, LocalEmbedder):
                await models.acting.embed(["warm"])

    @asynccontextmanager
    async def for_remake(self, listener: Listener, stopping: asyncio.Event) -> AsyncIterator[ReindexTools]:
        """Yield the tools to rebuild an index from stored text."""
        retry = RetryPolicy(busy_seconds=FOREVER, full_seconds=FOREVER, listener=listener, stopping=stopping)
        store, parsers = self._store.with_retries(retry), ParserPool()
        async with self._chosen(store) as (_, acting, wanted, _):
            both = acting is not None and wanted is not None and acting.model != wanted.model
            serving = self._embedding(acting if both else None, store)
            target = self._embedding(wanted, store)
            try:
                yield ReindexTools(
                    store=store,
                    parsers=parsers,
                    chunk=CHUNK,
                    chunker=CHUNKER,
                    serving=serving or target,
                    wanted=target,
                    clock=self._clock,
                    listener=unfailing(listener),
                    stopping=stopping,
                )
            finally:
                await _close(serving)
                await _close(target)
                await parsers.close()

    def _embedding(self, model: Embedder | None, store: Store) -> Embedding | None:
        from afresh.models.choose import FAST, within_budget

        if model is None:
            return None
        settings = self._config.embedding
        batch = (
            BATCH if model.model == FAST else settings.batch_size
        )  # expensive vectors are stored in small batches
        return Embedding(store, within_budget(model, settings), self._clock, batch=batch)

    @asynccontextmanager
    async def _chosen(self, store: Store | None = None) -> AsyncIterator["StoreEmbedders"]:
        from afresh.models.choose import StoreEmbedders, chosen

        store = store or self._store
        if store.vectors.no_vectors is not None:
            yield StoreEmbedders(notes=(store.vectors.no_vectors,))
            return
        settings, serving = self._config.embedding, await store.vectors.serving_model()
        caller = self._caller(settings.address, MAX_VECTORS_BYTES) if settings.address else None
        try:
            yield chosen(settings, serving.name if serving else None, caller)
        finally:
            if caller is not None:
                await caller.close()

    def _caller(self, address: str, largest: int) -> JsonApi:
        from afresh.sources.web.api_client import ApiClient

        return ApiClient([address], user_agent=self._config.network.agent, largest_answer=largest)


async def _close(embedding: Embedding | None) -> None:
    if embedding is not None:
        await embedding.close()
