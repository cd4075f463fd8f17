"""Stored Markdown as HTML that can do nothing: every tag here is ours, every text is escaped.

HTML inside of the Markdown is shown as the text it is, and pictures as links: nothing is loaded.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

import pyromark
from markupsafe import Markup, escape

LONGEST = 400_000  # characters; the rest is left out
LARGEST = 2_000_000  # characters of addresses: written out whole, they can make much of little
DEEPEST = 30  # levels of lists and quotes; what lies deeper is shown at that level
SCHEMES = ("http://", "https://", "mailto:")
OPTIONS = (
    pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_TASKLISTS
)
_TAG = re.compile(r"<[^<>]*+>")
BLOCKS = {
    "Paragraph": "p",
    "BlockQuote": "blockquote",
    "List": "ul",
    "Item": "li",
    "TableHead": "thead",
    "TableRow": "tr",
    "Emphasis": "em",
    "Strong": "strong",
    "Strikethrough": "s",
}


def rendered(markdown: str, base: str) -> Markup:
    """The HTML of a text whose links are relative to `base`."""
    page = Writer(base)
    page.read(markdown[:LONGEST])
    if len(markdown) > LONGEST:
        page.out.append(
            f'<p class="soft">The text goes on for {len(markdown) - LONGEST:,} more characters.</p>'
        )
    return Markup("".join(page.out))  # noqa: S704 - every text went through escape


class Writer:
    """HTML in the making."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.out: list[str] = []
        self._open: list[str] = []  # what ends each thing that is open
        self._depth = 0
        self._in_head = False
        self._link: tuple[int, str] | None = None  # one that is open: where its text begins, its address
        self._room = LARGEST  # for addresses
        self._headings: list[str] = []  # those above and the last one, as their author numbered them

    def read(self, markdown: str) -> None:
        """Take a whole text."""
        for event in pyromark.events(markdown, options=OPTIONS):
            self.hear(event)

    def hear(self, event: str | Mapping[str, Any]) -> None:
        """Take the next event of the parser."""
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
        """A text as HTML."""
        return str(escape(text))

    def _start(self, tag: str | Mapping[str, Any]) -> None:
        name = tag if isinstance(tag, str) else next(iter(tag))
        given: Any = None if isinstance(tag, str) else tag[name]
        nests = name in ("List", "Item", "BlockQuote")
        self._depth += nests
        first, last = ("", "") if nests and self._depth > DEEPEST else self.tags(name, given)
        self.out.append(first)
        self._open.append(last)

    def tags(self, name: str, given: Any) -> tuple[str, str]:
        """How a thing begins and ends."""
        match name:
            case "Heading":
                made = self._heading(given["level"])
                return f"<{made}>", f"</{made}>"
            case "Link":
                return self._link_to(given["dest_url"])
            case "Image":
                first, last = self._link_to(given["dest_url"])
                return f'<span class="picture">picture: {first}', f"{last}</span>"
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
        """A link, if it leads to where links may lead and stands in no other; else just its text."""
        address = safe_address(target, self.base)
        if address is None or self._link or len(address) > self._room:
            return "", ""
        self._room -= len(address)
        self._link = len(self.out) + 1, address
        return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">', "</a>"

    def _name(self, start: int, address: str) -> None:
        """End a link; one in which nothing can be seen says where it leads."""
        shown = _TAG.sub("", "".join(self.out[start:]))
        if not any(sign.isprintable() and not sign.isspace() for sign in shown):
            self.out.append(str(escape(address)))
        self._link = None

    def _heading(self, level: str) -> str:
        """The tag of a heading: below the page's own h1, and one deeper than the one above it at most."""
        while self._headings and self._headings[-1] >= level:
            self._headings.pop()
        self._headings.append(level)
        return f"h{min(len(self._headings) + 1, 6)}"

    def _end(self, tag: str | Mapping[str, Any]) -> None:
        name = tag if isinstance(tag, str) else next(iter(tag))
        last = self._open.pop() if self._open else ""
        if self._link and "</a>" in last:
            self._name(*self._link)
        self.out.append(last)
        self._depth -= name in ("List", "Item", "BlockQuote")
        if name == "TableHead":
            self._in_head = False


def safe_address(target: str, base: str = "") -> str | None:
    """Where a link leads, if that is on the web or to a person."""
    cleaned = "".join(each for each in target if each.isprintable() and not each.isspace())
    try:
        address = urljoin(base, cleaned) if base.startswith(("http://", "https://")) else cleaned
    except ValueError:
        return None
    return address if address.lower().startswith(SCHEMES) else None
