"""How good a ranking is, and how sure a difference between two of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DEPTH = 10
METRICS = ("nDCG@10", "Recall@10", "MRR@10")
_ROUNDS = 5_000
_SEED = 4


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean difference and the range in which 95 of 100 resamples put it."""

    mean: float
    low: float
    high: float


def scores(ranking: Sequence[str], grades: Mapping[str, int]) -> tuple[float, float, float]:
    """What METRICS name, for one question."""
    top = ranking[:DEPTH]
    return ndcg(top, grades), recall(top, grades), reciprocal_rank(top, grades)


def ndcg(top: Sequence[str], grades: Mapping[str, int]) -> float:
    """The gain of the ranking, with less for what stands lower, as a share of the best possible one."""
    ideal = sorted(grades.values(), reverse=True)[:DEPTH]
    return _gain([grades.get(page, 0) for page in top]) / _gain(ideal)


def recall(top: Sequence[str], grades: Mapping[str, int]) -> float:
    """The share of the graded pages that are there."""
    return len(grades.keys() & set(top)) / len(grades)


def reciprocal_rank(top: Sequence[str], grades: Mapping[str, int]) -> float:
    """One divided by the place of the first page with the best grade."""
    best = max(grades.values())
    return next((1 / place for place, page in enumerate(top, 1) if grades.get(page) == best), 0.0)


def difference(one: Sequence[float], other: Sequence[float]) -> Interval:
    """How much more `one` has than `other`, question by question, with a bootstrap interval."""
    import numpy as np

    apart = np.asarray(one) - np.asarray(other)
    chance = np.random.default_rng(_SEED)
    means = apart[chance.integers(0, len(apart), (_ROUNDS, len(apart)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(apart.mean()), float(low), float(high))


def _gain(grades: Sequence[int]) -> float:
    return math.fsum((2.0**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades, 1))
