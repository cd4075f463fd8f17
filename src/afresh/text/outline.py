"""Divide a Markdown text into headings, prose, list items, and tables and code."""

import re
from typing import NamedTuple

from afresh.dataclass import dataclass, field
from afresh.text.plain import without_marks

_HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?$")
_ITEM = re.compile(r"(?:[-*+•]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_UNDERLINE = re.compile(r"=+|-{2,}")
_RULE = re.compile(r"[-*_=~+ |:]{3,}")
_ASIDE = re.compile(r"\[[^\]]{1,200}\]:|:::|!!!|\.\. |<")


class Heading(NamedTuple):
    level: int
    text: str


class Paragraph(NamedTuple):
    """A paragraph of prose as written, and the number of headings before it."""

    raw: str
    under: int


@dataclass(slots=True)
class Outline:
    headings: list[Heading] = field(default_factory=list)
    paragraphs: list[Paragraph] = field(default_factory=list)
    items: list[str] = field(default_factory=list)  # list items and quotes
    rest: list[str] = field(default_factory=list)  # table rows and code lines


def outline_of(markdown: str) -> Outline:
    reader = _Reader()
    for line in _without_comments(markdown).splitlines():
        reader.read(line)
    reader.end_paragraph()
    return reader.outline


def _without_comments(text: str) -> str:
    """Return the text without HTML comments; an unclosed comment stays, because it hides no text."""
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return "".join((*kept, text[at:])) if kept else text


class _Reader:
    def __init__(self) -> None:
        self.outline = Outline()
        self._prose: list[str] = []
        self._fence = ""
        self._in_item = False
        self._after_blank = True

    def read(self, line: str) -> None:
        text = line.strip()
        if self._fence:
            if text.startswith(self._fence) and not text.strip(self._fence[0]):
                self._fence = ""
            elif text:
                self.outline.rest.append(text)
        elif not text:
            self.end_paragraph()
            self._after_blank = True
        else:
            self._read_text(line, text)
            self._after_blank = False

    def _read_text(self, line: str, text: str) -> None:
        first = text[0]
        indented = line[0] in " \t" and len(line) - len(text) >= 2 and (line[0] == "\t" or line[:2] == "  ")
        if first in "`~" and text[:3] in ("```", "~~~"):
            self._open_fence(text)
        elif first == "#" and (found := _HEADING.fullmatch(text)):
            self.end_paragraph()
            self._head(len(found[1]), found[2])
        elif first in "=-" and len(self._prose) == 1 and _UNDERLINE.fullmatch(text):
            self._head(1 if first == "=" else 2, self._prose.pop())
        elif first in "-*_=~+|:" and _RULE.fullmatch(text):
            self.end_paragraph()
        elif first == "|" or text.count("|") >= 2:
            self._aside(self.outline.rest, ", ".join(filter(None, map(str.strip, text.split("|")))))
        elif (first in "-*+•" or first.isdigit()) and (item := _ITEM.match(text)):
            self._aside(self.outline.items, text[item.end() :])
            self._in_item = True
        elif first == ">":
            self._aside(self.outline.items, text.lstrip("> "))
        elif first in "[:!.<" and _ASIDE.match(text):
            # Block markup: only HTML lines with text count as prose.
            if text.startswith("<") and len(words := without_marks(text)) >= 2:
                self._prose.append(words)
        elif indented and (self._in_item or self._after_blank) and not self._prose:
            (self.outline.items if self._in_item else self.outline.rest).append(text)
        elif self._in_item and not self._after_blank:
            self.outline.items.append(text)
        else:
            self._in_item = False
            self._prose.append(text)

    def _open_fence(self, text: str) -> None:
        self.end_paragraph()
        mark = text[: len(text) - len(text.lstrip(text[0]))]
        if text[0] not in text[len(mark) :]:  # ```code``` on one line does not open a fence
            self._fence = mark
        else:
            self.outline.rest.append(text.strip(text[0]))

    def _head(self, level: int, raw: str) -> None:
        if text := without_marks(raw):
            self.outline.headings.append(Heading(level, text))
        self._in_item = False

    def _aside(self, to: list[str], text: str) -> None:
        self.end_paragraph()
        to.append(text)

    def end_paragraph(self) -> None:
        if self._prose:
            self.outline.paragraphs.append(Paragraph(" ".join(self._prose), len(self.outline.headings)))
            self._prose = []
