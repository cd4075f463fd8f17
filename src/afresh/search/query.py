"""Convert user input to valid full-text expressions.

User input has no operators, with two exceptions: quotes make a phrase, and a star right after a word matches
every word with that prefix. A word that the tokenizer splits (`json.dumps`, `a-b`, `snake_case`) becomes a
phrase. Each word is searched in every form that the languages of the index give it (stemming.py). A text in a script
without spaces, such as Chinese, becomes a phrase of its character pairs.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from math import inf, log
from typing import NamedTuple
from zlib import crc32

from afresh.dataclass import dataclass, field, replace
from afresh.model.fetch import Chunk, SearchTerms
from afresh.search.stemming import ENGLISH, is_run, pairs, stems, stop_words, words_in

MAX_WORDS = 64
MAX_WORD_CHARS = 128
MAX_CHARS = 10_000  # of a query; the rest is ignored
MAX_NAME_CHARS = 12  # characters of a run that may be one word or a few: データベースエンジン

_RUN = re.compile(r"[\w.:]+")  # a candidate for a name in code, if punctuation joins its parts
_JOINED = re.compile(r"[.:]|_\w")
_PART = re.compile(r'"([^"]*)"|“([^“”]*)”|([^\s"“”]+)')


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query; its words have letters and digits only."""

    terms: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()  # in quotes
    compounds: tuple[tuple[str, ...], ...] = ()  # written as one word that the tokenizer splits
    names: tuple[tuple[str, ...], ...] = ()  # compounds that are names in code, such as `to_char`
    prefixes: tuple[str, ...] = ()  # match every word that starts with them
    unspaced: tuple[str, ...] = ()  # texts in scripts without spaces: match anywhere inside a longer text
    stop: frozenset[str] = field(default=frozenset(), compare=False)  # words that carry little meaning

    def __bool__(self) -> bool:
        return bool(self.terms or self.phrases or self.compounds or self.prefixes or self.unspaced)


@lru_cache(maxsize=64)  # a query is parsed in several places
def parse(query: str, spoken: tuple[str, ...] = (ENGLISH,)) -> Query:
    """Parse any text as a query of up to 64 words; the search configurations in `spoken` define its stop words."""
    terms: dict[str, None] = {}
    phrases: dict[tuple[str, ...], None] = {}
    compounds: dict[tuple[str, ...], None] = {}
    prefixes: dict[str, None] = {}
    unspaced: dict[str, None] = {}
    names = {tuple(words_in(name)) for name in _names(query[:MAX_CHARS])}
    room = MAX_WORDS
    for part in _PART.finditer(query[:MAX_CHARS]):
        bare = part[3]
        words = tuple(word[:MAX_WORD_CHARS] for word in words_in(part[1] or part[2] or bare or "")[:room])
        room -= len(words)
        if bare is None and words:
            phrases[words] = None
        for has_no_spaces, group in groupby(words if bare else (), is_run):
            together = tuple(group)
            if has_no_spaces:
                unspaced.update(dict.fromkeys(together))
            elif len(together) > 1:
                compounds[together] = None
            else:
                (prefixes if bare.endswith("*") and together[0] == words[-1] else terms)[together[0]] = None
    stop = stop_words({*terms, *(word for words in compounds for word in words)}, spoken)
    named = tuple(words for words in compounds if words in names)
    return Query(tuple(terms), tuple(phrases), tuple(compounds), named, tuple(prefixes), tuple(unspaced), stop)


def _names(text: str) -> Iterator[str]:
    runs = (run.strip(".:") for run in _RUN.findall(text))
    return (run for run in runs if _JOINED.search(run))


def words_of(query: str) -> tuple[str, ...]:
    """Return the significant words of a query, or its stop words if there are no others."""
    parsed = parse(query)
    parts = [word for part in (*parsed.phrases, *parsed.compounds) for word in part]
    words = tuple(dict.fromkeys((*parsed.terms, *parsed.prefixes, *parsed.unspaced, *parts)))
    return tuple(word for word in words if word not in parsed.stop) or words


def phrases_of(query: Query, configs: Sequence[str] = (ENGLISH,)) -> str | None:
    """Return an FTS5 expression for texts that contain every quoted phrase; None if nothing is quoted."""
    return " AND ".join(_any_form(words, configs) for words in query.phrases) or None


