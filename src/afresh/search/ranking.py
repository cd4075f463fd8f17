"""Combine the scores of the keyword search and the vector search.

Reciprocal rank fusion ignores how much better the first result is than the tenth, and was worse than a keyword
search on a larger index. Therefore scores are added; those of each search are first scaled to 0 to 1.
"""

from collections.abc import Collection, Iterable

from afresh.search.records import ChunkMatch, VectorMatches
from afresh.search.stemming import words_in

FAST_MEANING = 0.45  # weight of vector scores from the fast model; keyword scores have the rest
MEANING = 0.6  # weight of vector scores from other models
FAST = "local/fast"  # prefix of the fingerprint of the fast model
TITLED = 0.2  # bonus for a page whose title equals the query
LEADERS = 3  # best results of the first ranking that refine the query vector
PULL = 1.0  # how far the query vector moves towards them, relative to its length


def title_bonus(title: str, words: Collection[str]) -> float:
    """Return the bonus for a page whose title resembles the query; it is close to 0 for long queries."""
    named = {word for word in words_in(title) if not word.isdigit()}
    asked = set(words)
    shared = len(named & asked) / len(named | asked) if asked else 0.0
    return TITLED * shared**2


def fuse(matches: Iterable[ChunkMatch], nearest: VectorMatches, meaning: float = FAST_MEANING) -> list[ChunkMatch]:
    """Return the chunks of both searches, best first, with combined scores from 0 to 1; ties are ordered by id.

    A chunk that `matches` or `nearest` lacks has score 0 there, so pass both scores of each candidate. The scores of
    `nearest` have the weight `meaning`, the others 1 - `meaning`.
    """
    words = _shares(matches, 0.0)
    meanings = _shares(nearest.chunks, nearest.mean)
    scored = sorted(
        (-(meaning * meanings.get(chunk, 0.0) + (1.0 - meaning) * words.get(chunk, 0.0)), chunk)
        for chunk in words.keys() | meanings.keys()
    )
    return [ChunkMatch(chunk, -score) for score, chunk in scored]


def _shares(scores: Iterable[tuple[int, float]], nothing: float) -> dict[int, float]:
    """Return the highest score of each chunk, scaled so that `nothing` becomes 0 and the highest score 1."""
    highest: dict[int, float] = {}
    for chunk, score in scores:
        highest[chunk] = max(score, highest.get(chunk, nothing))
    best = max(highest.values(), default=nothing) - nothing
    return {chunk: (score - nothing) / best if best > 0.0 else 0.0 for chunk, score in highest.items()}
