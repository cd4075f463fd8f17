"""Finds the symbols of a source file: where each is declared, where it ends, what holds it.

No parser but Python's own: comments and strings are left out, braces (or indents) are matched, and what looks
like a declaration at a place where one can stand is taken for one. What is missed stays with what holds it.
"""

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from afresh.extract.code.languages import Language, Rule

MOST_PARSED = 2_000_000  # characters; the tree of a larger file takes too much memory
LONGEST_BLANK = 60

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
    """A declaration, by its first and its last line, counted from 0."""

    name: str
    first: int
    last: int
    level: int  # how many others hold it


class _Found(NamedTuple):
    """A declaration before it is known what holds it."""

    name: str
    start: int
    end: int
    opens: int  # the brace of its body, -1 for none
    holds: bool


def outline(text: str, language: Language) -> list[Symbol]:
    """The symbols of a text, in its order; none within a function."""
    if language.name == "python" and len(text) <= MOST_PARSED:
        parsed = _parsed(text)
        if parsed is not None:
            return parsed
    masked = _masked(text, language)
    starts = _line_starts(masked)
    found = _braced(masked, language) if language.blocks == "brace" else _indented(masked, language, starts)
    lines, bare = text.split("\n"), masked.split("\n")
    made: list[Symbol] = []
    free = 0  # the line behind the one where the symbol before is declared
    for symbol in _held(found, starts):
        made.append(symbol._replace(first=_with_comment(symbol.first, free, lines, bare)))
        free = symbol.first + 1
    return made


# ---- Python, by its own parser ---------------------------------------------------------------------


def _parsed(text: str) -> list[Symbol] | None:
    """The symbols of Python code, None if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = text.split("\n")
    return [*_members(tree.body, 0, lines)]


def _members(body: Iterable[ast.stmt], level: int, lines: Sequence[str]) -> Iterable[Symbol]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            while first and lines[first - 1].lstrip().startswith("#"):
                first -= 1
            yield Symbol(node.name, first, (node.end_lineno or node.lineno) - 1, level)
            if isinstance(node, ast.ClassDef):
                yield from _members(node.body, level + 1, lines)
        elif isinstance(node, ast.If | ast.Try) and level == 0:
            yield from _members(node.body, level, lines)


# ---- all others ------------------------------------------------------------------------------------


def _masked(text: str, language: Language) -> str:
    """The text without what stands in comments and strings, every line where it was."""
    masked = _WIDE.sub(" " * LONGEST_BLANK, language.skipped.sub(_mask, text))
    return _first_branches(text, masked) if language.name == "cpp" else masked


def _mask(found: re.Match[str]) -> str:
    lines = "\n" * found[0].count("\n")
    return '""' + lines if found[0][0] in "\"'`" else lines


def _first_branches(text: str, masked: str) -> str:
    """The text without what follows `#else`: both branches may open the same brace."""
    shown, branches = [], list[bool]()
    for line, bare in zip(text.split("\n"), masked.split("\n"), strict=True):
        directive = _ELSE.match(line)
        if directive is not None and directive[1] == "if":
            branches.append(False)
        elif directive is not None and branches:
            branches[-1:] = [] if directive[1] == "endif" else [True]
        shown.append(" " * len(bare) if any(branches[-8:]) else bare)
    return "\n".join(shown)


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", text))]


def _matches(masked: str, rules: Iterable[Rule]) -> list[tuple[re.Match[str], Rule]]:
    """What looks like a declaration, in order; at one place the first rule counts."""
    at: dict[int, tuple[re.Match[str], Rule]] = {}
    for rule in rules:
        for found in rule.pattern.finditer(masked):
            at.setdefault(found.start("name") if found["name"] else found.start(), (found, rule))
    return [at[place] for place in sorted(at)]


def _named(found: re.Match[str]) -> str:
    groups = found.groupdict()
    name, owner = groups.get("name"), groups.get("owner")
    return " ".join((f"{owner}.{name}" if owner and name else name or owner or "").split())


def _braced(masked: str, language: Language) -> list[_Found]:
    braces = _Braces(masked)
    holding: set[int] = set()
    made: list[_Found] = []
    for found, rule in _matches(masked, language.rules):
        inside = braces.around(found.start(found.lastgroup or 0))
        if inside not in holding if inside is not None else rule.inner:
            continue
        brace, end = _extent(masked, found, braces, language)
        if brace < 0 and rule.body and "=>" not in masked[found.end() : end]:
            continue
        made.append(_Found(_named(found), found.start(), end, brace, rule.holds))
        if rule.holds and brace >= 0:
            holding.add(brace)
    return made


class _Braces:
    """Where each brace that is open is closed, and which one is the innermost at a place."""

    def __init__(self, masked: str) -> None:
        self.closes: dict[int, int] = {}
        self.looks = len(masked) + 20_000  # at marks behind declarations; most files need a tenth of it
        self._places: list[int] = []
        self._innermost: list[int | None] = []  # behind each place
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
        """The innermost brace that is open at a place."""
        at = bisect_right(self._places, place) - 1
        return self._innermost[at] if at >= 0 else None


def _extent(masked: str, found: re.Match[str], braces: _Braces, language: Language) -> tuple[int, int]:
    """The brace of the body of a declaration (-1 for none), and where all of it ends."""
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
    """Whether a declaration goes on behind the end of a line."""
    before = masked[:at].rstrip(" \t")[-1:] if at < 200 else masked[at - 200 : at].rstrip(" \t")[-1:]
    return before in tuple("=,(<|&+:") or _GOES_ON.match(masked, at) is not None


def _indented(masked: str, language: Language, starts: Sequence[int]) -> list[_Found]:
    """Declarations whose bodies are indented; `end` closes them where the language has it."""
    lines = masked.split("\n")
    made = []
    for found, rule in _matches(masked, language.rules):
        first = bisect_right(starts, found.start("name")) - 1
        last = _block_end(lines, first, language.blocks == "end")
        made.append(_Found(_named(found), starts[first], starts[last] + len(lines[last]), 0, rule.holds))
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


def _held(found: Sequence[_Found], starts: Sequence[int]) -> Iterable[Symbol]:
    """The declarations by lines, but those within others that hold nothing."""
    around: list[_Found] = []
    for each in found:
        while around and around[-1].end < each.end:
            around.pop()
        if around and not around[-1].holds:
            continue
        first, last = (bisect_right(starts, place) - 1 for place in (each.start, each.end))
        yield Symbol(each.name, first, max(first, last), len(around))
        around.append(each)


def _with_comment(first: int, free: int, lines: Sequence[str], bare: Sequence[str]) -> int:
    """The line where a symbol begins with the comment and the attributes right above it."""
    while (
        first > free
        and lines[first - 1].strip()
        and (not bare[first - 1].strip() or _ABOVE.match(lines[first - 1]))
    ):
        first -= 1
    return first