def alternatives(query: Query, configs: Sequence[str] = (ENGLISH,)) -> tuple[str, ...]:
    """Return the FTS5 expressions of a query; a text is found if it matches any of them.

    Stop words are left out unless the query has no other words. The parts of a compound are searched, because the whole
    as a phrase would outweigh all other words; only a compound that is a name in code is also searched as a phrase.
    Text in a script without spaces is searched by its character pairs, because no text contains a whole Chinese
    question literally; if it may be a name, it is also searched as a whole.
    """
    terms: Sequence[str] = _significant(query)
    names = [run for run in query.unspaced if 2 < len(run) <= MAX_NAME_CHARS]
    more: Sequence[tuple[str, ...]] = [(run,) for run in (*_of_runs(query), *names)]
    if not (terms or query.phrases or query.prefixes or more):
        terms, more = query.terms, query.compounds
    found = [_any_form(words, configs) for words in (*((term,) for term in terms), *query.phrases, *more, *query.names)]
    found += [_any_form((prefix,), configs, "*") for prefix in query.prefixes]
    return tuple(dict.fromkeys(found))


def single_words(query: Query, configs: Sequence[str] = (ENGLISH,)) -> dict[str, str]:
    """Return the FTS5 expression of each significant word, pair of characters and prefix (`word*`) of a query."""
    words = [*_significant(query), *_of_runs(query)]
    if not (words or query.prefixes):
        words = [*query.terms, *(word for compound in query.compounds for word in compound)]
    found = {word: _any_form((word,), configs) for word in words}
    return found | {f"{prefix}*": _any_form((prefix,), configs, "*") for prefix in query.prefixes}


def _significant(query: Query) -> list[str]:
    parts = [word for words in query.compounds for word in words if len(word) > 1]
    return [word for word in dict.fromkeys((*query.terms, *parts)) if word not in query.stop]


def _of_runs(query: Query) -> list[str]:
    return list(dict.fromkeys(pair for run in query.unspaced for pair in (pairs(run)[:-1] or [run])))[:MAX_WORDS]


def _any_form(words: Sequence[str], configs: Sequence[str], star: str = "") -> str:
    forms = dict.fromkeys(_phrase(words, config) + star for config in configs)
    joined = " OR ".join(forms)
    return f"({joined})" if len(forms) > 1 else joined


def _phrase(words: Sequence[str], config: str) -> str:
    """Return stemmed words as a quoted phrase; a single Chinese character at the end matches as a prefix."""
    kept: list[str] = []
    for word, stem in zip(words, stems(words, config), strict=True):
        kept += pairs(word) if is_run(word) else (stem,)
    ends_in_run = is_run(words[-1])
    if ends_in_run and len(words[-1]) > 1:
        kept.pop()
    quoted = '"' + " ".join(kept) + '"'
    return quoted + "*" if ends_in_run and len(words[-1]) == 1 else quoted


SHUFFLES = 3  # orders to try


def signals(text: str) -> str:
    """Return all words of a text, shuffled, so that a search finds the page but nobody can read the text.

    Words are ordered by a checksum, so that the order is reproducible. Of several such orders, the result has the one
    with the fewest sequences of three words that also occur in the text.
    """
    words = words_in(text)
    known = set(_threes(words))
    orders = [
        sorted(words, key=lambda word: (crc32(f"{number} {word}".encode("utf-8", "replace")), word))
        for number in range(SHUFFLES)
    ]
    least = min(orders, key=lambda order: sum(three in known for three in _threes(order)))
    return " ".join(least)


