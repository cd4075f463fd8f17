"""Every file of the naughty collection, as bodies, titles, links, addresses and queries: nothing breaks."""

import base64
import gzip
import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from afresh.errors import ExtractError
from afresh.extract import extract
from afresh.extract.chunk.markdown import chunk
from afresh.model.fetch import Body, Document
from afresh.search.query import alternatives, parse
from afresh.urls.canonical import canonical

URL = "https://docs.example.org/guide/"
TYPES = ("text/html", "text/markdown", "text/plain", "application/octet-stream")


@pytest.fixture(scope="session")
def naughty(shared: Path) -> Path:
    return shared / "data" / "naughty"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    data = file.read_bytes()
    text = gzip.decompress(data) if file.suffix == ".gz" else data
    return (json.loads(line) for line in text.splitlines())


def _blns(naughty: Path) -> list[str]:
    strings: list[str] = json.loads((naughty / "blns.json").read_text("utf-8"))
    assert len(strings) > 500
    return strings


def _payloads(naughty: Path) -> list[str]:
    lines = gzip.decompress((naughty / "xss_payloads.txt.gz").read_bytes()).decode("utf-8", "replace")
    payloads = lines.splitlines()
    assert len(payloads) > 6_600
    return payloads


def read(data: bytes, media_type: str = "text/html") -> Document | None:
    """The document with its chunks, all of which can be stored; None if it is refused."""
    try:
        document = extract(Body(url=URL, data=data, media_type=media_type))
    except ExtractError:
        return None
    chunks = chunk(document)
    texts = [document.title, document.markdown, *(each.content for each in chunks)]
    texts += [text for link in document.links for text in (link.url, link.text)]
    "".join(texts).encode("utf-8")
    assert not any("\0" in text for text in texts)
    assert "\n" not in document.title
    assert len(document.title) <= 500
    return document


@pytest.mark.slow
def test_F61_naughty_strings_as_bodies_titles_and_links(naughty: Path) -> None:
    for text in _blns(naughty):
        for media_type in TYPES:
            read(_bytes(text), media_type)
        converted = escape(text)
        document = read(
            _bytes(f'<title>{converted}</title><main><p>{converted}</p><a href="{converted}">{converted}</a></main>')
        )
        assert document is not None or not text.isprintable()


def test_F61_naughty_strings_as_addresses_and_queries(naughty: Path) -> None:
    for text in _blns(naughty):
        for url in (text, "/" + text, f"https://x.org/?q={text}", f"https://{text}/", f"//x.org/#{text}"):
            found = canonical(url, URL)
            assert found is None or (found.isascii() and found.isprintable())
        assert all(expression.strip() for expression in alternatives(parse(text)))


@pytest.mark.slow
def test_F62_markup_that_attacks_leads_nowhere_but_to_the_web(naughty: Path) -> None:
    """Each payload as a page; then many together, as titles, text and addresses, through the chunker."""
    payloads = _payloads(naughty)
    for payload in payloads:
        try:
            document = extract(Body(url=URL, data=_bytes(payload)))
        except ExtractError:
            continue
        assert all(link.url.startswith(("http://", "https://")) for link in document.links), payload
    for start in range(0, len(payloads), 100):
        some = payloads[start : start + 100]
        links = "".join(f'<p><a href="{escape(each)}">{escape(each)}</a></p>' for each in some)
        document = extract(Body(url=URL, data=_bytes(f"<title>{some[0]}</title><main>{links}</main>")))
        assert all(link.url.startswith(("http://", "https://")) for link in document.links)
        assert read(_bytes("\n".join(some))) is not None


def test_F60_F62_malformed_fragments_and_odd_encodings_through_the_chunker(naughty: Path) -> None:
    """Twenty fragments to a page; one by one they are read beside the other tests of HTML."""
    fragments = [_bytes(row["input"]) for row in _rows(naughty / "html_fragments.jsonl.gz")]
    for start in range(0, len(fragments), 20):
        read(b"\n".join(fragments[start : start + 20]))
    for row in _rows(naughty / "html_encoding_sniff.jsonl"):
        assert read(base64.b64decode(row["data_b64"])) is not None


@pytest.mark.slow
def test_F62_commonmark_examples_as_markdown_and_as_html(naughty: Path) -> None:
    examples = list(_rows(naughty / "commonmark_examples.jsonl.gz"))
    assert len(examples) == 655
    for example in examples:
        for media_type in ("text/markdown", "text/html", "text/plain"):
            assert read(_bytes(example["markdown"]), media_type) is not None
        assert read(_bytes(example["html"])) is not None


def test_F66_json_of_every_kind_sent_as_something_else(naughty: Path) -> None:
    bodies = [base64.b64decode(row["b64"]) for row in _rows(naughty / "json_parsing.jsonl.gz")]
    assert len(bodies) == 318
    for data in bodies:
        for media_type in TYPES:
            read(data, media_type)
    refused = [data for data in bodies if read(data, "application/json") is None]
    assert len(refused) < 30
    assert not [data for data in refused if data.decode("utf-8", "replace").isprintable() and data.strip()]
