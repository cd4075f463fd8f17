"""Vectors from an API: forms, batches, patience, and what is refused."""

import logging
from datetime import timedelta
from email.utils import format_datetime

import numpy as np
import pytest
from tests.fakes.embedding_server import EmbeddingServer, Status
from tests.models.embedders import KEY, Matrix, Slept, error_of, remote

from afresh.errors import EmbedderUnavailable, EmbedError
from afresh.models import remote as module
from afresh.testing import EmbedderFault, FakeEmbedder, FrozenClock

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon"]


async def expected(texts: list[str], dimension: int = 16) -> Matrix:
    return await FakeEmbedder(dimension=dimension).embed(texts)


async def test_the_form_of_openai() -> None:
    with EmbeddingServer() as server:
        server.backwards = True  # the numbers decide the order
        async with remote(server, document_prefix="doc: ", query_prefix="ask: ", dimensions=16) as embedder:
            rows = await embedder.embed(WORDS)
            await embedder.embed_query("why")
    first, second = server.asked
    assert np.allclose(rows, await expected([f"doc: {word}" for word in WORDS]))
    assert first.path == "/v1/embeddings"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body == {
        "model": "small",
        "encoding_format": "float",
        "dimensions": 16,
        "input": [f"doc: {word}" for word in WORDS],
    }
    assert second.texts == ("ask: why",)


async def test_the_form_of_gemini() -> None:
    with EmbeddingServer() as server:
        async with remote(server, provider="gemini", model="gemini-embedding-001", dimensions=16) as embedder:
            rows = await embedder.embed(WORDS)
            await embedder.embed_query("why")
    first, second = server.asked
    assert np.allclose(rows, await expected(WORDS))
    assert first.path == "/v1/models/gemini-embedding-001:batchEmbedContents"
    assert first.headers["x-goog-api-key"] == KEY
    assert first.body["requests"][0] == {
        "model": "models/gemini-embedding-001",
        "content": {"parts": [{"text": "alpha"}]},
        "taskType": "RETRIEVAL_DOCUMENT",
        "outputDimensionality": 16,
    }
    assert [each["taskType"] for each in second.body["requests"]] == ["RETRIEVAL_QUERY"]


async def test_batches_hold_so_many_texts_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REQUEST_CHARS", 12)
    with EmbeddingServer() as server:
        async with remote(server, batch_size=2) as embedder:
            rows = await embedder.embed(["a", "b", "c", "d" * 11, "e" * 40])
    assert [len(each.texts) for each in server.asked] == [2, 2, 1]
    assert len(rows) == 5


async def test_F93_a_batch_that_is_too_large_is_split() -> None:
    with EmbeddingServer() as server:
        server.most_texts = 2
        async with remote(server) as embedder:
            rows = await embedder.embed(WORDS)
            sizes = [len(each.texts) for each in server.asked]
            await embedder.embed(WORDS)
    assert np.allclose(rows, await expected(WORDS))
    assert sizes == [5, 2, 3, 1, 2]
    assert max(len(each.texts) for each in server.asked[len(sizes) :]) <= 2, "what was learnt is kept"


async def test_F93_a_single_text_that_is_too_large_is_cut() -> None:
    with EmbeddingServer() as server:
        server.max_text_chars = 500
        async with remote(server) as embedder:
            rows = await embedder.embed(["short", "word " * 400])
            assert len(rows) == 2
            server.max_text_chars = 3
            assert "413" in str(await error_of(embedder, "word " * 400))
    assert server.asked[-1].texts[0] in "word " * 400


@pytest.mark.parametrize(
    ("due", "words"),
    [
        (EmbedderFault.NAN, "not numbers"),
        (EmbedderFault.ZEROS, "all zeros"),
        (EmbedderFault.FEWER, "4 vectors for 5 texts"),
        (EmbedderFault.WIDER, "17 numbers per vector instead of 16"),
        (Status(200, body=b'{"data": []}'), "0 vectors for 5 texts"),
        (Status(200, body=b'{"data": [{"index": 7, "embedding": [1]}]}'), "without vectors"),
        (Status(200, body=b'{"data": [{"index": 0, "embedding": "high"}]}'), "other than rows of numbers"),
        (Status(200, body=b'{"data": 5}'), "without vectors"),
        (Status(200, body=b'{"error": {"message": "no such model"}}'), '"no such model"'),
        (Status(200, body=b"<html>sign in</html>"), "without vectors"),
        (Status(200, body=b"[" * 200_000), "without vectors"),
        (Status(200, body=b'{"data": [{"embedding": [1e400]}]}'), "1 vectors for 5 texts"),
        (Status(200, body=b'{"data": [%s]}' % b",".join([b'{"embedding": [1e39]}'] * 5)), "instead of 16"),
    ],
)
async def test_F93_an_answer_that_cannot_be_the_vectors_is_refused(due: EmbedderFault | Status, words: str) -> None:
    with EmbeddingServer() as server:
        async with remote(server) as embedder:
            await embedder.embed(["this tells the dimension"])
            server.script = [due]
            refused = await error_of(embedder, *WORDS)
            assert words in str(refused)
            assert not isinstance(refused, EmbedderUnavailable), "other texts may fare better"
            assert len(await embedder.embed(WORDS)) == 5, "the next call finds all well"


