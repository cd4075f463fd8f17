"""Fuse the scores of words and vectors.

Ranks alone (reciprocal rank fusion) ignore how much better the first is than the tenth, and were worse than
words alone on a larger index. Therefore scores are added, each half scaled from 0 to its best.
"""

from collections.abc import Collection, Iterable

from afresh.search.records import ChunkMatch, VectorMatches
from afresh.search.stemming import words_in

FAST_MEANING = 0.45  # weight of vectors from the fast model; words have the rest
MEANING = 0.6  # weight of vectors from other models
FAST = "local/wordllama"  # prefix of the fingerprint of the fast model
TITLED = 0.2  # bonus for a page whose title equals the query
LEADERS = 3  # best results of the first ranking that refine the query vector
PULL = 1.0  # how far the query vector moves towards them, relative to its length


def title_bonus(title: str, words: Collection[str]) -> float:
    """Return the bonus for a page whose title resembles the query; close to 0 for longer queries."""
    named = {word for word in words_in(title) if not word.isdigit()}
    asked = set(words)
    shared = len(named & asked) / len(named | asked) if asked else 0.0
    return TITLED * shared**2


def fuse(matches: Iterable[ChunkMatch], nearest: VectorMatches, meaning: float = FAST_MEANING) -> list[ChunkMatch]:
    """Return the chunks of both halves, best first, ties by id; scores are 0 to 1.

    A chunk missing in one half counts as 0 there: pass both scores of each candidate.
    """
    words = _shares(matches, 0.0)
    meanings = _shares(nearest.chunks, nearest.mean)
    scored = sorted(
        (-(meaning * meanings.get(chunk, 0.0) + (1.0 - meaning) * words.get(chunk, 0.0)), chunk)
        for chunk in words.keys() | meanings.keys()
    )
    return [ChunkMatch(chunk, -score) for score, chunk in scored]


def _shares(scores: Iterable[tuple[int, float]], nothing: float) -> dict[int, float]:
    """Scale the scores of chunks from `nothing` (0) to the best one (1)."""
    highest: dict[int, float] = {}
    for chunk, score in scores:
        highest[chunk] = max(score, highest.get(chunk, nothing))
    best = max(highest.values(), default=nothing) - nothing
    return {chunk: (score - nothing) / best if best > 0.0 else 0.0 for chunk, score in highest.items()}
