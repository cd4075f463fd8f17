"""A page is read and cut in one call; what is known is not cut again."""

import pytest

from afresh.extract import extract
from afresh.extract.chunk.markdown import chunk, extract_and_chunk
from afresh.extract.pool.wire import READ, decode, encode
from afresh.model.fetch import Body

GERMAN = "<h1>Häuser</h1><p>Die Häuser der Stadt sind nicht neu, und auch das Tor ist für den Handel zu klein.</p>"
PAGE = Body(url="https://x.org/", data=GERMAN.encode(), media_type="text/html", charset="utf-8")


def test_new_text_comes_with_its_chunks() -> None:
    document, chunks = extract_and_chunk(extract, PAGE, "another hash", None, False)
    assert document == extract(PAGE)
    assert chunks == chunk(document)
    assert decode(encode((document, chunks)), READ.answer) == (document, tuple(chunks or ()))


def test_known_text_is_not_cut() -> None:
    document = extract(PAGE)
    assert extract_and_chunk(extract, PAGE, document.content_hash, None, False) == (document, None)


@pytest.mark.parametrize(
    ("stored", "redetect", "word"), [(None, False, "haus"), ("fr", False, "häus"), ("fr", True, "haus")]
)
def test_the_terms_are_those_of_the_language_that_the_page_will_have(
    stored: str | None, redetect: bool, word: str
) -> None:
    _, chunks = extract_and_chunk(extract, PAGE, None, stored, redetect)
    assert chunks
    assert word in (chunks[0].terms.content or "").split()


def test_a_text_that_cannot_be_cut_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.extract.chunk.markdown.chunk", None)
    assert extract_and_chunk(extract, PAGE, None, None, False) == (extract(PAGE), None)
