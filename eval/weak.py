"""How often search says that it found no good match: for questions without an answer, and for those with one."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from eval.sets import HERE, QuestionSet

TUNED, HELD_OUT = PARTS = ("tuned", "held out")  # the limits were chosen by the first half only
ANSWERED = 30  # questions of each set that have an answer


@dataclass(frozen=True, slots=True)
class WeakFigures:
    """How many questions of a part there are, and how many answers are called weak."""

    without: int
    weak_without: int
    answered: int
    weak_answered: int


def parts_of(asked: QuestionSet) -> Mapping[str, tuple[Sequence[str], Sequence[str]]]:
    """The questions without and with an answer, by part: every second one, in an order that says nothing."""
    read = [json.loads(line) for line in (HERE / "unanswered.jsonl").read_text("utf-8").splitlines()]
    mine = [each for each in read if each["set"] == asked.name]
    kinds = dict.fromkeys(each["kind"] for each in mine)
    without = [_ordered(each["query"] for each in mine if each["kind"] == kind) for kind in kinds]
    answered = _ordered(each.query for each in asked.questions)[:ANSWERED]
    return {part: ([q for own in without for q in own[at::2]], answered[at::2]) for at, part in enumerate(PARTS)}


async def measure_weak(asked: QuestionSet, is_weak: Callable[[str], Awaitable[bool]]) -> Mapping[str, WeakFigures]:
    """The figures of each part."""
    found = {}
    for part, (without, answered) in parts_of(asked).items():
        weak = [sum([await is_weak(query) for query in each]) for each in (without, answered)]
        found[part] = WeakFigures(len(without), weak[0], len(answered), weak[1])
    return found


def shares(parts: Mapping[str, WeakFigures]) -> Iterator[tuple[str, float]]:
    """Share of the right answers to "is there a good match?", for both kinds of questions."""
    every = parts.values()
    if every:
        yield "weak without answer", sum(each.weak_without for each in every) / sum(each.without for each in every)
        yield "good with answer", 1 - sum(each.weak_answered for each in every) / sum(each.answered for each in every)


def _ordered(queries: Iterator[str]) -> list[str]:
    return sorted(queries, key=lambda query: crc32(query.encode()))