def _threes(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [three for three in zip(words, words[1:], words[2:], strict=False) if len(set(three)) > 1]


def only_signals(chunk: Chunk) -> Chunk:
    """Return a copy of a chunk in which the words of text and headings are shuffled: searchable, but not readable."""
    heading = signals(chunk.terms.heading or chunk.heading)
    content = signals(chunk.terms.content or chunk.content)
    terms = SearchTerms(chunk.terms.title, heading or None, None)
    return replace(chunk, content=content, path=(), level=0, heading="", terms=terms)


def without_text(labels: Sequence[str], query: str) -> list[str]:
    """Return the notes for a search in the sources `labels`, which store no text."""
    if not labels:
        return []
    which = f"{', '.join(labels)} {'stores' if len(labels) == 1 else 'store'} no text (storage.body: none)"
    return [f"{which}: quoted phrases find nothing there" if parse(query).phrases else f"{which}: results show none"]


# Finding texts is fast, scoring them is slow, and a third of 100,000 texts may contain a word of a query. But a
# text without any rare word of the query is hardly among the best. So only texts with a rare word are scored,
# by all their words. If they are few, texts with several frequent words are scored, too. A hybrid search
# also scores the texts with the nearest vectors, whatever words they contain.
#
# For every word of an expression, SQLite counts all texts with it before it scores the first one. Therefore
# expressions contain as few frequent words as possible, even if a text is then scored twice. Each matching word
# adds to the score, so the highest score of a text is the one for all its words. Texts that contain only rare
# words are scored second, and not at all if enough other texts score higher than they can.
ROOM = 2_500  # texts to score per query
ENOUGH = 100  # texts with rare words; if there are fewer, frequent words are used, too
BM25_MOST = 2.2  # maximum that a word adds to the score of a text in SQLite, as a multiple of its rarity
STEPS = 4  # frequent words that may be required together with any other


class Scoring(NamedTuple):
    """The FTS5 expressions that score texts; if several match a text, its highest score counts."""

    scored: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()  # one of these is used, too: each matches fewer texts than the one before
    alone: str | None = None  # the rarest word if all are frequent: maybe no text contains two of them
    rest: float = inf  # upper bound of the scores of texts that the first expression does not find

    @property
    def whole(self) -> bool:
        """Return whether every text with any word of the query gets a score."""
        return len(self.scored) <= 1 and not self.steps


def scoring(counts: Mapping[str, int], room: int = ROOM, enough: int = ENOUGH, texts: int = 0) -> Scoring:
    """Return the expressions for scoring: those for the rarest words, which match at most about `room` texts together.

    `counts` holds the number of texts that contain each word; `texts` is an upper bound of the number of all texts, or
    0 if it is unknown. If the rarest words occur in fewer than `enough` texts, the field `steps` of the result has
    expressions for combinations of frequent words.
    """
    words = sorted((word for word in counts if counts[word]), key=lambda word: (counts[word], word))
    total = list(accumulate(counts[word] for word in words))
    few = bisect_right(total, room)
    seldom, frequent = words[:few], words[few:]
    if not frequent:
        return Scoring((_any(seldom),) if seldom else ())
    if not seldom:
        return Scoring((), _steps(frequent), frequent[0])
    scored = (f"{_any(seldom)} AND {_any(frequent)}", _any(seldom))
    if total[few - 1] < enough:
        return Scoring(scored, _steps(frequent))
    rarities = (log((texts - counts[word] + 0.5) / (counts[word] + 0.5)) for word in seldom) if texts else (inf,)
    return Scoring(scored, rest=sum(BM25_MOST * max(rarity, 1e-6) for rarity in rarities))


def expressions(plan: Scoring, counts: Sequence[int], room: int = ROOM, enough: int = ENOUGH) -> tuple[str, ...]:
    """Return `plan.scored`, and the first of `plan.steps` that matches at most `room` texts.

    `counts` holds the number of texts that each of these steps matches. Two rules apply if `plan.scored` is empty. A
    step with fewer than `enough` texts is replaced by the step before it. If all match too many, the last one is used.
    """
    before = None
    for step, found in zip(plan.steps, counts, strict=True):
        if found <= room:
            wider = before if found < enough and not plan.scored else None
            return (*plan.scored, wider or (step if found else plan.alone) or step)
        before = step
    return plan.scored or ((before,) if before else ())


def _steps(words: Sequence[str]) -> tuple[str, ...]:
    """Return expressions that require the rarest word and any other, the two rarest and any other, and so on."""
    if len(words) == 1:
        return (words[0],)
    return tuple(
        " AND ".join((*words[:needed], _any(words[needed:]))) for needed in range(1, min(len(words), STEPS + 1))
    )


def _any(words: Sequence[str]) -> str:
    return "(" + " OR ".join(words) + ")"
