"""The part of a text that answers a query, its words marked: for texts that are searched by other terms."""

from collections.abc import Iterator
from typing import NamedTuple

from afresh.core.analysis import WORD, is_run, pairs, stems
from afresh.core.query import Query

START, END = "\x02", "\x03"
WIDTH = 120  # of a passage: a word counts two, a character of a script without spaces one
BEFORE = 12  # of the width that stands before the first match


class _Token(NamedTuple):
    start: int
    end: int
    width: int
    match: str | None  # what was asked for, if this is it


def passage(text: str, query: Query, config: str) -> str:
    """The part of a text that holds most of what is asked for; all of it if it is short."""
    tokens = list(_tokens(text, query, config))
    first, last = _best(tokens)
    if first >= last:
        return text
    start = tokens[first].start if first else 0
    end = tokens[last - 1].end if last < len(tokens) else len(text)
    marked = _marked(text, [token for token in tokens[first:last] if token.match], start, end)
    return ("…" if first else "") + marked + ("…" if last < len(tokens) else "")


def _tokens(text: str, query: Query, config: str) -> Iterator[_Token]:
    """Every word of a text, and every character where there are no words."""
    words = {word for part in (query.phrases + query.compounds) for word in part} | set(query.terms)
    asked = set(stems([word for word in words - query.stop or words if not is_run(word)], config))
    begun = tuple(stems(query.prefixes, config))
    of_runs = {pair for run in {*query.runs, *filter(is_run, words)} for pair in pairs(run)[:-1] or [run]}
    for found in WORD.finditer(text):
        if is_run(found[0]):
            yield from _characters(found[0], found.start(), of_runs)
        else:
            [stem] = stems([found[0].lower()], config)
            match = stem if stem in asked or (begun and stem.startswith(begun)) else None
            yield _Token(found.start(), found.end(), 2, match)


def _characters(run: str, start: int, asked: set[str]) -> Iterator[_Token]:
    before = False
    for at, char in enumerate(run):
        pair = run[at : at + 2]
        begins = pair in asked or char in asked
        match = pair if begins else char if before else None
        yield _Token(start + at, start + at + 1, 1, match)
        before = pair in asked


def _best(tokens: list[_Token]) -> tuple[int, int]:
    """First token of the best window and the one after its last."""
    starts = [0, *(_before(tokens, at) for at, token in enumerate(tokens) if token.match)]
    windows = [(first, _after(tokens, first)) for first in dict.fromkeys(starts)]
    return max(windows, key=lambda window: _worth(tokens[slice(*window)]))


def _before(tokens: list[_Token], at: int) -> int:
    room = BEFORE
    while at and room > 0:
        at -= 1
        room -= tokens[at].width
    return at


def _after(tokens: list[_Token], first: int) -> int:
    room = WIDTH
    while first < len(tokens) and room > 0:
        room -= tokens[first].width
        first += 1
    return first


def _worth(tokens: list[_Token]) -> tuple[int, int]:
    matches = [token.match for token in tokens if token.match]
    return len(set(matches)), len(matches)


def _marked(text: str, matches: list[_Token], start: int, end: int) -> str:
    parts, at = [], start
    for token in matches:
        parts += [text[at : token.start], START, text[token.start : token.end], END]
        at = token.end
    return "".join([*parts, text[at:end]]).replace(END + START, "")
