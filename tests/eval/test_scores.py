"""The scores are what the books say, and the questions are what eval/README.md says."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from eval.sets import CRANFIELD, FASTAPI, HERE, NAMES, load

from afresh.search.evaluation import difference, ndcg, recall, reciprocal_rank

GRADES = {"a": 3, "b": 1}


def test_a_perfect_ranking_has_one_and_a_useless_one_nothing() -> None:
    assert ndcg(["a", "b", "c"], GRADES) == 1.0
    assert (ndcg(["c"], GRADES), recall(["c"], GRADES), reciprocal_rank(["c"], GRADES)) == (0.0, 0.0, 0.0)


def test_what_stands_lower_gains_less() -> None:
    gained = 1 + 7 / math.log2(3)  # b first, a second
    assert ndcg(["b", "a"], GRADES) == pytest.approx(gained / (7 + 1 / math.log2(3)))
    assert recall(["x", "b"], GRADES) == 0.5
    assert reciprocal_rank(["b", "x", "a"], GRADES) == pytest.approx(1 / 3)  # only the best grade counts


def test_only_ten_pages_can_be_ideal() -> None:
    many = {str(number): 1 for number in range(30)}
    assert ndcg([str(number) for number in range(10)], many) == 1.0


def test_an_interval_separates_a_sure_difference_from_a_lucky_one() -> None:
    sure = difference([0.6, 0.7, 0.8] * 20, [0.5, 0.6, 0.7] * 20)
    assert (round(sure.mean, 6), round(sure.low, 6), round(sure.high, 6)) == (0.1, 0.1, 0.1)
    lucky = difference([1.0, 0.0, 0.0, 0.1] * 5, [0.0, 1.0, 0.0, 0.0] * 5)
    assert lucky.low < 0 < lucky.mean < lucky.high


def _questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / "fastapi.jsonl").read_text("utf-8").splitlines()]


def test_every_question_has_an_answer_and_no_page_answers_too_many() -> None:
    questions = _questions()
    best = Counter(page for each in questions for page, grade in each["pages"].items() if grade == 3)
    assert len({each["id"] for each in questions}) == len(questions) >= 48
    assert len({each["query"] for each in questions}) == len(questions)
    assert {grade for each in questions for grade in each["pages"].values()} == {1, 2, 3}
    assert all(3 in each["pages"].values() for each in questions)
    assert max(best.values()) <= 3
    assert 3 * sum(each["kind"] == "paraphrase" for each in questions) >= len(questions)


def test_the_readme_counts_the_questions_right() -> None:
    readme = (HERE / "README.md").read_text("utf-8")
    kinds = Counter(each["kind"] for each in _questions())
    assert f"{kinds.total()} questions" in readme
    assert all(f"`{kind}` ({number}" in readme for kind, number in kinds.items())


@pytest.mark.parametrize(("name", "pages", "questions"), [(CRANFIELD, 1398, 225), (FASTAPI, 155, 92)])
def test_graded_pages_exist(name: str, pages: int, questions: int, shared: Path) -> None:
    found = load(name, shared)
    assert name in NAMES
    assert (len(found.pages), len(found.questions)) == (pages, questions)
    lines = [line.strip() for page in found.pages.values() for line in page.text.splitlines()]
    assert not [line for line in lines if line.startswith(("///", "{* ", "{!"))]  # read by a generator only
