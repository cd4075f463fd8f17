"""The text of a heading as it is read, without the marks it is written with."""

import re
from typing import NamedTuple

import pyromark

from afresh.extract.chunk.limits import BLOCK, INNER, MAX_TITLE, NESTED, ROW, SHORT_CHARS

_MARKUP = re.compile(r"[`*_\[\]<>&\\{~#!]")
_PARSER = pyromark.Markdown(options=pyromark.Options.ENABLE_HEADING_ATTRIBUTES)


def plain_title(raw: str) -> str:
    """The title without emphasis, links, code marks, closing hashes and attributes, and not endless."""
    if _MARKUP.search(raw):
        raw = _read(raw)
    return " ".join(raw.split())[:MAX_TITLE]


def _read(raw: str) -> str:
    parts: list[str] = []
    for event in _PARSER.events("# " + raw.replace("\n", " "), merge_text=True):
        if isinstance(event, dict):
            parts.append(str(event.get("Text") or event.get("Code") or ""))
    return "".join(parts)


_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$")
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_ITEM = re.compile(r"(?:[-*+]|(\d{1,9})[.)])(?:[ \t]+(.*)|$)")
_DASHES = re.compile(r"\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+(?:\|[ \t]*+)?$")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?!\s*\n).*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_RAW_HTML = re.compile(r"<(?:(pre|script|style|textarea)(?=[\s>]|$)|(!--)|(\?)|(!\[CDATA\[))", re.IGNORECASE)
_RAW_ENDS = ("", "</{}>", "-->", "?>", "]]>")
_HTML = re.compile(
    r"</?(?:address|article|aside|blockquote|body|center|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|"
    r"figure|footer|form|frame|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|nav|ol|option|p|"
    r"section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul)(?=[\s/>]|$)",
    re.IGNORECASE,
)
_MARKS = frozenset("#`~>|<-*+=_:0123456789 \t")  # a line that begins otherwise begins nothing but a paragraph

# What the lines that follow belong to.
_NOTHING, _PARAGRAPH, _LIST, _QUOTE, _TABLE, _HTML_BLOCK, _INDENTED = range(7)
_FLOWING = frozenset({_PARAGRAPH, _LIST, _QUOTE, _TABLE, _HTML_BLOCK})
_JOINED = ("text", "list")
_ENDED_BY_BLANK = frozenset({_PARAGRAPH, _QUOTE, _TABLE, _HTML_BLOCK})


class Block(NamedTuple):
    """A block that begins with the line at `start` and lasts until the next one."""

    start: int
    kind: str = "text"  # text, code, table, list
    rank: int = BLOCK
    level: int = 0  # of a heading
    title: str = ""  # of a heading


class _Fence(NamedTuple):
    """An open code fence."""

    mark: str
    size: int
    indent: int
    quoted: bool
    listed: bool


def scan(text: str) -> list[Block]:
    """Lists the blocks of a text; the first begins at its start."""
    found = _Scan(text)
    front = _FRONT_MATTER.match(text)
    start = front.end() if front else 0
    before = ""
    for line in text[start:].split("\n"):
        if not line:
            found.after_blank, found.flowing = True, False
        elif not found.flowing or line[0] in _MARKS:
            found.take(start, line, before)
        before = line
        start += len(line) + 1
    return found.blocks


def width(blanks: str) -> int:
    """How far a line is indented."""
    return len(blanks.expandtabs(4)) if "\t" in blanks else len(blanks)


