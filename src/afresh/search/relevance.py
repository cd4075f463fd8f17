"""Measure how well a passage fits a query, whatever else was found; the scores of ranking.py are relative to the best.

The limits are chosen by questions with and without an answer: see eval/README.md.
"""

from collections.abc import Collection, Sequence
from math import log

from afresh.search.highlight import QueryWords, fold
from afresh.search.records import WordCounts
from afresh.search.stemming import ENGLISH, is_run, search_config, stems, words_in

GOOD = 0.32  # least relevance of a good match
_CALIBRATED = ("local/fast", "local/minilm")
FEW = 3  # hits to show if none has a word of the query, and none is good


def relevance(share: float, meaning: float) -> float:
    """Return from 0 to 1 how well a passage fits: by its words or by its meaning, whichever is better.

    `share` is the share of the words in it, and `meaning` how much more similar it is than the mean of all passages.
    """
    return min(1.0, max(share, meaning, 0.0))


def share_held(words: WordCounts, held: Collection[str]) -> float:
    """Return the share of the words of a query that are in `held`, weighted by their rarity."""
    weights = {word: log(1 + (words.texts - count + 0.5) / (count + 0.5)) for word, count in words.counts.items()}
    return sum(weight for word, weight in weights.items() if word in held) / sum(weights.values()) if weights else 0.0


def is_calibrated(model: str) -> bool:
    """Return whether GOOD fits the similarities of a model."""
    return model.startswith(_CALIBRATED)


def words_held(words: Collection[str], texts: Sequence[str], language: str | None, marker: QueryWords) -> set[str]:
    """Return those words of a query that one of the texts contains in any form; `word*` is a prefix."""
    config, text = search_config(language), "\n".join(texts)
    if config == ENGLISH:  # SQLite stems English itself, so no stemmer is loaded for it
        forms, known = [*map(fold, words)], {word for each in texts for *_, word in marker.spots(each)}
    else:
        forms, known = stems(words, config), set(stems(words_in(text), config))
    return {
        word
        for word, form in zip(words, forms, strict=True)
        if form in known
        or (is_run(word) and word in text)
        or (word.endswith("*") and any(each.startswith(word[:-1]) for each in words_in(text)))
    }
