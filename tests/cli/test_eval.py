"""`afresh eval`: scores of search on the user's own questions (issue 25, part 5)."""

from pathlib import Path

import pytest
from tests.cli.conftest import Afresh, Opened

QUESTIONS = """\
{"query": "job that fails is retried", "pages": ["guide/retries/"]}
{"query": "queue holds jobs", "pages": ["/nowhere"]}
{"query": "xyzzyqwv", "pages": []}
"""


@pytest.fixture
def questions(kb: Opened, tmp_path: Path) -> str:
    (tmp_path / "questions.jsonl").write_text(QUESTIONS, "utf-8")
    return "questions.jsonl"


def test_scores_misses_and_ages_are_displayed(afresh: Afresh, questions: str) -> None:
    ended = afresh("eval", questions)
    assert ended.code == 0, ended.err
    printed = " ".join(ended.out.split())
    assert "questions 3 MRR@10 0.500 nDCG@10 0.500 Recall@10 0.500 best page in first 1 50.0%" in printed
    assert "no answer, none shown 1 of 1" in printed
    assert "queue holds jobs expected /nowhere found https://" in printed
    assert "(median of first results)" in printed
    assert afresh("eval", questions, "--json").document["checked_age_seconds"] == 177
    assert "queue holds jobs" not in afresh("eval", questions, "--misses", "0").out


def test_two_modes_or_settings_are_compared(afresh: Afresh, questions: str, tmp_path: Path) -> None:
    ended = afresh("eval", questions, "--compare", "vector")  # this store has no vectors
    assert "MRR@10 0.500 0.000 -0.500 -1.000 to +0.000" in " ".join(ended.out.split()), ended.out + ended.err
    (tmp_path / "other.yaml").write_text("embedding: {provider: none}\n", "utf-8")
    document = afresh("eval", questions, "--compare", "other.yaml", "--json").document
    assert document["first"]["mrr"] == document["second"]["mrr"] == 0.5
    assert document["differences"]["mrr"]["mean"] == 0
    assert "no-such.yaml" in afresh("eval", questions, "--compare", "no-such.yaml").err


def test_a_low_score_is_an_exit_code(afresh: Afresh, questions: str) -> None:
    assert afresh("eval", questions, "--fail-under", "0.5").code == 0
    assert afresh("eval", questions, "--fail-under", "0.51").code == 1


def test_bad_files_name_the_line(afresh: Afresh, kb: Opened, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"query": "a", "pages": []}\n{"query": 1}\n', "utf-8")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    for file, problem in (
        ("bad.jsonl", 'bad.jsonl: line 2 has no "query"'),
        ("binary.jsonl", "cannot read binary.jsonl: it is not UTF-8 text"),
        ("none.jsonl", "cannot read none.jsonl: No such file"),
    ):
        ended = afresh("eval", file)
        assert (ended.code, problem in ended.err) == (2, True), ended.err
    assert kb.calls == []