class _Scan:
    """What is open while the lines go by."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks = [Block(0)]
        self.inside = _NOTHING
        self.after_blank = True
        self.quote_blank = False
        self.fence: _Fence | None = None
        self.html_end = ""
        self.flowing = False  # a line that begins with a letter would just go on
        self.before = ""  # the line before
        self.paragraph = 0  # where the open paragraph begins

    def take(self, start: int, line: str, before: str) -> None:
        """Takes the next line; `before` is the one above it."""
        if self.fence and self._fenced(line, self.fence):
            return
        if self.html_end:
            self._raw_html(line)
            return
        if line[0] not in _MARKS:
            self._paragraph(start)
            self.after_blank, self.flowing = False, True
            return
        bare = line.lstrip(" \t")
        if not bare:
            self.after_blank, self.flowing = True, False
            return
        if self.after_blank and self.inside in _ENDED_BY_BLANK:
            self.inside = _NOTHING
        self.before = before
        self._begin(start, line, bare)
        self.after_blank = False
        self.flowing = self.inside in _FLOWING and not self.fence and not self.html_end

    # ---- lines that nothing begins with -------------------------------------------------------

    def _fenced(self, line: str, fence: _Fence) -> bool:
        """Whether a line belongs to the open fence; closes it where it ends."""
        if not (fence.quoted or fence.listed or fence.mark in line):
            return True
        bare = line.lstrip(" \t>" if fence.quoted else " \t")
        indent = 0 if fence.quoted else width(line[: len(line) - len(bare)])
        if fence.quoted and not line.lstrip(" \t").startswith(">"):
            self._close_fence(fence)
            return False
        if fence.listed and not fence.quoted and bare and indent < 2:
            self._close_fence(fence)
            return False
        marks = bare.rstrip(" \t")
        if len(marks) >= fence.size and indent < fence.indent + 4 and marks == fence.mark * len(marks):
            self._close_fence(fence)
        return True

    def _close_fence(self, fence: _Fence) -> None:
        self.fence = None
        self.after_blank = True
        self.quote_blank = True
        if not (fence.listed or fence.quoted):
            self.inside = _NOTHING

    def _raw_html(self, line: str) -> None:
        if self.html_end in line.lower():
            self.html_end = ""
            self.inside = _NOTHING

    # ---- lines that may begin something -------------------------------------------------------

    def _begin(self, start: int, line: str, bare: str) -> None:
        indent = width(line[: len(line) - len(bare)]) if line[0] in " \t" else 0
        if self.inside == _INDENTED:
            if indent >= 4:
                return
            self.inside = _NOTHING
        if self.inside == _HTML_BLOCK:
            return
        if indent >= 4 and self.inside != _LIST:
            self._indented(start)
            return
        listed = self.inside == _LIST and indent >= 2
        if bare[0] in _MARKS and self._marked(start, bare, indent, listed):
            return
        self._plain(start, listed)

    def _indented(self, start: int) -> None:
        if self.inside == _NOTHING:
            self._add(start, "code")
            self.inside = _INDENTED

    def _plain(self, start: int, listed: bool) -> None:
        """A line of text: begins a paragraph after a blank line, otherwise goes on."""
        if listed:
            if self.after_blank:
                self._add(start, "list", INNER)
        elif self.after_blank or self.inside == _NOTHING:
            self._paragraph(start)

    def _paragraph(self, start: int) -> None:
        self._add(start)
        self.inside = _PARAGRAPH
        self.paragraph = start

    def _marked(self, start: int, bare: str, indent: int, listed: bool) -> bool:
        """Whether a line begins (or underlines) something by its first character."""
        first = bare[0]
        if first in "`~":
            return self._open_fence(start, bare, indent, listed, quoted=False)
        if first == "#":
            return self._heading(start, bare, listed)
        if first == ">":
            return self._quote(start, bare, listed)
        if first == "<":
            return self._html(start, bare, listed)
        if (
            not self.after_blank
            and first in "=-|:"
            and (self._underline(start, bare) or self._table(start, bare))
        ):
            return True
        if first in "-*_" and _RULE.match(bare):
            self._add(start, "text" if not listed else "list", INNER if listed else BLOCK)
            self.inside = _LIST if listed else _NOTHING
            return True
        return self._item(start, bare, indent)

    def _open_fence(self, start: int, bare: str, indent: int, listed: bool, *, quoted: bool) -> bool:
        match = _FENCE.match(bare)
        if match is None:
            return False
        marks = match[1] or match[2]
        self._add(start, "code", INNER if listed or quoted else BLOCK)
        self.fence = _Fence(marks[0], len(marks), indent, quoted, listed)
        return True

    def _heading(self, start: int, bare: str, listed: bool) -> bool:
        match = _HEADING.match(bare)
        if match is None:
            return False
        if listed:
            self._add(start, "list", INNER)
        else:
            self._add(start, level=len(match[1]), title=plain_title(match[2] or ""))
            self.inside = _NOTHING
        return True

    def _quote(self, start: int, bare: str, listed: bool) -> bool:
        inner = bare.lstrip("> \t")
        if not listed and self.inside != _QUOTE:
            self._add(start)
            self.inside = _QUOTE
        elif (self.quote_blank and inner) or (listed and self.after_blank):
            self._add(start, "list" if listed else "text", INNER)
        self.quote_blank = not inner
        self._open_fence(start, inner, 0, listed, quoted=True)
        return True

    def _html(self, start: int, bare: str, listed: bool) -> bool:
        raw = None if listed else _RAW_HTML.match(bare)
        if raw is not None and raw.lastindex:
            self._add(start)
            self.html_end = _RAW_ENDS[raw.lastindex].format(raw[raw.lastindex].lower())
            self.inside = _HTML_BLOCK
            self._raw_html(bare[raw.end() :])
            return True
        if listed or not _HTML.match(bare):
            return False
        self._add(start)
        self.inside = _HTML_BLOCK
        return True

    def _underline(self, start: int, bare: str) -> bool:
        """Makes the paragraph above a heading, if the line underlines it."""
        if self.inside != _PARAGRAPH or bare[0] not in "=-" or bare.rstrip(" \t").strip(bare[0]):
            return False
        title = plain_title(self.text[self.paragraph : start])
        self._add(self.paragraph, level=1 if bare[0] == "=" else 2, title=title)
        self.inside = _NOTHING
        return True

    def _table(self, start: int, bare: str) -> bool:
        """Begins a table with the line above, if this is the line of dashes below its head."""
        head = self.before
        if self.inside == _TABLE or "|" not in bare or "|" not in head or not _DASHES.match(bare):
            return False
        self._add(start - len(head) - 1, "table")
        self.inside = _TABLE
        return True

    def _item(self, start: int, bare: str, indent: int) -> bool:
        match = _ITEM.match(bare)
        if match is None:
            return False
        if self.inside == _PARAGRAPH and not (match[2] and match[1] in (None, "1")):
            return False  # a number at the start of a line within a paragraph
        rank = BLOCK if self.inside != _LIST else ROW if indent < 2 else NESTED
        self._add(start, "list", rank)
        self.inside = _LIST
        if match[2]:
            self._open_fence(start, match[2], indent + 2, True, quoted=False)
        return True

    def _add(
        self, start: int, kind: str = "text", rank: int = BLOCK, level: int = 0, title: str = ""
    ) -> None:
        """Notes a block; of two that begin with one line the first has the rank, the second the kind."""
        last = self.blocks[-1]
        if (
            kind == last.kind
            and kind in _JOINED
            and start - last.start < SHORT_CHARS
            and not (level or last.level)
        ):
            return  # a label, a term, a short item: it says most together with what follows
        if start > last.start:
            self.blocks.append(Block(start, kind, rank, level, title))
        else:
            self.blocks[-1] = Block(start, kind, last.rank, level, title)
