"""Markdown as a row of segments that are shown whole: sentences, lines of code, table rows, headings.

Between two segments a text may be cut. What must not be cut (a link, a code span, a tag, an address) lies
within one segment; a sentence that is too long is cut at spaces outside of them.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

LONGEST = 200  # characters of a segment of prose, where a space lets it end
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_FENCES = ("```", "~~~")
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~).*\n?", re.MULTILINE)
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_BARE_TABLE = re.compile(r"^[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+$", re.MULTILINE)  # no pipe before it
# Patterns begin with one sign of a set: places where none stands are skipped at ten times the speed.
_SENTENCE_END = re.compile(
    r"[.!?…。！？\n](?:(?<=\n)|(?<=[。！？])[。！？]*[」』”）]*\n?"
    r"|(?<![\d.!?…].)(?<!\.\w.)[.!?…]{0,19}[\"'”’)\]*_]{0,20}(?=\s)[ \t]*\n?)"
)
# After a space, or between letters of a script that needs none.
_WORD_END = re.compile(
    r"(?<=\s)(?=\S)|(?<=[\u2e80-\ud7ff\uf900-\uffee])(?=[\u2e80-\u3098\u309b-\ud7ff\uf900-\uffee])"
)

# What is one piece to a reader of Markdown, and how it begins; the group names tell how it may be marked.
_INLINE_START = re.compile(r"[`\[*<&{!hw](?:(?<![!hw])|(?<=!)(?=\[)|(?<=h)(?=ttps?:)|(?<=w)(?=ww\.))")
_INLINE = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<link>!?\[(?P<words>(?:[^\[\]\\]|\\.|\[[^\[\]]{0,200}\]){0,500})\]"
    r"(?:\((?:[^()\s]|\([^()\s]{0,200}\)){0,2000}(?:\s+\"[^\"]{0,200}\")?\)|\[[^\[\]]{0,200}\]))"
    r"|(?P<definition>\[[^\[\]\n]{1,200}\]:[ \t]*\S*[/.#]\S*[^\n]*)"
    r"|(?P<strong>(?P<stars>\*{1,2})(?=[^\s*])[^*\n]{1,200}?(?<=[^\s*])(?P=stars)(?!\*))"
    r"|(?P<tag><[A-Za-z/!][^<>]{0,500}>)"
    r"|(?P<url>(?:https?://|www\.)[^\s<>\"`|。、（）「」]+)"
    r"|(?P<entity>&#?[A-Za-z0-9]{1,31};)"
    r"|(?P<attributes>\{ ?#[^{}\n]{1,200}\})"
)


class Kind(Enum):
    """What a segment is part of."""

    PROSE = "prose"
    HEADING = "heading"
    ROW = "row"
    CODE = "code"
    OPENING = "opening"  # the line that opens a block of code
    CLOSING = "closing"
    BLANK = "blank"


class Inline(NamedTuple):
    """A link, a code span, an address or the like; its words, if any, may be marked."""

    start: int
    end: int
    words: tuple[int, int] | None = None


class Segment(NamedTuple):
    """A stretch of a text that is shown whole or not at all."""

    start: int
    end: int
    kind: Kind
    opening: str = ""  # within a block of code: the line that opens it
    ends_line: bool = True
    ends_sentence: bool = True
    inlines: Sequence[Inline] | None = None  # those of the prose it stands in


def segments_of(text: str, longest: int = LONGEST, within: tuple[int, int] | None = None) -> list[Segment]:
    """The segments of a text in order: all, together the text, or those of blocks that touch a part of it."""
    low, high = within or (0, len(text))
    found: list[Segment] = []
    for block in _blocks(text, _paragraph(text, low)):
        if block.start > high:
            break
        if block.end < low:
            continue
        if block.kind is Kind.PROSE:
            found += _sentences(text, block.start, block.end, longest)
        else:
            found.append(block)
    return found


def _paragraph(text: str, place: int) -> int:
    """Where the paragraph of a place begins, or the block of code that it stands in."""
    if place <= 0:
        return 0
    begin, fence = 0, ""
    for line in _FENCE_LINE.finditer(text, 0, place):
        before, fence = fence, _fence_after(line[0], fence)
        if fence != before:
            begin = line.start() if fence else line.end()
    return begin if fence else max(begin, text.rfind("\n\n", 0, place) + 1)


def _fence_after(line: str, fence: str) -> str:
    """What ends the code after a line that may open or close some; nothing where it is not in code."""
    mark = _FENCE.match(line)
    if mark is None:
        return fence
    if fence:
        return "" if mark[1].startswith(fence) and not mark[2].strip() else fence
    return "" if mark[1][0] == "`" and "`" in mark[2] else mark[1]


def _blocks(text: str, begin: int) -> Iterator[Segment]:
    """Every line that is no prose, and the lines of prose between them as one."""
    prose = at = begin
    for line in _lines(text, begin):
        at = line.end
        if line.kind is Kind.PROSE:
            continue
        if prose < line.start:
            yield Segment(prose, line.start, Kind.PROSE)
        yield line
        prose = at
    if prose < at:
        yield Segment(prose, at, Kind.PROSE)


def _lines(text: str, begin: int) -> Iterator[Segment]:
    """Every line and what it is; `opening` is the line that opens the block of code it stands in."""
    pipe = "" if _BARE_TABLE.search(text) else "|"
    opening, fence, at = "", "", begin
    for line in text[begin:].splitlines(keepends=True):
        start, at = at, at + len(line)
        before, fence = fence, _fence_after(line, fence) if line.lstrip(" \t").startswith(_FENCES) else fence
        if before:
            yield Segment(start, at, Kind.CODE if fence else Kind.CLOSING, opening)
        elif fence:
            opening = line.rstrip()
            yield Segment(start, at, Kind.OPENING, opening)
        else:
            yield Segment(start, at, _kind(line, pipe))


def _kind(line: str, pipe: str) -> Kind:
    if line.isspace():
        return Kind.BLANK
    if "#" in line and _HEADING.match(line):
        return Kind.HEADING
    return Kind.ROW if "|" in line and line.lstrip().startswith(pipe) else Kind.PROSE


def inlines_of(text: str, start: int = 0, end: int | None = None) -> list[Inline]:
    """What in a stretch of prose is one piece, in order."""
    found: list[Inline] = []
    at, end = start, len(text) if end is None else end
    while (begin := _INLINE_START.search(text, at, end)) is not None:
        inline = _INLINE.match(text, begin.start(), end)
        if inline is None:
            at = begin.start() + 1
        else:
            found.append(Inline(*inline.span(), _markable(inline)))
            at = inline.end()
    return found


def _markable(found: re.Match[str]) -> tuple[int, int] | None:
    if found["code"]:
        ticks = len(found["ticks"])
        return found.start() + ticks, found.end() - ticks
    if found["strong"]:
        stars = len(found["stars"])
        return found.start() + stars, found.end() - stars
    if found["link"] and not found["link"].startswith("!") and "](" not in found["words"]:
        return found.span("words")
    return None


def _sentences(text: str, start: int, end: int, longest: int) -> Iterator[Segment]:
    """Prose cut at the ends of sentences and lines; what is too long also at spaces."""
    inlines = inlines_of(text, start, end)
    places = [each.end() for each in _SENTENCE_END.finditer(text, start, end)]
    borders = [start, *_outside(places, inlines), end]
    low = start
    for high in borders[1:]:
        if high > low:
            for one, two in _short(text, low, high, inlines, longest):
                ends_line = two == end or text[two - 1] == "\n"
                yield Segment(one, two, Kind.PROSE, "", ends_line, two == high, inlines)
            low = high


def _outside(places: Sequence[int], inlines: Sequence[Inline]) -> list[int]:
    kept, spans = [], iter(inlines)
    span = next(spans, None)
    for place in places:
        while span is not None and span.end <= place:
            span = next(spans, None)
        if span is None or place <= span.start:
            kept.append(place)
    return kept


def _short(
    text: str, low: int, high: int, inlines: Sequence[Inline], longest: int
) -> Iterator[tuple[int, int]]:
    if high - low <= longest:
        yield low, high
        return
    near = [each for each in inlines if each.start < high and each.end > low]
    places = _outside([each.start() for each in _WORD_END.finditer(text, low + 1, high)], near)
    start = last = low
    for place in [*places, high]:
        if place - start > longest and last > start:
            yield start, last
            start = last
        last = place
    yield start, high
