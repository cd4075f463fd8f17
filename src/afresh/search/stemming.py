"""Words as the full-text index keeps them, the same for texts and for what people ask.

SQLite's own tokenizer splits at spaces and stems English. What it cannot do is done here: words of other
languages are stemmed (Snowball), and scripts that are written without spaces are cut into pairs of characters
that overlap (`依赖注入` is `依赖 赖注 注入 入`), so that a word is found wherever it stands.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Stem = Callable[[list[str]], list[str]]

# The text-search configurations of PostgreSQL by language; every other language is `simple`.
_CONFIGS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
ENGLISH, SIMPLE = "english", "simple"

# Thai, Lao, Burmese, Khmer, kana and ideographs.
SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff"
    "\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_HANGUL = "\u1100-\u11ff\uac00-\ud7af"  # has spaces, but endings grow onto its words
_UNSPACED = SPACELESS + _HANGUL
# Marks that belong to the letter before them: accents, Hebrew points, Arabic vowels, vowel signs of India.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0dff"
)
RUN = re.compile(f"[{_UNSPACED}]+")
WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{_MARKS}])*")


def search_config(language: str | None) -> str:
    """The text-search configuration for a language; what names none is taken for English."""
    return ENGLISH if language is None else _CONFIGS.get(language.lower().partition("-")[0], SIMPLE)


def analysed(text: str, config: str) -> str | None:
    """The words of a text as they are to be indexed; None where SQLite's own tokenizer does it as well."""
    stem = _stem(config)
    if stem is not None:
        words = words_in(text)
        return " ".join(stem(words if text.isascii() else _spread(words)))
    if text.isascii() or RUN.search(text) is None:
        return None
    whole = unicodedata.normalize("NFKC", text)
    return RUN.sub(lambda run: f" {' '.join(pairs(run[0]))} ", whole)


def words_in(text: str) -> list[str]:
    """The words of a text in lower case, each run of an unspaced script as one of them."""
    whole = text if text.isascii() else unicodedata.normalize("NFKC", text)  # ﾒﾓﾘ is メモリ
    return WORD.findall(whole.lower())


def stems(words: Iterable[str], config: str) -> list[str]:
    """Words in lower case, each as a configuration keeps it."""
    stem = _stem(config)
    return list(words) if stem is None else stem(list(words))


def is_run(word: str) -> bool:
    """Whether a word is written in a script without spaces."""
    return RUN.match(word) is not None


def pairs(run: str) -> list[str]:
    """The overlapping pairs of a run, and its last character, by which a single one is found."""
    return [run[at : at + 2] for at in range(len(run))]


def _spread(words: Iterable[str]) -> list[str]:
    return [part for word in words for part in (pairs(word) if is_run(word) else (word,))]


@cache
def _stem(config: str) -> "Stem | None":
    """What brings words to their stem; None where nothing does, or SQLite."""
    return None if config in (ENGLISH, SIMPLE) else snowball(config)


@cache
def snowball(config: str) -> "Stem":
    """The stemmer of a language."""
    import Stemmer

    found: Stem = Stemmer.Stemmer(config).stemWords
    return found
