"""Convert source code to a document with a section for each symbol (declaration).

Python is parsed. In other languages, comments and strings are masked, blocks are found by braces or indents,
and declarations by patterns. A declaration that no pattern matches stays part of the enclosing symbol.
"""

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from inspect import cleandoc
from itertools import zip_longest
from textwrap import dedent
from typing import NamedTuple
from urllib.parse import unquote

from afresh.dataclass import replace
from afresh.errors import ExtractError
from afresh.extract.code_languages import LANGUAGES, DeclarationRule, Language
from afresh.extract.decode import decode
from afresh.extract.html.head import MAX_TITLE_CHARS
from afresh.extract.markdown import fenced, joined, run_end, skip_blank, written
from afresh.extract.registry import language_of_name
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

MOST_PARSED = 2_000_000  # the syntax tree of a file with more characters takes too much memory
MAX_BLANK_CHARS = 60

_WIDE = re.compile(r"(?<![ \t])[ \t]{60,}+")
_BRACES = re.compile(r"[{}]")
_NEXT = re.compile(r"[(){};\[\]\n]")
_GOES_ON = re.compile(
    r"\s{0,200}(?:[{.:|&=?,+)\]]|->|where\b|(?:\w+\s+){0,3}constructor\b|extends\b|implements\b|throws\b)"
)
_ELSE = re.compile(r"[ \t]*#[ \t]*(if|else|elif|endif)")
_EMPTY_TYPES = ("{}>", "{},", "{} =")
_END = re.compile(r"[ \t]*(?:end\b|\})")
_ABOVE = re.compile(r"\s*(?:@|#\[|\[|template\b|\*)")


class Symbol(NamedTuple):
    """A declaration with the numbers of its first and last line, counted from 0."""

    name: str
    first: int
    last: int


class _Found(NamedTuple):
    """A declaration with its first and last offset in the text, before its parent is known."""

    name: str
    start: int
    end: int
    has_members: bool  # symbols inside it are shown, too


def outline(text: str, language: Language) -> list[Symbol]:
    """Return the symbols of a source text in order, without those inside functions."""
    parsed = _parsed(text) if language.name == "python" and len(text) <= MOST_PARSED else None
    if parsed is not None:
        return parsed
    masked = _WIDE.sub(" " * MAX_BLANK_CHARS, language.skipped.sub(_mask, text))
    masked = _first_branches(text, masked) if language.name == "cpp" else masked
    line_starts = [0, *(found.end() for found in re.finditer("\n", masked))]
    found = _braced(masked, language) if language.blocks == "brace" else _indented(masked, language, line_starts)
    lines, bare = text.split("\n"), masked.split("\n")
    made: list[Symbol] = []
    free = 0  # index of the first line that may belong to the next symbol
    for symbol in _symbols(found, line_starts):
        first = symbol.first  # is moved up to include the comment and attributes right above
        while (
            first > free
            and lines[first - 1].strip()
            and (not bare[first - 1].strip() or _ABOVE.match(lines[first - 1]))
        ):
            first -= 1
        made.append(symbol._replace(first=first))
        free = symbol.first + 1
    return made


def _parsed(text: str) -> list[Symbol] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return [*_members(tree.body, 0, text.split("\n"))]


def _members(body: Iterable[ast.stmt], level: int, lines: Sequence[str]) -> Iterable[Symbol]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            while first and lines[first - 1].lstrip().startswith("#"):
                first -= 1
            yield Symbol(node.name, first, (node.end_lineno or node.lineno) - 1)
            if isinstance(node, ast.ClassDef):
                yield from _members(node.body, level + 1, lines)
        elif isinstance(node, ast.If | ast.Try) and level == 0:
            yield from _members(node.body, level, lines)


def _mask(found: re.Match[str]) -> str:
    """Return what replaces a comment (nothing) or a string (an empty string literal), with the same line breaks."""
    lines = "\n" * found[0].count("\n")
    return '""' + lines if found[0][0] in "\"'`" else lines


def _first_branches(text: str, masked: str) -> str:
    """Blank out the branches of `#else` and `#elif`, because each branch may open the same brace."""
    kept, branches = [], list[bool]()
    for line, bare in zip(text.split("\n"), masked.split("\n"), strict=True):
        directive = _ELSE.match(line)
        if directive is not None and directive[1] == "if":
            branches.append(False)
        elif directive is not None and branches:
            branches[-1:] = [] if directive[1] == "endif" else [True]
        kept.append(" " * len(bare) if any(branches[-8:]) else bare)
    return "\n".join(kept)


def _matches(masked: str, rules: Iterable[DeclarationRule]) -> list[tuple[re.Match[str], DeclarationRule]]:
    """Return the matches of declarations in order, each with its rule; at one position the first rule wins."""
    at: dict[int, tuple[re.Match[str], DeclarationRule]] = {}
    for rule in rules:
        for found in rule.pattern.finditer(masked):
            at.setdefault(found.start("name") if found["name"] else found.start(), (found, rule))
    return [at[place] for place in sorted(at)]


