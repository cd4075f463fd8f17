"""Choose the embedding models of a store, by the settings or by the fingerprint of the model that made its index."""

import hashlib
import re
from functools import partial
from types import FunctionType
from typing import NamedTuple
from urllib.parse import urlsplit

from afresh.config.models import BASE_URLS, LIBRARIES, EmbeddingSettings
from afresh.dataclass import replace
from afresh.errors import EmbedderUnavailable
from afresh.models import fast, quality
from afresh.models.local import LibraryModel, LocalEmbedder
from afresh.plugins import EMBEDDERS, load_plugin
from afresh.ports import Embedder, JsonApi

FAST = f"local/fast-{fast.DIMENSION}/{fast.VERSION}"
QUALITY = f"local/minilm-l6-int8/{quality.POOLING}"
_BUILTIN = {
    FAST: LocalEmbedder(FAST, fast.FastModel, batch_size=256),
    QUALITY: LocalEmbedder(QUALITY, quality.QualityModel, batch_size=8),
}
_FINGERPRINT = re.compile(r"(?P<provider>[^/]+)/(?P<model>.+?)(@(?P<size>\d+))?(\+[0-9a-f]{8})?(~[^~]+)?")


def builtin(model: str) -> LocalEmbedder | None:
    return _BUILTIN.get(model)


def embedder_for(settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder | None:
    """Return the configured model, not yet loaded; None for keyword search only."""
    if settings.provider == "none":
        return None
    make = load_plugin(EMBEDDERS, settings.provider, FunctionType)
    if make is None:
        raise EmbedderUnavailable(f"embedding.provider: {settings.provider} is not installed: install its package")
    made: Embedder | None = make(settings, caller)
    return made


def local_embedder(settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder | None:
    return builtin(fingerprint(settings))


def wanted_model(settings: EmbeddingSettings) -> str | None:
    """Return the fingerprint of the configured model; None for keyword search only."""
    if settings.provider == "none":
        return None
    model = fingerprint(settings)
    try:
        check_installed(model)
    except EmbedderUnavailable:
        return model if settings.model is not None else None  # a model set by name is required
    return model


def embedder_from_fingerprint(model: str, settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder | None:
    """Return the model with this fingerprint, if it is built-in or the settings allow to reach it."""
    named = _FINGERPRINT.fullmatch(model)
    if named is None or named["provider"] not in (*LIBRARIES, settings.provider):
        return builtin(model)
    size = int(named["size"]) if named["size"] else None
    then = replace(settings, provider=named["provider"], model=named["model"], dimensions=size)
    return embedder_for(then, caller) if fingerprint(then) == model else builtin(model)


def check_installed(model: str) -> None:
    if model == FAST:
        fast.check_installed()
    if model == QUALITY:
        quality.check_installed()


def fingerprint(settings: EmbeddingSettings) -> str:
    """Return a text that identifies the model, and the settings that change its vectors."""
    if settings.provider == "local":
        return QUALITY if settings.model == "quality" else FAST
    size = f"@{settings.dimensions}" if settings.dimensions else ""
    prefix = settings.document_prefix
    mark = f"+{hashlib.sha256(prefix.encode()).hexdigest()[:8]}" if prefix else ""
    host = urlsplit(settings.base_url).netloc.rpartition("@")[2] if settings.base_url else ""
    place = f"~{host}" if host and settings.address != BASE_URLS.get(settings.provider) else ""
    return f"{settings.provider}/{settings.named_model}{size}{mark}{place}"


def remote_embedder(settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder:
    if caller is None:
        raise EmbedderUnavailable(f"embedding.provider: {settings.provider} needs an API client")
    from afresh.models.remote import RemoteEmbedder

    return RemoteEmbedder(fingerprint(settings), settings, caller)


def library_embedder(settings: EmbeddingSettings, caller: JsonApi | None) -> Embedder:
    prefixes = (settings.document_prefix, settings.query_prefix)
    load = partial(LibraryModel, settings.provider, settings.named_model or "", prefixes)
    return LocalEmbedder(fingerprint(settings), load, batch_size=settings.batch_size)


class StoreEmbedders(NamedTuple):
    for_queries: Embedder | None = None  # the model that made the index, or None
    for_new_text: Embedder | None = None
    wanted: Embedder | None = None  # named in the settings
    notes: tuple[str, ...] = ()


def choose_embedders(settings: EmbeddingSettings, serving: str | None, caller: JsonApi | None) -> StoreEmbedders:
    """Return the embedders of a store, with a note if searches do not use the configured model.

    Searches use the model that made the index (`serving`), or none if it is not available; new text gets vectors of
    the same model, or else of the configured one.
    """
    try:
        wanted = embedder_for(settings, caller)
        if wanted is not None:
            check_installed(wanted.model)
    except EmbedderUnavailable as missing:
        if settings.model is not None or settings.provider != "local":
            raise
        return StoreEmbedders(notes=(f"keyword search only: {missing}",))
    if wanted is None or serving is None:
        return StoreEmbedders(None, wanted, wanted)
    if serving == wanted.model:
        return StoreEmbedders(wanted, wanted, wanted)
    old = embedder_from_fingerprint(serving, settings, caller)
    if old is None:
        note = f"keyword search only: the index was made by {serving}, which is no longer configured"
    else:
        note = f"{wanted.model} is configured, but searches still use {serving}"
    return StoreEmbedders(old, old or wanted, wanted, (f"{note}: run `afresh reindex`",))
