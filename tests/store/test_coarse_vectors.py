"""The quick first look at who is near leaves out next to nobody."""

import numpy as np

from afresh.store.vectors import CoarseVectors


def test_the_nearest_are_among_the_candidates_also_of_vectors_that_came_later() -> None:
    """Texts lie in groups, as they do: some axes tell much, most tell little."""
    random = np.random.default_rng(7)
    spread = np.geomspace(1, 0.02, 64).astype(np.float32)
    vectors = random.normal(size=(6_000, 64)).astype(np.float32) * spread
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    coarse = CoarseVectors(vectors[:4_000])
    coarse.add(vectors[4_000:])
    shares = []
    for number in range(0, 6_000, 200):
        question = vectors[number] + random.normal(size=64).astype(np.float32) * spread * 0.2
        exact = set(np.argsort(-(vectors @ question))[:20])
        candidates = set(np.argsort(-coarse.likeness(question))[:200])
        shares.append(len(exact & candidates) / 20)
    assert np.mean(shares) > 0.99
    assert coarse.most < 8_001
    assert coarse.most >= 8_000
