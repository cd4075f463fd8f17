"""AsciiDoc to a document: headings, lists, code, callouts, tables and links; nothing is included."""

import re

from afresh.extract.decode import decode
from afresh.extract.markup.asciidoc_inline import Attributes, inline
from afresh.extract.markup.asciidoc_tables import table_rows
from afresh.extract.markup.rst_blocks import code_block, quoted
from afresh.extract.markup.rst_tables import markdown_table
from afresh.extract.written import written
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.normalize import normalise

DEEPEST = 20

_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)$")
_ENTRY = re.compile(r":(!?[\w][\w-]*!?):(?:[ \t]+(.*))?$")
_FENCE = re.compile(
    r"(-{4,}+|\.{4,}+|={4,}+|\*{4,}+|_{4,}+|\+{4,}+|/{4,}+|--|`{3,}+|[|,:!]={3,}+)([\w+#-]*+)$"
)
_OPTIONS = re.compile(r"\[(?!\[)([^\]]*(?:\][^\]\s]+)*)\]$")
_ANCHOR = re.compile(r"\[\[[^\]]*\]\]$")
_TITLE = re.compile(r"\.([^\s.].*)$")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION)(?::[ \t]+(.*))?$")
_MACRO = re.compile(r"(image|video|audio|include|toc|ifdef|ifndef|ifeval|endif)::([^\[]*)\[(.*)\]$")
_CONDITION = re.compile(r"(?:ifdef|ifndef|ifeval|endif)::")
_ITEM = re.compile(r"[ \t]*(\*{1,5}|-|\.{1,5}|\d{1,4}\.|<(?:\d{1,3}|\.)>)[ \t]+(\S.*)$")
_TERM = re.compile(r"[ \t]*(\S.{0,300}?)(:{2,4}|;;)(?:[ \t]+(.*))?$")
_CHECK = re.compile(r"\[([ xX*])\][ \t]+")
_CALLOUT = re.compile(r"(?<![ \t])[ \t]*+(?:(?://|#|--|;;|<!--)[ \t]*+)?<(?:\d{1,3}|\.)>(?:-->)?[ \t]*+$")
_AUTHOR = re.compile(r"[^<>=:*\[]++<[^<>\s][^<>\s@]*+@[^<>\s]++>|v?\d[\w.]*+,.*")
_LEADING = re.compile(r"(#{1,6}\s|\d+[.)]\s|[-+*]\s|>|~~~)")


class AsciidocExtractor:
    """Reads AsciiDoc."""

    version = recipe.ASCIIDOC

    def extract(self, body: Body) -> Document:
        """The document of an AsciiDoc body."""
        return written(body, to_markdown(normalise(decode(body.data, body.charset))))


def to_markdown(text: str) -> str:
    """The text as Markdown."""
    return "\n\n".join(_Asciidoc(len(text)).blocks(text.split("\n")))


