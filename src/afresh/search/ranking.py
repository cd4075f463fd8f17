"""Fusing what words found with what meanings found.

Ranks alone (reciprocal rank fusion) forget how much better the first is than the tenth, and lost against
words alone on a larger index; so scores are added, each half counted from nothing to its best.
"""

from collections.abc import Collection, Iterable

from afresh.search.results import Match, Nearest
from afresh.search.stemming import words_in

FAST_MEANING = 0.45  # the weight of meanings in an order made with the fast model; words have the rest
MEANING = 0.6  # with any other model
FAST = "local/wordllama"  # how the fingerprint of the fast model begins
TITLED = 0.2  # a page whose title is the question
LEADERS = 3  # the best of a first order tell what the question means
PULL = 1.0  # how far the question moves towards them, in its own length


def meaning_of(model: str) -> float:
    """How much meanings weigh that a model made."""
    return FAST_MEANING if model.startswith(FAST) else MEANING


def title_bonus(title: str, words: Collection[str]) -> float:
    """What a page gains whose title is what was asked for; next to nothing for a longer question."""
    named = {word for word in words_in(title) if not word.isdigit()}
    asked = set(words)
    shared = len(named & asked) / len(named | asked) if asked else 0.0
    return TITLED * shared**2


def fuse(matches: Iterable[Match], nearest: Nearest, meaning: float = FAST_MEANING) -> list[Match]:
    """All chunks of both halves, the best first and of equals the older one; scores go from 0 to 1.

    A chunk that only one half names counts as nothing in the other: hand in both halves of each candidate.
    """
    words = _shares(matches, 0.0)
    meanings = _shares(nearest.chunks, nearest.mean)
    scored = sorted(
        (-(meaning * meanings.get(chunk, 0.0) + (1.0 - meaning) * words.get(chunk, 0.0)), chunk)
        for chunk in words.keys() | meanings.keys()
    )
    return [Match(chunk, -score) for score, chunk in scored]


def _shares(scores: Iterable[tuple[int, float]], nothing: float) -> dict[int, float]:
    """Each chunk's way from nothing (0) to the best of all (1)."""
    highest: dict[int, float] = {}
    for chunk, score in scores:
        highest[chunk] = max(score, highest.get(chunk, nothing))
    best = max(highest.values(), default=nothing) - nothing
    return {chunk: (score - nothing) / best if best > 0.0 else 0.0 for chunk, score in highest.items()}
