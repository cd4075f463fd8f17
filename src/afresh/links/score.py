"""Define link scores: keywords with weights, scores per keyword, and the total score."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from afresh.dataclass import dataclass, field, replace
from afresh.text.plain import shortened

UNKNOWN_WEIGHT = 0.25  # weight of a keyword that a scorer returns although it was not requested
MAX_KEYWORD_CHARS = 100
MAX_COMMENT_CHARS = 200
MAX_KEYWORDS = 200
_MAX_SCORE = math.nextafter(2.0, 0.0)  # the sum approaches 2 and reaches it only by rounding


class LinkToScore(NamedTuple):
    url: str
    text: str  # the visible text, which may be empty


@dataclass(frozen=True, slots=True)
class LinkJudgement:
    """A scorer's answer for one link: scores from 0 to 1 by keyword."""

    url: str
    text: str
    keywords: Mapping[str, float] = field(default_factory=dict)
    comment: str = ""


@dataclass(frozen=True, slots=True)
class UnscoredLink:
    link: LinkToScore
    keywords: tuple[str, ...]  # keywords without a score


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredLink:
    """A stored answer of a scorer; `asked` has the requested keywords."""

    link: LinkToScore
    recipe: str
    asked: frozenset[str]
    scores: Mapping[str, float] = field(default_factory=dict)
    comment: str = ""

    def merge(self, later: "ScoredLink") -> "ScoredLink":
        """Add the keywords of a later answer; if the scorer (`recipe`) has changed, return the later answer alone."""
        if later.recipe != self.recipe:
            return later
        comment = "; ".join(dict.fromkeys(filter(None, (self.comment, later.comment))))
        return replace(
            self,
            asked=self.asked | later.asked,
            scores={**self.scores, **later.scores},
            comment=shortened(comment, MAX_COMMENT_CHARS),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordWeights:
    """The weights of the keywords, and `unknown`, the weight of keywords that a scorer adds."""

    weights: Mapping[str, float]
    unknown: float = UNKNOWN_WEIGHT

    def seal(self, recipe: str) -> str:
        """Return a fingerprint of the scorer's recipe, the keywords and the weights."""
        text = json.dumps([recipe, sorted(self.weights.items()), self.unknown])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class LinkWorth:
    """The total score of a link (None: no keyword matches), its scores by keyword, and a comment."""

    score: float | None = None
    keywords: Mapping[str, float] = field(default_factory=dict)
    comment: str | None = None


class KeywordError(ValueError):
    pass


def parse_keywords(typed: str) -> dict[str, float]:
    """Parse keywords such as `budget,contact:0.5`; the default weight is 1."""
    pairs = []
    parts = list(filter(None, map(str.strip, typed.split(","))))
    if typed.strip() and not parts:  # an empty text removes all keywords, but a lone comma is a mistake
        raise KeywordError(f"expected keywords such as budget,contact:0.5, got {typed[:60]!r}")
    for part in parts:
        keyword, colon, weight = part.rpartition(":")
        try:
            pairs.append((keyword, float(weight)) if colon else (part, 1.0))
        except ValueError:
            raise KeywordError(f"expected a weight from 0 to 1 for {keyword!r}, got {weight[:60]!r}") from None
    return checked_keywords(pairs)


def checked_keywords(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Normalise keywords; raise KeywordError for an invalid or repeated one, or a weight outside 0 to 1."""
    keywords: dict[str, float] = {}
    for typed, weight in pairs:
        keyword = normalize_keyword(typed)
        if not keyword or len(keyword) > MAX_KEYWORD_CHARS or not keyword.isprintable() or "," in keyword:
            raise KeywordError(f"expected keywords such as budget,contact:0.5, got {typed[:60]!r}")
        if keyword in keywords:
            raise KeywordError(f"the keyword {keyword!r} occurs twice: remove one of them")
        if not (math.isfinite(weight) and 0 <= weight <= 1):
            raise KeywordError(f"expected a weight from 0 to 1 for {keyword!r}, got {weight:g}")
        keywords[keyword] = float(weight)
    if len(keywords) > MAX_KEYWORDS:
        raise KeywordError(f"expected at most {MAX_KEYWORDS} keywords, got {len(keywords)}")
    return keywords


def normalize_keyword(keyword: str) -> str:
    return " ".join(keyword.casefold().split())


def total_score(
    scores: Mapping[str, float], weights: Mapping[str, float], unknown_weight: float = UNKNOWN_WEIGHT
) -> float:
    """Return the sum of the weighted scores: the highest counts fully, each next one half as much."""
    best = (score * weights.get(word, unknown_weight) for word, score in normalize_scores(scores).items())
    return min(sum(math.ldexp(score, -rank) for rank, score in enumerate(sorted(best, reverse=True))), _MAX_SCORE)


def normalize_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Normalise keywords, and limit scores to 0 to 1; the highest score of a keyword counts."""
    found: dict[str, float] = {}
    for keyword, score in scores.items():
        word = normalize_keyword(keyword)
        found[word] = max(found.get(word, 0.0), min(1.0, max(0.0, score)))
    return found


def missing_keywords(known: ScoredLink | None, recipe: str, keywords: Sequence[str]) -> tuple[str, ...]:
    """Return those of `keywords` that `known` does not cover; an answer with another recipe covers none."""
    asked = known.asked if known is not None and known.recipe == recipe else frozenset[str]()
    return tuple(keyword for keyword in keywords if keyword not in asked)


def weigh_link(answers: Iterable[ScoredLink], weighing: KeywordWeights) -> LinkWorth:
    """Return the total score of a link from all answers for it; the highest score of each keyword counts."""
    best: dict[str, float] = {}
    comments: list[tuple[float, str]] = []
    for answer in answers if weighing.weights else ():
        counted = {
            keyword: score
            for keyword, score in answer.scores.items()
            if score > 0 and (keyword in weighing.weights or keyword not in answer.asked)
        }
        for keyword, score in counted.items():
            best[keyword] = max(score, best.get(keyword, 0.0))
        if counted and answer.comment:
            comments.append((total_score(counted, weighing.weights, weighing.unknown), answer.comment))
    if not best:
        return LinkWorth()
    ranked = dict(sorted(best.items(), key=lambda item: (-item[1], item[0])))
    comment = max(comments)[1] if comments else None
    return LinkWorth(total_score(ranked, weighing.weights, weighing.unknown), ranked, comment)
