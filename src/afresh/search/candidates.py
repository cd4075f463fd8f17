"""Which texts are worth scoring, where scoring every text that holds any word would take too long.

To find texts is quick, to score one is slow, and every third of 100,000 texts may hold a word of a question.
But a text with none of its seldom words is hardly among the best. So texts with a seldom word are scored, for
all words they hold; where they are few, so are those with several frequent words. Whoever adds meanings to
words lets the nearest texts be scored too (whatever they hold): then nothing is lost.

For every word that an expression names, SQLite counts all texts that hold it before it scores the first. So a
frequent word is named as seldom as possible, even if texts are scored twice: each word that an expression
finds adds to the score, so the highest of a text is the one for all of its words. Texts with seldom words
alone come second, and not at all where none of them can score higher than enough of the others do.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, log
from typing import NamedTuple

ROOM = 2_500  # texts that may be scored for one question
ENOUGH = 100  # texts with seldom words; with fewer, frequent ones have to help
BM25_MOST = 2.2  # times its rarity: what a word adds at most to the score of a text in SQLite
STEPS = 4  # frequent words that may be asked for together with any other


class Scoring(NamedTuple):
    """FTS5 expressions, of which a text has its highest score; of the steps, wide to narrow, one is used."""

    scored: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    alone: str | None = None  # the most seldom of words that are all frequent: no text may hold two of them
    rest: float = inf  # no text that the first expression does not find has a higher score

    @property
    def whole(self) -> bool:
        """Whether every text with any of the words is scored."""
        return len(self.scored) <= 1 and not self.steps


def scoring(counts: Mapping[str, int], room: int = ROOM, enough: int = ENOUGH, texts: int = 0) -> Scoring:
    """How to score texts, given in how many of them each word asked for stands, and how many there are."""
    words = sorted((word for word in counts if counts[word]), key=lambda word: (counts[word], word))
    seldom, left = _seldom(words, counts, room)
    frequent = words[len(seldom) :]
    if not frequent:
        return Scoring((_any(seldom),) if seldom else ())
    if not seldom:
        return Scoring((), _steps(frequent), frequent[0])
    scored = (f"{_any(seldom)} AND {_any(frequent)}", _any(seldom))
    if room - left < enough:
        return Scoring(scored, _steps(frequent))
    return Scoring(scored, rest=highest([counts[word] for word in seldom], texts) if texts else inf)


def highest(counts: Iterable[int], texts: int) -> float:
    """The score (bm25) that no text exceeds, by words that stand in so many of all texts."""
    return sum(BM25_MOST * max(log((texts - count + 0.5) / (count + 0.5)), 1e-6) for count in counts)


def expressions(
    plan: Scoring, counts: Sequence[int], room: int = ROOM, enough: int = ENOUGH
) -> tuple[str, ...]:
    """What to score, given how many texts match each step: the widest step with room is taken.

    Where nothing else is scored, a step that leaves too few texts gives way to the one before, and the
    narrowest is taken if there is room for none.
    """
    before = None
    for step, found in zip(plan.steps, counts, strict=True):
        if found <= room:
            wider = before if found < enough and not plan.scored else None
            return (*plan.scored, wider or (step if found else plan.alone) or step)
        before = step
    return plan.scored or ((before,) if before else ())


def _seldom(words: Sequence[str], counts: Mapping[str, int], room: int) -> tuple[list[str], int]:
    """The most seldom words whose texts have room together, and the room that is left."""
    seldom: list[str] = []
    for word in words:
        if counts[word] > room:
            break
        seldom.append(word)
        room -= counts[word]
    return seldom, room


def _steps(words: Sequence[str]) -> tuple[str, ...]:
    """Texts with the most seldom word and any other, with the two most seldom and any other, and so on."""
    if len(words) == 1:
        return (words[0],)
    return tuple(
        " AND ".join((*words[:needed], _any(words[needed:])))
        for needed in range(1, min(len(words), STEPS + 1))
    )


def _any(words: Sequence[str]) -> str:
    return "(" + " OR ".join(words) + ")"
