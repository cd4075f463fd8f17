"""Fusing what words found with what meanings found."""

from collections.abc import Sequence

from afresh.core.found import Match, Nearest

MEANING = 0.45  # the weight of meanings; words have the rest
LEADERS = 3  # the best of a first order tell what the question means
PULL = 0.5  # how far the question moves towards them, in its own length


def fuse(matches: Sequence[Match], nearest: Nearest, meaning: float = MEANING) -> list[Match]:
    """All chunks of both, the best first; each half counts from nothing to its best."""
    scores = {match.chunk: (1 - meaning) * match.score / matches[0].score for match in matches}
    best = nearest.chunks[0].likeness - nearest.mean if nearest.chunks else 0.0
    for near in nearest.chunks:
        share = (near.likeness - nearest.mean) / best if best > 0 else 0.0
        scores[near.chunk] = scores.get(near.chunk, 0.0) + meaning * share
    return sorted((Match(*each) for each in scores.items()), key=lambda each: (-each.score, each.chunk))
