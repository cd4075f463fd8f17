"""Vectors by model and text: one model answers, vectors of two never mix, nothing that is used is lost."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.store.crawler import ManualCrawler, at, read

from afresh.errors import EmbedError
from afresh.model.fetch import Chunk, Seen
from afresh.search.records import MissingCount, RechunkJob, SearchFilter, VectorMatches
from afresh.search.stemming import search_config
from afresh.store.store import Store
from afresh.testing import FakeEmbedder
from afresh.text.normalize import text_hash, with_search_terms

if TYPE_CHECKING:
    from afresh.ports import Matrix

ONE, TWO = "test/one", "test/two"
SITE: dict[str, Seen] = {
    "": read("Welcome to the harbour", "cranes", "quellen", title="Start", language="en"),
    "cranes": read("Cranes lift crates\n\nCrates hold apples", title="Cranes", language="en"),
    "quellen": read("Quellen und Speicher", title="Quellen", language="de"),
}
TEXTS = ("Welcome to the harbour", "Cranes lift crates", "Crates hold apples", "Quellen und Speicher")
Made = Mapping[str, bytes]


def vector(*numbers: float) -> bytes:
    return np.array(numbers, dtype="<f2").tobytes()


async def made(*texts: str, dimension: int = 16) -> Made:
    """The vectors of some texts, by their hash."""
    rows = await FakeEmbedder(dimension=dimension).embed(texts)
    return {text_hash(text): row.astype("<f2").tobytes() for text, row in zip(texts, rows, strict=True)}


async def asked(query: str, dimension: int = 16) -> "Matrix":
    return await FakeEmbedder(dimension=dimension).embed_query(query)


async def nearest(store: Store, model: str, question: "Matrix", within: SearchFilter, limit: int) -> VectorMatches:
    """The chunks whose vectors are nearest, with their similarity."""
    return (await store.vectors.nearest(model, question, within, limit)).likeness(question)


async def filled(crawler: ManualCrawler, model: str = ONE) -> ManualCrawler:
    """A source whose texts have vectors of a model."""
    await crawler.store.vectors.keep(model, await made(*TEXTS), crawler.clock())
    await crawler.crawl(SITE)
    return crawler


async def serving(store: Store) -> str | None:
    model = await store.vectors.serving_model()
    return model.name if model else None


async def test_the_first_model_of_an_empty_store_serves_and_no_other(crawler: ManualCrawler) -> None:
    store, now = crawler.store, crawler.clock()
    assert await store.vectors.serving_model() is None
    await store.vectors.keep(ONE, {}, now)
    assert await store.vectors.serving_model() is None, "nothing was made"
    await store.vectors.keep(ONE, {"a": vector(1, 0, 0)}, now)
    await store.vectors.keep(TWO, {"a": vector(1, 0)}, now)
    model = await store.vectors.serving_model()
    assert model is not None
    assert (model.name, model.dimensions, model.serving) == (ONE, 3, True)


async def test_a_model_that_comes_when_text_is_indexed_does_not_serve_by_itself(crawler: ManualCrawler) -> None:
    await crawler.crawl(SITE)
    await crawler.store.vectors.keep(ONE, await made(*TEXTS[:1]), crawler.clock())
    assert await crawler.store.vectors.serving_model() is None
    assert await crawler.store.stats.missing_vectors(ONE) == MissingCount(3, 0)
    assert not await crawler.store.vectors.serve(ONE)


async def test_known_are_those_of_the_same_model(crawler: ManualCrawler) -> None:
    store, now = crawler.store, crawler.clock()
    await store.vectors.keep(ONE, {"a": vector(1, 0), "b": vector(0, 1)}, now)
    await store.vectors.keep(TWO, {"c": vector(1, 0)}, now)
    assert await store.vectors.known(ONE, ["a", "b", "c", "d"]) == {"a", "b"}
    assert await store.vectors.known(TWO, ["a", "c"]) == {"c"}
    assert await store.vectors.known("test/other", ["a"]) == set()
    assert await store.vectors.known(ONE, []) == set()


@pytest.mark.parametrize("wrong", [{"b": vector(1, 0, 0)}, {"b": vector(1, 0), "c": vector(1, 0, 0)}])
async def test_F93_vectors_of_two_dimensions_are_refused_together(crawler: ManualCrawler, wrong: Made) -> None:
    store, now = crawler.store, crawler.clock()
    await store.vectors.keep(ONE, {"a": vector(1, 0)}, now)
    with pytest.raises(EmbedError, match=r"3 numbers.*2"):
        await store.vectors.keep(ONE, wrong, now)
    assert await store.vectors.known(ONE, ["a", "b", "c"]) == {"a"}
    model = await store.vectors.serving_model()
    assert model is not None
    assert model.dimensions == 2


async def test_F93_a_first_batch_of_two_dimensions_leaves_no_model(crawler: ManualCrawler) -> None:
    with pytest.raises(EmbedError):
        await crawler.store.vectors.keep(ONE, {"a": vector(1, 0), "b": vector(1, 0, 0)}, crawler.clock())
    assert await crawler.store.vectors.serving_model() is None
    assert await crawler.store.vectors.known(ONE, ["a", "b"]) == set()


async def test_a_vector_that_is_on_record_stays_as_it_is(crawler: ManualCrawler) -> None:
    await filled(crawler)
    wrong = {key: vector(*[1.0] * 16) for key in await made(*TEXTS)}
    await crawler.store.vectors.keep(ONE, wrong, crawler.clock())
    near = await nearest(crawler.store, ONE, await asked(TEXTS[1]), SearchFilter(), 1)
    assert near.chunks[0].score > 0.99


async def test_text_that_comes_back_finds_its_vector_for_a_while(crawler: ManualCrawler) -> None:
    await filled(crawler)
    gone = text_hash(TEXTS[2])
    await crawler.crawl({**SITE, "cranes": read("Cranes lift crates", title="Cranes", language="en")})
    left = crawler.clock()
    assert await crawler.store.vectors.forget(left) == 0
    assert await crawler.store.vectors.known(ONE, [gone]) == {gone}
    assert await crawler.store.vectors.forget(left + timedelta(days=1)) == 1
    assert await crawler.store.vectors.known(ONE, [gone]) == set()
    assert await crawler.store.stats.missing_vectors(ONE) == MissingCount(0, 0), "what is used is kept, however old"


async def test_missing_vectors_are_counted_by_model_and_source(crawler: ManualCrawler) -> None:
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    await filled(crawler)
    await other.crawl({"": read("Cranes lift crates\n\nSnails sleep", title="Start")})
    store = crawler.store
    assert await store.stats.missing_vectors(ONE) == MissingCount(1, 0)
    assert await store.stats.missing_vectors(ONE, crawler.source.id) == MissingCount(0, 0)
    assert await store.stats.missing_vectors(TWO, crawler.source.id) == MissingCount(4, 0)
    [missing] = (await store.vectors.unembedded(ONE)).values()
    assert (missing.text_hash, missing.path, missing.content) == (text_hash("Snails sleep"), ("Start",), "Snails sleep")
    assert await store.vectors.unembedded(ONE, source=crawler.source.id) == {}
    everything = await store.vectors.unembedded(TWO, limit=100)
    assert list(everything) == sorted(everything)
    paged = await store.vectors.unembedded(TWO, after=list(everything)[1], limit=2)
    assert list(paged.items()) == list(everything.items())[2:4]
    assert len(everything) == 6


async def test_F93_a_model_serves_once_it_has_every_vector_and_then_alone(crawler: ManualCrawler) -> None:
    store = (await filled(crawler)).store
    assert not await store.vectors.serve(TWO)
    await store.vectors.keep(TWO, await made(*TEXTS[:3], dimension=8), crawler.clock())
    assert not await store.vectors.serve(TWO)
    assert await serving(store) == ONE
    assert (await nearest(store, ONE, await asked("apples"), SearchFilter(), 9)).chunks
    await store.vectors.keep(TWO, await made(TEXTS[3], dimension=8), crawler.clock())
    assert await store.vectors.serve(TWO)
    assert await serving(store) == TWO
    assert await store.vectors.known(ONE, list(await made(*TEXTS))) == set()
    assert (await nearest(store, ONE, await asked("apples"), SearchFilter(), 9)).chunks == ()
    assert len((await nearest(store, TWO, await asked("apples", 8), SearchFilter(), 9)).chunks) == 4
    assert await store.vectors.serve(TWO), "once more changes nothing"
    assert await serving(store) == TWO


async def test_an_empty_store_lets_go_of_its_model(crawler: ManualCrawler) -> None:
    await crawler.store.vectors.keep(ONE, {"a": vector(1, 0)}, crawler.clock())
    assert await crawler.store.vectors.serve(TWO)
    assert await crawler.store.vectors.serving_model() is None
    await crawler.store.vectors.keep(TWO, {"a": vector(1, 0, 0)}, crawler.clock())
    assert await serving(crawler.store) == TWO


async def test_nearest_are_chunks_by_meaning_the_nearest_first(crawler: ManualCrawler) -> None:
    store = (await filled(crawler)).store
    near = await nearest(store, ONE, await asked("Crates hold apples"), SearchFilter(), 2)
    assert len(near.chunks) == 2
    assert near.chunks[0].score == pytest.approx(1, abs=0.01)
    assert near.chunks[0].score >= near.chunks[1].score
    [passage] = await store.search.passages([near.chunks[0].chunk])
    assert (passage.hit.url, passage.content) == (at("cranes"), "Crates hold apples")
    everything = await nearest(store, ONE, await asked("Crates hold apples"), SearchFilter(), 100)
    assert len(everything.chunks) == 4
    likeness = [each.score for each in everything.chunks]
    assert near.mean == everything.mean == pytest.approx(sum(likeness) / 4, abs=0.01)
    some = [everything.chunks[-1].chunk, everything.chunks[0].chunk, 10**9]
    like = (await store.vectors.of_chunks(ONE, some)).likeness(await asked("Crates hold apples"))
    assert dict(like.chunks) == pytest.approx({some[0]: likeness[-1], some[1]: likeness[0]}), "the gone left out"
    assert like.mean == near.mean
    assert (await nearest(store, TWO, await asked("apples"), SearchFilter(), 5)).chunks == ()


async def test_questions_at_the_same_time_read_every_new_vector_once(crawler: ManualCrawler) -> None:
    store, question = crawler.store, await asked("Crates hold apples")
    await store.vectors.keep(ONE, await made(TEXTS[0]), crawler.clock())
    assert not (await nearest(store, ONE, question, SearchFilter(), 100)).chunks, "known, but empty"
    await filled(crawler)
    answers = await asyncio.gather(*(nearest(store, ONE, question, SearchFilter(), 100) for _ in range(4)))
    later = await nearest(store, ONE, question, SearchFilter(), 100)
    assert [len(answer.chunks) for answer in (*answers, later)] == [4] * 5


async def test_filters_hold_for_words_and_for_meanings(crawler: ManualCrawler) -> None:
    other = await ManualCrawler.at(crawler.store, crawler.clock, "other")
    await filled(crawler)
    early = crawler.clock() + timedelta(seconds=1)
    await crawler.store.vectors.keep(ONE, await made("Crates of the harbour, Quellen"), crawler.clock())
    await other.crawl({"": read("Crates of the harbour, Quellen", title="Other", language="en-GB")})
    store = crawler.store
    start, cranes, quellen = at(""), at("cranes"), at("quellen")
    cases: list[tuple[SearchFilter, set[tuple[str, str]]]] = [
        (SearchFilter(sources=(other.source.id,)), {("other", start)}),
        (SearchFilter(sources=(crawler.source.id,)), {("docs", start), ("docs", cranes), ("docs", quellen)}),
        (SearchFilter(sources=()), set()),
        (SearchFilter(language="de"), {("docs", quellen)}),
        (SearchFilter(language="en"), {("docs", start), ("docs", cranes), ("other", start)}),
        (SearchFilter(path="/cran*"), {("docs", cranes)}),
        (SearchFilter(changed_after=early), {("other", start)}),
        (SearchFilter(checked_after=early), {("other", start)}),
        (SearchFilter(checked_after=early, sources=(crawler.source.id,)), set()),
        (SearchFilter(language="en", path="/cran*", sources=(crawler.source.id,)), {("docs", cranes)}),
    ]
    for within, expected in cases:
        words = await store.search.matches("harbour crates quellen", within, 50)
        near = await nearest(store, ONE, await asked("harbour crates quellen"), within, 50)
        assert await _places(store, [each.chunk for each in words]) == expected, within
        assert await _places(store, [each.chunk for each in near.chunks]) == expected, within


async def _places(store: Store, chunks: list[int]) -> set[tuple[str, str]]:
    return {(passage.hit.source, passage.hit.url) for passage in await store.search.passages(chunks)}


async def test_vectors_of_chunks_as_far_as_there_are_any(crawler: ManualCrawler) -> None:
    store = (await filled(crawler)).store
    near = (await nearest(store, ONE, await asked("apples"), SearchFilter(), 9)).chunks
    found = await store.vectors.of_chunks(ONE, [near[0].chunk, 10**9])
    assert found.chunks == (near[0].chunk,)
    assert found.rows.shape == (1, 16)
    assert float((found.rows @ (await asked("apples"))[0])[0]) == pytest.approx(near[0].score, abs=0.01)
    for model, chunks in ((ONE, []), (TWO, [near[0].chunk])):
        none = await store.vectors.of_chunks(model, chunks)
        assert none.likeness(await asked("apples")) == VectorMatches()
        assert none.mean_of(chunks) is None


async def test_vectors_made_later_are_found_after_an_earlier_search(crawler: ManualCrawler) -> None:
    """A process that answers for long sees what a reindex in another one adds to chunks it knows."""
    store = crawler.store
    await store.vectors.keep(ONE, await made(*TEXTS[:2]), crawler.clock())
    await crawler.crawl(SITE)
    assert len((await nearest(store, ONE, await asked("apples"), SearchFilter(), 9)).chunks) == 2
    await store.vectors.keep(ONE, await made(*TEXTS[2:]), crawler.clock())
    near = (await nearest(store, ONE, await asked("Crates hold apples"), SearchFilter(), 9)).chunks
    assert len({each.chunk for each in near}) == len(near) == 4
    assert near[0].score == pytest.approx(1, abs=0.01)


async def test_what_left_and_what_came_shows_at_once(crawler: ManualCrawler) -> None:
    store = (await filled(crawler)).store
    await nearest(store, ONE, await asked("apples"), SearchFilter(), 9)
    await store.vectors.keep(ONE, await made("Pears are sweet"), crawler.clock())
    await crawler.crawl({**SITE, "cranes": read("Pears are sweet", title="Cranes", language="en")})
    near = (await nearest(store, ONE, await asked("Pears are sweet"), SearchFilter(), 9)).chunks
    texts = [passage.content for passage in await store.search.passages([each.chunk for each in near])]
    assert texts[0] == "Pears are sweet"
    assert set(texts) == {TEXTS[0], TEXTS[3], "Pears are sweet"}


async def test_passages_and_chunks_of_a_page(crawler: ManualCrawler) -> None:
    store = (await filled(crawler)).store
    page = await crawler.page("cranes")
    chunks = await store.search.page_chunks([page.id])
    assert [(each.path, each.content) for each in chunks[page.id]] == [
        (("Cranes",), "Cranes lift crates"),
        (("Cranes",), "Crates hold apples"),
    ]
    found = [match.chunk for match in await store.search.matches("apples lift", SearchFilter(), 9)]
    passages = await store.search.passages([found[1], 10**9, found[0]])
    assert [passage.chunk for passage in passages] == [found[1], found[0]], "as asked for, without the gone"
    assert {passage.order for passage in passages} == {0, 1}
    assert {passage.page for passage in passages} == {page.id}
    assert await store.search.page_chunks([]) == {}


# ---- cutting anew


def cut_in_two(cut: RechunkJob) -> RechunkJob:
    words = cut.markdown.split()
    parts = (" ".join(words[:1]), " ".join(words[1:]))
    config = search_config(cut.page.language)
    chunks = [with_search_terms(Chunk(content=part, text_hash=text_hash(part)), None, config) for part in parts]
    return cut._replace(chunks=tuple(chunks))


async def test_pages_cut_by_another_version_are_listed_with_their_text(crawler: ManualCrawler) -> None:
    await filled(crawler)
    store, own = crawler.store, crawler.policy.chunker
    assert await store.chunks.outdated_pages(own) == []
    assert await store.chunks.count_outdated(own) == MissingCount(0, 0)
    assert await store.chunks.count_outdated("new") == MissingCount(3, 0)
    cuts = await store.chunks.outdated_pages("new", limit=2)
    assert [cut.page.id for cut in cuts] == sorted(cut.page.id for cut in cuts)
    [last] = await store.chunks.outdated_pages("new", after=cuts[-1].page.id)
    assert {cut.markdown for cut in (*cuts, last)} == {
        "Welcome to the harbour",
        "Cranes lift crates\n\nCrates hold apples",
        "Quellen und Speicher",
    }
    other = await ManualCrawler.at(store, crawler.clock, "other")
    assert await store.chunks.outdated_pages("new", source=other.source.id) == []
    assert await store.chunks.count_outdated("new", other.source.id) == MissingCount(0, 0)
    assert len(await store.chunks.outdated_pages("new", source=crawler.source.id)) == 3


async def test_a_page_cut_again_is_found_by_its_new_chunks(crawler: ManualCrawler) -> None:
    store = (await filled(crawler)).store
    cuts = [cut_in_two(cut) for cut in await store.chunks.outdated_pages("new")]
    assert await store.chunks.recut(cuts, "new", crawler.clock()) == 3
    assert await store.chunks.count_outdated("new") == MissingCount(0, 0)
    page = await crawler.page("quellen")
    assert page.chunker == "new"
    assert [each.content for each in (await store.search.page_chunks([page.id]))[page.id]] == [
        "Quellen",
        "und Speicher",
    ]
    assert len(await store.search.matches("speicher", SearchFilter(), 9)) == 1
    assert await store.stats.missing_vectors(ONE) == MissingCount(6, 0), "new chunks, new texts"
    assert (await crawler.store.pages.content(page.id)).markdown == "Quellen und Speicher"


async def test_a_page_that_changed_while_it_was_cut_is_left_as_it_is(crawler: ManualCrawler) -> None:
    store = (await filled(crawler)).store
    cuts = [cut_in_two(cut) for cut in await store.chunks.outdated_pages("new")]
    await crawler.crawl({**SITE, "quellen": read("Ganz anders", title="Quellen", language="de")})
    assert await store.chunks.recut(cuts, "new", crawler.clock()) == 2
    page = await crawler.page("quellen")
    assert [each.content for each in (await store.search.page_chunks([page.id]))[page.id]] == ["Ganz anders"]
    assert [cut.page.id for cut in await store.chunks.outdated_pages("new")] == [page.id]
    await store.sources.remove(crawler.source.id, crawler.clock())
    assert await store.chunks.recut(cuts, "newer", crawler.clock()) == 0


async def test_what_has_no_text_is_counted_apart_and_never_handed_out(crawler: ManualCrawler) -> None:
    crawler.keep_body = False
    await filled(crawler)
    store = crawler.store
    assert await store.stats.missing_vectors(TWO) == MissingCount(4, 4)
    assert await store.vectors.unembedded(TWO) == {}
    assert await store.chunks.count_outdated("new") == MissingCount(3, 3)
    assert await store.chunks.outdated_pages("new") == []
    assert not await store.vectors.serve(TWO)
    near = (await nearest(store, ONE, await asked("Crates hold apples"), SearchFilter(), 1)).chunks
    [passage] = await store.search.passages([near[0].chunk])
    assert (passage.hit.url, passage.content, passage.hit.path) == (at("cranes"), None, ())
    assert [passage.hit.url for passage in await store.search.passages([near[0].chunk])] == [at("cranes")]
    [chunks] = (await store.search.page_chunks([passage.page])).values()
    assert all(chunk.path == () and chunk.content not in TEXTS for chunk in chunks)
    for words in ("apples", "speicher quellen"):
        assert await store.search.matches(words, SearchFilter(), 9), words
