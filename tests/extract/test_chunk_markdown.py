"""Chunks follow the structure of a document, lose nothing, and stay where nothing changed."""

import gzip
import json
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyromark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.extract.chunk.blocks import MAX_CHARS, MAX_REPEAT
from afresh.extract.chunk.markdown import chunk as chunk_document
from afresh.model.fetch import Chunk, Document

PARSER = pyromark.Markdown(options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_YAML_STYLE_METADATA_BLOCKS)


def chunk(markdown: str) -> Sequence[Chunk]:
    document = Document(title="T", markdown=markdown, content_hash="", links_hash="")
    return chunk_document(document)


def words(length: int, seed: str = "word") -> str:
    """About so many characters of text that differs everywhere, in sentences."""
    parts: list[str] = []
    size = 0
    while size < length:
        parts.append(f"{seed}{len(parts)}" + ("." if len(parts) % 9 == 8 else ""))
        size += len(parts[-1]) + 1
    return " ".join(parts)


def ink(text: str) -> str:
    """The text without its blanks."""
    return "".join(text.split())


def is_within(part: str, whole: str) -> bool:
    """Whether every character of a text comes in another, in order."""
    rest = iter(whole)
    return all(character in rest for character in part)


def code_blocks(markdown: str) -> list[str]:
    """The code blocks of a text as a full Markdown parser sees them."""
    data = markdown.encode()
    return [
        data[span["start"] : span["end"]].decode()
        for event, span in PARSER.events_with_range(markdown)
        if isinstance(event, dict) and "CodeBlock" in str(event.get("Start"))
    ]


# ---- structure ------------------------------------------------------------------------------------


def test_path_level_and_types() -> None:
    chunks = chunk(
        f"# The *Guide* to `x` & [more](http://a)\n\n{words(1000)}\n\n"
        f"## Install {{#install}}\n\n{words(1500)}\n\n"
        f"### On <b>Linux</b> ##\n\n{words(900)}\n\n- one\n- two\n\n## Use\n\n```py\n{words(1700)}\n```\n"
    )
    assert [(each.path, each.level, each.types) for each in chunks] == [
        (("The Guide to x & more",), 1, ("text",)),
        (("The Guide to x & more", "Install"), 2, ("text",)),
        (("The Guide to x & more", "Install", "On Linux"), 3, ("text", "list")),
        (("The Guide to x & more", "Use"), 2, ("code",)),
    ]


def test_underlined_headings() -> None:
    chunks = chunk(f"Title\n=====\n\n{words(1500)}\n\nPart *one*\n----------\n\n{words(1500)}\n")
    assert [(each.path, each.level) for each in chunks] == [(("Title",), 1), (("Title", "Part one"), 2)]


def test_what_comes_before_the_first_heading_has_no_path() -> None:
    chunks = chunk(f"{words(1900)}\n\n# Later\n\n{words(1900)}\n")
    assert [(each.path, each.level) for each in chunks] == [((), 0), (("Later",), 1)]


def test_small_sections_of_one_parent_share_chunks() -> None:
    chunks = chunk("# API\n\n" + "".join(f"## f{n}\n\n{words(250, f'f{n}w')}\n\n" for n in range(40)))
    assert 6 <= len(chunks) <= 14
    assert all(each.path == ("API",) for each in chunks)
    assert all(len(each.content) >= 700 for each in chunks)


def test_sections_of_different_parents_do_not_share_chunks() -> None:
    text = "".join(f"# Part {n}\n\n{words(2500, f'p{n}w')}\n\n## End {n}\n\nShort {n}.\n\n" for n in range(3))
    for each in chunk(text):
        assert len({n for n in range(3) if f"p{n}w" in each.content or f"Short {n}" in each.content}) == 1


def test_a_title_stays_with_what_it_heads() -> None:
    chunks = chunk(f"# Title\n\n## Part\n\n{words(1900)}\n\n{words(1900, 'other')}\n")
    assert chunks[0].content.startswith("# Title\n\n## Part\n\nword0")
    assert chunks[0].path == ("Title", "Part")


def test_comments_in_code_and_html_are_no_headings() -> None:
    text = "# Real\n\n```sh\n# no\n```\n\n<!--\n\n# no\n\n-->\n\n    # no\n\n<pre>\n\n# no\n</pre>\n"
    assert {each.path for each in chunk(text)} == {("Real",)}


def test_front_matter_is_text() -> None:
    chunks = chunk("---\ntitle: x\ntags: y\n---\n\n# Real\n\nText.\n")
    assert chunks[0].path == ("Real",) or chunks[0].path == ()
    assert "title: x" in chunks[0].content


