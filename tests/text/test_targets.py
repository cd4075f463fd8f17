"""A text without where its links lead: one text wherever its pages stand."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.model.fetch import embedded_text
from afresh.text.plain import TargetlessText, without_targets


@pytest.mark.parametrize(
    ("markdown", "short"),
    [
        ("see [this](https://a.example/x?y=1#z) now", "see [this]() now"),
        ("[a](http://a.example/f_(b)_c) (and so on)", "[a]() (and so on)"),
        ("![a crane](https://a.example/crane.png)", "![a crane]()"),
        ("[a](<https://a.example/x>)", "[a]()"),
        ('[a](https://a.example/x "its title")', "[a]()"),
        ("[a](https://a.example/1)[b](https://a.example/2)", "[a]()[b]()"),
        ("as it is: https://a.example/x", "as it is: https://a.example/x"),
        ("calls[3](argument)", "calls[3](argument)"),
        ("[open](https://a.example/x", "[open](https://a.example/x"),
        ("[near](other.md)", "[near](other.md)"),
    ],
)
def test_targets_are_left_out_and_nothing_else(markdown: str, short: str) -> None:
    assert without_targets(markdown) == short
    assert embedded_text(("Top",), markdown) == f"Top\n\n{short}"


_TEXTS = st.lists(
    st.sampled_from(["word ", "[link](https://a.example/", "x)", "\n", "](", ")", "(", " [a](http://b.example/c)"])
)


@given(_TEXTS.map("".join), st.data())
def test_what_two_places_enclose_is_cut_from_the_whole_text(markdown: str, data: st.DataObject) -> None:
    text = TargetlessText(markdown)
    places = sorted(data.draw(st.lists(st.integers(0, len(text.short)), max_size=5)))
    borders = [0, *places, len(text.short)]
    parts = [text.between(low, high) for low, high in pairwise(borders)]
    assert "".join(parts) == markdown


def test_a_text_made_to_be_costly_is_read_in_time() -> None:
    began = time.process_time()
    for piece in ("](http://", "](http://x", "](http://(", "](http://()", '](http://a "'):
        without_targets(piece * 200_000)
    assert time.process_time() - began < 10  # generous: about half a second on an idle machine
