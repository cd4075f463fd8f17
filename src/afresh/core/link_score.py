"""What a link is worth to somebody: keywords with weights, scores of one link, and their sum."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

UNKNOWN_WEIGHT = 0.25  # of a keyword that a scorer names although nobody asked for it
LONGEST_KEYWORD = 100
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


class KeywordError(ValueError):
    """Keywords that cannot be meant; the message says what was expected."""


def parse_keywords(typed: str) -> dict[str, float]:
    """The keywords of `budget,contact:0.5` with their weights; one without a weight weighs 1."""
    pairs = []
    for part in filter(None, map(str.strip, typed.split(","))):
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


def _weight(typed: str, keyword: str) -> float:
    try:
        return float(typed)
    except ValueError:
        raise KeywordError(f"expected a weight from 0 to 1 for {keyword!r}, got {typed[:60]!r}") from None
