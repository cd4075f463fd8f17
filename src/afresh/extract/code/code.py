"""Source code to a document: what its head says as prose, then symbol by symbol, each under its name."""

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from inspect import cleandoc
from itertools import zip_longest
from textwrap import dedent
from typing import NamedTuple
from urllib.parse import unquote

from afresh.errors import ExtractError
from afresh.extract.code.languages import LANGUAGES, Language
from afresh.extract.code.names import language_of_name
from afresh.extract.code.outline import Symbol, outline
from afresh.extract.decode import decode
from afresh.extract.html.head import LONGEST_TITLE
from afresh.extract.written import fenced, joined, written
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

LONG_LINE = 1_000  # characters; nobody reads, so nobody writes, files that mostly consist of such lines
DEEPEST = 6

_PREFACES = ("package ", "import ", "#include", "use ", "namespace ", "module ")
_LICENCE = re.compile(r"copyright|licen[sc]e|SPDX-|all rights reserved", re.IGNORECASE)
_DOCSTRING = re.compile(r"\s*[rRuUbB]{0,2}(\"\"\"|''')([\s\S]*?)\1")
_MARKS = re.compile(r"^[ \t]*(?:/\*+!?|\*+/|\*(?=\s|$)|//+!?|#+!?(?!\[)|--+|;+)[ \t]?|(?<!\*)\*++/[ \t]*+$")
_BRACKETS = re.compile(r"[\s})\];,]*(?:end[\s;,)]*)*")
_MARKED = re.compile(r"^([ \t]*)(#|=+[ \t]*$|-{2,}[ \t]*$|```|~~~)", re.MULTILINE)


class _Part(NamedTuple):
    """Lines that stand under one heading."""

    name: str
    level: int
    lines: Sequence[str]


class CodeExtractor:
    """Reads source code."""

    version = recipe.CODE

    def extract(self, body: Body) -> Document:
        """The document of a source file; ExtractError for one that a machine wrote for machines."""
        text = normalise(decode(body.data, body.charset))
        _refuse_minified(text)
        name = unquote(body.url.partition("?")[0].partition("#")[0].rpartition("/")[2])
        return replace(written(body, to_markdown(text, name)), title=name[:LONGEST_TITLE])


def _refuse_minified(text: str) -> None:
    long = sum(len(line) for line in text.split("\n") if len(line) > LONG_LINE)
    if long * 2 > len(text):
        raise ExtractError(
            f"generated or minified code: most of it is in lines over {LONG_LINE:,} characters"
        )


def to_markdown(text: str, name: str) -> str:
    """The text by symbol, in the order of the file."""
    called = language_of_name(name)
    language = LANGUAGES.get(called)
    if language is None:
        return joined([f"# `{name}`", fenced(text, called)])
    prose, after = _head(text, language)
    lines = text.split("\n")
    symbols = [symbol for symbol in outline(text, language) if symbol.last >= after]
    parts = [part for part in _parts(lines, symbols, after, name) if _says_something(part)]
    return joined([f"# `{name}`", prose, *_shown(parts, language.name)])


def _shown(parts: Sequence[_Part], language: str) -> Iterator[str]:
    for number, part in enumerate(parts):
        if part.level or number:
            yield f"{'#' * min(max(part.level, 1) + 1, DEEPEST)} `{part.name.strip('`')}`"
        yield fenced(dedent("\n".join(part.lines)), language)


def _says_something(part: _Part) -> bool:
    """Whether there is more in a part than what closes another one."""
    return _BRACKETS.fullmatch("\n".join(part.lines)) is None


def _parts(lines: Sequence[str], symbols: Sequence[Symbol], after: int, name: str) -> Iterator[_Part]:
    """The lines, each once, under the symbol that they belong to; level 0 is what no symbol holds."""
    around: list[Symbol] = []
    at = after
    for symbol, following in zip_longest(symbols, symbols[1:]):
        at = yield from _leave(around, lines, at, symbol.first, name)
        first = max(symbol.first, at)
        yield _holder(around, name, lines[at:first])
        inner = following is not None and following.first <= symbol.last
        at = max(first, following.first if inner else symbol.last + 1)
        yield _Part(symbol.name, len(around) + 1, lines[first:at])
        around.append(symbol)
    at = yield from _leave(around, lines, at, len(lines), name)
    yield _holder([], name, lines[at:])


def _leave(
    around: list[Symbol], lines: Sequence[str], at: int, until: int, name: str
) -> Generator[_Part, None, int]:
    """Leave the symbols that end before a line; what they still hold is shown under their name."""
    while around and around[-1].last < until:
        yield _holder(around, name, lines[at : around[-1].last + 1])
        at = max(at, around[-1].last + 1)
        around.pop()
    return at


def _holder(around: Sequence[Symbol], name: str, lines: Sequence[str]) -> _Part:
    return _Part(around[-1].name if around else name, len(around), lines)


# ---- the head of a file --------------------------------------------------------------------------------


def _head(text: str, language: Language) -> tuple[str, int]:
    """What a file says of itself at its start, as prose, and the line where its code begins; no licences."""
    lines = text.split("\n")
    at = 1 if lines[0].startswith(("#!", "<?php")) else 0
    said: list[str] = []
    while at < len(lines):
        stop = _comment_end(lines, at, language)
        if stop == at:
            break
        block = "\n".join(_MARKS.sub("", line).rstrip() for line in lines[at:stop])
        if block.strip() and not _LICENCE.search(block):
            if said or _belongs_below(lines, stop):
                break
            said.append(block)
        at = stop
        while at < len(lines) and not lines[at].strip():
            at += 1
    docstring = _DOCSTRING.match("\n".join(lines[at:])) if language.name == "python" else None
    if docstring is not None:
        said.append(cleandoc(docstring[2]))
        at += docstring[0].count("\n") + 1
    paragraphs = [dedent(block).strip("\n") for block in said]
    return _MARKED.sub(r"\1\\\2", joined(paragraphs)), at


def _comment_end(lines: Sequence[str], at: int, language: Language) -> int:
    """Behind the comment that begins at a line; the line itself if none does."""
    bare = lines[at].lstrip()
    if language.line_comment == "//" and bare.startswith("/*"):
        stop = at
        while stop < len(lines) and "*/" not in lines[stop]:
            stop += 1
        return stop + 1
    while at < len(lines) and lines[at].lstrip().startswith(language.line_comment):
        at += 1
    return at


def _belongs_below(lines: Sequence[str], stop: int) -> bool:
    """Whether a comment is about the code right below it; above a package it is about the file."""
    below = lines[stop].strip() if stop < len(lines) else ""
    return bool(below) and not below.startswith(
        ("package ", "import ", "#include", "use ", "namespace ", "module ")
    )
