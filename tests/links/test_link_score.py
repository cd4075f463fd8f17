"""What a link is worth: keywords as typed, weights, and the sum that halves."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import law

from afresh.links.score import (
    MAX_COMMENT_CHARS,
    MAX_KEYWORDS,
    KeywordError,
    KeywordWeights,
    LinkToScore,
    ScoredLink,
    checked_keywords,
    missing_keywords,
    normalize_keyword,
    parse_keywords,
    total_score,
    weigh_link,
)

UNIT = st.floats(0, 1)
WORDS = st.text("abcdefgäß ", min_size=1, max_size=8).filter(lambda word: bool(normalize_keyword(word)))
SCORES = st.dictionaries(WORDS.map(normalize_keyword), UNIT, max_size=80)
WEIGHTS = st.dictionaries(WORDS.map(normalize_keyword), UNIT, max_size=80)
LINK = LinkToScore("https://city.example/budget", "The budget")


def test_C19_keywords_are_typed_with_or_without_a_weight() -> None:
    typed = " Budget, contact:0.5,, town  hall:0 , http://x:.25,"
    assert parse_keywords(typed) == {"budget": 1.0, "contact": 0.5, "town hall": 0.0, "http://x": 0.25}
    assert parse_keywords(" ") == {}


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("budget:2", "a weight from 0 to 1 for 'budget', got 2"),
        ("budget:-0.1", "a weight from 0 to 1 for 'budget', got -0.1"),
        ("budget:nan", "a weight from 0 to 1"),
        ("budget:high", "a weight from 0 to 1 for 'budget', got 'high'"),
        ("budget:", "a weight from 0 to 1 for 'budget', got ''"),
        (":0.5", "expected keywords such as budget,contact:0.5, got ''"),
        ("budget,BUDGET :0.2", "the keyword 'budget' occurs twice"),
        ("a\x00b", "expected keywords such as"),
        ("x" * 101, "expected keywords such as"),
        (",".join(map(str, range(MAX_KEYWORDS + 1))), f"at most {MAX_KEYWORDS} keywords"),
    ],
)
def test_C19_invalid_keywords_are_refused_with_a_reason(typed: str, message: str) -> None:
    with pytest.raises(KeywordError) as caught:
        parse_keywords(typed)
    assert message in str(caught.value)


@law
@given(st.dictionaries(WORDS.map(normalize_keyword), UNIT, max_size=20))
def test_C19_keywords_that_are_written_out_are_read_back(weights: dict[str, float]) -> None:
    typed = ",".join(f"{word}:{weight!r}" for word, weight in weights.items())
    assert parse_keywords(typed) == weights == checked_keywords(weights.items())


def test_C20_scores_are_sorted_down_and_each_next_one_counts_half() -> None:
    weights = {"a": 1.0, "b": 1.0, "c": 1.0}
    assert total_score({"a": 0.4, "b": 1.0, "c": 0.8}, weights) == pytest.approx(1.0 + 0.8 / 2 + 0.4 / 4)
    assert total_score({}, weights) == 0.0


def test_C19_weights_multiply_and_a_keyword_nobody_asked_for_weighs_a_quarter() -> None:
    assert total_score({"a": 0.8, "b": 1.0}, {"a": 0.5, "b": 0.1}) == pytest.approx(0.4 + 0.1 / 2)
    assert total_score({"surprise": 1.0}, {"a": 1.0}) == 0.25
    assert total_score({"surprise": 1.0}, {"a": 1.0}, 0.0) == 0.0
    assert total_score({"BUDGET": 1.0, "budget": 0.5}, {"budget": 1.0}) == 1.0, "one keyword, not two"


@law
@given(SCORES, WEIGHTS)
def test_C20_a_score_is_never_less_than_its_best_keyword_and_always_less_than_two(
    scores: dict[str, float], weights: dict[str, float]
) -> None:
    total = total_score(scores, weights)
    best = max((score * weights.get(word, 0.25) for word, score in scores.items()), default=0.0)
    assert best <= total < 2
    assert total <= 2 * best


@pytest.mark.parametrize("number", [1, 2, 52, 53, 54, 55, 200])
def test_C20_however_many_keywords_fit_wholly_the_score_grows_and_stays_below_two(number: int) -> None:
    scores = {f"k{each}": 1.0 for each in range(number)}
    totals = [total_score(dict(list(scores.items())[:count]), scores) for count in range(1, number + 1)]
    assert all(one <= two < 2 for one, two in pairwise([*totals, totals[-1]]))


@law
@given(SCORES, WEIGHTS, st.randoms())
def test_C20_the_order_of_keywords_does_not_matter(
    scores: dict[str, float], weights: dict[str, float], chance: object
) -> None:
    mixed = list(scores.items())
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert total_score(dict(mixed), weights) == total_score(scores, weights)


@law
@given(SCORES, WEIGHTS, WORDS.map(normalize_keyword), UNIT)
def test_C20_one_more_keyword_never_makes_a_link_worth_less(
    scores: dict[str, float], weights: dict[str, float], word: str, score: float
) -> None:
    less = {key: value for key, value in scores.items() if key != word}
    more = total_score({**less, word: score}, weights)
    assert more >= total_score(less, weights) or math.isclose(more, total_score(less, weights))


@law
@given(st.dictionaries(WORDS, st.floats(allow_nan=True), max_size=20), WEIGHTS)
def test_C18_scores_beyond_their_bounds_are_bounded(scores: dict[str, float], weights: dict[str, float]) -> None:
    assert 0 <= total_score(scores, weights) < 2


def answer(text: str, asked: set[str], recipe: str = "r", comment: str = "", **scores: float) -> ScoredLink:
    return ScoredLink(
        link=LinkToScore(LINK.url, text), recipe=recipe, asked=frozenset(asked), scores=scores, comment=comment
    )


def test_C24_of_several_texts_each_keyword_counts_with_its_highest_score() -> None:
    weighing = KeywordWeights(weights={"budget": 1.0, "plan": 0.5})
    asked = {"budget", "plan"}
    found = weigh_link(
        [
            answer("here", asked, comment="hardly", budget=0.2, plan=0.1),
            answer("The budget", asked, comment="it says so", budget=1.0),
            answer("nothing", asked),
        ],
        weighing,
    )
    assert found.keywords == {"budget": 1.0, "plan": 0.1}
    assert found.score == pytest.approx(1.0 + 0.05 / 2)
    assert found.comment == "it says so"


def test_C18_a_link_that_no_keyword_fits_has_no_score() -> None:
    weighing = KeywordWeights(weights={"budget": 1.0})
    assert weigh_link([answer("x", {"budget"}, budget=0.0)], weighing).score is None
    assert weigh_link([], weighing).score is None


def test_C19_a_keyword_that_is_wanted_no_more_counts_no_more_but_a_volunteered_one_does() -> None:
    given = [answer("x", {"budget", "contact"}, budget=1.0, contact=1.0, surprise=1.0)]
    assert weigh_link(given, KeywordWeights(weights={"budget": 1.0})).keywords == {"budget": 1.0, "surprise": 1.0}
    assert weigh_link(given, KeywordWeights(weights={"other": 1.0})).score == 0.25
    assert weigh_link(given, KeywordWeights(weights={})).score is None, "without keywords there are no scores"


def test_C17_only_keywords_that_were_not_asked_for_are_asked_for() -> None:
    known = answer("x", {"a", "b"})
    assert missing_keywords(known, "r", ["a", "b", "c"]) == ("c",)
    assert missing_keywords(known, "r", ["b"]) == ()
    assert missing_keywords(known, "another", ["b"]) == ("b",)
    assert missing_keywords(None, "r", ["b"]) == ("b",)


def test_an_answer_of_the_same_scorer_adds_keywords_and_one_of_another_takes_its_place() -> None:
    first = answer("x", {"a"}, comment="one", a=0.5)
    joined = first.merge(answer("x", {"b"}, b=1.0))
    assert joined == answer("x", {"a", "b"}, comment="one", a=0.5, b=1.0)
    assert first.merge(answer("x", {"b"}, comment="two", b=1.0)).comment == "one; two", "both count"
    assert len(first.merge(answer("x", {"b"}, comment="w " * 100, b=1.0)).comment) <= MAX_COMMENT_CHARS
    other = answer("x", {"b"}, recipe="s", b=0.1)
    assert first.merge(other) == other
