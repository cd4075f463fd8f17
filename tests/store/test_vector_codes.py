"""Compact codes find the vectors to compare: nearly all of the nearest are among them, and no code is needed.

Whatever happens to the codes costs time only: searches compare the vectors themselves, of chunks that are there.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.forking import forking
from tests.store.crawler import ManualCrawler, read
from tests.strategies import law

from afresh.model.fetch import Seen
from afresh.ops.failpoints import VARIABLE, arm
from afresh.ports import StoreAccess
from afresh.search.records import SearchFilter
from afresh.services.copy_store import copy_store
from afresh.store import vectors as stored
from afresh.store.compact import BLOCK, CodeBlock, VectorCodes, blocks_of, code_bytes, is_whole
from afresh.store.dialect import Row
from afresh.store.open import open_store
from afresh.store.sqlite import SqliteSession
from afresh.store.store import Store
from afresh.store.vectors import unpack_rows
from afresh.testing import FakeEmbedder, FrozenClock
from afresh.text.normalize import text_hash

if TYPE_CHECKING:
    import numpy.typing as npt

    from afresh.ports import Matrix

MODEL = "test/one"
EVERYTHING = SearchFilter()
random = np.random.default_rng(7)


def unit(rows: "npt.NDArray[Any]") -> "Matrix":
    found: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def like_texts(number: int, dimensions: int) -> "Matrix":
    """Vectors as models make them: a common direction, some axes that tell much, most that tell little."""
    spread = np.geomspace(1, 0.05, dimensions)
    return unit(random.normal(size=(number, dimensions)) * spread + 0.3 * np.sqrt(spread))


def encoded(vectors: "Matrix", ids: Sequence[int] | None = None) -> VectorCodes:
    codes = VectorCodes(1, vectors.shape[1])
    codes.put(blocks_of(ids or range(len(vectors)), vectors))
    return codes


@pytest.mark.parametrize("dimensions", [2, 3, 16, 64, 256, 384, 1024, 3072])
def test_a_vector_is_nearest_to_itself_in_any_dimension(dimensions: int) -> None:
    vectors = unit(random.normal(size=(300, dimensions)))
    codes = encoded(vectors)
    assert code_bytes(dimensions) * 8 >= dimensions
    assert len(codes) == 300
    assert np.allclose(codes.middle, vectors.mean(axis=0), atol=1e-5)
    if dimensions > 16:
        assert [codes.nearest(vectors[at : at + 1], 1)[0] for at in range(0, 300, 30)] == list(range(0, 300, 30))


def noise(number: int, dimensions: int) -> "Matrix":
    """The hardest vectors: nothing is near to anything."""
    return unit(random.normal(size=(number, dimensions)))


@pytest.mark.parametrize("made", [noise, like_texts])
def test_the_nearest_are_among_the_candidates(made: Callable[[int, int], "Matrix"]) -> None:
    vectors = made(8_000, 256)
    codes, shares = encoded(vectors), []
    for at in range(0, len(vectors), 200):
        question = unit(vectors[at : at + 1] + 0.5 * unit(random.normal(size=(1, vectors.shape[1]))))
        exact = set(np.argsort(-(vectors @ question[0]))[:10].tolist())
        shares.append(len(exact & set(codes.nearest(question, stored.CANDIDATES).tolist())) / 10)
    assert np.mean(shares) >= 0.98


@law
@given(st.lists(st.integers(0, 2_000), min_size=1, max_size=60, unique=True), st.data())
def test_blocks_put_in_parts_are_the_same_as_all_at_once(numbers: list[int], data: st.DataObject) -> None:
    ids = sorted(numbers)
    vectors = unit(np.random.default_rng(len(ids)).normal(size=(len(ids), 16)))
    first = data.draw(st.integers(0, len(ids)))
    begin = ids[first - 1] // BLOCK * BLOCK if first else 0
    codes = encoded(vectors[:first], ids[:first]) if first else VectorCodes(1, 16)
    again = [at for at, each in enumerate(ids) if each >= begin]
    codes.put(blocks_of([ids[at] for at in again], vectors[again]))
    whole = encoded(vectors, ids)
    everything = codes.nearest(vectors[:1], len(ids)).tolist()
    assert everything == whole.nearest(vectors[:1], len(ids)).tolist()
    assert sorted(everything) == ids
    some = ids[::2]
    assert codes.nearest(vectors[:1], 99, np.array(some)).tolist() == [each for each in everything if each in some][:99]
    assert np.allclose(codes.middle, vectors.mean(axis=0), atol=1e-5)


def test_a_block_that_lacks_bytes_is_not_whole() -> None:
    [block] = blocks_of([1, 5], unit(random.normal(size=(2, 100))))
    assert is_whole([block], 100)
    assert not is_whole([block._replace(codes=block.codes[:-1])], 100)
    assert not is_whole([block._replace(places=block.places[:-1])], 100)
    assert not is_whole([block._replace(middle=b"")], 100)
    assert not is_whole([block], 300), "of another model"


# ---- in a store


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few candidates that codes matter in a small store."""
    monkeypatch.setattr(stored, "CANDIDATES", 20)