# ---- never splitting -------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", ["{}", "- item\n\n{}", "1. x\n\n{}\n\n2. y", "> q\n>\n{}", "text\n{}\ntext"])
@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_a_code_block_that_fits_is_never_split(wrap: str, fence: str) -> None:
    indent = {"-": "  ", "1": "   ", ">": "> "}.get(wrap[0], "")
    blocks = []
    for n in range(12):
        code = "\n\n".join(f"line {n}.{k} = {'x' * 20 * k}" for k in range(1, 9))
        lines = f"{fence}py\n# {n}\n{code}\n{fence}".split("\n")
        blocks.append(wrap.format("\n".join(f"{indent}{line}" for line in lines)))
    text = f"\n\n{words(500)}\n\n".join(blocks)
    expected = code_blocks(text)
    assert len(expected) == 12
    contents = [each.content for each in chunk(text)]
    assert len(contents) > 3
    for block in expected:
        assert any(block.rstrip() in content for content in contents)


def test_a_code_block_that_is_too_large_is_split_at_line_ends_with_its_fences() -> None:
    lines = [f"line_{n} = {'y' * (n % 50)}" for n in range(300)]
    chunks = chunk("# Code\n\n````py\n" + "\n".join(lines) + "\n````\n")
    assert len(chunks) > 3
    for each in chunks:
        assert "````py\n" in each.content
        assert each.content.endswith("\n````")
        assert each.types == ("code",)
    inner = [line for each in chunks for line in each.content.split("\n") if line.startswith("line_")]
    assert inner == lines


def test_a_large_code_block_in_an_item_keeps_its_indent() -> None:
    chunks = chunk("- ```js\n" + "\n".join(f"  call({n});" for n in range(400)) + "\n  ```\n")
    assert len(chunks) > 2
    for each in chunks[1:]:
        assert each.content.startswith("  ```js\n  call(")
    for each in chunks:
        assert each.content.endswith("\n  ```")


def test_a_large_table_is_split_between_rows_and_repeats_its_head() -> None:
    rows = [f"| {n} | {words(80, f'r{n}w')} |" for n in range(80)]
    head = "| number | text |\n| --- | --- |\n"
    chunks = chunk(f"# Table\n\n{head}" + "\n".join(rows) + "\n\nAfter.\n")
    assert len(chunks) > 3
    for each in chunks:
        assert each.content.count(head) == 1
    kept = [line for each in chunks for line in each.content.split("\n") if line in rows]
    assert kept == rows


def test_a_row_that_is_too_large_is_split_without_loss() -> None:
    text = f"| a | b |\n|---|---|\n| x | {words(5000)} |\n| y | z |\n"
    chunks = chunk(text)
    assert all(len(each.content) <= MAX_CHARS + MAX_REPEAT for each in chunks)
    assert is_within(ink(text), ink("".join(each.content for each in chunks)))


# ---- plain text --------------------------------------------------------------------------------------


def test_plain_text_is_cut_between_paragraphs() -> None:
    paragraphs = [words(300, f"p{n}w") for n in range(60)]
    chunks = chunk("\n\n".join(paragraphs))
    assert [part for each in chunks for part in each.content.split("\n\n")] == paragraphs
    assert all(800 <= len(each.content) <= MAX_CHARS for each in chunks)
    assert {(each.path, each.level, each.types) for each in chunks} == {((), 0, ("text",))}


def test_a_text_of_lines_is_cut_between_lines() -> None:
    lines = [f"2026-01-01 event {n} " + "z" * (n % 60) for n in range(400)]
    chunks = chunk("\n".join(lines))
    assert [line for each in chunks for line in each.content.split("\n")] == lines
    assert all(800 <= len(each.content) <= MAX_CHARS for each in chunks)


def test_one_endless_line_is_cut_after_sentences_or_words() -> None:
    chunks = chunk(words(30_000))
    assert all(len(each.content) <= MAX_CHARS for each in chunks)
    assert " ".join(each.content for each in chunks).split() == words(30_000).split()


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\t\n \n"])
def test_nothing_gives_no_chunks(text: str) -> None:
    assert chunk(text) == []


def test_halves_of_surrogate_pairs_and_odd_line_ends_are_read() -> None:
    assert [each.content for each in chunk("# A\ud800\r\n\r\ntext\rmore\x00")] == ["# A?\n\ntext\nmore\x00"]


# ---- nothing is lost -----------------------------------------------------------------------------------

BEGINNINGS = "# H;## H2;```;~~~;- item;  - sub;1. one;> q;> ```;| a | b |;|---|---|;===;---;    code;<div>;<!--;-->"
LINE = st.one_of(
    st.text(alphabet=st.sampled_from("ab #*-`~|>_=:.1+<>\t é世"), max_size=30),
    st.sampled_from(["", "x" * 2500, "y z " * 700, *BEGINNINGS.split(";")]),
    st.just(""),
)


