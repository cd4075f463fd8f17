"""What parser processes answer (S8): plain data and a few records, each field of its declared type."""

import json
from datetime import UTC, datetime

import pytest

from afresh.chunkers.markdown import chunk
from afresh.core.errors import ExtractError
from afresh.core.looks import Body, Link
from afresh.engine.offload_wire import NoData, decode, encode
from afresh.extractors import extract
from afresh.sources.sitemap_file import Entry, SitemapFile, as_data, from_data

PAGE = Body(
    url="https://x.org/",
    data="<h1>A 世界</h1><p>b <a href='/c'>c</a></p><pre>d\ne</pre>".encode(),
    media_type="text/html",
)


def test_S8_documents_and_chunks_come_back_as_they_were() -> None:
    document = extract(PAGE)
    chunks = chunk(document)
    assert document.links
    assert chunks
    assert decode(encode((True, document))) == (True, document)
    assert decode(encode((True, chunks))) == (True, chunks)
    assert type(decode(encode(document)).links[0]) is Link


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "\ud800\n", [1, (2, "a")], {"a": [1], 2: None}, ((),)])
def test_S8_plain_values_come_back_as_they_were(value: object) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize(
    "told",
    [
        {"Link": ["https://x.org/", 7, True]},
        {"Link": ["https://x.org/", "a"]},
        {"Document": ["t"]},
        {"os.system": ["true"]},
        {"eval": ["1"]},
        {"Link": [], "list": []},
        {},
        {"list": 5},
    ],
)
def test_S8_what_is_no_answer_of_ours_is_refused(told: object) -> None:
    with pytest.raises(NoData):
        decode(json.dumps(told).encode())


def test_S8_members_of_a_field_have_their_type_too() -> None:
    told = json.loads(encode(extract(PAGE)))
    at = list(type(extract(PAGE)).__dataclass_fields__).index("links")
    told["Document"][at] = ["no link"]
    with pytest.raises(NoData):
        decode(json.dumps(told).encode())
    with pytest.raises(NoData):
        decode(b"\x80\x05N.")
    with pytest.raises(TypeError, match="Body is no data"):
        encode(PAGE)


def test_S8_a_list_of_pages_comes_back_as_it_was() -> None:
    entries = (Entry("https://x.org/", datetime(2026, 1, 2, tzinfo=UTC)), Entry("/a"))
    file = SitemapFile("urlset", entries, "broken", 3, 400)
    assert from_data(decode(encode(as_data(file)))) == file
    for wrong in (None, ("urlset",), ("other", (), None, 0, 0), ("urlset", ((1, 2, 3),), None, 0, 0)):
        with pytest.raises(ExtractError, match="not understood"):
            from_data(wrong)