def texts_of(page: int, number: int = 6) -> list[str]:
    return [f"word{page} term{page * 31 % 17} part {at} of page {page}" for at in range(number)]


def site(pages: int) -> dict[str, Seen]:
    found: dict[str, Seen] = {"": read("The start", *(f"p{page}" for page in range(pages)), title="Start")}
    for page in range(pages):
        found[f"p{page}"] = read("\n\n".join(texts_of(page)), title=f"P{page}", language="de" if page % 4 else "en")
    return found


async def keep(store: Store, texts: Sequence[str], clock: FrozenClock) -> None:
    rows = await FakeEmbedder(dimension=64).embed(texts)
    made = {text_hash(text): row.astype("<f2").tobytes() for text, row in zip(texts, rows, strict=True)}
    await store.vectors.keep(MODEL, made, clock())


async def filled(crawler: ManualCrawler, pages: int = 60) -> Store:
    """A store with a vector for every text, kept in batches as a crawl does."""
    for page in range(pages):
        await keep(crawler.store, texts_of(page), crawler.clock)
    await crawler.crawl(site(pages))
    return crawler.store


async def nearest(store: Store, text: str, within: SearchFilter = EVERYTHING, limit: int = 10) -> list[str]:
    """The nearest texts, as a search shows them."""
    question = await FakeEmbedder(dimension=64).embed_query(text)
    found = (await store.vectors.nearest(MODEL, question, within, limit)).chunks
    passages = await store.search.passages(found)
    assert len(passages) == len(found), "no chunk that is gone"
    return [passage.content or "" for passage in passages]


def exact(texts: Sequence[str], text: str, number: int) -> list[str]:
    embedder = FakeEmbedder(dimension=64)
    rows = asyncio.run(embedder.embed(texts)).astype("<f2").astype(np.float32)
    likeness = rows @ asyncio.run(embedder.embed_query(text))[0]
    return [texts[at] for at in np.argsort(-likeness, kind="stable")[:number]]


