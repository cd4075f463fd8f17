"""Scoring search on questions with known answers (issue 25, part 5)."""

from datetime import timedelta

import pytest
from tests.fakes.records import NOW, hit

from afresh.errors import UsageError
from afresh.search.evaluation import Question, compare, read_questions, score, summarize

SITE = "https://docs.example.org"


def test_questions_are_read_with_and_without_grades() -> None:
    text = '{"query": "a", "pages": ["/x"]}\n\n{"query": "b", "pages": {"/y": 2}}\n{"query": "c", "pages": []}\n'
    assert [(each.query, dict(each.pages)) for each in read_questions(text)] == [
        ("a", {"/x": 3}),
        ("b", {"/y": 2}),
        ("c", {}),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "no questions"),
        ("{", "line 1 is not JSON"),
        ("[" * 100_000, "line 1 is not JSON"),
        ("[1]", 'line 1 has no "query"'),
        ('{"query": " ", "pages": []}', 'line 1 has no "query"'),
        ('{"query": "a"}', '"pages"'),
        ('{"query": "a", "pages": {"/x": 9}}', "grades from 1 to 3"),
        ('{"query": "a", "pages": {"/x": "3"}}', "grades from 1 to 3"),
    ],
)
def test_a_bad_line_is_named(line: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_questions(line)


def test_a_page_is_named_by_its_url_or_by_the_end_of_its_path() -> None:
    hits = [hit(url=f"{SITE}/guide/not-timeouts"), hit(url=f"{SITE}/guide/timeouts#read")]
    for page in (f"{SITE}/guide/timeouts", "/guide/timeouts", "timeouts"):
        assert score(Question("q", {page: 3}), hits).rank == 2, page
    assert score(Question("q", {"https://other.example.org/guide/timeouts": 3}), hits).rank is None


def test_a_copy_of_the_wanted_page_counts_once() -> None:
    hits = [hit(url=f"{SITE}/v1/a"), hit(url=f"{SITE}/v2/a"), hit(url=f"{SITE}/x", also_at=(f"{SITE}/b",))]
    scored = score(Question("q", {"/a": 3, "/b": 1}), hits)
    assert (scored.rank, scored.mrr, scored.recall, scored.right) == (1, 1.0, 1.0, True)
    assert scored.ndcg < 1


def test_the_means_leave_out_questions_without_an_answer() -> None:
    found = hit(url=f"{SITE}/a", checked_at=NOW - timedelta(hours=2), changed_at=None)
    asked = [(Question("q", {"/a": 3}), [found]), (Question("none", {}), []), (Question("odd", {}), [found])]
    result = summarize(asked, NOW)
    assert (result.questions, result.without_answer, result.declined) == (3, 2, 1)
    assert (result.mrr, result.ndcg, result.recall, dict(result.hit_rates)) == (1, 1, 1, {"1": 1, "3": 1, "10": 1})
    assert (result.checked_age_seconds, result.changed_age_seconds) == (7200, None)
    assert [each.right for each in result.scored] == [True, True, False]


def test_a_comparison_gives_the_gain_of_the_second() -> None:
    question = Question("q", {"/a": 3})
    worse = summarize([(question, [hit(url=f"{SITE}/x"), hit(url=f"{SITE}/a")])], NOW)
    better = summarize([(question, [hit(url=f"{SITE}/a")])], NOW)
    assert compare(worse, better).differences["mrr"].mean == 0.5
    nothing = summarize([(Question("q", {}), [])], NOW)
    assert compare(nothing, nothing).differences == {}
