"""Passages read well: cut between sentences, never through Markdown, with what was asked for marked."""

import re

import pyromark
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import examples, law

from afresh.model.fetch import Chunk
from afresh.search.highlight import QueryWords, same_stem, segments_of
from afresh.search.snippet import context_of, snippet_of

MARKS = re.compile("[\x02\x03]")
MARKED = re.compile("\x02([^\x02\x03]+)\x03")
FENCES = re.compile(r"^ *```", re.MULTILINE)
PARSER = pyromark.Markdown(options=pyromark.Options.ENABLE_TABLES)

LONG = (
    "The harbour opens at six. Ships wait outside until a pilot comes aboard. "
    "A failed job is retried later, see [the retry guide](https://docs.example.org/retry/guide) "
    "for the numbers. After five attempts it is parked. Nobody looks at parked jobs unless they are told to. "
) * 3


def plain(text: str) -> str:
    return MARKS.sub("", text)


def marks(text: str) -> list[str]:
    return MARKED.findall(text)


# ---- what is shown --------------------------------------------------------------------------------


def test_a_short_text_is_returned_whole() -> None:
    assert snippet_of("# Retries\n\nJobs are tried again.", ["tried"]) == "# Retries\n\nJobs are \x02tried\x03 again."
    assert snippet_of("", ["x"]) == snippet_of("\n\n", ["x"]) == ""


def test_the_window_with_most_of_the_words_is_taken_and_cut_at_sentences() -> None:
    text = LONG + "Parked jobs are listed by the harbour master every evening. " + LONG
    result = snippet_of(text, ["evening", "parked", "listed"], width=150)
    assert plain(result).startswith("… ")
    assert plain(result).endswith(" …")
    assert "Parked jobs are listed by the harbour master every evening." in plain(result)
    assert marks(result)[:3] == ["Parked", "listed", "evening"] or "parked" in marks(result)
    assert plain(result).removeprefix("… ").removesuffix(" …") in text
    assert re.fullmatch(r"… [A-Z].*\. …", plain(result))


def test_the_rarer_word_wins_where_both_do_not_fit() -> None:
    text = f"Common words stand here. {'Nothing of interest follows. ' * 20}A zebra stands there."
    assert marks(snippet_of(text, ["zebra", "common"], width=60)) == ["zebra"]
    assert marks(snippet_of(text, ["common", "zebra"], width=60)) == ["Common"]
    assert marks(snippet_of(text, ["the", "zebra"], width=60)) == ["zebra"]


def test_a_link_is_never_cut_and_its_address_never_marked() -> None:
    result = snippet_of(LONG, ["guide", "retry", "docs", "example"], width=80)
    assert "[the \x02retry\x03 \x02guide\x03](https://docs.example.org/retry/guide)" in result
    assert snippet_of("See https://a.example/retry now. Retry.", ["retry"]).count("\x02") == 1
    assert snippet_of('Ask [retry](/retry "retry") <https://retry.example> &amp; go', ["retry", "amp"]) == (
        'Ask [\x02retry\x03](/retry "retry") <https://retry.example> &amp; go'
    )
    assert snippet_of("![retry](retry.png) [ref]\n\n[retry]: https://retry.example", ["retry"]).count("\x02") == 0
    assert snippet_of("## Retry { #retry }", ["retry"]) == "## \x02Retry\x03 { #retry }"
    assert snippet_of("[**the `retry` flag**](/retry)", ["retry"]) == "[**the `\x02retry\x03` flag**](/retry)"


def test_a_fence_that_is_cut_is_opened_and_closed() -> None:
    lines = "\n".join(f"line_{number} = {number}" for number in range(60))
    text = f'Before.\n\n```python title="python"\n{lines}\nfind_me = True\n{lines}\n```\n\nAfter.'
    result = snippet_of(text, ["find", "python"], width=120)
    assert result.startswith('```python title="python"\nline_')
    assert result.endswith("\n```")
    assert "\x02find\x03_me = True" in result
    assert plain(snippet_of("- a\n\n  ~~~~js\n" + "  x = 1\n" * 80 + "  ~~~~", ["a"], width=90)).endswith("\n  ~~~~")