def look(file: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection, connection:
        return connection.execute(sql).fetchall()


def blocks_in(file: Path) -> list[tuple[object, ...]]:
    return look(file, "select block, places, codes from vector_blocks order by block")


def remade(file: Path) -> list[tuple[object, ...]]:
    """The blocks that the vectors of the file should have: all but the last one, to which vectors are still added."""
    rows = look(file, "select id, vector from vectors order by id")
    vectors = unpack_rows([bytes(row[1]) for row in rows], 64)  # type: ignore[call-overload]
    found: list[CodeBlock] = list(blocks_of([int(str(row[0])) for row in rows], vectors))
    return [(each.number, each.places, each.codes) for each in found[:-1]]


async def test_every_batch_keeps_the_codes_in_step(sqlite_crawler: ManualCrawler, sqlite_file: Path) -> None:
    store, clock = sqlite_crawler.store, sqlite_crawler.clock
    for size in (1, 5, 300, 2, 260):
        await keep(store, [f"text {size} {at}" for at in range(size)], clock)
        await keep(store, [f"text {size} 0"], clock)
        assert blocks_in(sqlite_file) == remade(sqlite_file)
    assert len(blocks_in(sqlite_file)) == 2
    await store.vectors.forget(clock() + timedelta(days=1))
    assert blocks_in(sqlite_file) == remade(sqlite_file) == []


@pytest.mark.usefixtures("few")
async def test_the_nearest_are_those_of_an_exact_comparison(sqlite_crawler: ManualCrawler) -> None:
    store = await filled(sqlite_crawler)
    everything = [text for page in range(60) for text in texts_of(page)]
    for page in (0, 7, 33):
        wanted = await asyncio.to_thread(exact, everything, texts_of(page)[2], 5)
        found = await nearest(store, texts_of(page)[2], limit=5)
        assert found[0] == wanted[0] == texts_of(page)[2]
        assert len(set(found) & set(wanted)) >= 4


@pytest.mark.usefixtures("few")
async def test_a_filter_counts_before_candidates_are_cut(sqlite_crawler: ManualCrawler) -> None:
    store = await filled(sqlite_crawler)
    for language, pages in (("en", range(0, 60, 4)), ("de", [page for page in range(60) if page % 4])):
        inside = [text for page in pages for text in texts_of(page)]
        found = await nearest(store, texts_of(1)[0], SearchFilter(language=language), 5)
        wanted = await asyncio.to_thread(exact, inside, texts_of(1)[0], 5)
        assert len(found) == 5
        assert set(found) <= set(inside)
        assert len(set(found) & set(wanted)) >= 4, language
    assert set(await nearest(store, texts_of(1)[0], SearchFilter(path="/p9"), 50)) == set(texts_of(9))
    assert await nearest(store, texts_of(1)[0], SearchFilter(sources=()), 50) == []


@pytest.mark.usefixtures("few")
async def test_A17_pages_that_are_gone_neither_answer_nor_take_the_place_of_others(
    sqlite_crawler: ManualCrawler, sqlite_file: Path
) -> None:
    """Their vectors and codes stay for a while."""
    store = await filled(sqlite_crawler)
    assert await nearest(store, texts_of(50)[0], limit=3)
    left = {path: seen for path, seen in site(60).items() if path in ("", "p1", "p2")}
    await sqlite_crawler.crawl({**left, "": read("The start", "p1", "p2", title="Start")})
    other = await open_store(f"sqlite:///{sqlite_file}", StoreAccess.READ)
    for reader in (store, other):
        found = await nearest(reader, texts_of(50)[0], limit=100)
        assert set(found) == {*texts_of(1), *texts_of(2)}, "found among many that nothing uses"
    await other.close()
    sqlite_crawler.clock.advance(0, days=400)
    assert await store.vectors.forget(sqlite_crawler.clock()) > 300
    assert blocks_in(sqlite_file) == remade(sqlite_file)
    assert set(await nearest(store, texts_of(50)[0], limit=100)) == {*texts_of(1), *texts_of(2)}


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vectors each step of a search reads."""
    steps: list[int] = []
    query = SqliteSession.all

    async def counted(session: SqliteSession, name: str, /, **params: Any) -> Sequence[Row]:
        rows = await query(session, name, **params)
        if name == "vectors_by_id":
            steps.append(len(rows))
        return rows

    monkeypatch.setattr(SqliteSession, "all", counted)
    return steps


@pytest.mark.usefixtures("few")
async def test_vectors_that_nothing_uses_any_more_cost_a_search_little(
    sqlite_crawler: ManualCrawler, compared: list[int]
) -> None:
    store = await filled(sqlite_crawler)
    kept = {path: seen for path, seen in site(60).items() if path[-1:] not in set("13579")}
    links = [path for path in kept if path]
    await sqlite_crawler.crawl({**kept, "": read("The start", *links, title="Start")})
    for page in (4, 30, 55):
        compared.clear()
        assert len(await nearest(store, texts_of(page)[0], limit=10)) == 10
        assert sum(compared) <= 20 + 80, compared


@pytest.mark.usefixtures("few")
async def test_a_source_whose_texts_are_far_from_the_query_is_compared_alone(
    sqlite_crawler: ManualCrawler, compared: list[int]
) -> None:
    texts = {f"p{page}": [f"crane harbour crate {page} {at}" for at in range(6)] for page in range(45)}
    texts |= {f"q{page}": [f"quelle{page * 6 + at} speicher{at}" for at in range(6)] for page in range(15)}
    for each in texts.values():
        await keep(sqlite_crawler.store, each, sqlite_crawler.clock)
    pages = {
        path: read("\n\n".join(each), title=path, language="de" if path[0] == "q" else "en")
        for path, each in texts.items()
    }
    await sqlite_crawler.crawl({"": read("The start", *texts, title="Start"), **pages})
    found = await nearest(sqlite_crawler.store, "crane harbour crate", SearchFilter(language="de"), 10)
    assert len(found) == 10
    assert set(found) <= {text for path, each in texts.items() for text in each if path[0] == "q"}
    assert compared[1:] == [20], compared


@pytest.fixture
async def reader(sqlite_file: Path, sqlite_store: Store) -> AsyncIterator[Store]:
    """The same file as another process opens it."""
    store = await open_store(f"sqlite:///{sqlite_file}", StoreAccess.READ)
    yield store
    await store.close()


@pytest.mark.usefixtures("few")
async def test_a_process_that_answers_for_long_sees_what_another_one_adds(
    sqlite_crawler: ManualCrawler, reader: Store
) -> None:
    for pages in (3, 50, 55):
        await filled(sqlite_crawler, pages)
        last = texts_of(pages - 1)[3]
        assert (await nearest(reader, last))[0] == last
        assert (await nearest(reader, texts_of(1)[0]))[0] == texts_of(1)[0]


DAMAGES = (
    "update models set coded = 0",  # as in a store that an older afresh wrote
    "update models set coded = 0; delete from vector_blocks",
    "update vector_blocks set codes = substr(codes, 1, 100)",
    "update vector_blocks set codes = x''",
    "update vector_blocks set places = substr(places, 2)",
    "update vector_blocks set middle = x'00'",
)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("damage", DAMAGES)
async def test_missing_or_damaged_codes_change_no_answer_and_are_made_again(
    damage: str, sqlite_crawler: ManualCrawler, sqlite_file: Path
) -> None:
    store = await filled(sqlite_crawler)
    before = [await nearest(store, texts_of(page)[1]) for page in (3, 30)]
    with closing(sqlite3.connect(sqlite_file)) as connection:
        connection.executescript(damage)
    other = await open_store(f"sqlite:///{sqlite_file}", StoreAccess.READ)
    assert [await nearest(other, texts_of(page)[1]) for page in (3, 30)] == before
    await other.close()
    if "coded" in damage:
        await store.vectors.forget(sqlite_crawler.clock() - timedelta(days=1))
        assert blocks_in(sqlite_file) == remade(sqlite_file)
        assert await store.stats.integrity() is None


async def test_a_copied_store_gets_codes(sqlite_crawler: ManualCrawler, sqlite_file: Path, tmp_path: Path) -> None:
    store = await filled(sqlite_crawler)
    target = tmp_path / "copy.db"
    await copy_store(store.url, f"sqlite:///{target}")
    assert blocks_in(target) == remade(target) == blocks_in(sqlite_file)
    assert look(target, "select coded from models") == [(1,)]


async def test_a_check_of_the_store_reports_codes_that_are_missing(
    sqlite_crawler: ManualCrawler, sqlite_file: Path
) -> None:
    store = await filled(sqlite_crawler)
    assert await store.stats.integrity() is None
    look(sqlite_file, "delete from vector_blocks")
    assert "codes of vectors" in str(await store.stats.integrity())


async def test_two_models_have_codes_of_their_own(sqlite_crawler: ManualCrawler, sqlite_file: Path) -> None:
    store = await filled(sqlite_crawler)
    texts = ["The start", *(text for page in range(60) for text in texts_of(page))]
    rows, keys = await FakeEmbedder(dimension=16).embed(texts), [text_hash(text) for text in texts]
    made = {key: row.astype("<f2").tobytes() for key, row in zip(keys, rows, strict=True)}
    await store.vectors.keep("test/two", made, sqlite_crawler.clock())
    assert (await nearest(store, texts_of(4)[0]))[0] == texts_of(4)[0]
    question = await FakeEmbedder(dimension=16).embed_query(texts_of(4)[0])
    assert len((await store.vectors.nearest("test/two", question, EVERYTHING, 999)).chunks) == 361
    assert await store.vectors.serve("test/two")
    assert look(sqlite_file, "select distinct model_id from vector_blocks") == [(2,)]
    assert len((await store.vectors.nearest("test/two", question, EVERYTHING, 999)).chunks) == 361


async def _add(file: Path, begin: int, number: int, failpoints: str = "") -> None:
    store = await open_store(f"sqlite:///{file}")
    arm({VARIABLE: failpoints})
    await keep(store, [f"text {at}" for at in range(begin, begin + number)], FrozenClock())
    await store.close()


def live(file: Path, begin: int, number: int, failpoints: str) -> None:
    asyncio.run(_add(file, begin, number, failpoints))


@pytest.mark.slow
async def test_a_kill_at_any_statement_leaves_codes_and_vectors_in_step(tmp_path: Path) -> None:
    """The process that adds vectors dies behind each of its statements, then another one goes on."""
    file, ends = tmp_path / "afresh.db", list[int | None]()
    await _add(file, 0, 10)
    for nth in range(1, 30):
        process = forking().Process(target=live, args=(file, nth * 1_000, 300, f"sql=kill@{nth}"))
        process.start()
        await asyncio.to_thread(process.join, 60)
        ends.append(process.exitcode)
        assert blocks_in(file) == remade(file)
        if process.exitcode == 0:
            break
        await _add(file, nth * 1_000, 5)
        assert blocks_in(file) == remade(file)
    assert set(ends[:-1]) == {-9}
    assert ends[-1] == 0
    assert len(ends) > 3
