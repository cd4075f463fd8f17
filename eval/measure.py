"""Asks every question of a set in every mode, and keeps the score of each answer."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from afresh.search.evaluation import METRICS, MeanDifference, difference, scores
from eval.indexed import indexed
from eval.reference import rankings
from eval.sets import Question, QuestionSet
from eval.weak import WeakFigures, measure_weak, shares

PLAIN, TEXT, VECTOR, HYBRID = "plain FTS5", "text", "vector", "hybrid"
MODES = (TEXT, VECTOR, HYBRID)
FAST = "fast"  # the embedded model, in every install
Row = tuple[float, ...]  # the score of one answer by each metric


@dataclass(frozen=True, slots=True)
class Measured:
    """The scores of one set with one model, by mode and question."""

    name: str
    model: str
    questions: tuple[Question, ...]
    found: Mapping[str, Sequence[Sequence[str]]]
    rows: Mapping[str, Sequence[Row]]
    index_seconds: float
    weak: Mapping[str, WeakFigures] = field(default_factory=dict)

    def mean(self, mode: str, metric: str) -> float:
        """The mean of a metric over all questions."""
        return fmean(self._column(mode, metric))

    def figures(self) -> Iterator[tuple[str, str, float]]:
        """Everything that has a floor."""
        for mode in MODES:
            for metric in METRICS:
                yield mode, metric, self.mean(mode, metric)
        for metric, share in shares(self.weak):
            yield "weak", metric, share

    def gap(self, one: str, other: str, metric: str = METRICS[0]) -> MeanDifference:
        """How much better one mode is than another."""
        return difference(self._column(one, metric), self._column(other, metric))

    def _column(self, mode: str, metric: str) -> list[float]:
        place = METRICS.index(metric)
        return [row[place] for row in self.rows[mode]]


async def measure(
    asked: QuestionSet, folder: Path, model: str = FAST, store: Mapping[str, Any] | None = None
) -> Measured:
    """Index the pages of a set in a folder, or in another store, and score each mode and the reference."""
    questions = asked.questions
    found = {PLAIN: list(rankings(asked.pages, [each.query for each in questions]))}
    began = time.monotonic()
    async with indexed(asked, folder, {**settings_of(model), **(store or {})}) as asking:
        took = time.monotonic() - began
        for mode in MODES:
            found[mode] = [await asking.ranking(each.query, mode) for each in questions]
        weak = await measure_weak(asked, asking.is_weak)
    rows = {
        mode: [scores(one, each.grades) for one, each in zip(lists, questions, strict=True)]
        for mode, lists in found.items()
    }
    return Measured(asked.name, model, questions, found, rows, took, weak)


def settings_of(model: str) -> Mapping[str, Any]:
    """The settings that choose a local model."""
    return {"embedding.provider": "local", "embedding.model": model}
