"""What a hostile page may cost a search: a passage is cut in good time, whatever it holds."""

import time

import pytest

from afresh.search.snippet import MAX_READ_CHARS, snippet_of

HOSTILE = {
    "pictures in an open link": "[" + "![a]" * 400,
    "dots": "." * 20_000,
    "links with long targets": ("[a](http://e.example.org/?q" + "." * 1_900 + ") ") * 200,
    "ticks": "`" * 20_000,
    "stars": "*" * 20_000,
    "open tags": "<" * 20_000,
    "open brackets": "[[" * 5_000,
    "escaped brackets": "\\[" * 9_000,
    "Chinese sentences": "中。" * 1_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_passage_of_hostile_text_is_cut_in_good_time(kind: str) -> None:
    began = time.process_time()
    assert snippet_of(f"{HOSTILE[kind]} harbour", ["harbour"])
    assert time.process_time() - began < 5, "seconds of CPU, far more than it needs"


def test_of_a_text_that_is_too_long_the_part_with_the_word_is_read() -> None:
    text = "nothing here\n" * (MAX_READ_CHARS // 5) + "the harbour lies here\n" + "nothing more\n" * 100
    assert "\x02harbour\x03 lies here" in snippet_of(text, ["harbour"])
