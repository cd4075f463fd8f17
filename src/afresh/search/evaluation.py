"""Score search on questions with known answers."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import fmean, median
from urllib.parse import urlsplit

from afresh.dataclass import dataclass
from afresh.errors import UsageError
from afresh.model.reports import SearchHit

DEPTH = 10  # how many results count
METRICS = ("nDCG@10", "Recall@10", "MRR@10")
BEST_GRADE = 3
MAX_QUESTIONS = 10_000

_ROUNDS = 5_000
_SEED = 4


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """A mean difference and its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Question:
    """A query and the pages that answer it (URL or end of a path) with grades; without pages, it has no answer."""

    query: str
    pages: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredQuestion:
    query: str
    wanted: tuple[str, ...]  # best grade first
    found: tuple[str, ...]  # URLs of the first results
    rank: int | None  # of the first page with the best grade
    right: bool  # one of the pages was found, or nothing good was found for a question without an answer
    ndcg: float
    recall: float
    mrr: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    questions: int
    without_answer: int
    declined: int  # questions without an answer for which nothing or no good match was found
    mrr: float
    ndcg: float
    recall: float
    hit_rates: Mapping[str, float]  # share of questions with the best page among the first 1, 3 and 10
    checked_age_seconds: float | None  # median time since the last check of the first results
    changed_age_seconds: float | None
    scored: tuple[ScoredQuestion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    first: Evaluation
    second: Evaluation
    differences: Mapping[str, MeanDifference]


def read_questions(text: str) -> list[Question]:
    """Read questions from JSON Lines: `{"query": "…", "pages": ["/guide/", …]}`, or pages with grades 1 to 3."""
    questions = [_question(line, number) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not questions:
        raise UsageError('no questions; each line is one, such as {"query": "set a timeout", "pages": ["/timeouts"]}')
    if len(questions) > MAX_QUESTIONS:
        raise UsageError(f"{len(questions)} questions; at most {MAX_QUESTIONS} are allowed")
    return questions


def _question(line: str, number: int) -> Question:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError) as wrong:
        raise UsageError(f"line {number} is not JSON: {wrong}") from None
    query, pages = (read.get("query"), read.get("pages")) if isinstance(read, dict) else (None, None)
    if not (isinstance(query, str) and query.strip()):
        raise UsageError(f'line {number} has no "query"')
    if isinstance(pages, list):
        pages = dict.fromkeys((page for page in pages if isinstance(page, str)), BEST_GRADE)
    if not isinstance(pages, dict) or not all(page and _is_grade(grade) for page, grade in pages.items()):
        raise UsageError(f'line {number}: "pages" has to be a list of pages, or pages with grades from 1 to 3')
    return Question(query, pages)


def _is_grade(grade: object) -> bool:
    return isinstance(grade, int) and 1 <= grade <= BEST_GRADE


def score(question: Question, hits: Sequence[SearchHit]) -> ScoredQuestion:
    found: list[str | None] = []
    for hit in hits[:DEPTH]:
        page = _wanted_page(hit, question.pages)
        found.append(None if page in found else page)
    ranking = [page or "" for page in found]
    best = max(question.pages.values(), default=0)
    ndcg_, recall_, mrr = scores(ranking, question.pages) if question.pages else (0.0, 0.0, 0.0)
    return ScoredQuestion(
        query=question.query,
        wanted=tuple(sorted(question.pages, key=lambda page: -question.pages[page])),
        found=tuple(hit.url for hit in hits[:DEPTH]),
        rank=next((rank for rank, page in enumerate(found, 1) if page and question.pages[page] == best), None),
        right=any(found) if question.pages else not hits,
        ndcg=ndcg_,
        recall=recall_,
        mrr=mrr,
    )


def _wanted_page(hit: SearchHit, pages: Mapping[str, int]) -> str | None:
    """Return the key of `pages` that names a result; if several do, the one with the best grade; if none does, None."""
    urls = (hit.url, *hit.also_at)
    matching = [page for page in pages if any(_is_page(url, page) for url in urls)]
    return max(matching, key=lambda page: pages[page], default=None)


def _is_page(url: str, page: str) -> bool:
    """Return whether a URL is the wanted page, given as a URL or as the last parts of a path."""
    if "://" in page:
        return url.partition("#")[0] == page.partition("#")[0]
    return urlsplit(url).path.endswith(f"/{page.lstrip('/')}")


def summarize(asked: Sequence[tuple[Question, Sequence[SearchHit]]], now: datetime) -> Evaluation:
    """Score all questions; the means leave out questions without an answer."""
    every = [score(question, hits) for question, hits in asked]
    answered = [each for each in every if each.wanted]
    first = [hits[0] for _, hits in asked if hits]
    return Evaluation(
        questions=len(every),
        without_answer=len(every) - len(answered),
        declined=sum(each.right for each in every if not each.wanted),
        mrr=_mean([each.mrr for each in answered]),
        ndcg=_mean([each.ndcg for each in answered]),
        recall=_mean([each.recall for each in answered]),
        hit_rates={
            str(depth): _mean([float(each.rank is not None and each.rank <= depth) for each in answered])
            for depth in (1, 3, DEPTH)
        },
        checked_age_seconds=_median_age([hit.checked_at for hit in first], now),
        changed_age_seconds=_median_age([hit.changed_at for hit in first], now),
        scored=tuple(every),
    )


def compare(first: Evaluation, second: Evaluation) -> Comparison:
    """Return two evaluations of the same questions, with the differences of their scores (second minus first)."""
    one, other = ([each for each in side.scored if each.wanted] for side in (first, second))
    if not one:
        return Comparison(first=first, second=second, differences={})
    differences = {
        name: difference([getattr(each, name) for each in other], [getattr(each, name) for each in one])
        for name in ("mrr", "ndcg", "recall")
    }
    return Comparison(first=first, second=second, differences=differences)


def scores(ranking: Sequence[str], grades: Mapping[str, int]) -> tuple[float, float, float]:
    """Return nDCG, recall and reciprocal rank of the first DEPTH results."""
    top = ranking[:DEPTH]
    return ndcg(top, grades), recall(top, grades), reciprocal_rank(top, grades)


def ndcg(top: Sequence[str], grades: Mapping[str, int]) -> float:
    """Return the gain of the ranking, discounted by rank, as a share of the best possible gain."""
    ideal = sorted(grades.values(), reverse=True)[:DEPTH]
    return _gain([grades.get(page, 0) for page in top]) / _gain(ideal)


def recall(top: Sequence[str], grades: Mapping[str, int]) -> float:
    """Return the share of the graded pages that were found."""
    return len(grades.keys() & set(top)) / len(grades)


def reciprocal_rank(top: Sequence[str], grades: Mapping[str, int]) -> float:
    """Return 1 / rank of the first page with the best grade, or 0."""
    best = max(grades.values())
    return next((1 / rank for rank, page in enumerate(top, 1) if grades.get(page) == best), 0.0)


def difference(one: Sequence[float], other: Sequence[float]) -> MeanDifference:
    """Return the mean of the differences `one - other`, with its bootstrap interval."""
    import numpy as np

    apart = np.asarray(one) - np.asarray(other)
    chance = np.random.default_rng(_SEED)
    means = apart[chance.integers(0, len(apart), (_ROUNDS, len(apart)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return MeanDifference(float(apart.mean()), float(low), float(high))


def _gain(grades: Sequence[int]) -> float:
    return math.fsum((2.0**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _median_age(times: Sequence[datetime | None], now: datetime) -> float | None:
    ages = [(now - each).total_seconds() for each in times if each]
    return median(ages) if ages else None
