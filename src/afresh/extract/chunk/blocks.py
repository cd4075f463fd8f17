"""Split a Markdown text into blocks, and blocks into the pieces from which chunks are formed."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pyromark

MIN_CHARS = 800
MAX_CHARS = 2000
TINY_CHARS = 200  # an introduction up to this size stays in one chunk with the section after it
SHORT_CHARS = 80  # a block shorter than this is joined with the next one of its kind
MAX_TITLE = 200
MAX_REPEAT = 400  # longer table heads and fence lines are not repeated in the next chunk

# Ranks of cuts: a text is cut first before the block with the lowest rank. The rank of a heading is its level.
BLOCK = 8
ROW = 9  # a table row or a list item
INNER = 10  # a block within a list item or a quote
NESTED = 12  # an item of a nested list
BLANK_LINE = 13
LINE = 14
SENTENCE = 15
WORD = 16

_MARKUP = re.compile(r"[`*_\[\]<>&\\{~#!]")
_PARSER = pyromark.Markdown(options=pyromark.Options.ENABLE_HEADING_ATTRIBUTES)
Trail = tuple[tuple[int, str], ...]  # level and title of each enclosing heading, outermost first
_CODE_FENCE = re.compile(r"(`{3,}|~{3,})[^\n]*")
_LINES = re.compile(r"[^\n]+\n*|\n+")  # a line and the blank lines after it
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*")
_WORDS = re.compile(r".{1,400}(?:\s+|\Z)|.{1,400}", re.DOTALL)


def plain_title(raw: str) -> str:
    """Return the text of a heading without markup, closing hashes and attributes, cut at `MAX_TITLE`."""
    if _MARKUP.search(raw):
        events = _PARSER.events("# " + raw.replace("\n", " "), merge_text=True)
        texts = (event.get("Text") or event.get("Code") or "" for event in events if isinstance(event, dict))
        raw = "".join(map(str, texts))
    return " ".join(raw.split())[:MAX_TITLE]


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
_MARKS = frozenset("#`~>|<-*+=_:0123456789 \t")  # a line with another first character is paragraph text

# The kind of block that is open, to which following lines may belong.
_NOTHING, _PARAGRAPH, _LIST, _QUOTE, _TABLE, _HTML_BLOCK, _INDENTED = range(7)
_FLOWING = frozenset({_PARAGRAPH, _LIST, _QUOTE, _TABLE, _HTML_BLOCK})
_JOINED = ("text", "list")
_ENDED_BY_BLANK = frozenset({_PARAGRAPH, _QUOTE, _TABLE, _HTML_BLOCK})


class Block(NamedTuple):
    """A block that begins with the line at offset `start` and ends where the next block begins."""

    start: int
    kind: str = "text"  # text, code, table, list
    rank: int = BLOCK  # a text is cut first before the block with the lowest rank
    level: int = 0  # the level of a heading, 0 for other blocks
    title: str = ""  # the text of a heading


class _Fence(NamedTuple):
    mark: str
    size: int
    indent: int
    quoted: bool
    listed: bool


def scan(text: str) -> list[Block]:
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
    """Return the width of an indent, with tab stops every 4 columns."""
    return len(blanks.expandtabs(4)) if "\t" in blanks else len(blanks)


class _Scan:
    """The state of `scan`: the blocks found so far, and the block to which the current line may belong."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks = [Block(0)]
        self.inside = _NOTHING
        self.after_blank = True
        self.quote_blank = False
        self.fence: _Fence | None = None
        self.html_end = ""
        self.flowing = False  # a line that begins with a letter continues the open block
        self.before = ""
        self.paragraph = 0  # offset of the open paragraph

    def take(self, start: int, line: str, before: str) -> None:
        """Process the next line; `before` is the line above it."""
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

    def _fenced(self, line: str, fence: _Fence) -> bool:
        """Return whether a line belongs to the open code block `fence`; reset `self.fence` if the block ends here."""
        if not (fence.quoted or fence.listed or fence.mark in line):
            return True
        bare = line.lstrip(" \t>" if fence.quoted else " \t")
        indent = 0 if fence.quoted else width(line[: len(line) - len(bare)])
        left_quote = fence.quoted and not line.lstrip(" \t").startswith(">")
        left = left_quote or bool(fence.listed and not fence.quoted and bare and indent < 2)
        marks = bare.rstrip(" \t")
        closes = len(marks) >= fence.size and indent < fence.indent + 4 and marks == fence.mark * len(marks)
        if left or closes:
            self.fence = None
            self.after_blank = self.quote_blank = True
            if not (fence.listed or fence.quoted):
                self.inside = _NOTHING
        return not left

    def _raw_html(self, line: str) -> None:
        if self.html_end in line.lower():
            self.html_end = ""
            self.inside = _NOTHING

    def _begin(self, start: int, line: str, bare: str) -> None:
        indent = width(line[: len(line) - len(bare)]) if line[0] in " \t" else 0
        if self.inside == _INDENTED:
            if indent >= 4:
                return
            self.inside = _NOTHING
        if self.inside == _HTML_BLOCK:
            return
        if indent >= 4 and self.inside != _LIST:
            if self.inside == _NOTHING:
                self._add(start, "code")
                self.inside = _INDENTED
            return
        listed = self.inside == _LIST and indent >= 2
        if bare[0] in _MARKS and self._marked(start, bare, indent, listed):
            return
        if listed and self.after_blank:  # after a blank line, text begins a new paragraph of the item
            self._add(start, "list", INNER)
        elif not listed and (self.after_blank or self.inside == _NOTHING):
            self._paragraph(start)

    def _paragraph(self, start: int) -> None:
        self._add(start)
        self.inside = _PARAGRAPH
        self.paragraph = start

    def _marked(self, start: int, bare: str, indent: int, listed: bool) -> bool:
        """Process a line that may begin with a mark such as `#` (`listed`: in a list); return False for plain text."""
        first = bare[0]
        if first in "`~":
            return self._open_fence(start, bare, indent, listed, quoted=False)
        if first == "#":
            return self._heading(start, bare, listed)
        if first == ">":
            return self._quote(start, bare, listed)
        if first == "<":
            return self._html(start, bare, listed)
        if not self.after_blank and first in "=-|:" and (self._underline(start, bare) or self._table(start, bare)):
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
        raw = _RAW_HTML.match(bare)
        if listed or not (raw or _HTML.match(bare)):
            return False
        self._add(start)
        self.inside = _HTML_BLOCK
        if raw is not None and raw.lastindex:
            self.html_end = _RAW_ENDS[raw.lastindex].format(raw[raw.lastindex].lower())
            self._raw_html(bare[raw.end() :])
        return True

    def _underline(self, start: int, bare: str) -> bool:
        """If the line underlines the paragraph above, make that paragraph a heading and return True."""
        if self.inside != _PARAGRAPH or bare[0] not in "=-" or bare.rstrip(" \t").strip(bare[0]):
            return False
        title = plain_title(self.text[self.paragraph : start])
        self._add(self.paragraph, level=1 if bare[0] == "=" else 2, title=title)
        self.inside = _NOTHING
        return True

    def _table(self, start: int, bare: str) -> bool:
        """If the line is the row of dashes below a table's head, begin a table with that head and return True."""
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
            return False  # a number that begins a line of a paragraph
        rank = BLOCK if self.inside != _LIST else ROW if indent < 2 else NESTED
        self._add(start, "list", rank)
        self.inside = _LIST
        if match[2] and match[2].startswith(("```", "~~~")):
            self._open_fence(start, match[2], indent + 2, True, quoted=False)
        return True

    def _add(self, start: int, kind: str = "text", rank: int = BLOCK, level: int = 0, title: str = "") -> None:
        """Add a block; it replaces a last block with the same `start`, and takes over the rank of that block."""
        last = self.blocks[-1]
        alike = kind == last.kind and kind in _JOINED and not (level or last.level)
        if alike and start - last.start < SHORT_CHARS:
            return  # do not separate a label, a term or a short item from the next block
        if start > last.start:
            self.blocks.append(Block(start, kind, rank, level, title))
        else:
            self.blocks[-1] = Block(start, kind, last.rank, level, title)


