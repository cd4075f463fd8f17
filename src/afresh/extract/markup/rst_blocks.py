"""reStructuredText to Markdown, block by block.

It knows the lines that begin, end and indent blocks, not every rule of the standard: what it does not know is
kept as text. Nothing is included from other files, nothing raw is passed on.
"""

import re
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from afresh.extract.markup.rst_inline import Names, code_span, inline, names_of
from afresh.extract.markup.rst_tables import grid_rows, is_grid, is_simple, markdown_table, simple_rows
from afresh.extract.written import fenced

LONGEST_LANGUAGE = 50  # a document names it once for any number of blocks
DEEPEST = 20  # what is nested deeper is kept as text

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{1,}\s*$")
_BULLET = re.compile(r"([-*+•‣⁃])(?:[ \t]+|$)")
_NUMBER = re.compile(r"\(?(\d{1,9}|#|[a-zA-Z]|[ivxlcdmIVXLCDM]{2,9})[.)](?:[ \t]+|$)")
_FIELD = re.compile(r":((?:\\.|[^:\\`\s])(?:\\.|[^:\\`])*|[^:\s]):(?:[ \t]+|$)")
_OPTION = re.compile(r"((?:--?|/)[A-Za-z0-9?][^ \n]*(?:,? [^ \n]+)*?)(?:[ ]{2,}|$)")
_EXPLICIT = re.compile(r"\.\.(?:[ \t]+|$)")
_DIRECTIVE = re.compile(r"([A-Za-z][\w.+-]*(?::[\w.+-]+)*)[ \t]?::(?:[ \t]+(.*))?$")
_NOTE = re.compile(r"\[(#?[\w.+-]*|\*)\][ \t]+(.*)$")
_HIDDEN_FIELDS = frozenset({"orphan", "tocdepth", "nocomments", "nosearch"})
_LEADING = re.compile(r"(#{1,6}\s|\d+[.)]\s|[-+*]\s|>|~~~|```)")


class Directive(NamedTuple):
    """A directive as it is written."""

    name: str
    argument: str
    options: dict[str, str]
    content: list[str]


