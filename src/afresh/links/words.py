"""Compare words of links and keywords by spelling, inflection, compounds and synonyms."""

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum
from functools import cache, lru_cache
from importlib.resources import files
from urllib.parse import unquote_plus, urlsplit

from afresh.dataclass import dataclass
from afresh.search.stemming import ENGLISH, is_run, shared_start, snowball, words_in

_MAX_TEXT_CHARS = 500  # of a link text; real ones are shorter
_MAX_PATH_CHARS = 1_000
_MAX_WORDS = 60
_HUMP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_ENDING = re.compile(r"\.(?:html?|xhtml|php\d?|aspx?|jspx?|cfm|pdf|docx?|xlsx?|pptx?|csv|txt|zip|md)$", re.IGNORECASE)
TRANSCRIBED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "æ": "ae", "ø": "oe", "å": "aa", "œ": "oe", "ß": "ss"})


def link_words(text: str, url: str) -> list[list[str]]:
    """Return the words of a link's text and of its URL; `meetingMinutes_2026` gives three words."""
    both = (each.replace("_", " ") for each in (text[:_MAX_TEXT_CHARS], _url_text(url)))
    return [words_in(_HUMP.sub(" ", each))[:_MAX_WORDS] for each in both]


@lru_cache(maxsize=65_536)
def spellings(word: str) -> frozenset[str]:
    """Return the spellings of a word with and without accents: `anträge`, `antrage`, `antraege`."""
    if word.isascii():
        return frozenset((word,))
    bare = "".join(each for each in unicodedata.normalize("NFD", word) if not unicodedata.combining(each))
    return frozenset((word, bare, word.translate(TRANSCRIBED)))


