"""Convert the words of texts and queries into the forms that the full-text index contains.

SQLite's own tokenizer splits at spaces and stems English. This module does the rest: it stems words of other
languages (Snowball), and splits scripts without spaces into overlapping pairs of characters (`依赖注入` becomes
`依赖 赖注 注入 入`), so that a word is found anywhere.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from pkgutil import get_data
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Stem = Callable[[list[str]], list[str]]

# The text-search configurations of PostgreSQL by language; all others are `simple`.
_CONFIGS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
ENGLISH, SIMPLE = "english", "simple"
MIN_STOP_WORDS = 2  # stop words of one language that identify the language of a query

# Thai, Lao, Burmese, Khmer, kana and ideographs.
SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff"
    "\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_HANGUL = "\u1100-\u11ff\uac00-\ud7af"  # has spaces, but words have suffixes
_UNSPACED = SPACELESS + _HANGUL
# Marks that belong to the letter before: accents, Hebrew points, Arabic vowels, Indic vowel signs.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0dff"
)
_ASCII = bytes(range(128))
RUN = re.compile(f"[{_UNSPACED}]+")
WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*")


def search_config(language: str | None) -> str:
    """Return the text-search configuration for a language; None means English."""
    return ENGLISH if language is None else _CONFIGS.get(language.lower().partition("-")[0], SIMPLE)


def kept_language(stored: str | None, found: str | None, *, redetect: bool) -> str | None:
    """Return the language to store: the stored one, as pages hardly change it; with `redetect`, rather `found`."""
    return found or stored if redetect else stored or found


def analysed(text: str, config: str) -> str | None:
    """Return the words of a text in the forms to index; None if SQLite's tokenizer produces the same."""
    stem = _stem(config)
    if stem is not None:
        words = words_in(text)
        if not text.isascii():
            words = [part for word in words for part in (pairs(word) if is_run(word) else (word,))]
        return " ".join(stem(words))
    if text.isascii() or RUN.search(beyond_ascii(text)) is None:
        return None
    whole = unicodedata.normalize("NFKC", text)
    return RUN.sub(lambda run: f" {' '.join(pairs(run[0]))} ", whole)


def beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not ASCII; to search these is faster than to search the text."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


def words_in(text: str) -> list[str]:
    """Return the words of a text in lower case; text in a script without spaces is one word."""
    whole = text if text.isascii() else unicodedata.normalize("NFKC", text)  # ﾒﾓﾘ is メモリ
    return WORD.findall(whole.lower())


def stems(words: Iterable[str], config: str) -> list[str]:
    """Return lower-case words, stemmed for a configuration unless SQLite's tokenizer does that."""
    stem = _stem(config)
    return list(words) if stem is None else stem(list(words))


def is_run(word: str) -> bool:
    """Return whether a word is written in a script without spaces."""
    return RUN.match(word) is not None


def pairs(run: str) -> list[str]:
    """Return the overlapping character pairs of a word, and its last character, so that single characters are found."""
    return [run[at : at + 2] for at in range(len(run))]


@cache
def _stem(config: str) -> "Stem | None":
    return None if config in (ENGLISH, SIMPLE) else snowball(config)


@cache
def snowball(algorithm: str) -> "Stem":
    """Return a stemmer: that of PyStemmer or, where PyStemmer has no wheel, the same in Python."""
    try:
        from Stemmer import Stemmer
    except ImportError:
        from snowballstemmer import stemmer as Stemmer  # noqa: N812
    found: Stem = Stemmer(algorithm).stemWords
    return found


def shared_start(one: Sequence[object], other: Sequence[object]) -> int:
    pairs_of = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs_of if left != right), min(len(one), len(other)))


@cache
def stop_word_lists() -> dict[str, frozenset[str]]:
    lines = (get_data("afresh.search", "stop_words.txt") or b"").decode().splitlines()
    parts = [line.partition(":") for line in lines if not line.startswith("#")]
    return {config: frozenset(words.split()) for config, _, words in parts}


@cache
def all_stop_words() -> frozenset[str]:
    return frozenset[str]().union(*stop_word_lists().values())


def stop_words(words: Collection[str], configs: Collection[str]) -> frozenset[str]:
    """Return those of the words that are stop words in a configuration, or in the language that they seem to be in."""
    known = stop_word_lists()
    asked = {config: len(stop.intersection(words)) for config, stop in known.items()}
    most = max(asked.values())
    own = [config for config, count in asked.items() if count == most >= MIN_STOP_WORDS]
    spoken = [known[config] for config in (*own, *configs) if config in known]
    return frozenset().union(*spoken).intersection(words)
