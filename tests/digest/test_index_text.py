"""The text of index.txt: its order, its form, and that no name and no summary can forge an entry."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import law

from afresh.digest.cache import FileRecord, Record, UrlRecord, identifier_line, index_text, summary_lines
from afresh.digest.records import DigestPage, url_record

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
wild = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from(["\n", "\r", "\u2028", "\x85", "\x0b", "\x1e", " ", "\t", '"', "\\", "\udc80", "\u202e"]),
    max_size=12,
)
names = wild.filter(bool)


def file(name: str, summary: str = "About it.") -> FileRecord:
    return FileRecord(
        rel_path=name, size_bytes=1, mtime_ns=1, content_hash="0" * 64, summary_text=summary, last_indexed_at=NOON
    )


def link(url: str) -> UrlRecord:
    return url_record(DigestPage(url=url), url, NOON)


def read_back(text: str) -> list[tuple[str, str]]:
    """The entries as any reader sees them: blocks between blank lines, the first line of each names it."""
    entries: list[tuple[str, str]] = []
    block: list[str] = []
    for line in text.splitlines():
        if line.strip():
            block.append(line)
        elif block:
            name = json.loads(block[0]) if block[0].startswith('"') else block[0]
            entries.append((name, "\n".join(block[1:])))
            block = []
    assert not block, "every entry ends with a blank line"
    return entries


def test_E12_E26_files_first_then_links_each_sorted_by_code_points() -> None:
    records: list[Record] = [link("https://b.test/"), file("b.md"), file("é.md"), link("https://a.test/"), file("Z.md")]
    assert index_text(records) == (
        "Z.md\nAbout it.\n\nb.md\nAbout it.\n\né.md\nAbout it.\n\nhttps://a.test/\n\nhttps://b.test/\n\n"
    )
    assert index_text([]) == ""


def test_a_name_that_needs_a_line_of_its_own_is_quoted() -> None:
    assert identifier_line("notes/über \\ us.md") == "notes/über \\ us.md"
    assert identifier_line("two\nlines.md") == '"two\\nlines.md"'
    assert identifier_line("a\u200b.md") == '"a\\u200b.md"'  # else it looks like a.md
    assert identifier_line(" ") == '" "'
    assert identifier_line('"quoted".md') == '"\\"quoted\\".md"'
    assert identifier_line("bad\udc80.md") == '"bad\\udc80.md"'


def test_a_summary_has_no_blank_line_and_nothing_that_steers_a_terminal() -> None:
    assert summary_lines("\n One \r\n\r\n \t\ntwo\tthree\x1b[2J\u2028four\n\n") == " One\ntwo three\ufffd[2J\nfour"
    assert summary_lines(" \n\n") == ""


@law
@given(st.dictionaries(names, wild, max_size=4))
def test_E3_no_name_and_no_summary_forges_an_entry(found_text: dict[str, str]) -> None:
    text = index_text(file(name, summary) for name, summary in found_text.items())
    assert read_back(text) == [(name, summary_lines(found_text[name])) for name in sorted(found_text)]
    text.encode()


@law
@given(st.lists(names.map(file) | names.map(lambda name: link(f"https://{name}")), max_size=5), st.randoms())
def test_E3_equal_records_give_equal_bytes(records: list[Record], chance: object) -> None:
    shuffled = records[:]
    getattr(chance, "shuffle")(shuffled)  # noqa: B009 - hypothesis has no type for it
    assert index_text(records) == index_text(shuffled)


@law
@given(wild)
def test_a_tidy_summary_stays_as_it_is(summary: str) -> None:
    assert summary_lines(summary_lines(summary)) == summary_lines(summary)
