"""Which keywords fit a link, by the words of its text and address: the scores of the offline scorer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from afresh.links.inflections import Kin, Wanted, kinship, wanted
from afresh.links.score import AskedLink
from afresh.links.synonyms import related
from afresh.links.words import link_words, plain_words, spellings

Alike = Callable[[str, str], float]  # how near two words are in meaning, from -1 to 1

SCORES = {Kin.SAME: 1.0, Kin.FORM: 1.0, Kin.HEAD: 0.9, Kin.COMPOUND: 0.9, Kin.STEM: 0.8, Kin.ROOT: 0.7}
RELATED = 0.6  # another word for it
APART = 0.8  # the words of a keyword are there, but not side by side
# How near in meaning words that look alike have to be; less is chance, as with `court` and `courtyard`.
NEAREST = {Kin.FORM: 0.4, Kin.STEM: 0.2, Kin.HEAD: 0.3, Kin.COMPOUND: 0.3, Kin.ROOT: 0.3}
_NEAREST_LONG_HEAD = 0.15
_LONG_FORM = 5  # letters from which on a plural needs no proof
_LONG_PART = 6  # letters of a part that hardly stands in a longer word by chance


class Match(NamedTuple):
    """How well a keyword fits a link, and the word of the link that says so."""

    score: float
    word: str


class _Entry(NamedTuple):
    """One way to say a keyword."""

    keyword: str
    words: tuple[Wanted, ...]
    is_related: bool


class _Place(NamedTuple):
    """One word of an entry."""

    entry: int
    part: int
    sought: Wanted


class _Hit(NamedTuple):
    entry: int
    part: int
    score: float


class Seeker:
    """Looks for keywords in links; it remembers every word it met."""

    def __init__(self, keywords: Sequence[str], alike: Alike | None = None) -> None:
        self._alike = alike
        self._entries = [entry for keyword in keywords for entry in _entries(keyword)]
        self._own: list[_Place] = []
        self._by_form: dict[str, list[_Place]] = {}
        for number, entry in enumerate(self._entries):
            for part, word in enumerate(entry.words):
                self._index(_Place(number, part, word), entry.is_related)
        self._known: dict[str, list[_Hit]] = {}

    def _index(self, place: _Place, is_related: bool) -> None:
        if not is_related:
            self._own.append(place)
            return
        for form in place.sought.forms | place.sought.unsure:
            self._by_form.setdefault(form, []).append(place)

    def matches(self, link: AskedLink) -> dict[str, Match]:
        """The keywords that the words of a link hold, each with its best match."""
        found: dict[str, Match] = {}
        for words in link_words(link.text, link.url):
            for keyword, match in self._in(words):
                if keyword not in found or match.score > found[keyword].score:
                    found[keyword] = match
        return found

    def _in(self, words: Sequence[str]) -> Iterator[tuple[str, Match]]:
        """Every entry of which all words are there."""
        places: dict[int, dict[int, dict[int, float]]] = {}
        for at, word in enumerate(words):
            for hit in self._hits(word):
                places.setdefault(hit.entry, {}).setdefault(hit.part, {})[at] = hit.score
        for number, parts in places.items():
            entry = self._entries[number]
            if len(parts) == len(entry.words) and (match := _best(entry, parts, words)):
                yield entry.keyword, match

    def _hits(self, word: str) -> list[_Hit]:
        if word not in self._known:
            self._known[word] = list(self._found(word))
        return self._known[word]

    def _found(self, word: str) -> Iterator[_Hit]:
        """Own words may be part of a compound, so each is looked at; others have to be there as they are."""
        related = (place for form in spellings(word) for place in self._by_form.get(form, ()))
        for place in dict.fromkeys((*self._own, *related)):
            kin = kinship(place.sought, word)
            if kin is not None and self._is_believed(kin, place.sought.word, word):
                yield _Hit(place.entry, place.part, SCORES[kin])

    def _is_believed(self, kin: Kin, sought: str, word: str) -> bool:
        if kin is Kin.SAME or (kin is Kin.FORM and len(sought) >= _LONG_FORM):
            return True
        is_long = len(sought) >= _LONG_PART
        if self._alike is None:
            return kin is Kin.STEM or (kin in (Kin.HEAD, Kin.COMPOUND) and is_long)
        least = _NEAREST_LONG_HEAD if kin is Kin.HEAD and is_long else NEAREST[kin]
        return self._alike(sought, word) >= least


def _entries(keyword: str) -> Iterator[_Entry]:
    """The keyword itself, and other words for it."""
    words = tuple(plain_words(keyword))
    if not words:
        return
    yield _Entry(keyword, tuple(map(wanted, words)), is_related=False)
    for phrase in related(words):
        yield _Entry(keyword, tuple(map(wanted, phrase)), is_related=True)


def _best(entry: _Entry, parts: Mapping[int, Mapping[int, float]], words: Sequence[str]) -> Match | None:
    """The best place where an entry stands; other words for a keyword count only side by side."""
    inner = range(1, len(entry.words))
    whole = {
        at: min(score, *(parts[part][at + part] for part in inner)) if inner else score
        for at, score in parts[0].items()
        if all(at + part in parts[part] for part in inner)
    }
    if whole:
        at = max(whole, key=lambda place: whole[place])
        share = RELATED if entry.is_related else 1.0
        return Match(share * whole[at], " ".join(words[at : at + len(entry.words)]))
    if entry.is_related:
        return None
    places = [max(parts[part].items(), key=lambda item: item[1]) for part in range(len(entry.words))]
    return Match(APART * min(score for _, score in places), " … ".join(words[at] for at, _ in sorted(places)))