class Rst:
    """The state of one conversion: names, levels of headings, the language of code."""

    def __init__(self, text: str, directives: Callable[["Rst", Directive, int], list[str]]) -> None:
        self.names: Names = names_of(text)
        self.language = ""
        self.level = 0  # of the innermost heading
        self._styles: list[tuple[str, bool]] = []
        self._directives = directives

    def prose(self, text: str) -> str:
        """A piece of text on one line, with its inline markup."""
        shown = inline(" ".join(text.split()), self.names)
        return "\\" + shown if _LEADING.match(shown) else shown

    def blocks(self, lines: list[str], depth: int = 0) -> list[str]:
        """The blocks of some lines, as Markdown."""
        if depth > DEEPEST:
            return ["\n".join(line.strip() for line in lines if line.strip())]
        found: list[str] = []
        at = 0
        while at < len(lines):
            if not lines[at].strip():
                at += 1
                continue
            made, at = self._block(lines, at, depth)
            found += [block for block in made if block]
        return found

    def _block(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        """The block that begins at a line that is not blank, and where the next one begins."""
        line = lines[at]
        if line[0] in " \t":
            inner, at = _indented(lines, at)
            return [quoted(self.blocks(inner, depth + 1))], at
        for take in (self._section, self._explicit, self._table, self._list, self._fields, self._line_block):
            made = take(lines, at, depth)
            if made is not None:
                return made
        if line.startswith(">>> "):
            stop = _until_blank(lines, at)
            return [code_block(lines[at:stop], "pycon")], stop
        if line.startswith("__ "):
            return [], at + 1
        return self._paragraph(lines, at, depth)

    # ---- sections -----------------------------------------------------------------------------

    def _section(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        line, following = lines[at].rstrip(), lines[at + 1 : at + 3]
        if _ADORNMENT.match(line):
            closed = len(following) == 2 and following[1].rstrip() == line and following[0].strip()
            if closed and not _is_border(line):
                return [self._heading(following[0], (line[0], True), depth)], at + 3
            if len(line) >= 4 and not _is_border(line) and not (following and following[0].strip()):
                return ["---"], at + 1
            return None
        under = following[0].rstrip() if following else ""
        if not _ADORNMENT.match(under) or under in ("::", "..") or _EXPLICIT.match(line):
            return None
        if len(under) < min(len(line), 4):
            return None
        return [self._heading(line, (under[0], False), depth)], at + 2

    def _heading(self, title: str, style: tuple[str, bool], depth: int) -> str:
        text = self.prose(title).lstrip("\\")
        if depth:
            return f"**{text}**"
        if style not in self._styles:
            del self._styles[self.level :]
            self._styles.append(style)
        self.level = self._styles.index(style) + 1
        return "#" * min(self.level, 6) + " " + text

    # ---- what begins with two dots ------------------------------------------------------------

    def _explicit(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        start = _EXPLICIT.match(lines[at])
        if start is None:
            return None
        first = lines[at][start.end() :]
        body, after = _indented(lines, at + 1)
        directive = _DIRECTIVE.match(first)
        if directive is not None:
            return self._directives(self, _directive(directive, body), depth), after
        note = _NOTE.match(first)
        if note is not None:
            blocks = self.blocks([note[2], *body], depth + 1)
            return [f"[{note[1]}] " + "\n\n".join(blocks)], after
        return [], after  # a target, a substitution or a comment

    # ---- tables, lists ------------------------------------------------------------------------

    def _table(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        if is_grid(lines[at]):
            stop = at
            while stop < len(lines) and lines[stop][:1] in ("+", "|"):
                stop += 1
            rows, head = grid_rows([line.rstrip() for line in lines[at:stop]])
        elif is_simple(lines[at]):
            stop = _simple_end(lines, at)
            rows, head = simple_rows([line.rstrip() for line in lines[at:stop]])
        else:
            return None
        return [self.table(rows, head)], stop

    def table(self, rows: list[list[str]], head: bool) -> str:
        """Rows of cells as a table, their markup read."""
        return markdown_table([[self.prose(cell) for cell in row] for row in rows], head)

    def _list(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        kind = _BULLET if _BULLET.match(lines[at]) else _NUMBER
        if not _begins_item(kind, lines, at):
            return None
        items: list[str] = []
        loose = False
        while at < len(lines) and _begins_item(kind, lines, at):
            start = kind.match(lines[at])
            wide = start.end() if start else 0
            inner, after = _indented(lines, at + 1, least=1)
            mark = "-" if kind is _BULLET else f"{_ordinal(start, len(items))}."
            blocks = self.blocks([lines[at][wide:], *inner], depth + 1)
            items.append(item(mark, blocks))
            loose = loose or "\n\n" in items[-1]
            at = after
            while at < len(lines) and not lines[at].strip():
                at += 1
        return [("\n\n" if loose else "\n").join(items)], at

    def _fields(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        items: list[str] = []
        begun = at
        while at < len(lines) and (field := _FIELD.match(lines[at]) or _option(lines, at)):
            inner, after = _indented(lines, at + 1)
            is_field = lines[at].startswith(":")
            name = f"**{self.prose(field[1])}**" if is_field else code_span(field[1])
            blocks = self.blocks([lines[at][field.end() :], *inner], depth + 1)
            if not (is_field and field[1].strip() in _HIDDEN_FIELDS):
                items.append(item("-", [f"{name}: {blocks[0]}" if blocks else name, *blocks[1:]]))
            at = after
        return (["\n".join(items)], at) if at > begun else None

    def _line_block(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        if not (lines[at].startswith("| ") or lines[at].rstrip() == "|"):
            return None
        stop = _until_blank(lines, at)
        return ["\n".join(self.prose(line.lstrip("|")) for line in lines[at:stop])], stop

    # ---- paragraphs, terms, literal blocks ----------------------------------------------------

    def _paragraph(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        stop = at + 1
        if stop < len(lines) and lines[stop][:1] in (" ", "\t") and lines[stop].strip():
            return self._term(lines, at, depth)
        while stop < len(lines) and lines[stop].strip() and lines[stop][0] not in " \t":
            stop += 1
        text = " ".join(line.strip() for line in lines[at:stop])
        if not text.endswith("::"):
            return [self.prose(text)], stop
        shown = "" if text == "::" else text[:-1] if not text.endswith(" ::") else text[:-2].rstrip()
        while stop < len(lines) and not lines[stop].strip():
            stop += 1
        code, after = _literal(lines, stop)
        return [self.prose(shown), code_block(code, self.language)], after

    def _term(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        """A term with what it means, indented below it."""
        inner, after = _indented(lines, at + 1)
        text = lines[at].strip()
        if text.endswith("::"):
            return [self.prose(text[:-1]), code_block(inner, self.language)], after
        shown = self.prose(text)
        shown = shown if "`" in shown or "*" in shown or "](" in shown else f"**{shown}**"
        blocks = self.blocks(inner, depth + 1)
        starts = blocks and not blocks[0].startswith(("- ", "```", ">", "|", "1."))
        return [item("-", [f"{shown}: {blocks[0]}", *blocks[1:]] if starts else [shown, *blocks])], after


def code_block(lines: list[str], language: str = "") -> str:
    """Lines as a block of code, nothing if they are blank."""
    code, language = "\n".join(lines), language[:LONGEST_LANGUAGE]
    return fenced(code, language) if code.strip() else ""


def quoted(blocks: list[str]) -> str:
    """Blocks as a quotation."""
    lines = "\n\n".join(blocks).split("\n") if blocks else []
    return "\n".join(f"> {line}".rstrip() for line in lines)


def item(mark: str, blocks: list[str]) -> str:
    """Blocks as one item of a list."""
    pad = " " * (len(mark) + 1)
    lines = "\n\n".join(blocks).split("\n")
    return "\n".join([f"{mark} {lines[0]}".rstrip(), *((pad + line).rstrip() for line in lines[1:])])


def _indented(lines: list[str], at: int, least: int = 1) -> tuple[list[str], int]:
    """The indented lines from here on without their common indent, and where the others begin."""
    stop = at
    while stop < len(lines) and (not lines[stop].strip() or _width(lines[stop]) >= least):
        stop += 1
    while stop > at and not lines[stop - 1].strip():
        stop -= 1
    inner = lines[at:stop]
    common = min((_width(line) for line in inner if line.strip()), default=0)
    return [line[common:] for line in inner], stop


def _width(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _until_blank(lines: list[str], at: int) -> int:
    while at < len(lines) and lines[at].strip():
        at += 1
    return at


def _literal(lines: list[str], at: int) -> tuple[list[str], int]:
    """A literal block: indented, or marked by one character at the start of each line."""
    if at < len(lines) and lines[at][0] not in " \t" and not lines[at][0].isalnum():
        stop = at
        while stop < len(lines) and lines[stop][:1] == lines[at][0]:
            stop += 1
        return lines[at:stop], stop
    return _indented(lines, at)


def _simple_end(lines: list[str], at: int) -> int:
    """Where a simple table ends: behind its second border, or its third if it has a head."""
    borders = list(islice((n for n in range(at, len(lines)) if is_simple(lines[n])), 3))
    last = borders[-1]
    if len(borders) == 3 and any(not line.strip() for line in lines[borders[1] + 1 : borders[1] + 2]):
        last = borders[1]  # a blank line follows: the next table is another one
    return last + 1


def _is_border(line: str) -> bool:
    return is_simple(line) or is_grid(line)


def _begins_item(kind: re.Pattern[str], lines: list[str], at: int) -> bool:
    """Whether a line begins an item; a line of prose may begin with a number, too."""
    if kind.match(lines[at]) is None:
        return False
    if kind is _BULLET or at + 1 >= len(lines):
        return True
    following = lines[at + 1]
    return not following.strip() or following[0] in " \t" or kind.match(following) is not None


def _ordinal(start: re.Match[str] | None, before: int) -> int:
    return int(start[1]) if start is not None and start[1].isdigit() else before + 1


def _option(lines: list[str], at: int) -> re.Match[str] | None:
    """An option of a command with its meaning beside or below it."""
    found = _OPTION.match(lines[at])
    if found is None or (
        found.end() == len(lines[at]) and not "".join(lines[at + 1 : at + 2]).startswith(" ")
    ):
        return None
    return found


def _directive(start: re.Match[str], body: list[str]) -> Directive:
    """The parts of a directive: argument until a blank line or an option, options, content."""
    argument, options = [start[2] or ""], dict[str, str]()
    at = 0
    while at < len(body) and body[at].strip() and not _FIELD.match(body[at]):
        argument.append(body[at].strip())
        at += 1
    while at < len(body) and (field := _FIELD.match(body[at])):
        options[field[1]] = body[at][field.end() :].strip()
        at += 1
        while at < len(body) and body[at].strip() and body[at][0] in " \t":
            at += 1
    return Directive(start[1].lower(), "\n".join(filter(None, argument)), options, body[at:])
