"""The words of texts and questions as PostgreSQL's text index keeps them.

They are made here and not by the server, whose parser takes `json.dumps` for the name of a computer, and
whose idea of a letter depends on how its database was made. So the same texts are found in every store.
"""

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from afresh.search.stemming import ENGLISH, WORD

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE, HEADING, CONTENT = "A", "B", "D"  # the weights of a text's parts
GAP = 8  # places between two parts, so that no phrase reaches over
MOST_WORDS = 16_000  # of one part; PostgreSQL numbers no more places
MOST_PLACES = 255  # of one word
LONGEST = 128  # characters of a word, as in a question
_ACCENTS = re.compile("[\u0300-\u036f]")
_TOKEN = re.compile(r'"([^"]*)"(\*?)|(AND)|(OR)|([()])')


def lexemes(text: str, *, english: bool) -> list[str]:
    """The words of a text in their order: lower case, without accents, English ones as their stem."""
    words = [word[:LONGEST] for word in WORD.findall(_folded(text.lower()))]
    if not english:
        return words
    return [
        stem or word for stem, word in zip(_porter()(words), words, strict=True)
    ]  # of `s` nothing is left


def _folded(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


@cache
def _porter() -> "Callable[[list[str]], list[str]]":
    import Stemmer

    stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer("porter").stemWords
    return stem


def vector_of(parts: Sequence[tuple[str, str]], *, english: bool) -> str:
    """A tsvector of texts, each with its weight."""
    places: dict[str, list[str]] = defaultdict(list)
    begin = 1
    for text, weight in parts:
        words = lexemes(text, english=english)[:MOST_WORDS]
        for at, word in enumerate(words, begin):
            places[word].append(f"{at}{weight}")
        begin += len(words) + GAP
    return " ".join(f"'{word}':{','.join(found[:MOST_PLACES])}" for word, found in places.items())


def query_of(expression: str, *, english: bool) -> str:
    """A tsquery that finds what an expression of `search/query.py` finds."""
    found = []
    for token in _TOKEN.finditer(expression):
        phrase, star, both, either, _ = token.groups()
        if phrase is not None:
            found.append(_phrase(lexemes(phrase, english=english), star))
        else:
            found.append("&" if both else "|" if either else token[0])
    return " ".join(found)


def _phrase(words: Sequence[str], star: str) -> str:
    joined = " <-> ".join(f"'{word}'" for word in words)
    return f"({joined}{':*' if star else ''})"


def with_words(row: Mapping[str, object]) -> dict[str, object]:
    """A row of `chunks` with what is searched of it: its terms where it has some, else the text itself."""
    texts = _searched(row, ("title", "heading", "content"))
    parts = list(zip(texts, (TITLE, HEADING, CONTENT), strict=True))
    return {**row, "words": vector_of(parts, english=row["config"] == ENGLISH)}


def with_title_words(row: Mapping[str, object]) -> dict[str, object]:
    """A new title of a chunk with what is searched of it."""
    [text] = _searched(row, ("title",))
    parts = [(text, TITLE)]
    return {**row, "words": vector_of(parts, english=row["config"] == ENGLISH)}


def _searched(row: Mapping[str, object], names: Sequence[str]) -> list[str]:
    terms = json.loads(str(row["terms"])) if row["terms"] else (None, None, None)
    return [own or str(row[name]) for own, name in zip(terms, names, strict=False)]