class Piece(NamedTuple):
    """A piece of text that is never cut."""

    text: str
    rank: int  # a text is cut first before the piece with the lowest rank
    kind: str  # as in Block
    trail: Trail  # the headings above
    heading: bool = False
    close: str = ""  # appended to the previous chunk if the text is cut before this piece
    reopen: str = ""  # put at the start of the chunk that begins with this piece


def pieces_of(text: str) -> list[Piece]:
    """Return the pieces of a Markdown text; joined, they are equal to the text."""
    blocks = scan(text)
    ends = [block.start for block in blocks[1:]]
    ends.append(len(text))
    pieces: list[Piece] = []
    trail: Trail = ()
    for (start, kind, rank, level, title), end in zip(blocks, ends, strict=True):
        raw = text[start:end]
        if level:
            trail = tuple(step for step in trail if step[0] < level)
            trail = (*trail, (level, title)) if title else trail
        piece = Piece(raw, level or rank, kind, trail, level > 0)
        if len(raw) <= MAX_CHARS:
            pieces.append(piece)
        else:
            pieces.extend(_apart(piece))
    return pieces


def _apart(large: Piece) -> Iterator[Piece]:
    close, reopen, parts = "", "", _text_parts(large.text)
    if large.kind == "code":
        close, reopen = _fence(large.text)
        parts = _code_parts(large.text)
    elif large.kind == "table":
        lines = large.text.splitlines(keepends=True)
        head = "".join(lines[:2])  # the head and the row of dashes
        reopen = head if len(head) <= MAX_REPEAT else ""
        # The first row stays with the head, which is useless alone.
        parts = (part for row in ("".join(lines[:3]), *lines[3:]) for part in _words(row, ROW))
    for number, (text, rank) in enumerate(parts):
        if number == 0:
            yield large._replace(text=text)
        elif large.kind == "table" and rank != ROW:
            yield large._replace(text=text, rank=rank)
        else:
            yield large._replace(text=text, rank=rank, close=close, reopen=reopen)