class _Asciidoc:
    """The state of one conversion: attributes, and what was said of the block that follows."""

    def __init__(self, written: int) -> None:
        self.attributes = Attributes(written)
        self.options = self.title = ""

    def prose(self, text: str) -> str:
        """A piece of text with its inline markup, on one line."""
        shown = inline(" ".join(text.split()), self.attributes)
        return "\\" + shown if _LEADING.match(shown) else shown

    def blocks(self, lines: list[str], depth: int = 0) -> list[str]:
        """The blocks of some lines, as Markdown."""
        found: list[str] = []
        at = self._after_header(lines, found) if depth == 0 else 0
        while at < len(lines):
            made, at = self._block(lines, at, depth)
            found += [block for block in made if block]
        return found

    def _after_header(self, lines: list[str], found: list[str]) -> int:
        """Read title, authors and attributes at the start; gives where the text begins."""
        at = 0
        while at < len(lines) and (
            not lines[at].strip() or lines[at].startswith("//") or _ENTRY.match(lines[at])
        ):
            self._set(lines[at])
            at += 1
        if at >= len(lines) or not lines[at].startswith("= "):
            return at
        title, at = lines[at][2:], at + 1
        while at < len(lines) and lines[at].strip():
            if not self._set(lines[at]) and not _AUTHOR.match(lines[at]) and not lines[at].startswith("//"):
                break
            at += 1
        found.append("# " + self.prose(title).lstrip("\\"))
        return at

    def _set(self, line: str) -> bool:
        """Whether a line sets an attribute; if so, it is set."""
        entry = _ENTRY.match(line)
        if entry is None:
            return False
        name = entry[1].strip("!").lower()
        if "!" in entry[1]:
            self.attributes.values.pop(name, None)
        else:
            self.attributes.values[name] = (entry[2] or "").removesuffix(" \\").strip()
        return True

    def _block(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        line = lines[at].rstrip()
        if not line or (line.startswith("//") and not line.startswith("////")) or self._set(line):
            return [], at + 1
        if _ANCHOR.match(line) or line in ("+", "<<<", "'''", "***", "---"):
            return [], at + 1
        if (options := _OPTIONS.match(line)) is not None:
            self.options = f"{self.options},{options[1]}" if self.options else options[1]
            return [], at + 1
        if (title := _TITLE.match(line)) is not None and not _ITEM.match(line):
            self.title = title[1]
            return [], at + 1
        made, after = self._titled(lines, at, depth)
        return made, max(after, at + 1)

    def _titled(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        """A block under the options and the title that stood above it."""
        options, title, self.options, self.title = self.options, self.title, "", ""
        made, after = self._plain(lines, at, depth, options)
        return ([f"**{self.prose(title)}**", *made] if title else made), after

    def _plain(self, lines: list[str], at: int, depth: int, options: str) -> tuple[list[str], int]:
        line = lines[at].rstrip()
        if (macro := _MACRO.match(line)) is not None:
            return self._macro(macro), at + 1
        if (fence := _FENCE.match(line)) is not None and (len(line) > 2 or line == "--"):
            return self._delimited(lines, at, depth, fence, options)
        if (heading := _HEADING.match(line)) is not None and depth == 0:
            return ["#" * len(heading[1]) + " " + self.prose(heading[2]).lstrip("\\")], at + 1
        if _ITEM.match(line) or self._is_term(line):
            return self._list(lines, at, depth)
        return self._paragraph(lines, at, options)

    def _macro(self, macro: re.Match[str]) -> list[str]:
        name, target, options = macro[1], self.attributes.in_text(macro[2]), macro[3]
        first = options.partition(",")[0].strip("\"' ")
        if name == "include":
            return [f"`{target}`"]
        if name in ("image", "video", "audio"):
            return [f"![{first}]({target})"] if first and "=" not in first else []
        holds = any(part in self.attributes.values for part in re.split("[,+]", target)) is (name == "ifdef")
        told = options and name in ("ifdef", "ifndef") and holds and not self._set(options)
        return [self.prose(options)] if told else []

    # ---- delimited blocks ---------------------------------------------------------------------

    def _delimited(
        self, lines: list[str], at: int, depth: int, fence: re.Match[str], options: str
    ) -> tuple[list[str], int]:
        stop = at + 1
        while stop < len(lines) and lines[stop].rstrip() != fence[1]:
            stop += 1
        inner, mark = lines[at + 1 : stop], fence[1][0]
        after = stop + 1
        if mark in "/+":
            return [], after
        if mark in "|,:!" and len(fence[1]) > 3:
            rows, head = table_rows(inner, options, mark)
            return [markdown_table([[self.prose(cell) for cell in row] for row in rows], head)], after
        style = options.partition(",")[0].strip().split("%")[0].split("#")[0]
        if mark in "`." or (mark == "-" and len(fence[1]) > 2) or style in ("source", "listing", "literal"):
            return [_code(inner, options, fence[2], self.attributes.values)], after
        if depth >= DEEPEST:
            return [self.prose(" ".join(inner))], after
        blocks = self.blocks(inner, depth + 1)
        return self._enclosed(blocks, style, mark), after

    def _enclosed(self, blocks: list[str], style: str, mark: str) -> list[str]:
        admonition = _ADMONITION.match(style)
        if admonition is not None:
            return [quoted([f"**{style.capitalize()}**", *blocks])]
        return [quoted(blocks)] if mark == "_" or style in ("quote", "verse") else blocks

    # ---- lists and paragraphs -----------------------------------------------------------------

    def _is_term(self, line: str) -> bool:
        return _TERM.match(line) is not None and "://" not in line.partition("::")[0]

    def _list(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        """Items of all depths until another block follows a blank line."""
        marks: list[str] = []
        counts: dict[int, int] = {}
        shown: list[str] = []
        while at < len(lines):
            item, term = _ITEM.match(lines[at]), None
            if item is None:
                term = _TERM.match(lines[at]) if self._is_term(lines[at]) else None
            if item is None and term is None:
                break
            mark = item[1] if item else (term[2] if term else "")
            mark = "1." if mark[0].isdigit() else "<>" if mark[0] == "<" else mark
            marks = marks[: marks.index(mark) + 1] if mark in marks else [*marks, mark]
            first = item[2] if item else term[3] if term else ""
            text, at = _item_text(lines, at + 1, first or "")
            more, at = self._attached(lines, at, depth)
            here = len(marks)
            counts = {each: count for each, count in counts.items() if each <= here}
            counts[here] = counts.get(here, 0) + 1
            sign = f"{counts[here]}." if mark[0] in ".1<" else "-"
            shown += _indented(self._item(text, term[1] if term else None), more, sign, 3 * (here - 1))
            while at < len(lines) and (not lines[at].strip() or lines[at].startswith("// ")):
                at += 1
        return ["\n".join(shown)], at

    def _item(self, text: str, term: str | None) -> str:
        text = _CHECK.sub("", text)
        if term is None:
            return self.prose(text)
        name = self.prose(term)
        name = name if "`" in name or "](" in name or "*" in name else f"**{name}**"
        return f"{name}: {self.prose(text)}" if text else name

    def _attached(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int]:
        """The blocks that a `+` attaches to an item."""
        found: list[str] = []
        while at < len(lines) and lines[at].strip() == "+" and depth < DEEPEST:
            at += 1
            while at < len(lines) and lines[at].strip() not in ("", "+"):
                made, at = self._block(lines, at, depth + 1)
                found += [block for block in made if block]
                if made:
                    break
        return found, at

    def _paragraph(self, lines: list[str], at: int, options: str) -> tuple[list[str], int]:
        stop = at
        while stop < len(lines) and lines[stop].strip() and not (stop > at and _ends_paragraph(lines[stop])):
            stop += 1
        stop = max(stop, at + 1)
        inner = lines[at:stop]
        style = options.partition(",")[0].strip()
        if style in ("source", "listing", "literal") or inner[0][:1] in (" ", "\t"):
            return [_code(inner, options, "", self.attributes.values)], stop
        admonition = _ADMONITION.match(inner[0])
        if admonition is not None and admonition[2] is not None:
            text = self.prose(" ".join([admonition[2], *inner[1:]]))
            return [quoted([f"**{admonition[1].capitalize()}**", text])], stop
        text = self.prose(" ".join(line.removesuffix(" +") for line in inner if not line.startswith("//")))
        return self._enclosed([text], style, ""), stop


def _ends_paragraph(line: str) -> bool:
    bare = line.strip()
    return bare == "+" or (len(bare) > 2 and any(rule.match(bare) for rule in (_FENCE, _OPTIONS, _CONDITION)))


def _item_text(lines: list[str], at: int, first: str) -> tuple[str, int]:
    """The text of an item, which goes on until a blank line, another item or a block."""
    parts = [first] if first else []
    if not first:
        while at < len(lines) and not lines[at].strip():
            at += 1
    while (
        at < len(lines)
        and lines[at].strip()
        and not _ITEM.match(lines[at])
        and not _ends_paragraph(lines[at])
    ):
        if _TERM.match(lines[at]) and parts:
            break
        if not lines[at].startswith("//"):
            parts.append(lines[at].strip())
        at += 1
    return " ".join(parts), at


def _indented(first: str, more: list[str], mark: str, indent: int) -> list[str]:
    pad, inner = " " * indent, " " * (indent + len(mark) + 1)
    lines = [f"{pad}{mark} {first}".rstrip()]
    for block in more:
        lines += ["", *((inner + line).rstrip() for line in block.split("\n"))]
    return [*lines, ""] if more else lines


def _code(lines: list[str], options: str, beside: str, attributes: dict[str, str]) -> str:
    """Code without the marks of its callouts, in the language that its options name."""
    parts = [part.strip().strip("\"'") for part in options.split(",")]
    style = parts[0].split("%")[0].split("#")[0]
    language = next((part.removeprefix("language=") for part in parts if part.startswith("language=")), "")
    if style in ("source", "", ",") and len(parts) > 1 and "=" not in parts[1]:
        language = language or parts[1].split("%")[0]
    language = language or beside or (attributes.get("source-language", "") if style == "source" else "")
    shown = [
        _CALLOUT.sub("", line) if line.rstrip().endswith(">") or "-->" in line else line for line in lines
    ]
    return code_block(shown, re.sub(r"[^\w+#.-]", "", language).lower())
