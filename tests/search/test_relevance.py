"""Relevance says whether a passage fits, whatever else was found; and capitals never change what is asked."""

from hypothesis import given
from hypothesis import strategies as st

from afresh.models.fast import FastModel
from afresh.search.highlight import QueryWords
from afresh.search.query import alternatives, parse, single_words
from afresh.search.records import WordCounts
from afresh.search.relevance import relevance, share_held, words_held

TEXTS = 50
WORDS = st.dictionaries(st.text("abc", min_size=1), st.integers(0, TEXTS), max_size=8)
SHARES = st.floats(0, 1)
MEANINGS = st.floats(-2, 2)


@given(counts=WORDS, more=st.sets(st.text("abc", min_size=1)), data=st.data())
def test_more_words_are_never_a_smaller_share(counts: dict[str, int], more: set[str], data: st.DataObject) -> None:
    words = WordCounts(counts, TEXTS)
    held = data.draw(st.sets(st.sampled_from(sorted(counts)))) if counts else set[str]()
    less, full = share_held(words, held), share_held(words, held | more)
    assert 0 <= less <= full + 1e-9 <= share_held(words, counts) + 2e-9 <= 1 + 3e-9
    assert share_held(words, more - counts.keys()) == 0


@given(counts=WORDS, rarer=st.integers(0, TEXTS))
def test_a_rare_word_counts_more_if_it_is_there_and_if_it_is_missing(counts: dict[str, int], rarer: int) -> None:
    for word, count in counts.items():
        before, after = (WordCounts({**counts, word: each}, TEXTS) for each in (count, max(0, count - rarer)))
        assert share_held(after, {word}) >= share_held(before, {word}) - 1e-9
        others = counts.keys() - {word}
        assert share_held(after, others) <= share_held(before, others) + 1e-9


@given(share=SHARES, other=SHARES, meaning=MEANINGS, more=st.floats(0, 1))
def test_relevance_is_from_0_to_1_and_grows_with_both(share: float, other: float, meaning: float, more: float) -> None:
    assert 0 <= relevance(share, meaning) <= 1
    assert relevance(min(share, other), meaning) <= relevance(max(share, other), meaning)
    assert relevance(share, meaning) <= relevance(share, meaning + more)
    assert relevance(1, meaning) == 1
    assert relevance(0, min(meaning, 0)) == 0


def test_words_are_held_in_any_form_and_not_inside_others() -> None:
    for words, text, language, held in (
        (["retries", "art", "conf*"], "Retry an article, configured.", "en", {"retries", "conf*"}),
        (["suchen", "haus"], "Ich suche Häuser.", "de", {"suchen", "haus"}),
        (["依赖", "数据"], "使用依赖注入", "zh", {"依赖"}),
        ([], "anything", None, set[str]()),
    ):
        assert words_held(words, ["", text], language, QueryWords(words)) == held


@given(query=st.text("abcxyz_.:'\"*- 0", max_size=40))
def test_capitals_never_change_what_is_asked(query: str) -> None:
    shouted = parse(query.upper())
    assert shouted == parse(query)
    assert shouted.stop == parse(query).stop
    assert single_words(shouted) == single_words(parse(query))


@given(query=st.text("abo 依赖.:_*-'", max_size=30) | st.text(max_size=30).filter(lambda text: '"' not in text))
def test_whatever_is_searched_has_words_to_measure(query: str) -> None:
    parsed = parse(query)
    if not parsed.phrases:
        assert bool(single_words(parsed)) == bool(alternatives(parsed))


def test_the_built_in_model_ignores_capitals() -> None:
    model = FastModel()
    for query in ("how do i upload a large file?", "json_response with utf-8", "naïve straße"):
        assert model.tokens(query.title()) == model.tokens(query)
        if query.isascii():
            assert model.tokens(query.upper()) == model.tokens(query)