def _named(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return " ".join(".".join(filter(None, (groups.get("owner"), groups.get("name")))).split())


def _braced(masked: str, language: Language) -> list[_Found]:
    braces = _Braces(masked)
    holding: set[int] = set()
    made: list[_Found] = []
    for found, rule in _matches(masked, language.rules):
        inside = braces.around(found.start(found.lastgroup or 0))
        if inside not in holding if inside is not None else rule.needs_parent:
            continue
        brace, end = _extent(masked, found, braces, language)
        if brace < 0 and rule.needs_body and "=>" not in masked[found.end() : end]:
            continue
        made.append(_Found(_named(found), found.start(), end, rule.has_members))
        if rule.has_members and brace >= 0:
            holding.add(brace)
    return made


class _Braces:
    """Finds the closing brace of each brace, and the innermost open brace at a position."""

    def __init__(self, masked: str) -> None:
        self.closes: dict[int, int] = {}
        self.looks = len(masked) + 20_000  # limit of characters to check; most files need a tenth of it
        self._places: list[int] = []
        self._innermost: list[int | None] = []  # the innermost open brace after each brace
        stack: list[int] = []
        for brace in _BRACES.finditer(masked):
            if brace[0] == "{":
                stack.append(brace.start())
            elif stack:
                self.closes[stack.pop()] = brace.start()
            self._places.append(brace.start())
            self._innermost.append(stack[-1] if stack else None)
        self.closes |= dict.fromkeys(stack, len(masked))

    def around(self, place: int) -> int | None:
        at = bisect_right(self._places, place) - 1
        return self._innermost[at] if at >= 0 else None


def _extent(masked: str, found: re.Match[str], braces: _Braces, language: Language) -> tuple[int, int]:
    """Return the position of the brace that opens the body (-1 if there is none), and the end of a declaration."""
    at, depth, passed = found.end(found.lastgroup or 0), 0, -1
    for mark in _NEXT.finditer(masked, at, min(len(masked), at + 20_000)):
        if mark.start() <= passed:
            continue
        braces.looks -= 1
        if braces.looks < 0:
            break
        if mark[0] in "([":
            depth += 1
        elif mark[0] in ")]":
            depth -= 1
        elif mark[0] == "{" and masked.startswith(_EMPTY_TYPES, mark.start()):
            passed = mark.start() + 1
        elif mark[0] == "{" and depth <= 0:
            return mark.start(), braces.closes[mark.start()]
        elif mark[0] == ";" and depth <= 0:
            return -1, mark.start()
        elif mark[0] == "}" and depth <= 0:
            return -1, max(found.start(), mark.start() - 1)
        elif mark[0] == "\n" and depth <= 0 and language.lines_end and not _goes_on(masked, mark.start()):
            return -1, mark.start()
    end = masked.find("\n", at)
    return -1, end if end >= 0 else len(masked)


def _goes_on(masked: str, at: int) -> bool:
    before = masked[max(0, at - 200) : at].rstrip(" \t")[-1:]
    return before in tuple("=,(<|&+:") or _GOES_ON.match(masked, at) is not None


def _indented(masked: str, language: Language, line_starts: Sequence[int]) -> list[_Found]:
    """Return the declarations in a language with indented bodies or with bodies closed by `end`."""
    lines = masked.split("\n")
    made = []
    for found, rule in _matches(masked, language.rules):
        first = bisect_right(line_starts, found.start("name")) - 1
        last = _block_end(lines, first, language.blocks == "end")
        made.append(_Found(_named(found), line_starts[first], line_starts[last] + len(lines[last]), rule.has_members))
    return made


def _block_end(lines: Sequence[str], first: int, ends: bool) -> int:
    wide, last = _width(lines[first]), first
    for at in range(first + 1, len(lines)):
        line = lines[at]
        if not line.strip():
            continue
        if _width(line) <= wide:
            return at if ends and _width(line) == wide and _END.match(line) else last
        last = at
    return last


def _width(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _symbols(found: Sequence[_Found], line_starts: Sequence[int]) -> Iterable[Symbol]:
    """Convert declarations to symbols with line numbers; skip those inside symbols that cannot contain others."""
    around: list[_Found] = []
    for each in found:
        while around and around[-1].end < each.end:
            around.pop()
        if around and not around[-1].has_members:
            continue
        first, last = (bisect_right(line_starts, place) - 1 for place in (each.start, each.end))
        yield Symbol(each.name, first, max(first, last))
        around.append(each)


LONG_LINE = 1_000  # characters; a file that consists mostly of longer lines is generated
DEEPEST = 6

_PREFACES = ("package ", "import ", "#include", "use ", "namespace ", "module ")
_LICENCE = re.compile(r"copyright|licen[sc]e|SPDX-|all rights reserved", re.IGNORECASE)
_DOCSTRING = re.compile(r"\s*[rRuUbB]{0,2}(\"\"\"|''')([\s\S]*?)\1")
_MARKS = re.compile(r"^[ \t]*(?:/\*+!?|\*+/|\*(?=\s|$)|//+!?|#+!?(?!\[)|--+|;+)[ \t]?|(?<!\*)\*++/[ \t]*+$")
_BRACKETS = re.compile(r"[\s})\];,]*(?:end[\s;,)]*)*")
_MARKED = re.compile(r"^([ \t]*)(#|=+[ \t]*$|-{2,}[ \t]*$|```|~~~)", re.MULTILINE)

_Part = tuple[str, int, Sequence[str]]  # name and level of a heading, and the lines below it


def extract_code(body: Body) -> Document:
    """Return the document of a source file; raise ExtractError for generated or minified code."""
    text = normalise(decode(body.data, body.charset))
    if 2 * sum(len(line) for line in text.split("\n") if len(line) > LONG_LINE) > len(text):
        raise ExtractError(f"generated or minified code: most of it is in lines of over {LONG_LINE:,} characters")
    name = unquote(body.url.partition("?")[0].partition("#")[0].rpartition("/")[2])
    return replace(written(body, to_markdown(text, name)), title=name[:MAX_TITLE_CHARS])


def to_markdown(text: str, name: str) -> str:
    """Return source code as Markdown with a heading for each symbol, in the order of the file."""
    called = language_of_name(name)
    language = LANGUAGES.get(called)
    if language is None:
        return joined([f"# `{name}`", fenced(text, called)])
    prose, after = _head(text, language)
    symbols = [symbol for symbol in outline(text, language) if symbol.last >= after]
    blocks = [f"# `{name}`", prose]
    for symbol, level, lines in _parts(text.split("\n"), symbols, after, name):
        code = "\n".join(lines)
        if _BRACKETS.fullmatch(code) is None:  # skip parts with only closing brackets
            if level or len(blocks) > 2:
                blocks.append(f"{'#' * min(max(level, 1) + 1, DEEPEST)} `{symbol.strip('`')}`")
            blocks.append(fenced(dedent(code), language.name))
    return joined(blocks)


def _parts(lines: Sequence[str], symbols: Sequence[Symbol], after: int, name: str) -> Iterator[_Part]:
    """Yield the lines from `after` on in parts, with name and level of the innermost symbol (none: `name` and 0)."""
    around: list[Symbol] = []
    at = after
    for symbol, following in zip_longest(symbols, symbols[1:]):
        at = yield from _leave(around, lines, at, symbol.first, name)
        first = max(symbol.first, at)
        yield _holder(around, name, lines[at:first])
        inner = following is not None and following.first <= symbol.last
        at = max(first, following.first if inner else symbol.last + 1)
        yield symbol.name, len(around) + 1, lines[first:at]
        around.append(symbol)
    at = yield from _leave(around, lines, at, len(lines), name)
    yield _holder([], name, lines[at:])


def _leave(around: list[Symbol], lines: Sequence[str], at: int, until: int, name: str) -> Generator[_Part, None, int]:
    """Remove from `around` the symbols that end before `until`; yield their lines from `at` on; return the new `at`."""
    while around and around[-1].last < until:
        yield _holder(around, name, lines[at : around[-1].last + 1])
        at = max(at, around[-1].last + 1)
        around.pop()
    return at


def _holder(around: Sequence[Symbol], name: str, lines: Sequence[str]) -> _Part:
    return around[-1].name if around else name, len(around), lines


def _head(text: str, language: Language) -> tuple[str, int]:
    """Return the comment at the start of a file, without licences, and the index of the first line of code."""
    lines = text.split("\n")
    at = 1 if lines[0].startswith(("#!", "<?php")) else 0
    comments: list[str] = []
    while at < len(lines):
        stop = _comment_end(lines, at, language)
        if stop == at:
            break
        block = "\n".join(_MARKS.sub("", line).rstrip() for line in lines[at:stop])
        if block.strip() and not _LICENCE.search(block):
            below = lines[stop].strip() if stop < len(lines) else ""
            if comments or (below and not below.startswith(_PREFACES)):
                break  # the comment describes the code right below, not the file
            comments.append(block)
        at = skip_blank(lines, stop)
    docstring = _DOCSTRING.match("\n".join(lines[at:])) if language.name == "python" else None
    if docstring is not None:
        comments.append(cleandoc(docstring[2]))
        at += docstring[0].count("\n") + 1
    paragraphs = [dedent(block).strip("\n") for block in comments]
    return _MARKED.sub(r"\1\\\2", joined(paragraphs)), at


def _comment_end(lines: Sequence[str], at: int, language: Language) -> int:
    """Return the index of the line after the comment that begins at line `at`, or `at` if no comment begins there."""
    bare = lines[at].lstrip()
    if language.line_comment == "//" and bare.startswith("/*"):
        return run_end(lines, at, lambda line: "*/" not in line) + 1
    return run_end(lines, at, lambda line: line.lstrip().startswith(language.line_comment))
