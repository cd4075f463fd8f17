"""Whatever a model answers, only bounded scores of links that were asked for come out of it."""

import json
import time
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.links.score import MAX_COMMENT_CHARS, LinkToScore
from afresh.models.completions import UnusableAnswer
from afresh.models.link_scorer import MAX_UNREQUESTED, ParsedScores, parse_scores

LINKS = [
    LinkToScore("https://a.example/budget", "Budget"),
    LinkToScore("https://a.example/b%C3%BCro/", "Office"),
    LinkToScore("https://a.example/Same", ""),
    LinkToScore("https://a.example/same", ""),
]
KEYWORDS = ("budget", "contact")
GOOD = {
    "links": [{"url": link.url, "keywords": [{"keyword": "budget", "score": 0.5}], "comment": "why"} for link in LINKS]
}


def one(url: str = LINKS[0].url, **more: object) -> ParsedScores:
    """What is read of an answer with one link."""
    return parse_scores(json.dumps({"links": [{"url": url, **more}]}), LINKS, KEYWORDS)


def scores(reading: ParsedScores) -> list[tuple[str, dict[str, float]]]:
    return [(verdict.url, dict(verdict.keywords)) for verdict in reading.judgements]


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
        reading = parse_scores(content, LINKS, KEYWORDS)
    except UnusableAnswer:
        return
    assert {(each.url, each.text) for each in reading.judgements} <= set(LINKS)
    assert len(reading.judgements) <= len(LINKS)
    for verdict in reading.judgements:
        assert verdict.keywords
        assert all(0 < score <= 1 for score in verdict.keywords.values())
        assert len(set(verdict.keywords) - set(KEYWORDS)) <= MAX_UNREQUESTED
        assert len(verdict.comment) <= MAX_COMMENT_CHARS
        assert "\n" not in verdict.comment


@pytest.mark.parametrize(
    "piece", [" ", "<think>", "[", '{"links": [', '{"a":', '"links"', '"links": ', '"', "\\", "{}", "[{},", "x"]
)
@pytest.mark.parametrize("begun", ["", '{"links": [', '{"links": [{"url": "'])
def test_F90_a_large_answer_of_nothing_costs_little(begun: str, piece: str) -> None:
    began = time.process_time()
    with suppress(UnusableAnswer):
        assert parse_scores(begun + piece * (1_000_000 // len(piece)), LINKS, KEYWORDS).judgements == []
    assert time.process_time() - began < 10


@given(st.integers(0, len(json.dumps(GOOD))))
def test_F90_of_a_truncated_answer_every_whole_link_is_kept_and_the_end_is_known(end: int) -> None:
    text = json.dumps(GOOD)[:end]
    whole = text.count('"why"}')
    try:
        reading = parse_scores(text, LINKS, KEYWORDS)
    except UnusableAnswer:
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
    reading = parse_scores(framed.replace("{}", json.dumps(GOOD)), LINKS, KEYWORDS)
    assert [url for url, _ in scores(reading)] == [link.url for link in LINKS]
    assert reading.is_whole


def test_F90_a_list_without_an_object_around_it_will_do() -> None:
    assert len(parse_scores(json.dumps(GOOD["links"]), LINKS, KEYWORDS).judgements) == 4
    assert len(parse_scores(f"So: {json.dumps(GOOD['links'])}", LINKS, KEYWORDS).judgements) == 4


@pytest.mark.parametrize(
    ("score", "kept", "clamped"),
    [
        (0.5, 0.5, False),
        (1, 1.0, False),
        (2, 1.0, True),
        (-1, None, True),
        (0, None, False),
        (float("nan"), None, False),
        (float("inf"), None, False),
        ("high", None, False),
        ("1", None, False),
        (True, None, False),
        (None, None, False),
        ([1], None, False),
        (10**400, None, False),
    ],
)
def test_F90_only_numbers_are_scores_and_they_are_clamped(score: object, kept: float | None, clamped: bool) -> None:
    assert scores(one(keywords=[{"keyword": "Budget ", "score": score}])) == (
        [(LINKS[0].url, {"budget": kept})] if kept else []
    )
    both = one(keywords=[{"keyword": "budget", "score": score}, {"keyword": "contact", "score": 0.1}])
    assert ("outside 0 to 1" in both.judgements[0].comment) == clamped


def test_F90_invented_links_are_dropped_and_known_ones_found_as_models_write_them() -> None:
    keywords = {"contact": 1.0}
    assert scores(one("https://a.example/nobody", keywords=keywords)) == []
    assert scores(one("https://a.example/büro", keywords=keywords)) == [(LINKS[1].url, keywords)]
    assert scores(one("<https://A.example/budget/>", keywords=keywords)) == [(LINKS[0].url, keywords)]
    assert scores(one(LINKS[3].url, keywords=keywords)) == [(LINKS[3].url, keywords)]
    assert scores(one("https://a.example/SAME", keywords=keywords)) == [], "two could be meant"


def test_F90_duplicates_are_merged_and_unknown_keywords_are_few() -> None:
    twice = [
        {"url": LINKS[0].url, "keywords": {"budget": score}, "comment": why} for score, why in ((0.3, ""), (0.7, "b"))
    ]
    reading = parse_scores(json.dumps({"links": twice}), LINKS, KEYWORDS)
    assert [(each.keywords, each.comment) for each in reading.judgements] == [({"budget": 0.7}, "b")]
    many = one(keywords={**{f"own {at}": 0.9 for at in range(50)}, "contact": 0.1, "x" * 101: 1, "": 1, "a\x00": 1})
    ((_, kept),) = scores(many)
    assert len(kept) == MAX_UNREQUESTED + 1
    assert kept["contact"] == 0.1
    assert not {"x" * 101, "", "a\x00"} & kept.keys()


def test_F92_a_comment_is_plain_and_short() -> None:
    evil = "**See** [this](https://evil.example)\n\n\x1b[31m<script>alert(1)</script>\u202e " + "word " * 100
    (verdict,) = one(keywords={"budget": 1}, comment=evil).judgements
    assert verdict.comment.startswith("See this [31malert(1) word")
    assert len(verdict.comment) <= MAX_COMMENT_CHARS


def test_F90_an_answer_full_of_unknown_keywords_is_read_in_time_that_grows_with_its_size() -> None:
    began = time.process_time()
    ((_, kept),) = scores(one(keywords={f"own {at}": 0.5 for at in range(40_000)}))
    assert len(kept) == MAX_UNREQUESTED
    assert time.process_time() - began < 5
