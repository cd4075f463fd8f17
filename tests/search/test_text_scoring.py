"""Where not every text can be scored, those that are scored are scored right, and the best are among them."""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from math import inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.search.query import ROOM, Scoring, alternatives, expressions, parse, scoring

VOCABULARY = [f"word{number}" for number in range(60)]
WEIGHTS = [1 / (number + 1) for number in range(60)]  # as words are: a few stand nearly everywhere
QUESTIONS = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=7, unique=True)
ROOMS = st.sampled_from((1, 20, 60, 150, 400))


@pytest.fixture(scope="module")
def table() -> Iterator[sqlite3.Connection]:
    chance = random.Random(4)
    texts = [" ".join(chance.choices(VOCABULARY, WEIGHTS, k=chance.randint(3, 30))) for _ in range(400)]
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    db.executemany("INSERT INTO t(x) VALUES (?)", [(text,) for text in texts])
    yield db
    db.close()


def scores(db: sqlite3.Connection, expression: str) -> dict[int, float]:
    return dict(db.execute("SELECT rowid, bm25(t) FROM t WHERE t MATCH ?", (expression,)))


def count(db: sqlite3.Connection, expression: str) -> int:
    return len(scores(db, expression))


def planned(db: sqlite3.Connection, words: Sequence[str], room: int, enough: int = 5) -> tuple[str, ...]:
    quoted = [f'"{word}"' for word in words]
    plan = scoring({word: count(db, word) for word in quoted}, room, enough)
    return expressions(plan, [count(db, step) for step in plan.steps], room, enough)


@given(words=QUESTIONS, room=ROOMS)
def test_the_highest_score_of_each_text_is_as_if_all_were_scored(
    table: sqlite3.Connection, words: list[str], room: int
) -> None:
    every = scores(table, " OR ".join(words))
    seen: dict[int, float] = {}
    for expression in planned(table, words, room):
        for text, score in scores(table, expression).items():
            seen[text] = min(score, seen.get(text, score))  # the better, the lower
    assert seen.keys() <= every.keys()
    assert bool(seen) == bool(every)
    assert all(score == pytest.approx(every[text]) for text, score in seen.items())


@given(words=QUESTIONS, room=ROOMS)
def test_no_text_that_the_first_query_leaves_out_scores_higher_than_the_rest_may(
    table: sqlite3.Connection, words: list[str], room: int
) -> None:
    plan = scoring({word: count(table, word) for word in words}, room, 5, texts=400)
    found = [scores(table, expression) for expression in plan.scored]
    left = [-score for later in found[1:] for text, score in later.items() if text not in found[0]]
    assert max(left, default=0.0) <= plan.rest


def test_the_rest_is_known_only_with_the_number_of_texts() -> None:
    counts = {"a": 9000, "b": 300}
    assert scoring(counts).rest == inf
    assert scoring(counts, texts=100_000).rest == pytest.approx(2.2 * log(99_700.5 / 300.5))


@given(words=QUESTIONS)
def test_with_room_for_all_it_is_one_query_for_all(table: sqlite3.Connection, words: list[str]) -> None:
    plan = scoring({word: count(table, word) for word in words}, room=4000)
    every = scores(table, " OR ".join(words))
    found = [scores(table, expression) for expression in expressions(plan, [])]
    assert plan.whole
    assert found == ([pytest.approx(every)] if every else [])


@given(words=QUESTIONS, room=ROOMS)
def test_more_than_there_is_room_for_is_scored_only_where_all_words_are_frequent(
    table: sqlite3.Connection, words: list[str], room: int
) -> None:
    counts = [count(table, word) for word in words]
    scored = sum(count(table, expression) for expression in planned(table, words, room))
    if any(0 < each <= room for each in counts):
        assert scored <= 2 * room
    else:
        assert scored <= min((each for each in counts if each), default=0)


def test_seldom_words_lead_and_frequent_ones_add_to_the_score() -> None:
    assert scoring({"a": 9000, "b": 300, "c": 70_000, "d": 20}) == Scoring(("(d OR b) AND (a OR c)", "(d OR b)"))


def test_few_texts_with_seldom_words_are_joined_by_those_with_several_frequent_ones() -> None:
    plan = scoring({"a": 9000, "b": 30, "c": 70_000, "e": 8000})
    scored = ("(b) AND (e OR a OR c)", "(b)")
    steps = ("e AND (a OR c)", "e AND a AND (c)")
    assert plan == Scoring(scored, steps)
    assert expressions(plan, [ROOM + 1, 700]) == (*scored, steps[1])
    assert expressions(plan, [ROOM - 100, 700]) == (*scored, steps[0])
    assert expressions(plan, [ROOM + 1, ROOM + 1]) == scored


def test_frequent_words_alone_are_asked_for_together_as_long_as_enough_texts_hold_them() -> None:
    plan = scoring({"a": 9000, "b": 8000, "c": 70_000})
    assert plan == Scoring((), ("b AND (a OR c)", "b AND a AND (c)"), "b")
    assert expressions(plan, [0, 0]) == ("b",)
    assert expressions(plan, [ROOM + 1, 300]) == ("b AND a AND (c)",)
    assert expressions(plan, [ROOM + 1, 7]) == ("b AND (a OR c)",)
    assert expressions(plan, [ROOM + 1, ROOM + 1]) == ("b AND a AND (c)",)


def test_one_frequent_word_is_scored_whatever_it_costs() -> None:
    plan = scoring({"a": 50_000})
    assert expressions(plan, [ROOM + 1]) == ("a",)


def test_words_that_no_text_holds_are_left_out() -> None:
    assert scoring({"a": 0, "b": 3}) == Scoring(("(b)",))
    assert scoring({"a": 0}) == scoring({}) == Scoring()
    assert expressions(Scoring(), []) == ()


@given(st.text(max_size=60))
def test_no_alternative_is_there_twice(text: str) -> None:
    query = parse(text)
    assert len(set(alternatives(query))) == len(alternatives(query))
