"""Which model makes the vectors: by the settings, or by the name that a store remembers."""

import hashlib
import re
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from afresh.config.embedding import BASE_URLS, LIBRARIES, REMOTE, EmbeddingSettings
from afresh.errors import EmbedderDown
from afresh.models import quality, wordllama
from afresh.models.budget import Budgeted
from afresh.models.local import LocalEmbedder, loaded_once
from afresh.ports import Caller, Embedder

FAST = f"local/wordllama-256/{wordllama.POOLING}"
QUALITY = f"local/minilm-l6-int8/{quality.POOLING}"
fast, _quality = loaded_once(wordllama.Wordllama), loaded_once(quality.Quality)

_NAMED = re.compile(r"(?P<provider>[^/]+)/(?P<model>.+?)(@(?P<size>\d+))?(\+[0-9a-f]{8})?(~[^~]+)?")


def builtin(model: str) -> Embedder | None:
    """The embedded model of this fingerprint; None if it is not one of ours, or no longer."""
    if model == FAST:
        return LocalEmbedder(FAST, fast, batch_size=256)
    if model == QUALITY:
        return LocalEmbedder(QUALITY, _quality, batch_size=8)
    return None


def embedder_for(settings: EmbeddingSettings, caller: Caller | None) -> Embedder | None:
    """The model that the settings name, not yet loaded; None where search goes by words alone."""
    match settings.provider:
        case "none":
            return None
        case "local":
            return builtin(fingerprint(settings))
        case "openai" | "gemini" if caller is not None:
            return _remote(settings, caller)
    return _library(settings)


def wanted_model(settings: EmbeddingSettings) -> str | None:
    """The fingerprint of the model that the settings name; None where search goes by words alone."""
    if settings.provider == "none":
        return None
    model = fingerprint(settings)
    try:
        check_installed(model)
    except EmbedderDown:
        return model if settings.model is not None else None  # one that is asked for by name is missed
    return model


def remembered(model: str, settings: EmbeddingSettings, caller: Caller | None) -> Embedder | None:
    """The model of a fingerprint that a store remembers, as far as the settings tell how to reach it."""
    named = _NAMED.fullmatch(model)
    if named is None or named["provider"] not in (*LIBRARIES, settings.provider):
        return builtin(model)
    size = int(named["size"]) if named["size"] else None
    then = replace(settings, provider=named["provider"], model=named["model"], dimensions=size)
    return embedder_for(then, caller) if fingerprint(then) == model else builtin(model)


def check_installed(model: str) -> None:
    """Say what is missing, before anything is done for a model that cannot be loaded."""
    if model == FAST:
        wordllama.folder()
    if model == QUALITY:
        quality.check_installed()


def within_budget(embedder: Embedder, settings: EmbeddingSettings) -> Embedder:
    """The embedder for one run: one that is paid for has a budget of its own."""
    budget = settings.budget_per_run if settings.provider in REMOTE else None
    return embedder if budget is None else Budgeted(embedder, budget)


def fingerprint(settings: EmbeddingSettings) -> str:
    """What tells vectors apart that must not be compared; the prefix of questions changes no stored one."""
    if settings.provider == "local":
        return QUALITY if settings.model == "quality" else FAST
    size = f"@{settings.dimensions}" if settings.dimensions else ""
    prefix = settings.document_prefix
    mark = f"+{hashlib.sha256(prefix.encode()).hexdigest()[:8]}" if prefix else ""
    host = urlsplit(settings.base_url).netloc.rpartition("@")[2] if settings.base_url else ""
    place = f"~{host}" if host and settings.address != BASE_URLS.get(settings.provider) else ""
    return f"{settings.provider}/{settings.named_model}{size}{mark}{place}"


def _remote(settings: EmbeddingSettings, caller: Caller) -> Embedder:
    from afresh.models.gemini import GeminiForm
    from afresh.models.openai import OpenAIForm
    from afresh.models.remote import RemoteEmbedder

    form = OpenAIForm if settings.provider == "openai" else GeminiForm
    return RemoteEmbedder(
        fingerprint(settings),
        form(settings.address or "", settings.named_model or "", settings.api_key, settings.dimensions),
        caller,
        dimension=settings.dimensions,
        prefixes=(settings.document_prefix, settings.query_prefix),
        batch_size=settings.batch_size,
        timeout_seconds=settings.timeout_seconds,
        secrets=(settings.api_key,) if settings.api_key else (),
    )


def _library(settings: EmbeddingSettings) -> Embedder:
    from afresh.models.fastembed import Fastembed
    from afresh.models.sentence_transformers import SentenceTransformers

    library = Fastembed if settings.provider == "fastembed" else SentenceTransformers
    prefixes = (settings.document_prefix, settings.query_prefix)
    load = partial(library, settings.named_model or "", prefixes)
    return LocalEmbedder(fingerprint(settings), loaded_once(load), batch_size=settings.batch_size)
