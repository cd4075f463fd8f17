"""What parser processes answer (S8): data of the one type that the call expects, and nothing else."""

import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from msgspec import msgpack

from afresh.errors import ExtractError, ParserCrashed
from afresh.extract import extract
from afresh.extract.chunk.markdown import chunk
from afresh.extract.pool import wire
from afresh.extract.pool.wire import CHUNK, EXTRACT, LazyFunction, decode, encode, encode_failure
from afresh.model.fetch import Body, Document, Link
from afresh.sources.web.sitemaps import SitemapEntry, SitemapFile

PAGE = Body(
    url="https://x.org/",
    data="<h1>A 世界</h1><p>b <a href='/c'>c</a></p><pre>d\ne</pre>".encode(),
    media_type="text/html",
)
DOCUMENT = extract(PAGE)


def _reason(**changed: object) -> bytes:
    """The answer for a page, with other values in some of its fields."""
    return encode(msgpack.decode(msgpack.encode(DOCUMENT)) | changed)


def test_S8_documents_and_chunks_come_back_as_they_were() -> None:
    chunks = tuple(chunk(DOCUMENT))
    assert DOCUMENT.links
    assert chunks
    assert decode(encode(DOCUMENT), EXTRACT.answer) == DOCUMENT
    assert decode(bytearray(encode(chunks)), CHUNK.answer) == chunks
    assert type(decode(encode(DOCUMENT), Document).links[0]) is Link


def test_S8_a_list_of_pages_comes_back_as_it_was() -> None:
    there = datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=5)))
    entries = (
        SitemapEntry("https://x.org/", datetime(2026, 1, 2, tzinfo=UTC)),
        SitemapEntry("/a", there),
        SitemapEntry("/b"),
    )
    file = SitemapFile("urlset", entries, "broken", 3, 400)
    assert decode(encode(file), SitemapFile) == file


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "世\n", [1, [2, "a"]], {"a": [1], "b": None}, [[]]])
def test_S8_plain_values_come_back_as_they_were(value: object) -> None:
    assert decode(encode(value), Any) == value


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", Any),
        (b"\x02\xc0", Any),
        (b"\x01", Any),
        (b"\x00\xff", Any),
        (pickle.dumps((True, "x")), Any),
        (encode("x") + b"\x00", str),
        (encode("x")[:-1], str),
        (b"\x01" + b"\x91" * 100_000, Any),
        (encode({"title": "t"}), Document),
        (encode(None), Document),
        (encode([]), Document),
        (_reason(title=7), Document),
        (_reason(links=["no link"]), Document),
        (_reason(links=[["https://x.org/", 7, True]]), Document),
        (_reason(index="yes"), Document),
        (encode(["no chunk"]), CHUNK.answer),
        (encode({"kind": "other"}), SitemapFile),
        (encode(7), str),
    ],
)
def test_S8_what_is_not_of_the_expected_type_counts_as_a_crash(answer: bytes, kind: object) -> None:
    with pytest.raises(ParserCrashed, match="sent an invalid answer"):
        decode(answer, kind)


def test_S8_errors_travel_as_text() -> None:
    with pytest.raises(ExtractError, match=r"^no \? page$") as error:
        decode(encode_failure("no \ud800 page"), Document)
    assert type(error.value) is ExtractError
    with pytest.raises(ExtractError) as long:
        decode(encode_failure("世" * 20_000), Document)
    assert len(str(long.value)) == 10_000


def test_S8_only_data_is_sent_and_not_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="type object is unsupported"):
        encode(object())
    monkeypatch.setattr(wire, "MAX_ANSWER_BYTES", 1_000)
    with pytest.raises(ValueError, match="larger than 0 MB"):
        encode("x" * 1_000)


def test_S8_the_type_of_the_answer_is_the_callers_and_not_sent() -> None:
    sent = pickle.dumps(EXTRACT)
    assert b"Document" not in sent
    assert pickle.loads(sent) == LazyFunction("afresh.extract", "extract")
