"""Render stored Markdown as safe HTML: all text is escaped, HTML is shown as text, and images become links."""

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple
from urllib.parse import urljoin

import pyromark
from markupsafe import Markup, escape

from afresh.search.highlight import CLOSE, OPEN
from afresh.text.plain import dedent_lists

MAX_TEXT_CHARS = 400_000  # of Markdown; the rest is not shown
MAX_URL_CHARS = 2_000_000  # of all URLs together: resolved, they can be much longer than the Markdown
MAX_NESTING = 30  # levels of lists and quotes; deeper ones are shown at this level
SCHEMES = ("http://", "https://", "mailto:")
OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_TASKLISTS
_TAG = re.compile(r"<[^<>]*+>")
BLOCKS = {
    "Paragraph": "p",
    "BlockQuote": "blockquote",
    "List": "ul",
    "Item": "li",
    "TableRow": "tr",
    "Emphasis": "em",
    "Strong": "strong",
    "Strikethrough": "s",
}
MAX_PASSAGE_CHARS = 20_000  # a page shows the first lines
_RULE = frozenset("|-: \t")
_HUNK = re.compile(r"@@ -(\d+),\d+ \+(\d+),\d+ @@")


def rendered(markdown: str, base: str) -> Markup:
    """Return the HTML of a Markdown text; `base` resolves relative links."""
    writer = HtmlWriter(base)
    writer.read(markdown[:MAX_TEXT_CHARS])
    if len(markdown) > MAX_TEXT_CHARS:
        writer.out.append(f'<p class="soft">{len(markdown) - MAX_TEXT_CHARS:,} more characters are not shown.</p>')
    return Markup("".join(writer.out))  # noqa: S704 - every text went through escape


class HtmlWriter:
    def __init__(self, base: str) -> None:
        self.base = base
        self.out: list[str] = []
        self._open: list[str] = []  # end tags of the open elements
        self._depth = 0
        self._in_head = False
        self._link: tuple[int, str] | None = None  # the open link: where its text begins, and its URL
        self._room = MAX_URL_CHARS  # characters left for URLs
        self._headings: list[str] = []  # the levels of the last heading and those above it

    def read(self, markdown: str) -> None:
        for event in pyromark.events(markdown, options=OPTIONS):
            self.write(event)

    def write(self, event: str | Mapping[str, Any]) -> None:
        match event:
            case {"Start": tag}:
                self._start(tag)
            case {"End": tag}:
                self._end(tag)
            case {"Text": text} | {"Html": text} | {"InlineHtml": text}:
                self.out.append(self.text(text))
            case {"Code": text}:
                self.out.append(f"<code>{self.text(text)}</code>")
            case {"TaskListMarker": done}:
                self.out.append("☑ " if done else "☐ ")
            case "SoftBreak":
                self.out.append("\n")
            case "HardBreak":
                self.out.append("<br>")
            case "Rule":
                self.out.append("<hr>")

    def text(self, text: str) -> str:
        return str(escape(text))

    def _start(self, tag: str | Mapping[str, Any]) -> None:
        name = tag if isinstance(tag, str) else next(iter(tag))
        given: Any = None if isinstance(tag, str) else tag[name]
        nests = name in ("List", "Item", "BlockQuote")
        self._depth += nests
        first, last = ("", "") if nests and self._depth > MAX_NESTING else self.tags(name, given)
        self.out.append(first)
        self._open.append(last)

    def tags(self, name: str, given: Any) -> tuple[str, str]:
        match name:
            case "Heading":
                made = self._heading(given["level"])
                return f"<{made}>", f"</{made}>"
            case "Link":
                return self._link_to(given["dest_url"])
            case "Image":
                first, last = self._link_to(given["dest_url"])
                return f'<span class="picture">image: {first}', f"{last}</span>"
            case "CodeBlock":
                return '<pre tabindex="0"><code>', "</code></pre>"
            case "Table":
                return '<div class="wide" tabindex="0"><table>', "</table></div>"
            case "TableHead":
                self._in_head = True
                return "<thead><tr>", "</tr></thead>"
            case "TableCell":
                made = "th" if self._in_head else "td"
                return f"<{made}>", f"</{made}>"
            case "List" if given is not None:
                return f'<ol start="{int(given)}">', "</ol>"
        made = BLOCKS.get(name, "")
        return (f"<{made}>", f"</{made}>") if made else ("", "")

    def _link_to(self, target: str) -> tuple[str, str]:
        """Return the start tag and end tag of a link; empty tags if its URL is unsafe or it is inside another link."""
        address = safe_address(target, self.base)
        if address is None or self._link or len(address) > self._room:
            return "", ""
        self._room -= len(address)
        self._link = len(self.out) + 1, address
        return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">', "</a>"

    def _end_link(self, start: int, address: str) -> None:
        """End a link; if it has no visible text, show its URL."""
        visible = _TAG.sub("", "".join(self.out[start:]))
        if not any(sign.isprintable() and not sign.isspace() for sign in visible):
            self.out.append(str(escape(address)))
        self._link = None

    def _heading(self, level: str) -> str:
        """Return the tag of a heading: below the h1 of the page, at most one level below its parent."""
        while self._headings and self._headings[-1] >= level:
            self._headings.pop()
        self._headings.append(level)
        return f"h{min(len(self._headings) + 1, 6)}"

    def _end(self, tag: str | Mapping[str, Any]) -> None:
        name = tag if isinstance(tag, str) else next(iter(tag))
        last = self._open.pop() if self._open else ""
        if self._link and "</a>" in last:
            self._end_link(*self._link)
        self.out.append(last)
        self._depth -= name in ("List", "Item", "BlockQuote")
        if name == "TableHead":
            self._in_head = False


