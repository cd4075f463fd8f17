"""What a person types is a search, never an error (F105)."""

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.search.query import MAX_WORDS, Query, _names, alternatives, parse
from afresh.search.stemming import ENGLISH, analysed

TEXTS = (
    "How json.dumps() writes a dict, and json.loads() reads it",
    "The loop: for x in y; is not None",
    "Install C++ with snake_case names and a-b testing",
    "Ein Café in Zürich",
    "世界你好 means hello",
    "configure the configuration of configurable things",
    "dumps of json in another order",
)


@pytest.fixture(scope="module")
def table() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61 remove_diacritics 2')")
    db.executemany("INSERT INTO t(x) VALUES (?)", [(analysed(text, ENGLISH) or text,) for text in TEXTS])
    yield db
    db.close()


def match_any(query: Query, configs: Sequence[str] = (ENGLISH,)) -> str | None:
    return " OR ".join(alternatives(query, configs)) or None


def search(db: sqlite3.Connection, query: str) -> list[int]:
    expression = match_any(parse(query))
    if expression is None:
        return []
    rows = db.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rowid", (expression,))
    return [row[0] - 1 for row in rows]


# ---- F105: never an error -----------------------------------------------------------------------

OPERATORS = st.sampled_from(
    ['"', "*", "^", "NEAR(", "AND", "OR", "NOT", "(", ")", "x:", "-", "+", "{", "}", "\x00", "\ud800", "“", "”"]
)


@settings(deadline=None)
@given(query=st.lists(st.one_of(st.text(max_size=12), OPERATORS), max_size=12).map(" ".join))
def test_F105_no_text_is_an_error(table: sqlite3.Connection, query: str) -> None:
    search(table, query)


@settings(deadline=None)
@given(query=st.text(alphabet=st.sampled_from("ab \"*^():-+.,'“”\x00\ud800é世"), max_size=40))
def test_F105_no_heap_of_marks_is_an_error(table: sqlite3.Connection, query: str) -> None:
    search(table, query)


def test_F105_naughty_strings_are_no_errors(table: sqlite3.Connection, shared: Path) -> None:
    strings = json.loads((shared / "data/naughty/blns.json").read_text())
    assert len(strings) > 400
    for string in strings:
        search(table, string)


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""',
        '"""',
        "*",
        "NEAR(",
        "NEAR(a b, 3)",
        "a AND",
        "AND OR NOT",
        "x:y",
        "{x y}: z",
        "^first",
        "'; DROP TABLE t; --",
        "a-b",
        "C++",
        "🎉",
        "🎉 hello",
        "世界",
        "\x00",
        "a\x00b",
        "\ud800",
        "(((((",
        "word " * 10_000,
        "x" * 1_000_000,
        '"' * 10_001,
        "“" * 10_001,
    ],
    ids=lambda query: query[:12].encode("ascii", "backslashreplace").decode(),
)
def test_F105_hard_queries(table: sqlite3.Connection, query: str) -> None:
    search(table, query)


@pytest.mark.parametrize("query", ["", "   ", "\t\n", '""', "🎉", "+-*/", "\x00", "“”"])
def test_nothing_to_look_for(query: str) -> None:
    assert not parse(query)
    assert match_any(parse(query)) is None


def test_words_beyond_the_limit_are_dropped() -> None:
    parsed = parse(" ".join(f"w{n}" for n in range(10_000)))
    assert len(parsed.terms) == MAX_WORDS
    assert parsed.terms[-1] == "w63"
    assert len(parse('"' + "word " * 500 + '"').phrases[0]) == MAX_WORDS


# ---- how a query is read --------------------------------------------------------------------------


def test_parts_of_a_query() -> None:
    assert parse('Fast "white space" json.dumps conf* the “other one” fast') == Query(
        terms=("fast", "the"),
        phrases=(("white", "space"), ("other", "one")),
        compounds=(("json", "dumps"),),
        names=(("json", "dumps"),),
        prefixes=("conf",),
    )


def test_an_open_quote_is_no_phrase() -> None:
    assert parse('a "b c') == Query(terms=("a", "b", "c"))


def test_accents_written_as_marks_stay_in_their_word() -> None:
    assert parse("cafe\u0301s").terms == ("caf\u00e9s",)
    assert parse("सेवा").terms == ("सेवा",)


def test_any_leaves_stop_words_out_and_takes_compounds_apart() -> None:
    assert match_any(parse("what does json.dumps do")) == '"json" OR "dumps" OR "json dumps"'
    assert match_any(parse("a-b")) == '"a b"'


def test_just_stop_words_are_looked_for() -> None:
    assert match_any(parse("to be or not")) == '"to" OR "be" OR "or" OR "not"'
    assert match_any(parse('the "white space"')) == '"white space"'


# ---- what it finds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "some"),
    [
        ("json.dumps", [0, 6]),
        ("JSON DUMPS", [0, 6]),
        ('"json dumps"', [0]),
        ("snake_case", [2]),
        ("C++", [2]),
        ("a-b", [2]),
        ("cafe zurich", [3]),
        ("cafe\u0301", [3]),
        ("世界", [4]),
        ("confi*", [5]),
        ("is not", [1]),
        ("NOT", [1]),
        ("x:nothing", []),
    ],
)
def test_what_a_query_finds(table: sqlite3.Connection, query: str, some: list[int]) -> None:
    assert search(table, query) == some


def test_one_word_is_enough(table: sqlite3.Connection) -> None:
    assert search(table, "json.dumps zebra") == [0, 6]


# ---- languages ---------------------------------------------------------------------------------------


def test_a_word_is_looked_for_in_every_form_that_the_languages_give_it() -> None:
    assert match_any(parse("Häuser"), ["german", "simple"]) == '("haus" OR "häuser")'
    assert match_any(parse("laufende*"), ["german"]) == '"laufend"*'
    assert match_any(parse('"die Häuser"'), ["simple", "german"]) == '("die häuser" OR "die haus")'


def test_a_run_without_spaces_is_a_phrase_of_its_pairs() -> None:
    assert match_any(parse("FastAPI依赖注入")) == ('"fastapi" OR "依赖" OR "赖注" OR "注入" OR "依赖 赖注 注入"')
    assert match_any(parse("库")) == '"库"*'
    assert match_any(parse('"用FastAPI框"')) == '"用 fastapi 框"*'
    assert match_any(parse("데이터")) == '"데이" OR "이터" OR "데이 이터"'


def test_stop_words_are_those_of_the_index_or_of_the_question() -> None:
    """`die` says nothing in German and much in English: where no page is German, it counts."""
    assert match_any(parse("why cells die", ("english",))) == '"cells" OR "die"'
    assert match_any(parse("why cells die", ("english", "german"))) == '"cells"'
    assert match_any(parse("wie kann man die Tests starten", ("english",))) == '"tests" OR "starten"'
    assert match_any(parse("how do I start the tests", ("german",))) == '"start" OR "tests"'


def test_a_question_without_spaces_is_bounded() -> None:
    expression = match_any(parse("".join(chr(0x4E00 + n) for n in range(500))))
    assert expression is not None
    assert expression.count(" OR ") == MAX_WORDS - 1


@given(st.text(alphabet="ab_.: é-", max_size=12))
def test_names_in_code_are_words_that_signs_join(text: str) -> None:
    """The pattern says what is meant, in quadratic time; what is used reads a text once."""
    expected = re.compile(r"\w+(?:[._:]+\w+)+|\w*_\w+")
    assert list(_names(text)) == [found[0] for found in expected.finditer(text)]
