"""How near two words are by their letters: one and its plural, one stem, one root, a part of a compound."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache

from afresh.links.words import TRANSCRIBED, spellings
from afresh.search.stemming import ENGLISH, is_run, snowball

_IRREGULAR = """
child children; person people; man men; woman women; foot feet; tooth teeth; mouse mice; datum data;
medium media; criterion criteria; index indices; appendix appendices; curriculum curricula;
alumnus alumni; matrix matrices
"""
_PAIRS = [pair.split() for pair in _IRREGULAR.split(";")]
_ODD = {pair[0]: pair[1] for pair in _PAIRS} | {pair[1]: pair[0] for pair in _PAIRS}
# How words end, and how they do where there are many: English, French, Spanish, Portuguese, Italian, German.
_ENDINGS = (
    ("y", "ies"), ("fe", "ves"), ("lf", "lves"), ("is", "es"),
    ("al", "aux"), ("ail", "aux"), ("au", "aux"), ("eu", "eux"),
    ("ión", "iones"), ("z", "ces"), ("ão", "ões"), ("m", "ns"), ("ca", "che"), ("ga", "ghe"),
    ("ung", "ungen"), ("heit", "heiten"), ("keit", "keiten"), ("schaft", "schaften"), ("tät", "täten"),
    ("in", "innen"),
)  # fmt: skip
_HISSES = ("s", "x", "z", "ch", "sh", "o")
_UMLAUTS = {"a": "ä", "o": "ö", "u": "ü"}
_LONG = 5  # letters from which on two words that look alike are hardly so by chance
_STEMMERS = (
    "german",
    "french",
    "spanish",
    "italian",
    "portuguese",
    "dutch",
    "swedish",
    "danish",
    "norwegian",
    "russian",
)
_BEFORE = "re pre un non sub co inter multi anti mid eco geo bio vor ab an aus ein ver be"
_PREFIXES = frozenset(_BEFORE.split())
_LINKING = ("s", "n", "en", "es", "")  # what German puts between the parts of a compound
_SHORTEST_PART = 4
_SHORTEST_REST = 3
_SHORTEST_ROOT = 3
# What a root takes on: `don-ation` and `don-or`, `librar-y` and `librar-ian`.
_AFTER = """
a able al ance ant ation ations e ed ement ements ent er ers es ian ians ic ing ings ion ions ist ists
ity ive ment ments or ors ory s y ies
"""
_SUFFIXES = frozenset(_AFTER.split())


class Kin(Enum):
    """In which way a word is what is looked for."""

    SAME = "the word or its plural"
    FORM = "what may be its plural"
    STEM = "one stem"
    HEAD = "a compound that ends with it, and so is one: `Stadtbibliothek`"
    COMPOUND = "a compound that begins with it: `Haushaltsplan`"
    ROOT = "one root"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A word that is looked for, with every form in which it counts as being there."""

    word: str
    forms: frozenset[str]
    unsure: frozenset[str]  # forms that may be words of their own
    stems: frozenset[str]
    beginnings: tuple[str, ...]  # one of them is in whatever holds it


@cache
def wanted(word: str) -> Wanted:
    """A word in lower case, made ready to be looked for."""
    forms = {spelt for form in _forms(word) for spelt in spellings(form)} | set(_umlauts(word))
    unsure = {spelt for form in _unsure(word) for spelt in spellings(form)} - forms
    beginnings = dict.fromkeys(spelt[:_SHORTEST_ROOT] for spelt in spellings(word))
    return Wanted(word, frozenset(forms), frozenset(unsure), stems_of(word), tuple(beginnings))


def kinship(sought: Wanted, word: str) -> Kin | None:
    """How a word in lower case is kin to the one that is looked for; the nearest way counts."""
    spelt = spellings(word)
    if spelt & sought.forms or (is_run(sought.word) and sought.word in word):
        return Kin.SAME
    if spelt & sought.unsure:
        return Kin.FORM
    if stems_of(word) & sought.stems:
        return Kin.STEM
    if not any(beginning in form for form in spelt for beginning in sought.beginnings):
        return None
    parts = sought.forms | sought.unsure
    if any(_ends_with(form, part) for form in spelt for part in parts):
        return Kin.HEAD
    if any(_begins_with(form, part) for form in spelt for part in parts):
        return Kin.COMPOUND
    return Kin.ROOT if any(_one_root(form, sought.word) for form in spelt) else None


@lru_cache(maxsize=65_536)
def stems_of(word: str) -> frozenset[str]:
    """A word as the stemmers leave it; short stems of other languages than English meet by chance."""
    found = {f"{ENGLISH} {stem}" for stem in snowball(ENGLISH)([word]) if len(stem) > 2}
    for language in _STEMMERS:
        found |= {
            f"{language} {stem}"
            for form in spellings(word)
            for stem in snowball(language)([form])
            if len(stem) >= _LONG
        }
    return frozenset(found)


def _forms(word: str) -> Iterator[str]:
    """A word, its plural, and what it is the plural of."""
    yield word
    if word in _ODD:
        yield _ODD[word]
    if len(word) < 2:
        return
    yield f"{word}s"
    if word.endswith(_HISSES) or len(word) >= _LONG:
        yield f"{word}es"
    for one, many in _ENDINGS:
        if word.endswith(one):
            yield word.removesuffix(one) + many
        if word.endswith(many) and len(word) > len(many) + 2:
            yield word.removesuffix(many) + one
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        yield word[:-1]
        if word[:-2].endswith(_HISSES) and word.endswith("es"):
            yield word[:-2]


def _umlauts(word: str) -> Iterator[str]:
    """Plurals by Umlaut: `Anträge`, `Häuser`."""
    at = max(map(word.rfind, _UMLAUTS))
    if at < 0 or len(word) - at > 4 or len(word) < 3:
        return
    vowel = "äu" if word[at - 1 : at + 1] == "au" else _UMLAUTS[word[at]]
    begun = word[: at - 1] if vowel == "äu" else word[:at]
    for ending in ("", "e", "er"):
        plural = f"{begun}{vowel}{word[at + 1 :]}{ending}"
        yield plural
        yield plural.translate(TRANSCRIBED)


def _unsure(word: str) -> Iterator[str]:
    """Plurals of German and Dutch that are often other words in English: `listen` is no plural of `list`."""
    yield f"{word}en"
    if word.endswith(("e", "el", "er")):
        yield f"{word}n"
    if len(word) >= _LONG:
        yield f"{word}e"


def _ends_with(word: str, part: str) -> bool:
    before = word.removesuffix(part) if len(part) >= _SHORTEST_PART else word
    return before != word and (len(before) >= _SHORTEST_REST or before in _PREFIXES)


def _begins_with(word: str, part: str) -> bool:
    if len(part) < _SHORTEST_PART or not word.startswith(part):
        return False
    rest = word[len(part) :]
    return any(rest.startswith(link) and len(rest) - len(link) >= _SHORTEST_REST for link in _LINKING)


def _one_root(word: str, other: str) -> bool:
    shared = next(
        (at for at, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other))
    )
    return any(
        word[root:] in _SUFFIXES and other[root:] in _SUFFIXES for root in range(_SHORTEST_ROOT, shared + 1)
    )