async def test_F93_vectors_made_before_a_failure_are_not_asked_for_again() -> None:
    with EmbeddingServer() as server:
        async with remote(server, batch_size=2) as embedder:
            server.max_text_chars = 100  # and texts up to 200 are not cut
            long = "epsilon" * 28
            await error_of(embedder, "alpha", "beta", "gamma", "alpha", long)
            assert [each.texts for each in server.asked[:2]] == [("alpha", "beta"), ("gamma", long)]
            server.asked.clear()
            server.max_text_chars = None
            rows = await embedder.embed(["beta", long, "gamma", "alpha"])
            assert np.allclose(rows, await expected(["beta", long, "gamma", "alpha"]))
            assert {text for each in server.asked for text in each.texts} == {long, "gamma"}
            server.asked.clear()
            await embedder.embed(["alpha"])
    assert len(server.asked) == 1, "what was claimed is not kept"


async def test_F93_a_configured_dimension_is_held_from_the_first_answer() -> None:
    with EmbeddingServer(dimension=8) as server:
        async with remote(server, dimensions=16) as embedder:
            assert "8 numbers per vector instead of 16" in str(await error_of(embedder))


async def test_F93_temporary_errors_are_retried() -> None:
    slept = Slept()
    with EmbeddingServer() as server:
        server.script = [Status(429, {"retry_after": "7"}), Status(503), Status(500)]
        async with remote(server, slept) as embedder:
            assert len(await embedder.embed(["a"])) == 1
    assert slept == [7.0, 2.0, 4.0]


async def test_a_retry_after_may_be_a_date() -> None:
    slept, clock = Slept(), FrozenClock()
    with EmbeddingServer() as server:
        later = format_datetime(clock() + timedelta(seconds=30), usegmt=True)
        server.script = [Status(429, {"retry_after": later})]
        async with remote(server, slept, clock=clock) as embedder:
            await embedder.embed(["a"])
    assert 28.5 <= slept[0] <= 30


async def test_F93_retries_end() -> None:
    slept = Slept()
    with EmbeddingServer() as server:
        server.script = [Status(503)] * 20
        async with remote(server, slept) as embedder:
            down = await error_of(embedder)
            assert isinstance(down, EmbedderUnavailable)
            assert "503 Service Unavailable" in str(down)
            assert (len(server.asked), slept) == (4, [1.0, 2.0, 4.0])
            server.script = [Status(429, {"retry_after": "86400"})]
            assert isinstance(await error_of(embedder), EmbedderUnavailable)
            assert len(slept) == 3, "an hour is not waited for within a run"


async def test_F93_a_hang_is_a_failure() -> None:
    slept = Slept()
    with EmbeddingServer() as server:
        server.script = [EmbedderFault.HANG]
        async with remote(server, slept, timeout_seconds=0.2) as embedder:
            down = await error_of(embedder)
    assert isinstance(down, EmbedderUnavailable)
    assert "within 0.2 s" in str(down)
    assert not slept


async def test_F93_a_service_that_is_gone_and_comes_back() -> None:
    with EmbeddingServer() as server:
        async with remote(server) as embedder:
            server.down()
            down = await error_of(embedder)
            assert isinstance(down, EmbedderUnavailable)
            assert "base_url" in str(down)
            server.up()
            assert len(await embedder.embed(["a"])) == 1


@pytest.mark.parametrize(
    ("status", "fix", "down"),
    [
        (401, "embedding.api_key", True),
        (403, "embedding.api_key", True),
        (404, "embedding.model", True),
        (307, "embedding.base_url", True),
        (400, "embedding.dimensions", False),
        (422, "embedding.dimensions", False),
    ],
)
async def test_P19_a_refusal_names_the_fix_and_no_secret(
    status: int, fix: str, down: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f'{{"error": {{"message": "the key {KEY}\\nis wrong"}}}}'.encode()
    with EmbeddingServer() as server:
        server.script = [Status(status, {"location": "http://127.0.0.1:1/"}, echo)]
        async with remote(server) as embedder:
            refused = await error_of(embedder)
    assert fix in str(refused)
    assert isinstance(refused, EmbedderUnavailable) is down
    assert len(server.asked) == 1, "asking again would not help, and a redirect is not followed"
    assert KEY not in str(refused) + caplog.text
    assert "\n" not in str(refused)


async def test_a_budget_is_for_one_run() -> None:
    with EmbeddingServer() as server:
        async with remote(server, budget_per_run=3) as run:
            await run.embed(["a"])
            server.script = [Status(400)]
            with pytest.raises(EmbedError, match="400"):
                await run.embed(["b", "c"])
            with pytest.raises(EmbedError, match="budget_per_run") as fewer:
                await run.embed(["b", "c", "d"])
            assert not isinstance(fewer.value, EmbedderUnavailable), "fewer texts would do"
            await run.embed(["b", "c"])
            with pytest.raises(EmbedderUnavailable, match="budget of 3 texts"):
                await run.embed(["d"])
            assert len(server.asked) == 3
            await run.embed_query("free")
        async with remote(server, budget_per_run=3) as another:
            await another.embed(["d", "e", "f"])


async def test_F93_somebody_waits_for_a_question_so_it_is_asked_once() -> None:
    with EmbeddingServer() as server:
        async with remote(server) as embedder:
            server.script = [Status(429, {"retry_after": "7"})]
            with pytest.raises(EmbedError):
                await embedder.embed_query("why")
            assert len(server.asked) == 1
            assert (await embedder.embed_query("why")).shape == (1, 16)