def _url_text(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    path = _ENDING.sub("", unquote_plus(parts.path[:_MAX_PATH_CHARS], errors="replace"))
    values = (pair.partition("=")[2] for pair in parts.query[:_MAX_PATH_CHARS].split("&"))
    return " ".join((path, *(unquote_plus(value, errors="replace") for value in values)))


_SINGULARS = "child person man woman foot tooth mouse datum medium criterion index appendix curriculum alumnus matrix"
_PLURALS = "children people men women feet teeth mice data media criteria indices appendices curricula alumni matrices"
_IRREGULAR = dict(zip(_SINGULARS.split(), _PLURALS.split(), strict=True))
_IRREGULAR |= {plural: singular for singular, plural in _IRREGULAR.items()}
# Singular and plural endings: English, French, Spanish, Portuguese, Italian, German.
_ENDINGS = (
    ("y", "ies"), ("fe", "ves"), ("lf", "lves"), ("is", "es"),
    ("al", "aux"), ("ail", "aux"), ("au", "aux"), ("eu", "eux"),
    ("ión", "iones"), ("z", "ces"), ("ão", "ões"), ("m", "ns"), ("ca", "che"), ("ga", "ghe"),
    ("ung", "ungen"), ("heit", "heiten"), ("keit", "keiten"), ("schaft", "schaften"), ("tät", "täten"),
    ("in", "innen"),
)  # fmt: skip
_SIBILANTS = ("s", "x", "z", "ch", "sh", "o")
_UMLAUTS = {"a": "ä", "o": "ö", "u": "ü"}
_LONG_LETTERS = 5  # words with more letters are rarely similar by chance
_STEMMERS = "german french spanish italian portuguese dutch swedish danish norwegian russian"
_PREFIXES = "re pre un non sub co inter multi anti mid eco geo bio vor ab an aus ein ver be"
_LINKING = ("s", "n", "en", "es", "")  # letters between the parts of a German compound
_MIN_PART_LETTERS = 4
_MIN_REST_LETTERS = 3
_MIN_ROOT_LETTERS = 3
MAX_RELATED = 60
Phrase = tuple[str, ...]
# Suffixes of a root: `don-ation` and `don-or`, `librar-y` and `librar-ian`.
_SUFFIXES = """
a able al ance ant ation ations e ed ement ements ent er ers es ian ians ic ing ings ion ions ist ists
ity ive ment ments or ors ory s y ies
"""
_SUFFIX_SET = frozenset(_SUFFIXES.split())


class WordMatch(Enum):
    SAME = "the word or its plural"
    FORM = "a form that may be its plural"
    STEM = "one stem"
    HEAD = "a compound that ends with the keyword: `Stadtbibliothek` for `Bibliothek`"
    COMPOUND = "a compound that begins with the keyword: `Haushaltsplan` for `Haushalt`"
    ROOT = "one root"


@dataclass(frozen=True, slots=True)
class KeywordForms:
    """One word of a keyword, with what is needed to find matching words."""

    word: str
    forms: frozenset[str]  # singular, plural and spellings
    unsure: frozenset[str]  # forms that may also be other words
    stems: frozenset[str]  # in several languages
    beginnings: tuple[str, ...]  # every matching word contains one of these


@cache
def keyword_forms(word: str) -> KeywordForms:
    forms = {spelt for form in _forms(word) for spelt in spellings(form)} | set(_umlaut_forms(word))
    unsure = {spelt for form in _unsure_forms(word) for spelt in spellings(form)} - forms
    beginnings = dict.fromkeys(spelt[:_MIN_ROOT_LETTERS] for spelt in spellings(word))
    return KeywordForms(word, frozenset(forms), frozenset(unsure), stems_of(word), tuple(beginnings))


def match_word(sought: KeywordForms, word: str) -> WordMatch | None:
    """Return the closest match of a word in lower case with a keyword; None if there is none."""
    spelt = spellings(word)
    if spelt & sought.forms or (is_run(sought.word) and sought.word in word):
        return WordMatch.SAME
    if spelt & sought.unsure:
        return WordMatch.FORM
    if stems_of(word) & sought.stems:
        return WordMatch.STEM
    if not any(beginning in form for form in spelt for beginning in sought.beginnings):
        return None
    parts = sought.forms | sought.unsure
    if any(_ends_with(form, part) for form in spelt for part in parts):
        return WordMatch.HEAD
    if any(_begins_with(form, part) for form in spelt for part in parts):
        return WordMatch.COMPOUND
    return WordMatch.ROOT if any(_has_same_root(form, sought.word) for form in spelt) else None


@lru_cache(maxsize=65_536)
def stems_of(word: str) -> frozenset[str]:
    """Return the stems of a word in several languages; short stems only in English, to avoid chance matches."""
    found = {f"{ENGLISH} {stem}" for stem in snowball(ENGLISH)([word]) if len(stem) > 2}
    forms = list(spellings(word))
    for language in _STEMMERS.split():
        found |= {f"{language} {stem}" for stem in snowball(language)(forms) if len(stem) >= _LONG_LETTERS}
    return frozenset(found)


def _forms(word: str) -> Iterator[str]:
    yield word
    if word in _IRREGULAR:
        yield _IRREGULAR[word]
    if len(word) < 2:
        return
    yield f"{word}s"
    if word.endswith(_SIBILANTS) or len(word) >= _LONG_LETTERS:
        yield f"{word}es"
    for one, many in _ENDINGS:
        if word.endswith(one):
            yield word.removesuffix(one) + many
        if word.endswith(many) and len(word) > len(many) + 2:
            yield word.removesuffix(many) + one
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        yield word[:-1]
        if word[:-2].endswith(_SIBILANTS) and word.endswith("es"):
            yield word[:-2]


def _umlaut_forms(word: str) -> Iterator[str]:
    """Yield possible German plurals with an umlaut, such as `Anträge` and `Häuser`."""
    at = max(map(word.rfind, _UMLAUTS))
    if at < 0 or len(word) - at > 4 or len(word) < 3:
        return
    vowel = "äu" if word[at - 1 : at + 1] == "au" else _UMLAUTS[word[at]]
    begun = word[: at - 1] if vowel == "äu" else word[:at]
    for ending in ("", "e", "er"):
        plural = f"{begun}{vowel}{word[at + 1 :]}{ending}"
        yield plural
        yield plural.translate(TRANSCRIBED)


def _unsure_forms(word: str) -> Iterator[str]:
    """Yield German and Dutch plurals that may be other English words, such as `listen` for `list`."""
    yield f"{word}en"
    if word.endswith(("e", "el", "er")):
        yield f"{word}n"
    if len(word) >= _LONG_LETTERS:
        yield f"{word}e"


def _ends_with(word: str, part: str) -> bool:
    before = word.removesuffix(part) if len(part) >= _MIN_PART_LETTERS else word
    return before != word and (len(before) >= _MIN_REST_LETTERS or before in _PREFIXES.split())


def _begins_with(word: str, part: str) -> bool:
    if len(part) < _MIN_PART_LETTERS or not word.startswith(part):
        return False
    rest = word[len(part) :]
    return any(rest.startswith(link) and len(rest) - len(link) >= _MIN_REST_LETTERS for link in _LINKING)


def _has_same_root(word: str, other: str) -> bool:
    shared = shared_start(word, other)
    return any({word[root:], other[root:]} <= _SUFFIX_SET for root in range(_MIN_ROOT_LETTERS, shared + 1))


@cache
def _synonyms() -> list[list[Phrase]]:
    lines = files("afresh.links").joinpath("synonyms.txt").read_bytes().decode().splitlines()
    return [[tuple(words_in(phrase)) for phrase in line.split(",")] for line in lines if not line.startswith("#")]


@cache
def related_phrases(keyword: Phrase) -> tuple[Phrase, ...]:
    lines = [line for line in _synonyms() if any(_is_same(keyword, phrase) for phrase in line)]
    found = dict.fromkeys(phrase for line in lines for phrase in line if not _is_same(keyword, phrase))
    return tuple(found)[:MAX_RELATED]


def _is_same(keyword: Phrase, phrase: Phrase) -> bool:
    pairs = zip(keyword, phrase, strict=False)
    return len(keyword) == len(phrase) and all(keyword_forms(one).forms & spellings(other) for one, other in pairs)
