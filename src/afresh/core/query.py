"""Turns what a person types into full-text expressions that are never a syntax error.

Nothing a person types is an operator, with two exceptions: quotes make a phrase, and a star right after
a word matches every word that starts like it. Words are split as SQLite's unicode61 splits them; what is
written as one word but splits (`json.dumps`, `a-b`, `snake_case`) stays together as a phrase.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from afresh.core.stopwords import STOP_WORDS

MAX_WORDS = 64
MAX_WORD_CHARS = 128
SHORT_QUERY = 3  # up to so many words every word is meant: "for loop", "is not"

_PART = re.compile(r'"([^"]*)"|“([^“”]*)”|([^\s"“”]+)')
_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*")
# Scripts written without spaces: unicode61 takes a whole run for one word, so its beginning has to do.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True)
class Query:
    """What a person asked for, in words that hold letters and digits only."""

    terms: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()  # typed in quotes
    compounds: tuple[tuple[str, ...], ...] = ()  # typed as one word that is split
    prefixes: tuple[str, ...] = ()  # match every word that starts like them

    def __bool__(self) -> bool:
        return bool(self.terms or self.phrases or self.compounds or self.prefixes)


def parse(query: str) -> Query:
    """Reads any text as a query; words beyond the first 64 are dropped."""
    terms: dict[str, None] = {}
    phrases: dict[tuple[str, ...], None] = {}
    compounds: dict[tuple[str, ...], None] = {}
    prefixes: dict[str, None] = {}
    for words, quoted, starred in _parts(query):
        if len(words) > 1:
            (phrases if quoted else compounds)[words] = None
        elif starred or _UNSPACED.search(words[0]):
            prefixes[words[0]] = None
        else:
            terms[words[0]] = None
    return Query(tuple(terms), tuple(phrases), tuple(compounds), tuple(prefixes))


def words_of(query: str) -> tuple[str, ...]:
    """The words that a query is about: stop words only if there is nothing else."""
    parsed = parse(query)
    parts = [word for part in (*parsed.phrases, *parsed.compounds) for word in part]
    words = tuple(dict.fromkeys((*parsed.terms, *parsed.prefixes, *parts)))
    return _telling(words) or words


def match_all(query: Query) -> str | None:
    """An FTS5 expression for texts that hold everything asked for, or None if nothing is.

    A longer query is a question: its stop words are left out, because no text repeats them all.
    """
    others = (*query.phrases, *query.compounds, *query.prefixes)
    short = len(query.terms) + len(others) <= SHORT_QUERY
    terms = query.terms if short else _telling(query.terms) or (() if others else query.terms)
    return " AND ".join(_expressions(query, terms, query.compounds)) or None


def match_any(query: Query) -> str | None:
    """An FTS5 expression for texts that hold anything asked for but stop words, or None if nothing is asked.

    A compound counts as its parts: as a phrase beside them it would outweigh all other words. If there is
    nothing but stop words, they count.
    """
    parts = [word for words in query.compounds for word in words if len(word) > 1]
    terms = _telling(dict.fromkeys((*query.terms, *parts)))
    if terms or query.phrases or query.prefixes:
        return " OR ".join(_expressions(query, terms, ()))
    return " OR ".join(_expressions(query, query.terms, query.compounds)) or None


def _parts(query: str) -> Iterator[tuple[tuple[str, ...], bool, bool]]:
    """The words of each part of a query, and whether it was quoted or ended with a star."""
    room = MAX_WORDS
    for part in _PART.finditer(query):
        bare = part[3]
        text = part[1] or part[2] or bare or ""
        words = tuple(word[0][:MAX_WORD_CHARS].lower() for word in islice(_WORD.finditer(text), room))
        if words:
            yield words, bare is None, bare is not None and bare.endswith("*")
        room -= len(words)
        if not room:
            return


def _telling(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in STOP_WORDS)


def _expressions(query: Query, terms: Iterable[str], compounds: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for term in terms:
        yield _quoted((term,))
    for words in (*query.phrases, *compounds):
        yield _quoted(words)
    for prefix in query.prefixes:
        yield _quoted((prefix,)) + "*"


def _quoted(words: Iterable[str]) -> str:
    return '"' + " ".join(words).replace('"', '""') + '"'
