"""Texts and vectors in their compact forms: texts come back exactly, vectors nearly, and a copy agrees."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.store.crawler import ManualCrawler, read
from tests.strategies import law

from afresh.search.records import SearchFilter
from afresh.store.sqlite import deflated, inflated, packed
from afresh.store.vectors import pack_rows, unpack_rows

LONG = "Retries back off exponentially, up to a minute. " * 40
VECTORS = st.lists(st.lists(st.floats(-1, 1, width=16), min_size=24, max_size=24).filter(any), min_size=1, max_size=9)


@law
@given(st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.text("ab\x00é", min_size=200)))
def test_a_text_comes_back_and_never_grows(text: str) -> None:
    stored = deflated(text)
    assert inflated(stored) == inflated(text) == text
    assert stored == text or len(stored or "") < len(text.encode())


def test_nothing_stays_nothing() -> None:
    assert deflated(None) is inflated(None) is None
    assert isinstance(deflated(LONG), bytes)


@law
@given(VECTORS)
def test_a_packed_vector_points_where_it_did(numbers: list[list[float]]) -> None:
    rows = np.array(numbers, np.float32)
    rows = rows[np.abs(rows).max(axis=1) > 1e-3]
    if not len(rows):
        return
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    blobs = pack_rows(rows)
    again = unpack_rows(blobs, 24)
    assert np.allclose(np.linalg.norm(again, axis=1), 1, atol=1e-5)
    assert ((again * rows).sum(axis=1) > 0.999).all()
    assert pack_rows(again.astype("<f2")) == blobs, "a copy to 16-bit floats and back is the same"
    assert packed(again[0].astype("<f2").tobytes()) == blobs[0]


async def test_long_texts_are_stored_compressed_and_found(sqlite_crawler: ManualCrawler, sqlite_file: Path) -> None:
    site = {"": read(LONG, "a", title="Start", language="en"), "a": read("Short", title="A", language="en")}
    await sqlite_crawler.crawl(site)
    store, page = sqlite_crawler.store, await sqlite_crawler.page("")
    with closing(sqlite3.connect(sqlite_file)) as connection:
        kinds = "select typeof(content), typeof(markdown) from chunks join documents using (page_id) order by 1"
        assert connection.execute(kinds).fetchall() == [("blob", "blob"), ("text", "text")]
    [match] = await store.search.matches("exponentially", SearchFilter(), 9)
    [passage] = await store.search.passages([match.chunk])
    assert passage.content == LONG
    assert (await store.pages.content(page.id)).markdown == LONG
    edited = LONG + "\n\nA new paragraph"
    await sqlite_crawler.crawl({**site, "": read(edited, "a", title="Started", language="en")})
    assert [each.content for each in (await store.search.page_chunks([page.id]))[page.id]] == edited.split("\n\n")
    assert len(await store.search.matches("exponentially", SearchFilter(), 9)) == 1
    assert await store.stats.integrity() is None
    await store.sources.remove(sqlite_crawler.source.id, sqlite_crawler.clock())
    assert await store.search.matches("exponentially", SearchFilter(), 9) == []
    assert await store.stats.integrity() is None
