"""HTML pages to documents: head, links, hashes, and input that means no good."""

import gzip
import json
import time
from pathlib import Path

import pytest

from afresh.extract import extract
from afresh.extract.html.head import choose_title
from afresh.extract.html.html import extract_html
from afresh.model.fetch import READING, Body, Document
from afresh.text.normalize import content_hash, links_hash

URL = "https://docs.example.org/guide/page.html"


def read(html: str | bytes, *, url: str = URL, index: bool = True, follow: bool = True) -> Document:
    data = html.encode() if isinstance(html, str) else html
    return extract(Body(url=url, data=data, index=index, follow=follow))


def cpu_seconds(html: str) -> tuple[float, Document]:
    start = time.process_time()
    document = read(html)
    return time.process_time() - start, document


# ---- head -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "heading", "site", "chosen"),
    [
        ("Jars — Larder 2.1 documentation", "Jars", "", "Jars"),
        ("Larder | Jars", "Jars", "", "Jars"),
        ("Jars - Larder", "Lids", "", "Jars - Larder"),
        ("Jars - Larder", "", "Larder", "Jars"),
        ("A - B - Larder", "", "Larder", "A - B"),
        ("", "Jars", "", "Jars"),
        ("std::jar - Rust", "", "", "std::jar - Rust"),
        ("", "", "", ""),
    ],
)
def test_title_loses_the_name_of_the_site_only_where_the_page_shows_it(
    title: str, heading: str, site: str, chosen: str
) -> None:
    assert choose_title(title, heading, site) == chosen


def test_F65_title_is_one_line_of_at_most_500_characters() -> None:
    title = read("<title>a\n <b>c</b>" + "x" * 1_000_000 + "</title><p>text</p>").title
    assert title.startswith("a <b>c</b>x")
    assert len(title) == 500


@pytest.mark.parametrize(
    ("meta", "index", "follow"),
    [
        ('<meta name="robots" content="noindex">', False, True),
        ('<META NAME="ROBOTS" CONTENT="NoFollow, noarchive">', True, False),
        ('<meta name="robots" content="none">', False, False),
        ('<meta name="afresh" content="noindex,nofollow">', False, False),
        ('<meta name="otherbot" content="noindex">', True, True),
        ("", True, True),
    ],
)
def test_meta_robots(meta: str, index: bool, follow: bool) -> None:
    document = read(f"<head>{meta}</head><p>text</p>")
    assert (document.index, document.follow) == (index, follow)


def test_meta_robots_and_the_header_both_count() -> None:
    document = read('<meta name="robots" content="noindex"><p>x</p>', follow=False)
    assert (document.index, document.follow) == (False, False)


@pytest.mark.parametrize(
    ("html", "header", "language"),
    [
        ('<html lang="PT-br"><p>x</p>', "de", "pt-BR"),
        ('<html lang="{{lang}}"><p>x</p>', "de", "de"),
        ('<html xml:lang="fr"><p>x</p>', None, "fr"),
        ("<p>x</p>", None, None),
    ],
)
def test_language_of_page_then_header(html: str, header: str | None, language: str | None) -> None:
    assert extract(Body(url=URL, data=html.encode(), language=header)).language == language


# ---- links ----------------------------------------------------------------------------------


def test_links_are_resolved_deduplicated_and_carry_what_a_reader_sees() -> None:
    document = read(
        """<base href="/docs/"><nav><a href="a#top"></a><a href="a"> First
        page </a><a href="a?utm_source=x">again</a></nav>
        <main><p>text</p><a href="b" rel="nofollow ugc">B</a><a href="c"><img src="i.png" alt="Picture"></a>
        <a href="#here">here</a><a href="mailto:x@y.z">mail</a><a href="javascript:void(0)">js</a>
        <a href="d" rel="nofollow">D</a><a href="d">D2</a></main>
        <map><area href="e" alt="East"></map>"""
    )
    assert [(link.url, link.text, link.follow) for link in document.links] == [
        ("https://docs.example.org/docs/a", "First page", True),
        ("https://docs.example.org/docs/b", "B", False),
        ("https://docs.example.org/docs/c", "Picture", True),
        ("https://docs.example.org/docs/d", "D", True),
        ("https://docs.example.org/docs/e", "East", True),
    ]


def test_text_of_a_link_is_cut() -> None:
    assert len(read("<a href='/x'>" + "word " * 200 + "</a>").links[0].text) <= 300


def test_links_in_the_text_are_absolute_and_harmless() -> None:
    markdown = read(
        '<main><p>See <a href="../x.html#f" title="t">x</a>, <a href="#g">g</a>, <a href="?q=1">q</a>, '
        '<a href="java\nscript:alert(1)">bad</a>, <a href="DATA:text/html,x">worse</a>.</p></main>',
        url=URL + "?v=1",
    ).markdown
    assert markdown == (
        "See [x](https://docs.example.org/x.html#f), [g](https://docs.example.org/guide/page.html?v=1#g), "
        "[q](https://docs.example.org/guide/page.html?q=1), bad, worse."
    )