@given(lines=st.lists(LINE, max_size=40))
def test_no_text_is_lost(lines: list[str]) -> None:
    text = "\n".join(lines)
    chunks = chunk(text)
    whole = "".join(each.content for each in chunks)
    assert is_within(ink(text), ink(whole))
    assert all(each.content.strip() and len(each.text_hash) == 64 and each.types for each in chunks)
    assert all(len(each.content) <= MAX_CHARS + MAX_REPEAT + 40 for each in chunks)


def _examples(shared: Path) -> list[str]:
    with gzip.open(shared / "data/naughty/commonmark_examples.jsonl.gz", "rt") as lines:
        return [json.loads(line)["markdown"] for line in lines]


def test_commonmark_examples_lose_nothing(shared: Path) -> None:
    examples = _examples(shared)
    assert len(examples) == 655
    for text in (*examples, "\n\n".join(examples)):
        chunks = chunk(text)
        assert is_within(ink(text), ink("".join(each.content for each in chunks))), text


def test_commonmark_code_blocks_stay_whole(shared: Path) -> None:
    """Each example amid enough text that chunks must be cut somewhere."""
    for text in _examples(shared):
        fenced = [block for block in code_blocks(text) if block.lstrip().startswith(("```", "~~~"))]
        if len(fenced) == 1:
            contents = [each.content for each in chunk(f"{words(1500)}\n\n{text}\n\n{words(1500)}\n")]
            assert any(fenced[0].strip() in content for content in contents), text


# ---- borders stay ---------------------------------------------------------------------------------------


def _manual() -> list[str]:
    blocks = ["# Manual"]
    for n in range(30):
        blocks.append(f"## Section {n}")
        blocks += [words(120 + 37 * (k * n % 11), f"s{n}p{k}w") for k in range(1 + n % 9)]
        blocks.append(f"```\ncode {n}\n{words(100)}\n```")
    return blocks


@pytest.mark.slow
def test_an_edit_changes_just_the_chunks_around_it() -> None:
    blocks = _manual()
    before = {each.text_hash for each in chunk("\n\n".join(blocks))}
    assert len(before) > 25
    for at, block in enumerate(blocks):
        if block.startswith("s"):
            for edit in (block + " And one more sentence.", block[: len(block) // 2], f"{block}\n\n{words(400, 'n')}"):
                after = chunk("\n\n".join([*blocks[:at], edit, *blocks[at + 1 :]]))
                assert len([each for each in after if each.text_hash not in before]) <= 2 + (
                    len(edit) > len(block) + 99
                )


def test_in_a_plain_text_too() -> None:
    paragraphs = [words(90 + 61 * (n % 7), f"p{n}w") for n in range(150)]
    before = {each.text_hash for each in chunk("\n\n".join(paragraphs))}
    changed = []
    for at in range(0, 150, 3):
        edited = [*paragraphs[:at], paragraphs[at] + " Changed.", *paragraphs[at + 1 :]]
        changed.append(len([each for each in chunk("\n\n".join(edited)) if each.text_hash not in before]))
    assert max(changed) <= 3
    assert sum(count <= 2 for count in changed) >= 48


def test_equal_text_under_another_path_has_another_hash() -> None:
    one, other = chunk("# A\n\nSame.")[0], chunk("# B\n\nSame.")[0]
    assert one.text_hash != other.text_hash
    assert one.text_hash == chunk("# A\n\nSame.\n\n\n")[0].text_hash


# ---- cost ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "> " * 50_000 + "a",
        "[" * 100_000,
        "# h\n" * 50_000,
        "- a\n" * 50_000,
        "a\n\n" * 50_000,
        "| a |\n|---|\n" + "| b |\n" * 50_000,
        "```\n" * 50_001,
        "x" * 500_000,
        "# " + "*" * 100_000 + "\n\n" + "text\n\n" * 20_000,
        "\n" * 300_000,
        "<!--" * 50_000,
        ". " * 200_000,
    ],
    ids=lambda text: text[:6].replace("\n", "_"),
)
def test_hostile_documents_take_bounded_time(text: str) -> None:
    started = time.process_time()
    chunks = chunk(text)
    assert time.process_time() - started < 3
    assert sum(len(each.content) for each in chunks) <= 2 * len(text)


def test_chunks_come_in_the_order_of_the_text() -> None:
    chunks = chunk("\n\n".join(_manual()))
    places = [int(each.content.split("## Section ")[1].split()[0]) for each in chunks if "## Section " in each.content]
    assert all(one < other for one, other in pairwise(places))
