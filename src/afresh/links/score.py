"""What a link is worth to somebody: keywords with weights, scores of one link, and their sum."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from afresh.text.plain import shortened

UNKNOWN_WEIGHT = 0.25  # of a keyword that a scorer names although nobody asked for it
LONGEST_KEYWORD = 100
LONGEST_COMMENT = 200
MOST_KEYWORDS = 200
_MOST = math.nextafter(2.0, 0.0)  # what the sum comes near to and, but for rounding, never is


class AskedLink(NamedTuple):
    """What a scorer is shown of a link, and all it is judged by."""

    url: str
    text: str  # as a reader sees it, "" where there is none to see


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a scorer says of one link: at least one keyword, each with a score from 0 to 1."""

    url: str
    text: str
    keywords: Mapping[str, float] = field(default_factory=dict)
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Unasked:
    """A link that a scorer was not asked about yet, or not for all keywords."""

    link: AskedLink
    keywords: tuple[str, ...]  # that are still to be asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a scorer was asked of a link with one text, and what it said."""

    link: AskedLink
    recipe: str
    asked: frozenset[str]
    scores: Mapping[str, float] = field(default_factory=dict)
    comment: str = ""

    def joined(self, later: "Answered") -> "Answered":
        """With what was asked later: the same scorer adds keywords, another one takes its place."""
        if later.recipe != self.recipe:
            return later
        return Answered(
            link=self.link,
            recipe=self.recipe,
            asked=self.asked | later.asked,
            scores={**self.scores, **later.scores},
            comment=self._both_comments(later),
        )

    def _both_comments(self, later: "Answered") -> str:
        """Why a link matters, also for what was asked for before."""
        said = dict.fromkeys(filter(None, (self.comment, later.comment)))
        return shortened("; ".join(said), LONGEST_COMMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """What keywords weigh to somebody."""

    weights: Mapping[str, float]
    unknown: float = UNKNOWN_WEIGHT

    def seal(self, recipe: str) -> str:
        """What tells by whom and for whom links were scored."""
        told = json.dumps([recipe, sorted(self.weights.items()), self.unknown])
        return hashlib.sha256(told.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Worth:
    """What a link is worth, and why; without any keyword it has no score."""

    score: float | None = None
    keywords: Mapping[str, float] = field(default_factory=dict)
    comment: str | None = None


class KeywordError(ValueError):
    """Keywords that cannot be meant; the message says what was expected."""


def parse_keywords(typed: str) -> dict[str, float]:
    """The keywords of `budget,contact:0.5` with their weights; one without a weight weighs 1."""
    pairs = []
    parts = list(filter(None, map(str.strip, typed.split(","))))
    if typed.strip() and not parts:  # nothing at all clears them, a list of nothing is a slip
        raise KeywordError(f"expected keywords such as budget,contact:0.5, got {typed[:60]!r}")
    for part in parts:
        keyword, colon, weight = part.rpartition(":")
        pairs.append((keyword, _weight(weight, keyword)) if colon else (part, 1.0))
    return checked_keywords(pairs)


def checked_keywords(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Keywords in their usual spelling, each with a weight from 0 to 1 and none of them twice."""
    keywords: dict[str, float] = {}
    for typed, weight in pairs:
        keyword = usual(typed)
        if not keyword or len(keyword) > LONGEST_KEYWORD or not keyword.isprintable() or "," in keyword:
            raise KeywordError(f"expected keywords such as budget,contact:0.5, got {typed[:60]!r}")
        if keyword in keywords:
            raise KeywordError(f"the keyword {keyword!r} stands twice: keep one")
        if not (math.isfinite(weight) and 0 <= weight <= 1):
            raise KeywordError(f"expected a weight from 0 to 1 for {keyword!r}, got {weight:g}")
        keywords[keyword] = float(weight)
    if len(keywords) > MOST_KEYWORDS:
        raise KeywordError(f"expected at most {MOST_KEYWORDS} keywords, got {len(keywords)}")
    return keywords


def usual(keyword: str) -> str:
    """One spelling for a keyword: upper case and blanks make no other one of it."""
    return " ".join(keyword.casefold().split())


def total_score(
    scores: Mapping[str, float], weights: Mapping[str, float], unknown_weight: float = UNKNOWN_WEIGHT
) -> float:
    """The worth of a link: its weighted scores from high to low, of which each next one counts half."""
    best: dict[str, float] = {}
    for keyword, score in scores.items():
        word = usual(keyword)
        best[word] = max(best.get(word, 0.0), min(1.0, max(0.0, score)) * weights.get(word, unknown_weight))
    ranked = enumerate(sorted(best.values(), reverse=True))
    return min(sum(math.ldexp(score, -rank) for rank, score in ranked), _MOST)


def lacking(known: Answered | None, recipe: str, keywords: Sequence[str]) -> tuple[str, ...]:
    """The keywords that a scorer was not asked for yet."""
    asked = known.asked if known is not None and known.recipe == recipe else frozenset[str]()
    return tuple(keyword for keyword in keywords if keyword not in asked)


def worth(answers: Iterable[Answered], weighing: Weighing) -> Worth:
    """What a link is worth by all of its texts: of each keyword the highest score counts."""
    best: dict[str, float] = {}
    said: list[tuple[float, str]] = []
    for answer in answers if weighing.weights else ():
        counted = _counted(answer, weighing)
        for keyword, score in counted.items():
            best[keyword] = max(score, best.get(keyword, 0.0))
        if counted and answer.comment:
            said.append((total_score(counted, weighing.weights, weighing.unknown), answer.comment))
    if not best:
        return Worth()
    ranked = dict(sorted(best.items(), key=lambda item: (-item[1], item[0])))
    comment = max(said)[1] if said else None
    return Worth(total_score(ranked, weighing.weights, weighing.unknown), ranked, comment)


def _counted(answer: Answered, weighing: Weighing) -> dict[str, float]:
    """The scores that count: of wanted keywords, and of those that the scorer named by itself."""
    return {
        keyword: score
        for keyword, score in answer.scores.items()
        if score > 0 and (keyword in weighing.weights or keyword not in answer.asked)
    }


def _weight(typed: str, keyword: str) -> float:
    try:
        return float(typed)
    except ValueError:
        raise KeywordError(f"expected a weight from 0 to 1 for {keyword!r}, got {typed[:60]!r}") from None