# ---- hashes ---------------------------------------------------------------------------------

PAGE = """<html {order}><head><meta name="csrf-token" content="{noise}">
<script nonce="{noise}">t({noise})</script></head>
<body data-id="{noise}"><main id="m{noise}"><h1>Jars</h1>
<p class="k{noise}" {order}>Text with <a {order} href="/x">link</a>.</p>
<form><input type="hidden" name="csrf" value="{noise}"></form>
<img src="/pixel?{noise}"><img src="/jar.png?v={noise}" alt="Jar">
<!-- built at {noise} --><style>.k{noise}{{}}</style></main></body></html>"""


def test_F47_noise_does_not_move_the_hashes() -> None:
    one = read(PAGE.format(noise="111", order='lang="en" dir="ltr"'))
    other = read(PAGE.format(noise="987654", order='dir="ltr" lang="en"').replace("\n", "\r\n  "))
    assert (one.content_hash, one.links_hash) == (other.content_hash, other.links_hash)
    assert (
        one.markdown
        == "# Jars\n\nText with [link](https://docs.example.org/x).\n\n![Jar](https://docs.example.org/jar.png)"
    )


def test_G8_real_change_moves_the_hash_it_concerns() -> None:
    before = read("<main><p>One sentence.</p></main><nav><a href='/a'>A</a></nav>")
    text = read("<main><p>Two sentences.</p></main><nav><a href='/a'>A</a></nav>")
    menu = read("<main><p>One sentence.</p></main><nav><a href='/b'>A</a></nav>")
    assert before.content_hash != text.content_hash
    assert before.links_hash == text.links_hash
    assert before.content_hash == menu.content_hash
    assert before.links_hash != menu.links_hash


def test_G8_hashes_are_those_of_core() -> None:
    document = read("<main><pre>a  \n\n\n\nb</pre><p>x<br>y</p></main><a href='/a'>A</a>")
    assert document.content_hash == content_hash(document.markdown)
    assert document.links_hash == links_hash(document.links)


def test_empty_content_is_a_document() -> None:
    document = read("<html><body><nav><a href='/a'>A</a></nav><main></main></body></html>")
    assert document.markdown == ""
    assert len(document.links) == 1


# ---- bad input ------------------------------------------------------------------------------


@pytest.mark.slow
def test_F62_malformed_fragments_never_raise_and_are_quick(shared: Path) -> None:
    table = shared / "data" / "naughty" / "html_fragments.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(table.read_bytes()).splitlines()]
    assert len(rows) >= 1_940
    for row in rows:
        data = row["input"].encode("utf-8", "surrogatepass")
        start = time.process_time()
        document = extract_html(Body(url=URL, data=data))
        assert time.process_time() - start < 0.1, row["description"]
        document.markdown.encode("utf-8")
        document.title.encode("utf-8")


@pytest.mark.parametrize(
    "html", ["<p>a<b>c<p>d", "<table><p>x<tr>y", "<a href=x><a href=y>", "</br><p", "<svg><p>x", ""]
)
def test_F62_some_malformed_fragments(html: str) -> None:
    assert isinstance(read(html), Document)


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "deep",
        "<div>" * 100_000 + "deep" + "</div>" * 100_000,
        "<div><span><em>" * 40_000 + "deep",
        "<table><tr><td>" * 30_000 + "deep",
        "<div>" * 5_000 + "deep" + "</div>" * 5_000,
        "<div class=toc>" * 2_000 + "<a href='#x'>y</a>" * 2_000 + "</div>" * 2_000 + "<p>deep",
        "<p title='" + "x" * 1_000_000 + "'>deep</p>",
    ],
    ids=["open", "balanced", "mixed", "tables", "five thousand", "contents", "attribute"],
)
def test_F63_deep_nesting_keeps_the_text_and_takes_under_5_s(html: str) -> None:
    seconds, document = cpu_seconds(html)
    assert "deep" in document.markdown
    assert seconds < 5


def test_F63_ten_megabytes_on_one_line() -> None:
    seconds, document = cpu_seconds("<main>" + "word " * 1_900_000 + "</main>")
    assert len(document.markdown) > 9_000_000
    assert seconds < 5


@pytest.mark.slow
def test_F64_many_links_are_bounded() -> None:
    seconds, document = cpu_seconds("".join(f"<a href=p{number}>{number}</a> " for number in range(120_000)))
    assert len(document.links) == 5_000
    assert document.links_left_out == 115_000
    assert document.links[0].url == "https://docs.example.org/guide/p0"
    assert seconds < 10


def test_F61_NUL_and_surrogates_do_not_reach_the_store() -> None:
    document = read(b"<title>a\0b</title><p>x\0y &#0; &#xD800; \xed\xa0\x80</p>")
    for text in (document.title, document.markdown):
        assert "\0" not in text
        text.encode("utf-8")


def test_the_version_names_every_extractor() -> None:
    assert "html-" in READING
    assert "markdown-" in READING
    assert "text-" in READING
