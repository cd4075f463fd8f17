"""Measure how well a passage fits a query, whatever else was found; the scores of ranking.py are relative to the best.

The limits are chosen by questions with and without an answer: see eval/README.md.
"""

from collections.abc import Collection, Iterable, Mapping

from afresh.search.ranking import FAST
from afresh.search.stemming import ENGLISH, is_run, search_config, snowball, stems, words_in

GOOD = 0.32  # least relevance of a good match
FEW = 3  # hits to show if none of them is good


def relevance(rarities: Mapping[str, float], held: Collection[str], meaning: float = 0.0) -> float:
    """Return how well a passage fits, from 0 to 1: the share of the words in it, weighted by rarity, or its meaning.

    `meaning` is how much more similar its vector is than the mean of all vectors. The better of both counts.
    """
    total = sum(rarities.values())
    share = sum(rarity for word, rarity in rarities.items() if word in held) / total if total else 0.0
    return min(1.0, max(share, meaning, 0.0))


def is_calibrated(model: str) -> bool:
    """Return whether GOOD fits the similarities of a model."""
    return model.startswith(FAST)


def words_held(words: Iterable[str], text: str, language: str | None) -> set[str]:
    """Return those words of a query that a text contains in any form; `word*` is a prefix."""
    config = search_config(language)
    asked, own = list(words), list(set(words_in(text)))
    forms, known = (snowball("porter")(each) if config == ENGLISH else stems(each, config) for each in (asked, own))
    return {
        word
        for word, form in zip(asked, forms, strict=True)
        if form in known
        or (is_run(word) and word in text)
        or (word.endswith("*") and any(each.startswith(word[:-1]) for each in own))
    }
