"""Convert reStructuredText, including Sphinx directives with text, to a document.

The parser recognises the lines that begin, end and indent blocks, but not every rule of the standard. It
keeps unknown constructs as text, includes no other files, and drops the content of `raw` directives.
"""

import re
from itertools import islice
from typing import NamedTuple

from afresh.extract.decode import decode
from afresh.extract.markdown import fenced, run_end, skip_blank, written
from afresh.extract.markup.rst_inline import RstNames, code_span, inline, names_of
from afresh.extract.markup.tables import csv_rows, grid_rows, is_grid, is_simple, list_rows, markdown_table, simple_rows
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

MAX_LANGUAGE_CHARS = 50  # limited because the name is repeated in every code block
DEEPEST = 20  # blocks that are nested deeper are kept as text

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{1,}\s*$")
_BULLET = re.compile(r"([-*+•‣⁃])(?:[ \t]+|$)")
_NUMBER = re.compile(r"\(?(\d{1,9}|#|[a-zA-Z]|[ivxlcdmIVXLCDM]{2,9})[.)](?:[ \t]+|$)")
_FIELD = re.compile(r":((?:\\.|[^:\\`\s])(?:\\.|[^:\\`])*|[^:\s]):(?:[ \t]+|$)")
_OPTION = re.compile(r"((?:--?|/)[A-Za-z0-9?][^ \n]*(?:,? [^ \n]+)*?)(?:[ ]{2,}|$)")
_EXPLICIT = re.compile(r"\.\.(?:[ \t]+|$)")
_DIRECTIVE = re.compile(r"([A-Za-z0-9][\w.+-]*(?::[\w.+-]+)*)[ \t]?::(?:[ \t]+(.*))?$")
_NOTE = re.compile(r"\[(#?[\w.+-]*|\*)\][ \t]+(.*)$")
_HIDDEN_FIELDS = frozenset({"orphan", "tocdepth", "nocomments", "nosearch"})
_LEADING = re.compile(r"(#{1,6}\s|\d+[.)]\s|[-+*]\s|>|~~~|```)")


class Directive(NamedTuple):
    name: str
    argument: str
    options: dict[str, str]
    content: list[str]


