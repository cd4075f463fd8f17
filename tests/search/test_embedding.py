"""Embedding: every text once, batches across pages, kept as soon as made; trouble stays where it is."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from tests.stores import execute

from afresh.errors import EmbedderUnavailable, EmbedError
from afresh.model.fetch import Chunk, embedded_text
from afresh.search.embedding import Embedding
from afresh.store.store import Store
from afresh.testing import EmbedderTrouble, FakeEmbedder, FrozenClock
from afresh.text.normalize import text_hash

if TYPE_CHECKING:
    from afresh.ports import Matrix


def chunks(*words: str) -> list[Chunk]:
    return [Chunk(content=word, text_hash=text_hash(embedded_text((), word))) for word in words]


def made(store: Store) -> int:
    return len(execute(store, "select 1 from vectors"))


class Desk:
    """An embedder, a store and what stands between them."""

    def __init__(
        self,
        store: Store,
        embedder: FakeEmbedder | None = None,
        *,
        batch: int = 512,
        seconds: float = 60,
    ) -> None:
        self.store = store
        self.embedder = embedder or FakeEmbedder()
        self.embedding = Embedding(self.store, self.embedder, FrozenClock(), batch=batch, seconds=seconds)

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
    desk = Desk(store)
    assert await desk.outcomes(["one", "two"], ["two", "three"], ["one"], []) == [2, 1, 0, 0]
    assert desk.embedder.calls == 1
    assert len(desk.embedder.texts) == made(desk.store) == 3
    assert await desk.outcomes(["three", "three", "one"]) == [0]
    assert desk.embedder.calls == 1, "what is on record is not made again"
    assert desk.embedding.waiting == 0


async def test_F04_each_batch_is_kept_before_the_next_is_asked_for(store: Store) -> None:
    desk = Desk(store, FakeEmbedder(troubles={3: EmbedderTrouble.DOWN}), batch=2)
    (trouble,) = await desk.outcomes(["a", "b", "c", "d", "e", "f"])
    assert isinstance(trouble, EmbedderUnavailable)
    assert made(desk.store) == 4
    assert await desk.outcomes(["a", "b", "c", "d", "e", "f"]) == [2]
    assert len(desk.embedder.texts) == 6 + 2, "only the batch that failed is asked for again"


async def test_F93_one_bad_text_fails_only_its_page(store: Store) -> None:
    desk = Desk(store, Picky())
    pages = [[f"page {number}", f"text {number}"] for number in range(20)]
    outcomes = await desk.outcomes(*pages, ["fine", "bad"], ["also bad"])
    assert outcomes[:20] == [2] * 20
    assert all(type(outcome) is EmbedError for outcome in outcomes[20:])
    assert made(desk.store) == 41
    assert "dislikes" in (desk.embedding.trouble or "")
    assert desk.embedding.waiting == 0


@pytest.mark.parametrize(
    "garbage", [EmbedderTrouble.NAN, EmbedderTrouble.ZEROS, EmbedderTrouble.FEWER, EmbedderTrouble.FAIL]
)
async def test_F93_an_embedder_that_gives_only_garbage_is_soon_asked_no_more(
    store: Store, garbage: EmbedderTrouble
) -> None:
    desk = Desk(store)
    desk.embedder.always = garbage
    for page in range(6):
        outcomes = await desk.outcomes([f"{page} {number}" for number in range(64)])
        assert isinstance(outcomes[0], EmbedError)
    assert desk.embedder.calls <= 3 * 12, "three batches, each halved until three texts stood alone"
    assert made(desk.store) == 0
    assert desk.embedding.waiting == 0


async def test_F93_vectors_of_another_dimension_are_refused_midway(store: Store) -> None:
    desk = Desk(store, FakeEmbedder(troubles={2: EmbedderTrouble.WIDER}), batch=2)
    assert await desk.outcomes(["a", "b"]) == [2]
    assert await desk.outcomes(["c", "d"]) == [2], "asked again in halves it gave what it should"
    desk.embedder.always = EmbedderTrouble.WIDER
    (outcome,) = await desk.outcomes(["e"])
    assert isinstance(outcome, EmbedError)
    sizes = execute(store, "select distinct length(vector) as size from vectors")
    assert [row["size"] for row in sizes] == [2 * desk.embedder.dimension]
    assert desk.embedding.waiting == 0


async def test_F93_an_embedder_that_hangs_is_given_up_after_three_times(store: Store) -> None:
    desk = Desk(store, batch=1, seconds=0.01)
    desk.embedder.always = EmbedderTrouble.HANG
    outcomes = await desk.outcomes(*([f"text {number}"] for number in range(10)))
    assert all(isinstance(outcome, EmbedderUnavailable) for outcome in outcomes)
    assert desk.embedder.calls == 3
    assert "gave no answer within" in (desk.embedding.trouble or "")


async def test_a_success_in_between_forgives_earlier_failures(store: Store) -> None:
    down = dict.fromkeys((1, 2, 4, 5), EmbedderTrouble.DOWN)
    desk = Desk(store, FakeEmbedder(troubles=down), batch=1)
    outcomes = await desk.outcomes(*([f"text {number}"] for number in range(6)))
    assert [isinstance(outcome, EmbedderUnavailable) for outcome in outcomes] == [
        True,
        True,
        False,
        True,
        True,
        False,
    ]


async def test_a_page_that_gives_up_waiting_takes_nothing_from_others(store: Store) -> None:
    desk = Desk(store)
    first = asyncio.create_task(desk.embedding.ensure(chunks("shared", "mine")))
    second = asyncio.create_task(desk.embedding.ensure(chunks("shared", "yours")))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 1
    with pytest.raises(asyncio.CancelledError):
        await first
    assert desk.embedding.waiting == 0


async def test_closing_gives_up_what_is_under_way_and_closes_the_embedder(store: Store) -> None:
    desk = Desk(store, FakeEmbedder(troubles={1: EmbedderTrouble.HANG}))
    waiting = asyncio.create_task(desk.embedding.ensure(chunks("never")))
    await desk.embedder.hanging.wait()
    await desk.embedding.close()
    with pytest.raises(EmbedError):
        await waiting
    assert desk.embedder.closed


async def test_a_surprise_in_the_embedder_fails_its_texts_and_not_the_run(store: Store) -> None:
    class Broken(FakeEmbedder):
        async def embed(self, texts: Sequence[str]) -> "Matrix":
            if self.calls == 0:
                self.calls = 1
                raise ZeroDivisionError("a bug")
            return await super().embed(texts)

    desk = Desk(store, Broken())
    (outcome,) = await desk.outcomes(["a"])
    assert isinstance(outcome, EmbedError)
    assert "ZeroDivisionError" in str(outcome)
    assert await desk.outcomes(["a"]) == [1]
