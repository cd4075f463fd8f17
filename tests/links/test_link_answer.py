"""Whatever a model answers, only bounded scores of links that were asked for come out of it."""

import json
import time
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.links.score import LONGEST_COMMENT, LinkToScore
from afresh.models.link_scorer import MOST_UNKNOWN, BadAnswer, ParsedScores, read_answer

LINKS = [
    LinkToScore("https://a.example/budget", "Budget"),
    LinkToScore("https://a.example/b%C3%BCro/", "Office"),
    LinkToScore("https://a.example/Same", ""),
    LinkToScore("https://a.example/same", ""),
]
KEYWORDS = ("budget", "contact")
GOOD = {
    "links": [
        {"url": link.url, "keywords": [{"keyword": "budget", "score": 0.5}], "comment": "why"}
        for link in LINKS
    ]
}


def one(url: str = LINKS[0].url, **more: object) -> ParsedScores:
    """What is read of an answer with one link."""
    return read_answer(json.dumps({"links": [{"url": url, **more}]}), LINKS, KEYWORDS)


def scores(reading: ParsedScores) -> list[tuple[str, dict[str, float]]]:
    return [(verdict.url, dict(verdict.keywords)) for verdict in reading.verdicts]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
urls = st.sampled_from([link.url for link in LINKS]) | st.text(max_size=30) | json_values
pairs = st.fixed_dictionaries(
    {}, optional={"keyword": st.sampled_from(KEYWORDS) | json_values, "score": st.floats() | json_values}
)
entries = st.fixed_dictionaries(
    {}, optional={"url": urls, "keywords": st.lists(pairs, max_size=8) | json_values, "comment": json_values}
)
answers = st.lists(entries | json_values, max_size=6).map(lambda links: json.dumps({"links": links}))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """An answer with a part cut out, framed, or with something else put in."""
    whole = draw(answers | st.just(json.dumps(GOOD)))
    start, end = sorted((draw(st.integers(0, len(whole))), draw(st.integers(0, len(whole)))))
    return draw(st.text(max_size=12)) + whole[:start] + draw(st.text(max_size=5)) + whole[end:]


@given(answers | damaged() | st.text(max_size=200))
@example('{"links": [{"url": "https://a.example/budget", "keywords": {"budget": 1' + "0" * 5_000 + "}}]}")
@example('{"links": [{"url": "https://a.example/budget", "keywords": {"budget": 1' + "0" * 400 + "}}]}")
@example('{"links": [{"url": "\ud800"}]}')
def test_F90_no_answer_breaks_the_reader_or_gets_out_of_bounds(content: str) -> None:
    try:
        reading = read_answer(content, LINKS, KEYWORDS)
    except BadAnswer:
        return
    assert {(each.url, each.text) for each in reading.verdicts} <= set(LINKS)
    assert len(reading.verdicts) <= len(LINKS)
    for verdict in reading.verdicts:
        assert verdict.keywords
        assert all(0 < score <= 1 for score in verdict.keywords.values())
        assert len(set(verdict.keywords) - set(KEYWORDS)) <= MOST_UNKNOWN
        assert len(verdict.comment) <= LONGEST_COMMENT
        assert "\n" not in verdict.comment