def test_a_table_row_is_whole() -> None:
    rows = "\n".join(f"| name {number} | what it is for. And more. | {number} |" for number in range(40))
    for head in ("| a | b | c |\n|---|---|---|\n", "a | b | c\n--- | --- | ---\n"):
        body = rows if head.startswith("|") else rows.replace("| name", "name")
        result = snippet_of(head + body.replace("name 20", "zebra 20"), ["zebra"], width=200)
        assert set(plain(result).split("\n")) <= set(body.replace("name 20", "zebra 20").split("\n"))
        assert marks(result) == ["zebra"]


def test_numbers_of_lists_and_short_forms_end_no_sentence() -> None:
    text = "1. Open the lid, e.g. with a spoon. Close it.\n2. Wait."
    assert [text[each.start : each.end].strip() for each in segments_of(text)] == [
        "1. Open the lid, e.g. with a spoon.",
        "Close it.",
        "2. Wait.",
    ]


def test_a_heading_without_its_text_does_not_end_a_passage() -> None:
    result = snippet_of(f"A zebra.\n\n## Next\n\n{LONG}", ["zebra"], width=30)
    assert plain(result) == "A zebra."


def test_code_and_tables_that_only_begin_or_end_there_are_left_out() -> None:
    code = "```python\nfirst = 1\nsecond = 2\nlast = 3\n```"
    table = "| key | value |\n|---|---|\n| a | 1 |\n| b | 2 |"
    text = f"{LONG}\n\n{code}\n\nA zebra grazes.\n\n## Keys\n\n{table}\n\n{LONG}"
    result = [plain(snippet_of(text, ["zebra"], width=width)) for width in range(40, 110, 5)]
    assert {"A zebra grazes."} < set(result)
    assert not any(re.search(r"\A(```python\n)?last|\|---\|---\|\Z|## Keys\Z", each) for each in result)
    assert plain(snippet_of(text, ["last"], width=60)).startswith("```python\n")


def test_without_a_match_the_beginning_is_returned() -> None:
    assert snippet_of(LONG, ["zebra"], width=80).startswith("The harbour opens at six.")
    assert snippet_of(LONG, [], width=80) == snippet_of(LONG, ["zebra"], width=80)


def test_the_name_of_a_language_counts_like_any_other_word() -> None:
    assert QueryWords(["german", "cells"]).weights == {"german": 1.5, "cells": 1.25}


def test_a_character_that_folds_to_a_parenthesis_is_no_pattern() -> None:
    """`⑽` folds to `(10)`."""
    assert [text[start:end] for text in ["item ⑽"] for start, end, _ in QueryWords(["⑽"]).spots(text)] == ["⑽"]


# ---- what is marked -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (
            "index",
            "Indexes are indexed by indexing; an indexer, no indicator",
            ["Indexes", "indexed", "indexing", "indexer"],
        ),
        ("retries", "Retry, retried, retrying: retro", ["Retry", "retried", "retrying"]),
        ("stop", "stopped stopping stops, stopgap", ["stopped", "stopping", "stops"]),
        ("configure", "configuration configured con", ["configuration", "configured"]),
        ("cafe ZÜRICH", "Ein Café in Zürich, cafe\u0301s", ["Café", "Zürich", "cafe\u0301s"]),
        ("json.dumps", "use json.dumps() or dump", ["json", "dumps", "dump"]),
        ("snake_case", "a snake_case name", ["snake_case"]),
        ("3.12", "in 3.12 and 312", ["3", "12"]),
        ("检索", "全文检索系统", ["检索"]),
        ("全文検索", "検索と全文の話", ["検索", "全文"]),
        ("검색", "검색을 한다", ["검색을"]),
        ("поиск", "поиска по тексту", ["поиска"]),
        ("a", "a cat", ["a"]),
    ],
)
def test_words_are_found_as_a_reader_would(words: str, text: str, expected: list[str]) -> None:
    assert marks(snippet_of(text, words.split())) == expected


