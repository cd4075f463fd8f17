"""Embedding: every text once, batches across pages, kept as soon as made; an error affects only its texts."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from tests.stores import execute

from afresh.errors import EmbedderUnavailable, EmbedError, ParserUnavailable
from afresh.extract.pool.pool import ParserPool
from afresh.model.fetch import Chunk, embedded_text
from afresh.search.embedding import Embedding
from afresh.store.store import Store
from afresh.testing import EmbedderFault, FakeEmbedder, FrozenClock
from afresh.text.normalize import text_hash

if TYPE_CHECKING:
    from afresh.ports import Matrix


def chunks(*words: str) -> list[Chunk]:
    return [Chunk(content=word, text_hash=text_hash(embedded_text((), word))) for word in words]


def made(store: Store) -> int:
    return len(execute(store, "select 1 from vectors"))


class EmbeddingSetup:
    """A store, an embedder, and the Embedding that connects them."""

    def __init__(self, store: Store, embedder: FakeEmbedder | None = None, *, batch: int = 512) -> None:
        self.store = store
        self.embedder = embedder or FakeEmbedder()
        self.embedding = Embedding(self.store, self.embedder, FrozenClock(), batch=batch)

    async def outcomes(self, *pages: Sequence[str]) -> list[int | BaseException]:
        """What several pages get that ask at the same time."""
        asked = (self.embedding.ensure(chunks(*words)) for words in pages)
        return await asyncio.gather(*asked, return_exceptions=True)


class Picky(FakeEmbedder):
    """Refuses whatever holds the word `bad`."""

    async def embed(self, texts: Sequence[str]) -> "Matrix":
        rows = await super().embed(texts)
        if any("bad" in text for text in texts):
            raise EmbedError("there is a text that the embedder dislikes")
        return rows


async def test_pages_that_ask_together_share_a_batch_and_a_text_is_made_once(store: Store) -> None:
    setup = EmbeddingSetup(store)
    assert await setup.outcomes(["one", "two"], ["two", "three"], ["one"], []) == [2, 1, 0, 0]
    assert setup.embedder.calls == 1
    assert len(setup.embedder.texts) == made(setup.store) == 3
    assert await setup.outcomes(["three", "three", "one"]) == [0]
    assert setup.embedder.calls == 1, "what is on record is not made again"
    assert not setup.embedding._promises


async def test_F04_each_batch_is_kept_before_the_next_is_asked_for(store: Store) -> None:
    setup = EmbeddingSetup(store, FakeEmbedder(troubles={3: EmbedderFault.DOWN}), batch=2)
    (error,) = await setup.outcomes(["a", "b", "c", "d", "e", "f"])
    assert isinstance(error, EmbedderUnavailable)
    assert made(setup.store) == 4
    assert await setup.outcomes(["a", "b", "c", "d", "e", "f"]) == [2]
    assert len(setup.embedder.texts) == 6 + 2, "only the batch that failed is asked for again"


async def test_F93_one_bad_text_fails_only_its_page(store: Store) -> None:
    setup = EmbeddingSetup(store, Picky())
    pages = [[f"page {number}", f"text {number}"] for number in range(20)]
    outcomes = await setup.outcomes(*pages, ["fine", "bad"], ["also bad"])
    assert outcomes[:20] == [2] * 20
    assert all(type(outcome) is EmbedError for outcome in outcomes[20:])
    assert made(setup.store) == 41
    assert "dislikes" in (setup.embedding.last_error or "")
    assert not setup.embedding._promises


@pytest.mark.parametrize("garbage", [EmbedderFault.NAN, EmbedderFault.ZEROS, EmbedderFault.FEWER, EmbedderFault.FAIL])
async def test_F93_an_embedder_that_gives_only_garbage_is_soon_asked_no_more(
    store: Store, garbage: EmbedderFault
) -> None:
    setup = EmbeddingSetup(store)
    setup.embedder.always = garbage
    for page in range(6):
        outcomes = await setup.outcomes([f"{page} {number}" for number in range(64)])
        assert isinstance(outcomes[0], EmbedError)
    assert setup.embedder.calls <= 3 * 12, "three batches, each halved until three texts stood alone"
    assert made(setup.store) == 0
    assert not setup.embedding._promises


async def test_F93_vectors_of_another_dimension_are_refused_midway(store: Store) -> None:
    setup = EmbeddingSetup(store, FakeEmbedder(troubles={2: EmbedderFault.WIDER}), batch=2)
    assert await setup.outcomes(["a", "b"]) == [2]
    assert await setup.outcomes(["c", "d"]) == [2], "asked again in halves it gave what it should"
    setup.embedder.always = EmbedderFault.WIDER
    (outcome,) = await setup.outcomes(["e"])
    assert isinstance(outcome, EmbedError)
    sizes = execute(store, "select distinct length(vector) as size from vectors")
    assert [row["size"] for row in sizes] == [setup.embedder.dimension]
    assert not setup.embedding._promises


async def test_F93_an_embedder_that_hangs_is_given_up_after_three_times(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.search.embedding.MAX_BATCH_SECONDS", 0.01)
    setup = EmbeddingSetup(store, batch=1)
    setup.embedder.always = EmbedderFault.HANG
    outcomes = await setup.outcomes(*([f"text {number}"] for number in range(10)))
    assert all(isinstance(outcome, EmbedderUnavailable) for outcome in outcomes)
    assert setup.embedder.calls == 3
    assert "gave no answer within" in (setup.embedding.last_error or "")


async def test_a_success_in_between_forgives_earlier_failures(store: Store) -> None:
    down = dict.fromkeys((1, 2, 4, 5), EmbedderFault.DOWN)
    setup = EmbeddingSetup(store, FakeEmbedder(troubles=down), batch=1)
    outcomes = await setup.outcomes(*([f"text {number}"] for number in range(6)))
    assert [isinstance(outcome, EmbedderUnavailable) for outcome in outcomes] == [True, True, False, True, True, False]


async def test_a_page_that_gives_up_waiting_takes_nothing_from_others(store: Store) -> None:
    setup = EmbeddingSetup(store)
    first = asyncio.create_task(setup.embedding.ensure(chunks("shared", "mine")))
    second = asyncio.create_task(setup.embedding.ensure(chunks("shared", "yours")))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 1
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not setup.embedding._promises


async def test_closing_gives_up_what_is_under_way_and_closes_the_embedder(store: Store) -> None:
    setup = EmbeddingSetup(store, FakeEmbedder(troubles={1: EmbedderFault.HANG}))
    waiting = asyncio.create_task(setup.embedding.ensure(chunks("never")))
    await setup.embedder.hanging.wait()
    await setup.embedding.close()
    with pytest.raises(EmbedError):
        await waiting
    assert setup.embedder.closed


async def test_a_surprise_in_the_embedder_fails_its_texts_and_not_the_run(store: Store) -> None:
    class Broken(FakeEmbedder):
        async def embed(self, texts: Sequence[str]) -> "Matrix":
            if self.calls == 0:
                self.calls = 1
                raise ZeroDivisionError("a bug")
            return await super().embed(texts)

    setup = EmbeddingSetup(store, Broken())
    (outcome,) = await setup.outcomes(["a"])
    assert isinstance(outcome, EmbedError)
    assert "ZeroDivisionError" in str(outcome)
    assert await setup.outcomes(["a"]) == [1]


class NoProcess(ParserPool):
    """Parser processes that cannot be started."""

    calls = 0

    async def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        raise ParserUnavailable("the parser process does not start")


async def test_without_a_parser_process_no_text_is_blamed(store: Store) -> None:
    parsers = NoProcess()
    embedding = Embedding(store, FakeEmbedder(), FrozenClock(), parsers=parsers)
    with pytest.raises(EmbedderUnavailable, match="does not start"):
        await embedding.ensure(chunks(*"abcdefgh"))
    assert parsers.calls == 1
    await embedding.close()