def safe_address(target: str, base: str = "") -> str | None:
    """Return the URL of a link if its scheme is http, https or mailto."""
    cleaned = "".join(each for each in target if each.isprintable() and not each.isspace())
    try:
        address = urljoin(base, cleaned) if base.startswith(("http://", "https://")) else cleaned
    except ValueError:
        return None
    return address if address.lower().startswith(SCHEMES) else None


def passage(text: str) -> Markup:
    writer = _PassageWriter("")
    writer.read(dedent_lists(text[:MAX_PASSAGE_CHARS]))
    return Markup("".join(writer.out))  # noqa: S704 - every text went through escape


class _PassageWriter(HtmlWriter):
    """Writes headings as bold lines, links and images as text, and table rows whose table head is missing as lines."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self._marking = False  # a mark continues after the next tag
        self._at_start = True  # of one line
        self._in_row = False

    def write(self, event: str | Mapping[str, Any]) -> None:
        match event:
            case "SoftBreak" | {"Start": "Paragraph"}:
                self._at_start, self._in_row = True, False
            case {"Start": _}:
                self._at_start = self._in_row = False
        super().write(event)

    def text(self, text: str) -> str:
        pieces = [OPEN] if self._marking else []
        for sign in self._as_row(text):
            if sign == OPEN or (sign == CLOSE and self._marking):
                pieces += [sign] if self._marking is (sign == CLOSE) else []
                self._marking = sign == OPEN
            elif sign != CLOSE:
                pieces.append(sign)
        pieces += [CLOSE] if self._marking else []
        return str(escape("".join(pieces))).replace(OPEN, "<mark>").replace(CLOSE, "</mark>")

    def _as_row(self, text: str) -> str:
        """Return a text; if it belongs to a table row without a table head, replace the bars between cells by dots."""
        begins, self._at_start = self._at_start, False
        if begins and text.lstrip().startswith("|"):
            self._in_row = True
            text = text.lstrip().removeprefix("|").lstrip()
        if not self._in_row:
            return text
        if begins and not set(text) - _RULE:
            return ""
        if text.rstrip().endswith("|"):
            text = text.rstrip().removesuffix("|").rstrip()
        return text.replace("|", "·")

    def tags(self, name: str, given: Any) -> tuple[str, str]:
        match name:
            case "Heading":
                return "<p><strong>", "</strong></p>"
            case "Link" | "Image":
                return "", ""
            case "CodeBlock":
                return "<pre><code>", "</code></pre>"
            case "Table":
                return "<table>", "</table>"
        return super().tags(name, given)


class Line(NamedTuple):
    number: int | None
    text: str


class Row(NamedTuple):
    kind: str  # same, old, new, both, gap
    old: Line | None
    new: Line | None


def diff_rows(diff: str, view: str | None) -> list[Row]:
    """Return the rows of a diff; in the view `split`, removed and added lines share a row."""
    if view != "split":
        return list(_rows(diff))
    found: list[Row] = []
    old: list[Row] = []
    new: list[Row] = []
    for row in (*_rows(diff), Row("gap", None, None)):
        if row.kind in ("old", "new"):
            (old if row.kind == "old" else new).append(row)
            continue
        for left, right in zip_longest(old, new):
            kind = "both" if left and right else "old" if left else "new"
            found.append(Row(kind, left.old if left else None, right.new if right else None))
        old, new = [], []
        found.append(row)
    return found[:-1]


def _rows(diff: str) -> Iterator[Row]:
    before = after = 0
    for line in diff.split("\n"):
        if hunk := _HUNK.fullmatch(line):
            before, after = int(hunk[1]), int(hunk[2])
            yield Row("gap", Line(None, line), None)
        elif line.startswith("-"):
            yield Row("old", Line(before, line[1:]), None)
            before += 1
        elif line.startswith("+"):
            yield Row("new", None, Line(after, line[1:]))
            after += 1
        elif line.startswith("…"):
            yield Row("gap", Line(None, line), None)
        elif line:
            yield Row("same", Line(before, line[1:]), Line(after, line[1:]))
            before, after = before + 1, after + 1