@pytest.mark.parametrize(
    ("one", "other"), [("port", "portal"), ("us", "use"), ("cat", "category"), ("v1", "v12"), ("for", "form")]
)
def test_words_that_only_begin_alike_are_two(one: str, other: str) -> None:
    assert not same_stem(one, other)
    assert not same_stem(other, one)


def test_marks_in_the_text_itself_are_taken_out() -> None:
    assert snippet_of("a \x03b\x02 zebra", ["zebra"]) == "a b \x02zebra\x03"


# ---- the longer context ---------------------------------------------------------------------------


def chunk(content: str, *path: str) -> Chunk:
    return Chunk(content=content, path=path, text_hash="")


CHUNKS = [
    chunk("# Guide\n\nThe start of all.", "Guide"),
    chunk("## Retries\n\nJobs are tried again.", "Guide", "Retries"),
    chunk("After five attempts they are parked.", "Guide", "Retries"),
    chunk("## Queues\n\nJobs wait in queues.", "Guide", "Queues"),
]


def test_the_context_of_a_hit_begins_with_its_headings() -> None:
    assert context_of(CHUNKS, 2, 70) == "# Guide\n\n## Retries\n\nAfter five attempts they are parked."
    assert context_of(CHUNKS, 2, 120) == (
        "# Guide\n\n## Retries\n\nJobs are tried again.\n\nAfter five attempts they are parked."
    )
    assert context_of(CHUNKS, 2) == "\n\n".join(each.content for each in CHUNKS)


def test_a_repeated_heading_appears_once() -> None:
    again = [CHUNKS[1], chunk("## Retries\n\nMore of it.", "Guide", "Retries")]
    assert context_of(again, 0) == "# Guide\n\n## Retries\n\nJobs are tried again.\n\nMore of it."
    formatted = [chunk("## The `retry` *flag*\n\nText.", "Guide", "The retry flag")]
    assert context_of(formatted, 0) == "# Guide\n\n## The `retry` *flag*\n\nText."


def test_a_hit_that_is_too_long_is_cut() -> None:
    result = context_of([chunk(LONG, "Guide")], 0, 200)
    assert result.startswith("The harbour opens")
    assert len(result) <= 202


briefly = examples(40)


# ---- laws ------------------------------------------------------------------------------------------

WORDS = ("retry", "retries", "zebra", "queue", "harbour", "index", "Café", "検索", "ship", "the")
words = st.sampled_from(WORDS)
phrases = st.lists(words, min_size=1, max_size=3).map(" ".join)
inlines = st.one_of(
    phrases,
    phrases,
    phrases.map(lambda text: f"[{text}](https://docs.example.org/{text.replace(' ', '/')})"),
    phrases.map(lambda text: f"[**{text}** `x.y()`](/{text.replace(' ', '-')}#retry)"),
    phrases.map(lambda text: f"`{text}()`"),
    phrases.map(lambda text: f"**{text}**"),
    words.map(lambda text: f"https://retry.example/{text}?q=zebra"),
)
sentences = st.lists(inlines, min_size=1, max_size=4).map(lambda parts: " ".join(parts) + ".")
blocks = st.one_of(
    st.lists(sentences, min_size=1, max_size=4).map(" ".join),
    st.lists(sentences, min_size=1, max_size=3).map(lambda items: "\n".join(f"- {item}" for item in items)),
    phrases.map(lambda text: f"## {text}"),
    st.lists(phrases, min_size=1, max_size=8).map(lambda lines: "```python\n" + "\n".join(lines) + "\n```"),
    st.lists(phrases, min_size=1, max_size=8).map(
        lambda rows: "| a | b |\n|---|---|\n" + "\n".join(f"| {row}. {row} | x |" for row in rows)
    ),
)
documents = st.lists(blocks, min_size=1, max_size=5).map("\n\n".join)
widths = st.integers(40, 400)
asked = st.lists(words, max_size=4)


