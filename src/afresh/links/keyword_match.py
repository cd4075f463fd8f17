"""Score links offline, by comparing keywords with the words in the text and the URL of a link."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from afresh.links.score import LinkToScore
from afresh.links.words import (
    KeywordForms,
    WordMatch,
    keyword_forms,
    link_words,
    match_word,
    related_phrases,
    spellings,
)
from afresh.search.stemming import all_stop_words, words_in

Alike = Callable[[str, str], float]  # similarity of meaning of two words, from -1 to 1

SCORES = {
    WordMatch.SAME: 1.0,
    WordMatch.FORM: 1.0,
    WordMatch.HEAD: 0.9,
    WordMatch.COMPOUND: 0.9,
    WordMatch.STEM: 0.8,
    WordMatch.ROOT: 0.7,
}
RELATED_SCORE = 0.6  # factor for a synonym or related phrase
APART_SCORE = 0.8  # factor if the words of a keyword occur, but not side by side
# Minimum similarity in meaning for words with similar letters; `court` and `courtyard` have less.
MIN_SIMILARITY = {
    WordMatch.FORM: 0.4,
    WordMatch.STEM: 0.2,
    WordMatch.HEAD: 0.25,
    WordMatch.COMPOUND: 0.25,
    WordMatch.ROOT: 0.3,
}
_MIN_SIMILARITY_LONG_HEAD = 0.1
_LONG_FORM_LETTERS = 5  # a plural with so many letters needs no check of its meaning
_LONG_PART_LETTERS = 6  # a part of a compound with so many letters needs no check of its meaning
_Place = tuple[int, int, KeywordForms]  # index of the entry, index of its word, the word
_Hit = tuple[int, int, float]  # index of the entry, index of its word, score
NEAR_MEANING = 0.5  # of links with at least this similarity, more than two thirds are about the keyword
SAME_MEANING = 0.7
_NEAR_SCORE, _SAME_SCORE = 0.3, 0.5  # lower than the score of any matching word
_MIN_WORD_LETTERS = 3


class KeywordMatch(NamedTuple):
    """The score of a keyword for a link, and the words of the link that match the keyword."""

    score: float
    words: str


class _Entry(NamedTuple):
    """A phrase to search for: a keyword, or a synonym of one."""

    keyword: str
    words: tuple[KeywordForms, ...]
    is_related: bool


class KeywordFinder:
    """Finds keywords in links; caches the matches of every word."""

    def __init__(self, keywords: Sequence[str], alike: Alike | None = None) -> None:
        self._alike = alike
        self._entries = [entry for keyword in keywords for entry in _entries(keyword)]
        self._own: list[_Place] = []
        self._related: dict[str, list[_Place]] = {}  # word form → its places in related phrases
        for number, entry in enumerate(self._entries):
            for part, word in enumerate(entry.words):
                if not entry.is_related:
                    self._own.append((number, part, word))
                for form in word.forms | word.unsure if entry.is_related else ():
                    self._related.setdefault(form, []).append((number, part, word))
        self._known: dict[str, list[_Hit]] = {}

    def matches(self, link: LinkToScore) -> dict[str, KeywordMatch]:
        found: dict[str, KeywordMatch] = {}
        for words in link_words(link.text, link.url):
            for keyword, match in self._matches_in(words):
                if keyword not in found or match.score > found[keyword].score:
                    found[keyword] = match
        return found

    def _matches_in(self, words: Sequence[str]) -> Iterator[tuple[str, KeywordMatch]]:
        places: dict[int, dict[int, dict[int, float]]] = {}
        for at, word in enumerate(words):
            for number, part, score in self._hits(word):
                places.setdefault(number, {}).setdefault(part, {})[at] = score
        for number, parts in places.items():
            entry = self._entries[number]
            if len(parts) == len(entry.words) and (match := _best_match(entry, parts, words)):
                yield entry.keyword, match

    def _hits(self, word: str) -> list[_Hit]:
        """Return the words of keywords that match `word` or a part of it, and the words of synonyms that equal it."""
        if word not in self._known:
            hits = self._known[word] = []
            related = (place for form in spellings(word) for place in self._related.get(form, ()))
            for entry, part, sought in dict.fromkeys((*self._own, *related)):
                match = match_word(sought, word)
                if match is not None and self._is_likely(match, sought.word, word):
                    hits.append((entry, part, SCORES[match]))
        return self._known[word]

    def _is_likely(self, match: WordMatch, sought: str, word: str) -> bool:
        if match is WordMatch.SAME or (match is WordMatch.FORM and len(sought) >= _LONG_FORM_LETTERS):
            return True
        is_long = len(sought) >= _LONG_PART_LETTERS
        if self._alike is None:
            return match is WordMatch.STEM or (match in (WordMatch.HEAD, WordMatch.COMPOUND) and is_long)
        is_long_head = match is WordMatch.HEAD and is_long
        return self._alike(sought, word) >= (_MIN_SIMILARITY_LONG_HEAD if is_long_head else MIN_SIMILARITY[match])


def _entries(keyword: str) -> Iterator[_Entry]:
    if words := tuple(words_in(keyword)):
        yield _Entry(keyword, tuple(map(keyword_forms, words)), is_related=False)
        for phrase in related_phrases(words):
            yield _Entry(keyword, tuple(map(keyword_forms, phrase)), is_related=True)


def _best_match(entry: _Entry, scores: Mapping[int, Mapping[int, float]], words: Sequence[str]) -> KeywordMatch | None:
    """Return the best match of a phrase in the `words` of a link; the words of a synonym must be adjacent.

    `scores` has the score of each match by index in the phrase, then by index in `words`.
    """
    inner = range(1, len(entry.words))
    whole = {
        at: min(score, *(scores[part][at + part] for part in inner)) if inner else score
        for at, score in scores[0].items()
        if all(at + part in scores[part] for part in inner)
    }
    if whole:
        at = max(whole, key=lambda place: whole[place])
        share = RELATED_SCORE if entry.is_related else 1.0
        return KeywordMatch(share * whole[at], " ".join(words[at : at + len(entry.words)]))
    if entry.is_related:
        return None
    places = [max(scores[part].items(), key=lambda item: item[1]) for part in range(len(entry.words))]
    return KeywordMatch(
        APART_SCORE * min(score for _, score in places), " … ".join(words[at] for at, _ in sorted(places))
    )


def significant_words(link: LinkToScore) -> list[str]:
    """Return the words in the text and the last path segment of a link, without stop words and numbers."""
    path = link.url.partition("?")[0].partition("#")[0].rstrip("/")
    found = dict.fromkeys(chain(*link_words(link.text, f"/{path.rpartition('/')[2]}")))
    ignored = all_stop_words()
    return [word for word in found if len(word) >= _MIN_WORD_LETTERS and word not in ignored and not word.isdigit()]


def looks_alike(word: str, other: str) -> bool:
    """Return whether two words begin or end alike, such as `taxi` and `tax`, which a model may confuse."""
    return word[:3] == other[:3] or word[-4:] == other[-4:]


def score_similarity(similarity: float) -> float | None:
    if not similarity >= NEAR_MEANING:
        return None
    share = min((similarity - NEAR_MEANING) / (SAME_MEANING - NEAR_MEANING), 1.0)
    return round(_NEAR_SCORE + share * (_SAME_SCORE - _NEAR_SCORE), 3)
