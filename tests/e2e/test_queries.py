"""Whatever is typed is a search of the real store: results or none, never an error (F105)."""

import json
from pathlib import Path

import pytest
from tests.e2e.library import EVERY_STORE, found
from tests.e2e.sites import page

from afresh.kb import KnowledgeBase
from afresh.testing import TinySite

TEXTS = {
    "/a-b": "Start a-b testing with json.dumps and C++ in snake_case",
    "/near": "NEAR the harbour AND the sea OR NOT at all",
    "/quote": "She said the word title:retries; DROP TABLE pages is no command",
    "/emoji": "Party 🎉 time for everyone",
    "/cjk": "世界你好 means hello world",
    "/kana": "日本語のドキュメント",
    "/stop": "to be or not to be",
}
LITERAL = {
    "a-b": "/a-b",
    '"json.dumps"': "/a-b",
    "C++": "/a-b",
    "snake_case": "/a-b",
    "NEAR(": "/near",
    "NEAR(harbour sea)": "/near",
    'NEAR "the harbour"': "/near",
    "harbour AND": "/near",
    "title:retries": "/quote",
    "'; DROP TABLE pages; --": "/quote",
    '"drop table pages"': "/quote",
    "🎉 party": "/emoji",
    "世界": "/cjk",
    "日本語": "/kana",
    '"to be or not to be"': "/stop",
    "the to be or not": "/stop",
    "har*": "/near",
    "^harbour": "/near",
    "(harbour": "/near",
    "harbour)": "/near",
    "{harbour} : x": "/near",
    "harbour -sea": "/near",
    "harbour\x00": "/near",
    "har\ud800 harbour": "/near",
}
NOTHING = ["", "   ", '"', '""', "*", "🎉", "()", "\x00", "\ud800", "'; --", "zebra", '"sea harbour"']


@pytest.fixture
async def filled(kb: KnowledgeBase, tiny: TinySite) -> KnowledgeBase:
    tiny.put("/", page("Root", list(TEXTS)))
    for path, text in TEXTS.items():
        tiny.put(path, page(path.strip("/"), text=text))
    report = await kb.runs.crawl(tiny.url, name="docs")
    assert report.state == "completed"
    return kb


@EVERY_STORE
async def test_F105_what_is_typed_is_chosen_literally(filled: KnowledgeBase, tiny: TinySite) -> None:
    for query, path in LITERAL.items():
        hits = (await filled.search.search(query, mode="text")).hits
        assert hits, query
        assert hits[0].url == tiny.at(path), query


async def test_F105_what_holds_no_word_or_no_match_finds_nothing(filled: KnowledgeBase) -> None:
    for query in NOTHING:
        assert (await filled.search.search(query, mode="text")).hits == (), query


async def test_F105_quotes_narrow_and_never_widen(filled: KnowledgeBase, tiny: TinySite) -> None:
    """A quoted text finds exactly the pages in which its words stand in that order."""
    for text in TEXTS.values():
        words = text.split()
        for start in range(len(words) - 1):
            phrase = " ".join(words[start : start + 2])
            if not any(each.isalnum() for each in phrase.split()[0]) or "🎉" in phrase:
                continue
            expected = {tiny.at(path) for path, each in TEXTS.items() if phrase in each}
            assert await found(filled, f'"{phrase}"') >= expected, phrase


async def test_F105_naughty_strings_long_queries_and_marks(filled: KnowledgeBase, shared: Path) -> None:
    naughty: list[str] = json.loads((shared / "data/naughty/blns.json").read_text())
    marks = ['"' * 10_001, "(" * 5_000, "NEAR(" * 1_000, "a:" * 1_000, "x" * 1_000_000, "-" * 9_999, "^*" * 500]
    assert len(naughty) > 400
    for query in (*naughty, *marks, "the " * 10_000):
        await filled.search.search(query, limit=3)
    assert (await filled.search.search("harbour " + "zebra " * 10_000)).hits, "of 10,000 words the first still count"


async def test_F105_filters_with_odd_values_find_nothing(filled: KnowledgeBase) -> None:
    for language in ("'", '"; --', "%", "_", "\x00", "en%"):
        assert (await filled.search.search("harbour", language=language)).hits == ()
