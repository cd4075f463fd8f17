"""When a link is about a keyword though it says none of its words: by likeness of meanings, calibrated.

The figures come from the links of `eval/links.jsonl` that are there to tune by (docs/link-scores.md).
"""

from afresh.links.score import AskedLink
from afresh.links.words import link_words
from afresh.search.stopwords import STOP_WORDS

NEAR = 0.40  # likeness from which on more than two of three such links are about the keyword
NEAREST = 0.60
_LOWEST, _HIGHEST = 0.3, 0.5  # scores of these two: below what any word of the link itself would give
_BEGINNING, _END = 3, 4  # letters
_SHORTEST = 3
_STOP = frozenset[str]().union(*STOP_WORDS.values())


def telling_words(link: AskedLink) -> list[str]:
    """The words of a link that say what it is about: of its text, and of the last part of its path."""
    path = link.url.partition("?")[0].partition("#")[0].rstrip("/")
    words = link_words(link.text, f"/{path.rpartition('/')[2]}")
    found = dict.fromkeys((*words.text, *words.address))
    return [word for word in found if len(word) >= _SHORTEST and word not in _STOP and not word.isdigit()]


def looks_alike(word: str, other: str) -> bool:
    """Whether two words share letters by which a model may take them for kin: `taxi` and `tax`."""
    return word[:_BEGINNING] == other[:_BEGINNING] or word[-_END:] == other[-_END:]


def likely_score(likeness: float) -> float | None:
    """The score of a likeness; None where it says nothing."""
    if not likeness >= NEAR:
        return None
    share = min((likeness - NEAR) / (NEAREST - NEAR), 1.0)
    return round(_LOWEST + share * (_HIGHEST - _LOWEST), 3)