def read_by_others(markdown: str) -> tuple[set[str], str]:
    """The addresses and the text that another reader of Markdown finds, code left out."""
    targets, result, in_code = set(), [], False
    for event in PARSER.events(markdown):
        if isinstance(event, dict):
            start = event.get("Start")
            if isinstance(start, dict) and "Link" in start:
                targets.add(start["Link"]["dest_url"])
            in_code = in_code or (isinstance(start, dict) and "CodeBlock" in start)
            in_code = in_code and event.get("End") != "CodeBlock"
            result.append("" if in_code else str(event.get("Text") or ""))
    return targets, "\n".join(result)


@briefly
@given(documents, asked, widths)
def test_no_cut_goes_through_markdown_and_no_mark_into_an_address(text: str, query: list[str], width: int) -> None:
    result = snippet_of(text, query, width=width)
    targets, result = read_by_others(result)
    assert targets <= read_by_others(text)[0]
    assert not re.search(r"\]\(|\[|`|\*\*", result)
    assert len(FENCES.findall(plain(result))) % 2 == 0
    assert not re.search("\x02[^\x03]*\x02|\x03[^\x02]*\x03", result)
    assert result.count("\x02") == result.count("\x03")
    assert not re.search(r"https?://\S*[\x02\x03]", result)
    rows = [line for line in plain(result).split("\n") if line.startswith("|")]
    assert set(rows) <= set(text.split("\n"))


@briefly
@given(documents, asked, widths)
def test_a_passage_is_part_of_the_text_and_fits(text: str, query: list[str], width: int) -> None:
    result = plain(snippet_of(text, query, width=width))
    core = re.sub(r"\A```python\n|\n```\Z", "", result.removeprefix("… ").removesuffix(" …"))
    assert core in text
    max_chars = max(each.end - each.start for each in segments_of(text, max(40, min(200, width // 2))))
    assert len(core) <= max(width, max_chars)
    if len(text) <= width:
        assert result == text


@briefly
@example("https://a.org/zebra " + "retry " * 20 + "\n\n## zebra", ["zebra"], 40)
@given(documents, st.lists(words, min_size=1, max_size=3), widths)
def test_a_match_is_included_if_it_can_be_marked_at_all(text: str, query: list[str], width: int) -> None:
    everything = marks(snippet_of(text, query, width=100_000))
    assert bool(marks(snippet_of(text, query, width=width))) == bool(everything)


@law
@given(st.text(max_size=400), st.lists(st.text(max_size=8), max_size=5), st.integers(1, 300))
def test_any_text_and_any_words_make_a_passage(text: str, query: list[str], width: int) -> None:
    result = snippet_of(text, query, width=width)
    assert result.count("\x02") == result.count("\x03")
    assert "".join(text[each.start : each.end] for each in segments_of(text)) == text


@law
@given(st.text('`[]()*_<>|#\n.a ~&;!\\"', max_size=300), st.integers(1, 300))
def test_any_heap_of_signs_makes_a_passage(text: str, width: int) -> None:
    assert plain(snippet_of(text, ["a"], width=width)).count("\x02") == 0


@briefly
@given(st.lists(blocks, min_size=1, max_size=5), st.data(), st.integers(40, 1500))
def test_the_context_holds_the_hit_and_keeps_to_its_size(texts: list[str], data: st.DataObject, most: int) -> None:
    hit = data.draw(st.integers(0, len(texts) - 1))
    result = context_of([chunk(text, "Guide") for text in texts], hit, most)
    if len(texts[hit]) <= most:
        assert texts[hit] in result
        assert len(result) <= max(most, len(texts[hit]) + len("# Guide\n\n"))


@pytest.mark.parametrize("sign", ["`", "[", "](", "*", "**a", "<a", "|", "&a", "[a](", "`a", "https://", "w.", "a"])
def test_a_costly_text_costs_little(sign: str) -> None:
    """Two thousand characters, the most of a chunk, are no work whatever they are."""
    text = sign * (2_000 // len(sign))
    assert snippet_of(text, ["zebra", "a"], width=300)