class RstConverter:
    def __init__(self, text: str) -> None:
        self.names: RstNames = names_of(text)
        self.language = ""
        self.level = 0  # level of the innermost heading
        self._styles: list[tuple[str, bool]] = []

    def prose(self, text: str) -> str:
        converted = inline(" ".join(text.split()), self.names)
        return "\\" + converted if _LEADING.match(converted) else converted

    def blocks(self, lines: list[str], depth: int = 0) -> list[str]:
        if depth > DEEPEST:
            return ["\n".join(line.strip() for line in lines if line.strip())]
        found: list[str] = []
        at = 0
        while (at := skip_blank(lines, at)) < len(lines):
            made, at = self._block(lines, at, depth)
            found += filter(None, made)
        return found

    def _block(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        """Return the block that begins at a non-blank line, and the index of the line after it."""
        line = lines[at]
        if line[0] in " \t":
            inner, at = _indented(lines, at)
            return [quoted(self.blocks(inner, depth + 1))], at
        for take in (self._section, self._explicit, self._table, self._list, self._fields, self._line_block):
            made = take(lines, at, depth)
            if made is not None:
                return made
        if line.startswith(">>> "):
            stop = run_end(lines, at, str.strip)
            return [code_block(lines[at:stop], "pycon")], stop
        if line.startswith("__ "):
            return [], at + 1
        return self._paragraph(lines, at, depth)

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
        return ([self._heading(line, (under[0], False), depth)], at + 2) if len(under) >= min(len(line), 4) else None

    def _heading(self, title: str, style: tuple[str, bool], depth: int) -> str:
        text = self.prose(title).lstrip("\\")
        if depth:
            return f"**{text}**"
        if style not in self._styles:
            del self._styles[self.level :]
            self._styles.append(style)
        self.level = self._styles.index(style) + 1
        return "#" * min(self.level, 6) + " " + text

    def _explicit(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        start = _EXPLICIT.match(lines[at])
        if start is None:
            return None
        first = lines[at][start.end() :]
        body, after = _indented(lines, at + 1)
        if directive := _DIRECTIVE.match(first):
            return _render(self, _directive(directive, body), depth), after
        if note := _NOTE.match(first):
            blocks = self.blocks([note[2], *body], depth + 1)
            return [f"[{note[1]}] " + "\n\n".join(blocks)], after
        return [], after  # link targets, substitutions and comments have no output

    def _table(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        if is_grid(lines[at]):
            stop = run_end(lines, at, lambda line: line[:1] in ("+", "|"))
            rows, head = grid_rows([line.rstrip() for line in lines[at:stop]])
        elif is_simple(lines[at]):
            stop = _simple_end(lines, at)
            rows, head = simple_rows([line.rstrip() for line in lines[at:stop]])
        else:
            return None
        return [self.table(rows, head)], stop

    def table(self, rows: list[list[str]], head: bool) -> str:
        return markdown_table([[self.prose(cell) for cell in row] for row in rows], head)

    def _list(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        kind = _BULLET if _BULLET.match(lines[at]) else _NUMBER
        if not _begins_item(kind, lines, at):
            return None
        items: list[str] = []
        while at < len(lines) and _begins_item(kind, lines, at):
            start = kind.match(lines[at])
            wide = start.end() if start else 0
            inner, at_next = _indented(lines, at + 1)
            number = int(start[1]) if start and start[1].isdigit() else len(items) + 1
            mark = "-" if kind is _BULLET else f"{number}."
            items.append(item(mark, self.blocks([lines[at][wide:], *inner], depth + 1)))
            at = skip_blank(lines, at_next)
        loose = any("\n\n" in each for each in items)
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
        stop = run_end(lines, at, str.strip)
        return ["\n".join(self.prose(line.lstrip("|")) for line in lines[at:stop])], stop

    def _paragraph(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        stop = at + 1
        if stop < len(lines) and lines[stop][:1] in (" ", "\t") and lines[stop].strip():
            return self._term(lines, at, depth)
        stop = run_end(lines, stop, lambda line: line.strip() and line[0] not in " \t")
        text = " ".join(line.strip() for line in lines[at:stop])
        if not text.endswith("::"):
            return [self.prose(text)], stop
        converted = "" if text == "::" else text[:-1] if not text.endswith(" ::") else text[:-2].rstrip()
        code, after = _literal(lines, skip_blank(lines, stop))
        return [self.prose(converted), code_block(code, self.language)], after

    def _term(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        """Return a term and its indented definition as a list item, and the index of the line after them."""
        inner, after = _indented(lines, at + 1)
        text = lines[at].strip()
        if text.endswith("::"):
            return [self.prose(text[:-1]), code_block(inner, self.language)], after
        converted = emphasised(self.prose(text))
        blocks = self.blocks(inner, depth + 1)
        starts = blocks and not blocks[0].startswith(("- ", "```", ">", "|", "1."))
        return [item("-", [f"{converted}: {blocks[0]}", *blocks[1:]] if starts else [converted, *blocks])], after


def code_block(lines: list[str], language: str = "") -> str:
    code, language = "\n".join(lines), language[:MAX_LANGUAGE_CHARS]
    return fenced(code, language) if code.strip() else ""


def emphasised(text: str) -> str:
    return text if "`" in text or "*" in text or "](" in text else f"**{text}**"


def quoted(blocks: list[str]) -> str:
    lines = "\n\n".join(blocks).split("\n") if blocks else []
    return "\n".join(f"> {line}".rstrip() for line in lines)


def item(mark: str, blocks: list[str]) -> str:
    pad = " " * (len(mark) + 1)
    lines = "\n\n".join(blocks).split("\n")
    return "\n".join([f"{mark} {lines[0]}".rstrip(), *((pad + line).rstrip() for line in lines[1:])])


def _indented(lines: list[str], at: int) -> tuple[list[str], int]:
    """Return the indented lines from `at` on without their common indent, and the index of the line after them."""
    stop = run_end(lines, at, lambda line: not line.strip() or line[0] in " \t")
    while stop > at and not lines[stop - 1].strip():
        stop -= 1
    inner = lines[at:stop]
    common = min((len(line) - len(line.lstrip(" \t")) for line in inner if line.strip()), default=0)
    return [line[common:] for line in inner], stop


def _literal(lines: list[str], at: int) -> tuple[list[str], int]:
    """Return a literal block (indented, or each line with a prefix such as `>`), and the index of the line after it."""
    if at < len(lines) and lines[at][0] not in " \t" and not lines[at][0].isalnum():
        stop = run_end(lines, at, lambda line: line[:1] == lines[at][0])
        return lines[at:stop], stop
    return _indented(lines, at)


def _simple_end(lines: list[str], at: int) -> int:
    """Return the index of the line after a simple table; it ends at its second border, or, with a head, its third."""
    borders = list(islice((n for n in range(at, len(lines)) if is_simple(lines[n])), 3))
    last = borders[-1]
    if len(borders) == 3 and any(not line.strip() for line in lines[borders[1] + 1 : borders[1] + 2]):
        last = borders[1]  # after a blank line, the third border belongs to another table
    return last + 1


def _is_border(line: str) -> bool:
    return is_simple(line) or is_grid(line)


def _begins_item(kind: re.Pattern[str], lines: list[str], at: int) -> bool:
    """Return whether a line begins a list item and is not prose that begins with a number."""
    if kind.match(lines[at]) is None:
        return False
    if kind is _BULLET or at + 1 >= len(lines):
        return True
    following = lines[at + 1]
    return not following.strip() or following[0] in " \t" or kind.match(following) is not None


def _option(lines: list[str], at: int) -> re.Match[str] | None:
    """Return the match if a line is a command-line option with its description beside or below it, else None."""
    found = _OPTION.match(lines[at])
    below = "".join(lines[at + 1 : at + 2])
    return found if found and (found.end() < len(lines[at]) or below.startswith(" ")) else None


def _directive(start: re.Match[str], body: list[str]) -> Directive:
    """Parse a directive: an argument up to a blank line or an option, then options, then content."""
    at = run_end(body, 0, lambda line: line.strip() and not _FIELD.match(line))
    argument, options = [start[2] or "", *map(str.strip, body[:at])], dict[str, str]()
    while at < len(body) and (field := _FIELD.match(body[at])):
        options[field[1]] = body[at][field.end() :].strip()
        at = run_end(body, at + 1, lambda line: line.strip() and line[0] in " \t")
    return Directive(start[1].lower(), "\n".join(filter(None, argument)), options, body[at:])


_ADMONITIONS = frozenset((
    "note", "warning", "tip", "hint", "important", "caution", "danger", "attention", "error", "seealso", "todo",
))  # fmt: skip
_VERSIONS = {
    "versionadded": "Added in version", "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version", "deprecated-removed": "Deprecated since version",
    "versionremoved": "Removed in version",
}  # fmt: skip
_CODE = frozenset((
    "code-block", "code", "sourcecode", "parsed-literal", "doctest", "testcode", "testoutput", "testsetup",
    "testcleanup", "prompt", "ipython", "productionlist", "math", "graphviz", "digraph", "graph",
    "mermaid", "plantuml", "uml", "jinja", "literal", "console",
))  # fmt: skip
_LANGUAGES = {
    "doctest": "pycon", "testcode": "python", "testsetup": "python", "ipython": "python", "prompt": "console",
}  # fmt: skip
_DROPPED = frozenset((
    "raw", "meta", "index", "default-role", "contents", "sectnum", "tabularcolumns", "sectionauthor",
    "moduleauthor", "codeauthor", "role", "section-numbering", "local-toc", "title", "include-hidden",
    "only-dev", "target-notes", "header", "footer", "date", "restructuredtext-test-directive",
))  # fmt: skip
_UNTITLED = frozenset((  # their argument is no text for readers, but their content is
    "only", "ifconfig", "container", "compound", "highlight", "rst-class", "cssclass", "class-name", "program",
    "module", "currentmodule", "namespace", "namespace-push", "namespace-pop",
))  # fmt: skip
_OBJECTS = frozenset((
    "function", "class", "method", "classmethod", "staticmethod", "attribute", "property", "data", "exception",
    "decorator", "decoratormethod", "option", "cmdoption", "confval", "envvar", "setting", "describe", "object", "type",
    "struct", "union", "enum", "enumerator", "enum-class", "macro", "member", "var", "opcode", "pdbcommand",
    "2to3fixer", "coroutinefunction", "coroutinemethod", "awaitablefunction", "awaitablemethod", "abstractmethod",
    "autofunction", "autoclass", "automodule", "automethod", "autoattribute", "autoexception", "autodata",
    "autodecorator", "autoproperty", "command", "variable", "signature", "get", "post", "put", "patch", "delete",
))  # fmt: skip
_PLAIN_ARGUMENT = frozenset(
    {"topic", "sidebar", "rubric", "centered", "dropdown", "card", "tab", "tab-item", "details"}
)


def extract_rst(body: Body) -> Document:
    return written(body, to_markdown(normalise(decode(body.data, body.charset))))


def to_markdown(text: str) -> str:
    lines = [line.expandtabs(8).rstrip() for line in text.split("\n")]
    return "\n\n".join(RstConverter(text).blocks(lines))


def _render(rst: RstConverter, directive: Directive, depth: int) -> list[str]:
    """Convert a directive to Markdown blocks; keep the text of unknown directives."""
    domain, _, name = directive.name.rpartition(":")
    if domain:  # it describes something, whatever its name means without a domain
        return _object(rst, directive, depth) if name not in _UNTITLED else rst.blocks(directive.content, depth + 1)
    if name == "highlight":
        rst.language = directive.argument.strip()
    if name in _DROPPED:
        return []
    if name in _ADMONITIONS or name == "admonition":
        return [_admonition(rst, directive, depth)]
    if name in _VERSIONS:
        return [_version(rst, directive, depth)]
    if name in _CODE:
        return [_code(rst, directive)]
    if name in ("include", "literalinclude"):
        return [f"`{directive.argument}`"] if directive.argument else []
    if name in ("image", "figure"):
        alternative = " ".join(directive.options.get("alt", "").split())
        url = "".join(directive.argument.split())
        return [f"![{alternative}]({url})" if alternative else "", *rst.blocks(directive.content, depth + 1)]
    if name == "toctree":
        return [_contents(rst, directive)]
    if name in ("csv-table", "list-table", "table"):
        return _table(rst, directive, depth)
    if name in _OBJECTS:
        return _object(rst, directive, depth)
    title_text = "" if name in _UNTITLED else rst.prose(directive.argument)
    title_text = f"**{title_text}**" if title_text and name in _PLAIN_ARGUMENT else title_text
    return [title_text, *rst.blocks(directive.content, depth + 1)]


def _admonition(rst: RstConverter, directive: Directive, depth: int) -> str:
    own = directive.name == "admonition"
    title = rst.prose(directive.argument) if own else directive.name.capitalize()
    title = "See also" if directive.name == "seealso" else title
    first = [] if own or not directive.argument else directive.argument.split("\n")
    return quoted([f"**{title}**", *rst.blocks([*first, *directive.content], depth + 1)])


def _version(rst: RstConverter, directive: Directive, depth: int) -> str:
    number, _, text = directive.argument.partition("\n")
    number, _, rest = number.partition(" ")
    blocks = rst.blocks([line for line in (rest, text) if line] + directive.content, depth + 1)
    title_text = f"*{_VERSIONS[directive.name.rpartition(':')[2]]} {number}*"
    return "\n\n".join([f"{title_text}: {blocks[0]}", *blocks[1:]] if blocks else [title_text])


def _code(rst: RstConverter, directive: Directive) -> str:
    name = directive.name.rpartition(":")[2]
    language, content = directive.argument, directive.content
    if name in ("parsed-literal", "productionlist", "testoutput", "literal", "math") and language:
        content = [*language.split("\n"), *content]  # not a language but the first line of the code
    if name in ("code-block", "code", "sourcecode"):
        language = language.split("\n")[0].strip() or rst.language
    else:
        language = _LANGUAGES.get(name, name if name in ("mermaid", "graphviz", "math") else "")
    block = code_block(content, "" if language in ("none", "text", "default") else language.lower())
    caption = directive.options.get("caption", "")
    return f"{rst.prose(caption)}\n\n{block}" if caption else block


def _contents(rst: RstConverter, directive: Directive) -> str:
    caption = directive.options.get("caption", "")
    items = []
    for line in directive.content:
        entry = line.strip()
        title, _, target = entry.removesuffix(">").rpartition("<") if entry.endswith(">") else ("", "", entry)
        if not entry or entry == "self" or entry.startswith(":"):
            continue
        converted = rst.prose(title) or target
        linked = "://" in target or (not target.startswith("/") and "*" not in target)
        url = target if "://" in target or target.endswith((".rst", ".md")) else target + ".rst"
        items.append(f"- [{converted}]({url})" if linked else f"- {converted}")
    listed = "\n".join(items)
    return f"**{rst.prose(caption)}**\n\n{listed}" if caption and listed else listed


def _table(rst: RstConverter, directive: Directive, depth: int) -> list[str]:
    title = [f"**{rst.prose(directive.argument)}**"] if directive.argument else []
    if directive.name == "table":
        return title + rst.blocks(directive.content, depth + 1)
    rows = (
        list_rows(directive.content)
        if directive.name == "list-table"
        else csv_rows("\n".join(directive.content), directive.options.get("delim", ","))
    )
    title_text = directive.options.get("header", "")
    head = bool(title_text) or directive.options.get("header-rows", "0") not in ("", "0")
    return [*title, rst.table([*csv_rows(title_text), *rows] if title_text else rows, head)]


def _object(rst: RstConverter, directive: Directive, depth: int) -> list[str]:
    """Return the symbols that a directive describes, as a heading or (in a list) in bold, then their description."""
    names = [line.rstrip("\\").strip() for line in directive.argument.split("\n") if line.strip()]
    converted, level = ", ".join(f"`{name}`" for name in names), rst.level
    if converted and depth <= level:
        rst.level = level + 1
        converted = "#" * min(level + 1, 6) + " " + converted
    elif converted:
        converted = f"**{converted}**"
    blocks = rst.blocks(directive.content, depth + 1)
    rst.level = level
    return [converted, *blocks]
