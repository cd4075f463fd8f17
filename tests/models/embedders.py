"""Embedders made ready for tests: APIs on loopback, and libraries that stand-ins play."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.fakes.embedding_server import EmbeddingServer

from afresh.config import EmbeddingSettings
from afresh.errors import EmbedError
from afresh.models.choose import embedder_for, fingerprint
from afresh.models.remote import RemoteEmbedder
from afresh.ports import Embedder
from afresh.sources.web.api_client import ApiClient
from afresh.testing import FakeEmbedder

Matrix = npt.NDArray[np.float32]
KEY = "sk-hush-0123456789"


class Slept(list[float]):
    """Remembers how long it was asked to sleep, and does not."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@asynccontextmanager
async def remote(
    server: EmbeddingServer, slept: Slept | None = None, *, provider: str = "openai", **settings: Any
) -> AsyncIterator[RemoteEmbedder]:
    """An embedder that asks `server` and never really sleeps."""
    clock = settings.pop("clock", None)
    given: dict[str, Any] = {"model": "small", "base_url": server.base_url, "api_key": KEY, **settings}
    caller = ApiClient([server.base_url])
    try:
        chosen = EmbeddingSettings(provider=provider, **given)
        embedder = RemoteEmbedder(f"{provider}/{chosen.model}", chosen, caller)
        embedder.endpoint.sleep = slept if slept is not None else Slept()
        embedder.endpoint.clock = clock or embedder.endpoint.clock
        yield embedder
    finally:
        await caller.close()


async def error_of(embedder: Embedder, *texts: str) -> EmbedError:
    """Return the error that an embedder raises for texts."""
    with pytest.raises(EmbedError) as caught:
        await embedder.embed(texts or ("a text",))
    return caught.value


class StandIn:
    """Plays the model class of a library: takes a name, gives lists of rows that are not of length 1."""

    def __init__(self, name: str = "", model_name: str = "") -> None:
        if "missing" in (name or model_name):
            raise OSError("cannot be downloaded")
        self.given: list[str] = []

    def passage_embed(self, texts: Sequence[str]) -> list[Matrix]:
        return list(self._rows(texts))

    def query_embed(self, texts: Sequence[str]) -> list[Matrix]:
        return list(self._rows(texts))

    def encode(
        self, texts: Sequence[str], *, batch_size: int, convert_to_numpy: bool, show_progress_bar: bool
    ) -> Matrix:
        assert batch_size >= 1
        assert convert_to_numpy
        assert not show_progress_bar
        return self._rows(texts)

    def _rows(self, texts: Sequence[str]) -> Matrix:
        self.given.extend(texts)
        if any("spoilt" in text for text in texts):
            raise RuntimeError("a bug in the library")
        return 3.0 * FakeEmbedder(dimension=8)._rows(texts).astype(np.float32)


def install(monkeypatch: pytest.MonkeyPatch, name: str, attribute: str) -> list[StandIn]:
    """Put a module in place of a library; the models it loads are in the list."""
    module, made = ModuleType(name), []

    def load(*names: str, **named: str) -> StandIn:
        made.append(StandIn(*names, **named))
        return made[-1]

    setattr(module, attribute, load)
    monkeypatch.setitem(sys.modules, name, module)
    return made


def library(provider: str, model: str | None = None, **settings: Any) -> Embedder:
    """The embedder of a library, as the settings choose it."""
    chosen = EmbeddingSettings(provider=provider, model=model, **settings)
    embedder = embedder_for(chosen, ApiClient([]))
    assert embedder is not None
    assert embedder.model == fingerprint(chosen)
    return embedder
