"""Two halves become one order: no half is lost, no order of arrival matters, and more is never less."""

import random

from hypothesis import given
from hypothesis import strategies as st

from afresh.search.ranking import fuse
from afresh.search.records import ChunkMatch, VectorMatches

CHUNKS = st.integers(1, 30)
SCORES = st.floats(0.001, 40, allow_subnormal=False)
LIKENESSES = st.floats(-0.2, 1, allow_subnormal=False)
WORDS = st.dictionaries(CHUNKS, SCORES, max_size=12)
MEANINGS = st.dictionaries(CHUNKS, LIKENESSES, max_size=12)
MEANS = st.floats(-0.1, 0.3, allow_subnormal=False)
WEIGHTS = st.floats(0.05, 0.95)


def order(
    words: dict[int, float], meanings: dict[int, float], mean: float = 0.1, meaning: float = 0.45
) -> list[ChunkMatch]:
    matches = [ChunkMatch(*each) for each in words.items()]
    return fuse(matches, VectorMatches(tuple(ChunkMatch(*each) for each in meanings.items()), mean), meaning)


def place(ranked: list[ChunkMatch], chunk: int) -> int:
    return [match.chunk for match in ranked].index(chunk)


@given(words=WORDS, meanings=MEANINGS, mean=MEANS, weight=WEIGHTS)
def test_every_candidate_is_ranked_once_by_a_score_from_0_to_1(
    words: dict[int, float], meanings: dict[int, float], mean: float, weight: float
) -> None:
    ranked = order(words, meanings, mean, weight)
    assert sorted(match.chunk for match in ranked) == sorted(words.keys() | meanings.keys())
    assert [match.score for match in ranked] == sorted((match.score for match in ranked), reverse=True)
    assert all(0 <= match.score <= 1 + 1e-9 for match in ranked)


@given(words=WORDS, meanings=MEANINGS, seed=st.integers(0, 99))
def test_candidates_may_come_in_any_order(words: dict[int, float], meanings: dict[int, float], seed: int) -> None:
    shuffler = random.Random(seed)
    mixed = [dict(shuffler.sample(list(half.items()), len(half))) for half in (words, meanings)]
    assert order(mixed[0], mixed[1]) == order(words, meanings)


@given(words=WORDS, meanings=MEANINGS, chunk=CHUNKS, more=st.floats(0, 20), weight=WEIGHTS)
def test_a_better_match_never_falls(
    words: dict[int, float], meanings: dict[int, float], chunk: int, more: float, weight: float
) -> None:
    words[chunk] = words.get(chunk, 1.0)
    before = place(order(words, meanings, meaning=weight), chunk)
    after = place(order(words | {chunk: words[chunk] + more}, meanings, meaning=weight), chunk)
    assert after <= before


@given(words=WORDS, meanings=MEANINGS, chunk=CHUNKS, more=st.floats(0, 0.5), weight=WEIGHTS)
def test_a_nearer_meaning_never_falls(
    words: dict[int, float], meanings: dict[int, float], chunk: int, more: float, weight: float
) -> None:
    meanings[chunk] = meanings.get(chunk, 0.2)
    before = place(order(words, meanings, meaning=weight), chunk)
    after = place(order(words, meanings | {chunk: meanings[chunk] + more}, meaning=weight), chunk)
    assert after <= before


@given(words=WORDS, meanings=MEANINGS, chunk=CHUNKS, score=SCORES, likeness=LIKENESSES)
def test_a_hit_of_both_halves_is_not_worse_than_a_hit_of_one(
    words: dict[int, float], meanings: dict[int, float], chunk: int, score: float, likeness: float
) -> None:
    words.pop(chunk, None)
    meanings.pop(chunk, None)
    both = place(order(words | {chunk: score}, meanings | {chunk: likeness}), chunk)
    assert both <= place(order(words | {chunk: score}, meanings), chunk)
    assert both <= place(order(words, meanings | {chunk: likeness}), chunk)


@given(words=WORDS, meanings=MEANINGS, factor=st.sampled_from((0.25, 2.0, 64.0)))
def test_the_unit_of_word_scores_does_not_matter(
    words: dict[int, float], meanings: dict[int, float], factor: float
) -> None:
    scaled = {chunk: score * factor for chunk, score in words.items()}
    assert order(scaled, meanings) == order(words, meanings)


def test_of_equals_the_older_chunk_comes_first() -> None:
    assert [match.chunk for match in order({9: 2.0, 3: 2.0, 7: 2.0}, {8: 0.1, 5: 0.1})] == [3, 7, 9, 5, 8]


def test_half_an_answer_from_each_side_beats_a_whole_one_from_one() -> None:
    ranked = order({1: 10.0, 2: 7.0}, {3: 0.9, 2: 0.7})
    assert [match.chunk for match in ranked] == [2, 1, 3]


def test_a_chunk_that_is_named_twice_counts_by_its_better_score() -> None:
    nearest = VectorMatches((ChunkMatch(1, 0.4),), 0.1)
    assert fuse([ChunkMatch(1, 3.0), ChunkMatch(1, 1.0), ChunkMatch(2, 2.0)], nearest) == fuse(
        [ChunkMatch(2, 2.0), ChunkMatch(1, 3.0)], nearest
    )


def test_one_half_alone_keeps_its_order() -> None:
    assert [match.chunk for match in order({4: 1.0, 5: 3.0, 6: 2.0}, {})] == [5, 6, 4]
    assert [match.chunk for match in order({}, {4: 0.2, 5: 0.9, 6: 0.3})] == [5, 6, 4]
    assert order({}, {}) == []


def test_likenesses_below_the_mean_are_worth_nothing() -> None:
    ranked = order({1: 1.0}, {2: 0.05, 3: 0.1, 1: 0.02}, mean=0.1)
    assert [(match.chunk, match.score) for match in ranked] == [(1, 0.55), (2, 0.0), (3, 0.0)]