@pytest.mark.parametrize(
    "piece",
    [" ", "<think>", "[", '{"links": [', '{"a":', '"links"', '"links": ', '"', "\\", "{}", "[{},", "x"],
)
@pytest.mark.parametrize("begun", ["", '{"links": [', '{"links": [{"url": "'])
def test_F90_a_large_answer_of_nothing_costs_little(begun: str, piece: str) -> None:
    began = time.process_time()
    with suppress(BadAnswer):
        assert read_answer(begun + piece * (1_000_000 // len(piece)), LINKS, KEYWORDS).verdicts == []
    assert time.process_time() - began < 10


@given(st.integers(0, len(json.dumps(GOOD))))
def test_F90_of_a_truncated_answer_every_whole_link_is_kept_and_the_end_is_known(end: int) -> None:
    text = json.dumps(GOOD)[:end]
    whole = text.count('"why"}')
    try:
        reading = read_answer(text, LINKS, KEYWORDS)
    except BadAnswer:
        assert not whole
        return
    assert [url for url, _ in scores(reading)] == [link.url for link in LINKS[:whole]]
    assert reading.is_whole == ("]}" in text[-2:] or (text.endswith("]") and whole == len(LINKS)))


@pytest.mark.parametrize(
    "framed",
    [
        "```json\n{}\n```",
        "Sure! Here it is:\n\n{}\n\nAnything else?",
        "<think>[1] {{}}</think>\n{}",
        "\ufeff{}",
        "{} {}",
    ],
)
def test_F90_what_stands_around_an_answer_is_left_out(framed: str) -> None:
    reading = read_answer(framed.replace("{}", json.dumps(GOOD)), LINKS, KEYWORDS)
    assert [url for url, _ in scores(reading)] == [link.url for link in LINKS]
    assert reading.is_whole


def test_F90_a_list_without_an_object_around_it_will_do() -> None:
    assert len(read_answer(json.dumps(GOOD["links"]), LINKS, KEYWORDS).verdicts) == 4
    assert len(read_answer(f"So: {json.dumps(GOOD['links'])}", LINKS, KEYWORDS).verdicts) == 4


@pytest.mark.parametrize(
    ("score", "kept", "clamped", "refused"),
    [
        (0.5, 0.5, 0, 0),
        (1, 1.0, 0, 0),
        (2, 1.0, 1, 0),
        (-1, None, 1, 0),
        (0, None, 0, 0),
        (float("nan"), None, 0, 1),
        (float("inf"), None, 0, 1),
        ("high", None, 0, 1),
        ("1", None, 0, 1),
        (True, None, 0, 1),
        (None, None, 0, 1),
        ([1], None, 0, 1),
        (10**400, None, 0, 1),
    ],
)
def test_F90_only_numbers_are_scores_and_they_are_clamped(
    score: object, kept: float | None, clamped: int, refused: int
) -> None:
    reading = one(keywords=[{"keyword": "Budget ", "score": score}])
    assert scores(reading) == ([(LINKS[0].url, {"budget": kept})] if kept else [])
    assert (reading.clamped, reading.refused) == (clamped, refused)


def test_F90_invented_links_are_dropped_and_known_ones_found_as_models_write_them() -> None:
    keywords = {"contact": 1.0}
    assert one("https://a.example/nobody", keywords=keywords).invented == 1
    assert scores(one("https://a.example/büro", keywords=keywords)) == [(LINKS[1].url, keywords)]
    assert scores(one("<https://A.example/budget/>", keywords=keywords)) == [(LINKS[0].url, keywords)]
    assert scores(one(LINKS[3].url, keywords=keywords)) == [(LINKS[3].url, keywords)]
    assert one("https://a.example/SAME", keywords=keywords).invented == 1, "two could be meant"


def test_F90_duplicates_are_merged_and_unknown_keywords_are_few() -> None:
    twice = [
        {"url": LINKS[0].url, "keywords": {"budget": score}, "comment": why}
        for score, why in ((0.3, ""), (0.7, "b"))
    ]
    reading = read_answer(json.dumps({"links": twice}), LINKS, KEYWORDS)
    assert [(each.keywords, each.comment) for each in reading.verdicts] == [({"budget": 0.7}, "b")]
    many = one(
        keywords={**{f"own {at}": 0.9 for at in range(50)}, "contact": 0.1, "x" * 101: 1, "": 1, "a\x00": 1}
    )
    ((_, kept),) = scores(many)
    assert len(kept) == MOST_UNKNOWN + 1
    assert kept["contact"] == 0.1
    assert many.refused == 3


def test_F92_a_comment_is_plain_and_short() -> None:
    evil = "**See** [this](https://evil.example)\n\n\x1b[31m<script>alert(1)</script>\u202e " + "word " * 100
    (verdict,) = one(keywords={"budget": 1}, comment=evil).verdicts
    assert verdict.comment.startswith("See this [31malert(1) word")
    assert len(verdict.comment) <= LONGEST_COMMENT


def test_F90_an_answer_full_of_unknown_keywords_is_read_in_time_that_grows_with_its_size() -> None:
    began = time.process_time()
    ((_, kept),) = scores(one(keywords={f"own {at}": 0.5 for at in range(40_000)}))
    assert len(kept) == MOST_UNKNOWN
    assert time.process_time() - began < 5
