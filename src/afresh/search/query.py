"""Turns what a person types into full-text expressions that are never a syntax error.

Nothing a person types is an operator, with two exceptions: quotes make a phrase, and a star right after
a word matches every word that starts like it. What is written as one word but splits (`json.dumps`, `a-b`,
`snake_case`) stays together as a phrase. Each word is looked for in every form that the languages of the
index give it (analysis.py); a run of a script without spaces is a phrase of its pairs.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby

from afresh.search.stemming import ENGLISH, is_run, pairs, stems, words_in
from afresh.search.stopwords import stop_words

MAX_WORDS = 64
MAX_WORD_CHARS = 128
MAX_CHARS = 10_000  # of a query that are looked at, far more than its words can need
LONGEST_NAME = 12  # characters of a run that may be one word or a few: データベースエンジン
SHORT_QUERY = 3  # up to so many words every word is meant: "for loop", "is not"

_RUN = re.compile(r"[\w.:]+")  # that may be a name in code, which is one if signs join its parts
_JOINED = re.compile(r"[.:]|_\w")
_PART = re.compile(r'"([^"]*)"|“([^“”]*)”|([^\s"“”]+)')


@dataclass(frozen=True, slots=True)
class Query:
    """What a person asked for, in words that hold letters and digits only."""

    terms: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()  # typed in quotes
    compounds: tuple[tuple[str, ...], ...] = ()  # typed as one word that is split
    names: tuple[tuple[str, ...], ...] = ()  # of them those that are names in code, as `to_char`
    prefixes: tuple[str, ...] = ()  # match every word that starts like them
    runs: tuple[str, ...] = ()  # of scripts without spaces: found anywhere inside a longer run
    stop: frozenset[str] = field(default=frozenset(), compare=False)  # those of the words that say little

    def __bool__(self) -> bool:
        return bool(self.terms or self.phrases or self.compounds or self.prefixes or self.runs)


def parse(query: str, spoken: Sequence[str] = (ENGLISH,)) -> Query:
    """Reads any text as a query to texts in some configurations; words beyond the first 64 are dropped."""
    return _parsed(query, tuple(spoken))


@lru_cache(maxsize=64)  # one question is asked for in many places
def _parsed(query: str, spoken: tuple[str, ...]) -> Query:
    terms: dict[str, None] = {}
    phrases: dict[tuple[str, ...], None] = {}
    compounds: dict[tuple[str, ...], None] = {}
    prefixes: dict[str, None] = {}
    runs: dict[str, None] = {}
    names = {tuple(words_in(name)) for name in _names(query[:MAX_CHARS])}
    for words, quoted, starred in _parts(query):
        if quoted:
            phrases[words] = None
            continue
        for unspaced, group in groupby(words, is_run):
            together = tuple(group)
            if unspaced:
                runs.update(dict.fromkeys(together))
            elif len(together) > 1:
                compounds[together] = None
            else:
                (prefixes if starred and together[0] == words[-1] else terms)[together[0]] = None
    stop = stop_words({*terms, *(word for words in compounds for word in words)}, spoken)
    named = tuple(words for words in compounds if words in names)
    return Query(tuple(terms), tuple(phrases), tuple(compounds), named, tuple(prefixes), tuple(runs), stop)


def _names(text: str) -> Iterator[str]:
    """The names in code that a text holds."""
    runs = (run.strip(".:") for run in _RUN.findall(text))
    return (run for run in runs if _JOINED.search(run))


def words_of(query: str) -> tuple[str, ...]:
    """The words that a query is about: stop words only if there is nothing else."""
    parsed = parse(query)
    parts = [word for part in (*parsed.phrases, *parsed.compounds) for word in part]
    words = tuple(dict.fromkeys((*parsed.terms, *parsed.prefixes, *parsed.runs, *parts)))
    return _telling(words, parsed) or words


def match_all(query: Query, configs: Sequence[str] = (ENGLISH,)) -> str | None:
    """An FTS5 expression for texts that hold everything asked for, or None if nothing is.

    A longer query is a question: its stop words are left out, because no text repeats them all.
    """
    others = (*query.phrases, *query.compounds, *query.prefixes, *query.runs)
    short = len(query.terms) + len(others) <= SHORT_QUERY
    terms = query.terms if short else _telling(query.terms, query) or (() if others else query.terms)
    expressions = _expressions(query, configs, terms, (*query.compounds, *((run,) for run in query.runs)))
    return " AND ".join(expressions) or None


def match_any(query: Query, configs: Sequence[str] = (ENGLISH,)) -> str | None:
    """An FTS5 expression for texts that hold anything asked for but stop words; None if nothing is."""
    return " OR ".join(alternatives(query, configs)) or None


def unquoted(query: str) -> str:
    """The same words without quotes, so that each counts by itself."""
    return re.sub(r'["“”]', " ", query)


def phrases_of(query: Query, configs: Sequence[str] = (ENGLISH,)) -> str | None:
    """An FTS5 expression for texts that hold every phrase in quotes as it stands; None if there is none."""
    forms = [_either(dict.fromkeys(_phrase(words, config) for config in configs)) for words in query.phrases]
    return " AND ".join(forms) or None


def alternatives(query: Query, configs: Sequence[str] = (ENGLISH,)) -> tuple[str, ...]:
    """The expressions of which a text has to match any: everything asked for but stop words.

    A compound counts as its parts: as a phrase beside them it would outweigh all other words. A name in code
    shall, and counts as both. A run counts as its parts: a question in Chinese is one run, and no text holds
    it as it stands; one that may be a name counts as a whole, too. If there is nothing but stop words, they
    count.
    """
    parts = [word for words in query.compounds for word in words if len(word) > 1]
    terms: Iterable[str] = _telling(dict.fromkeys((*query.terms, *parts)), query)
    of_runs = dict.fromkeys(pair for run in query.runs for pair in (pairs(run)[:-1] or [run]))
    names = [run for run in query.runs if 2 < len(run) <= LONGEST_NAME]
    more: Sequence[tuple[str, ...]] = [(run,) for run in (*list(of_runs)[:MAX_WORDS], *names)]
    if not (terms or query.phrases or query.prefixes or more):
        terms, more = query.terms, query.compounds
    return tuple(dict.fromkeys(_expressions(query, configs, terms, [*more, *query.names])))


def _parts(query: str) -> Iterator[tuple[tuple[str, ...], bool, bool]]:
    """The words of each part of a query, and whether it was quoted or ended with a star."""
    room = MAX_WORDS
    for part in _PART.finditer(query[:MAX_CHARS]):
        bare = part[3]
        text = part[1] or part[2] or bare or ""
        words = tuple(word[:MAX_WORD_CHARS] for word in words_in(text)[:room])
        if words:
            yield words, bare is None, bare is not None and bare.endswith("*")
        room -= len(words)
        if not room:
            return


def _telling(words: Iterable[str], query: Query) -> tuple[str, ...]:
    return tuple(word for word in words if word not in query.stop)


def _expressions(
    query: Query, configs: Sequence[str], terms: Iterable[str], more: Iterable[tuple[str, ...]]
) -> Iterator[str]:
    for words in (*((term,) for term in terms), *query.phrases, *more):
        yield _either(dict.fromkeys(_phrase(words, config) for config in configs))
    for prefix in query.prefixes:
        yield _either(dict.fromkeys(_phrase((prefix,), config) + "*" for config in configs))


def _either(forms: Collection[str]) -> str:
    joined = " OR ".join(forms)
    return f"({joined})" if len(forms) > 1 else joined


def _phrase(words: Sequence[str], config: str) -> str:
    """Words in the order in which a text of a configuration holds them; a character alone begins a pair."""
    kept: list[str] = []
    for word, stem in zip(words, stems(words, config), strict=True):
        kept += pairs(word) if is_run(word) else (stem,)
    ends_in_run = is_run(words[-1])
    if ends_in_run and len(words[-1]) > 1:
        kept.pop()
    quoted = '"' + " ".join(kept) + '"'
    return quoted + "*" if ends_in_run and len(words[-1]) == 1 else quoted
