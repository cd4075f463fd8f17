"""What every embedder promises, whatever is behind it."""

from collections.abc import AsyncIterator

import numpy as np
import pytest
from tests.fakes.embedding_server import EmbeddingServer
from tests.models.embedders import install, library, remote

from afresh.config import EmbeddingSettings
from afresh.models.choose import embedder_for
from afresh.ports import Embedder
from afresh.sources.web.api_client import ApiClient
from afresh.testing import FakeEmbedder

KINDS = ("fast", "quality", "openai", "gemini", "fastembed", "sentence-transformers", "fake")
TEXTS = (
    "Locks\n\nA transaction that **waits** for a lock holds its connection.",
    "Baking bread takes flour, water and patience.",
    "short",
    "Sperren: eine Transaktion wartet auf die andere. 事务等待锁。",
    "a transaction waits for locks",
)


@pytest.fixture(params=KINDS)
async def embedder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Embedder]:
    kind: str = request.param
    if kind in ("fast", "quality"):
        found = embedder_for(EmbeddingSettings(model=kind), ApiClient([]))
        assert found is not None
        yield found
    elif kind in ("openai", "gemini"):
        with EmbeddingServer() as server:
            async with remote(server, provider=kind, batch_size=2) as asked:
                yield asked
    elif kind == "fake":
        yield FakeEmbedder()
    else:
        names = {"fastembed": "TextEmbedding", "sentence-transformers": "SentenceTransformer"}
        install(monkeypatch, kind.replace("-", "_"), names[kind])
        yield library(kind, batch_size=2)


async def test_every_text_has_a_row_of_length_1_in_order(embedder: Embedder) -> None:
    rows = await embedder.embed(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape[0] == len(TEXTS)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-4)
    alone = np.concatenate([await embedder.embed([text]) for text in TEXTS])
    assert np.allclose(rows, alone, atol=2e-3), "what else is in the batch must not matter"


async def test_texts_that_share_words_are_near(embedder: Embedder) -> None:
    rows = await embedder.embed(TEXTS)
    question = await embedder.embed_query("transaction waits for a lock")
    near = (rows @ question.T)[:, 0]
    assert question.shape == (1, rows.shape[1])
    assert near[0] > near[1]
    assert near[4] > near[1]


async def test_odd_texts_have_finite_rows(embedder: Embedder) -> None:
    odd = ["", " \n\t", "\ud800 lone", "\x00", "x" * 100_000, "|---|---|", "🙂" * 50, "[](http://h/)"]
    rows = await embedder.embed(odd)
    assert np.isfinite(rows).all()
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-4)
    assert np.isfinite(await embedder.embed_query("")).all()


async def test_no_texts_are_no_rows(embedder: Embedder) -> None:
    assert len(await embedder.embed([])) == 0
    await embedder.close()
