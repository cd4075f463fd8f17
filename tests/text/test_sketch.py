"""Likeness is told from sketches: the same text is 1, foreign texts are 0, edits lie between."""

import re
from itertools import pairwise
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import law

from afresh.text.normalize import SIZE, WIDTH, likeness, sketch_of

WORDS = st.lists(st.sampled_from([f"word{chr(97 + n)}{chr(97 + m)}" for n in range(26) for m in range(26)]))
TEXTS = WORDS.map(" ".join) | st.text(max_size=200)


@law
@given(TEXTS)
def test_a_text_is_wholly_like_itself_and_its_sketch_is_bounded(text: str) -> None:
    sketch = sketch_of(text)
    assert likeness(sketch, sketch) == 1.0
    assert len(sketch) <= SIZE * WIDTH
    assert sketch_of(text.upper().lower()) == sketch_of(text.lower())


@law
@given(TEXTS, TEXTS)
def test_likeness_is_mutual_and_a_share(one: str, other: str) -> None:
    there, back = likeness(sketch_of(one), sketch_of(other)), likeness(sketch_of(other), sketch_of(one))
    assert there == back
    assert 0.0 <= there <= 1.0


MARKED = st.text(st.sampled_from("ab_1 .\n-²٣é’—\ud800İßﬁſΣ中"), max_size=40) | TEXTS


@law
@given(MARKED)
def test_a_sketch_holds_the_smallest_hashes_of_pairs_of_words_without_digits(text: str) -> None:
    found = re.findall(r"\b[^\W\d]+\b", text.casefold())
    pairs = {f"{first} {second}" for first, second in pairwise(found)} or set(found)
    smallest = sorted({crc32(pair.encode()) for pair in pairs})[:SIZE]
    assert sketch_of(text) == "".join(f"{number:08x}" for number in smallest)


def words(first: int, last: int) -> str:
    letters = "abcdefghij"
    return " ".join("w" + "".join(letters[int(digit)] for digit in str(n)) for n in range(first, last))


def test_likeness_is_near_the_share_of_common_word_pairs() -> None:
    """Half of 2,000 words in common is a third of all the pairs that occur."""
    assert abs(likeness(sketch_of(words(0, 2000)), sketch_of(words(1000, 3000))) - 1 / 3) < 0.2
    assert likeness(sketch_of(words(0, 2000)), sketch_of(words(5000, 7000))) < 0.1
    assert likeness(sketch_of(words(0, 2000)), sketch_of(words(20, 2000))) > 0.9


def test_numbers_dates_and_the_own_address_make_no_difference() -> None:
    page = "Sorry, {} does not exist. Request 8f3a-{} at 12:0{}."
    url = "https://x.org/docs/{}"
    one, two = (sketch_of(page.format(f"/docs/{name}", n, n), url.format(name)) for n, name in ((1, "a"), (2, "bee")))
    assert one == two != ""


def test_a_text_without_words_has_no_sketch() -> None:
    assert sketch_of("1 2 3 ... 42") == ""
    assert likeness("", sketch_of("some words here")) == 0.0
