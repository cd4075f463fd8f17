"""Choose the embedding models of a store: by the settings, or by the fingerprint stored with it."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from afresh.config.models import BASE_URLS, LIBRARIES, REMOTE, EmbeddingSettings
from afresh.errors import EmbedderUnavailable, EmbedError
from afresh.models import quality, wordllama
from afresh.models.local import LibraryModel, LocalEmbedder, loaded_once
from afresh.plugins import EMBEDDERS, load_plugin
from afresh.ports import Embedder, JsonApi

if TYPE_CHECKING:
    from afresh.ports import Matrix


class BudgetedEmbedder:
    """Limits the number of texts that an embedder gets in one run; create one per run. Queries are free."""

    def __init__(self, inner: Embedder, texts: int) -> None:
        self.model = inner.model
        self._inner = inner
        self._budget = self._left = texts

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        """Return the vectors; raise EmbedError if they exceed the budget, EmbedderUnavailable if it is 0."""
        if len(texts) > self._left:
            kind = EmbedError if self._left else EmbedderUnavailable
            raise kind(
                f"the budget of {self._budget} texts a run is used up: refresh again, "
                "or raise embedding.budget_per_run"
            )
        self._left -= len(texts)
        try:
            return await self._inner.embed(texts)
        except EmbedError:
            self._left += len(texts)  # failed texts do not count
            raise

    async def embed_query(self, text: str) -> "Matrix":
        """Return the row of a query."""
        return await self._inner.embed_query(text)

    async def close(self) -> None:
        """Close the inner embedder."""
        await self._inner.close()


FAST = f"local/wordllama-256/{wordllama.POOLING}"
QUALITY = f"local/minilm-l6-int8/{quality.POOLING}"
fast, _quality = loaded_once(wordllama.WordllamaModel), loaded_once(quality.QualityModel)

_NAMED = re.compile(r"(?P<provider>[^/]+)/(?P<model>.+?)(@(?P<size>\d+))?(\+[0-9a-f]{8})?(~[^~]+)?")


def builtin(model: str) -> Embedder | None:
    """Return the built-in model with this fingerprint; None if there is none."""
    if model == FAST:
        return LocalEmbedder(FAST, fast, batch_size=256)
    if model == QUALITY:
        return LocalEmbedder(QUALITY, _quality, batch_size=8)
    return None


def embedder_for(settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder | None:
    """Return the model that the settings name, not yet loaded; None if search uses words only."""
    if settings.provider == "none":
        return None
    make = load_plugin(EMBEDDERS, settings.provider, FunctionType)
    if make is None:
        raise EmbedderUnavailable(f"embedding.provider: {settings.provider} is not installed")
    made: Embedder | None = make(settings, caller)
    return made


def local_embedder(settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder | None:
    """Return the built-in model that the settings name."""
    return builtin(fingerprint(settings))


def wanted_model(settings: EmbeddingSettings) -> str | None:
    """Return the fingerprint of the model that the settings name; None if search uses words only."""
    if settings.provider == "none":
        return None
    model = fingerprint(settings)
    try:
        check_installed(model)
    except EmbedderUnavailable:
        return model if settings.model is not None else None  # a model set by name is required
    return model


def remembered(model: str, settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder | None:
    """Return the model of a stored fingerprint if it is built-in or the settings can reach it, else None."""
    named = _NAMED.fullmatch(model)
    if named is None or named["provider"] not in (*LIBRARIES, settings.provider):
        return builtin(model)
    size = int(named["size"]) if named["size"] else None
    then = replace(settings, provider=named["provider"], model=named["model"], dimensions=size)
    return embedder_for(then, caller) if fingerprint(then) == model else builtin(model)


def check_installed(model: str) -> None:
    """Raise EmbedderUnavailable if a built-in model is not installed."""
    if model == FAST:
        wordllama.folder()
    if model == QUALITY:
        quality.check_installed()


def within_budget(embedder: Embedder, settings: EmbeddingSettings) -> Embedder:
    """Return the embedder for one run; a remote one gets its own budget."""
    budget = settings.budget_per_run if settings.provider in REMOTE else None
    return embedder if budget is None else BudgetedEmbedder(embedder, budget)


def fingerprint(settings: EmbeddingSettings) -> str:
    """Return what distinguishes incomparable vectors; the query prefix is left out, as it is never stored."""
    if settings.provider == "local":
        return QUALITY if settings.model == "quality" else FAST
    size = f"@{settings.dimensions}" if settings.dimensions else ""
    prefix = settings.document_prefix
    mark = f"+{hashlib.sha256(prefix.encode()).hexdigest()[:8]}" if prefix else ""
    host = urlsplit(settings.base_url).netloc.rpartition("@")[2] if settings.base_url else ""
    place = f"~{host}" if host and settings.address != BASE_URLS.get(settings.provider) else ""
    return f"{settings.provider}/{settings.named_model}{size}{mark}{place}"


def remote_embedder(settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder:
    """Return the embedder of an API."""
    if caller is None:
        raise EmbedderUnavailable(f"embedding.provider: {settings.provider} needs a client")
    from afresh.models.endpoint import Endpoint
    from afresh.models.remote import VECTORS, GeminiEmbeddingApi, OpenAIEmbeddingApi, RemoteEmbedder

    kind = OpenAIEmbeddingApi if settings.provider == "openai" else GeminiEmbeddingApi
    form = kind(settings.address or "", settings.named_model or "", settings.api_key, settings.dimensions)
    secrets = (settings.api_key,) if settings.api_key else ()
    return RemoteEmbedder(
        fingerprint(settings),
        form,
        Endpoint(VECTORS, caller, form.url, form.headers, settings.timeout_seconds, secrets),
        dimension=settings.dimensions,
        prefixes=(settings.document_prefix, settings.query_prefix),
        batch_size=settings.batch_size,
    )


def library_embedder(settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder:
    """Return an embedder whose library loads the model."""
    prefixes = (settings.document_prefix, settings.query_prefix)
    load = partial(LibraryModel, settings.provider, settings.named_model or "", prefixes)
    return LocalEmbedder(fingerprint(settings), loaded_once(load), batch_size=settings.batch_size)


class StoreEmbedders(NamedTuple):
    """The embedders of a store, with notes about them."""

    asking: Embedder | None = None  # embeds queries: the model that made the index, or None
    acting: Embedder | None = None  # embeds new text
    wanted: Embedder | None = None  # named in the settings
    notes: tuple[str, ...] = ()


def chosen(settings: EmbeddingSettings, serving: str | None, caller: JsonApi | None) -> StoreEmbedders:
    """Return the embedders to use: vectors are only comparable with those of the same model."""
    try:
        wanted = embedder_for(settings, caller)
        if wanted is not None:
            check_installed(wanted.model)
    except EmbedderUnavailable as missing:
        if settings.model is not None or settings.provider != "local":
            raise
        return StoreEmbedders(notes=(f"search goes by words alone: {missing}",))
    if wanted is None or serving is None:
        return StoreEmbedders(None, wanted, wanted)
    if serving == wanted.model:
        return StoreEmbedders(wanted, wanted, wanted)
    acting = remembered(serving, settings, caller)
    if acting is None:
        gone = f"the index is made by {serving}, which is no longer set up: answered by words alone until"
        return StoreEmbedders(None, wanted, wanted, (f"{gone} `afresh reindex` has made it anew",))
    note = f"{wanted.model} is set, but {serving} answers: run `afresh reindex`"
    return StoreEmbedders(acting, acting, wanted, (note,))