def _fence(code: str) -> tuple[str, str]:
    """Return the lines that close and reopen a fenced code block, with its indent; "" for code without fences."""
    first = code[: code.find("\n") + 1]
    mark = _CODE_FENCE.search(first)
    if mark is None:
        return "", ""
    indent = re.sub(r"[^\s>]", " ", first[: mark.start()])
    again = mark[0] if len(mark[0]) <= MAX_REPEAT else mark[1]
    return f"{indent}{mark[1]}\n", f"{indent}{again}\n"


def _code_parts(code: str) -> Iterator[tuple[str, int]]:
    """Yield the lines of a code block, each with its `Piece.rank`; lines of fences are joined to their neighbours."""
    lines = code.splitlines(keepends=True)
    while len(lines) > 2 and not lines[-1].strip(" \t\n`~>"):
        lines[-2:] = [lines[-2] + lines[-1]]
    if len(lines) > 1:
        lines[:2] = [lines[0] + lines[1]]
    rank = LINE
    for line in lines:
        yield from _words(line, rank)
        rank = BLANK_LINE if line.isspace() else LINE


def _text_parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield the lines of a text, long ones cut into sentences or words, each with its `Piece.rank`."""
    for line in _LINES.findall(text):
        if len(line.rstrip()) <= MAX_CHARS:
            yield line, LINE
            continue
        rank, start = LINE, 0
        for end in (*(found.end() for found in _SENTENCE_END.finditer(line)), len(line)):
            if end > start:
                yield from _words(line[start:end], rank)
                rank, start = SENTENCE, end


def _words(text: str, rank: int) -> Iterator[tuple[str, int]]:
    """Yield a text with its `Piece.rank`; if it is too long for a chunk, yield parts of it, cut between words."""
    if len(text) <= MAX_CHARS:
        yield text, rank
        return
    for part in _WORDS.finditer(text):
        yield part[0], rank
        rank = WORD
