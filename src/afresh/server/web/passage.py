"""A passage that was found, as quiet text: no signs of Markdown, and what was looked for is marked."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from afresh.search.highlight import CLOSE, OPEN
from afresh.server.web.rendered import Writer
from afresh.text.plain import dedent_lists

LONGEST = 20_000  # characters; a page shows the first lines
_RULE = frozenset("|-: \t")


def passage(text: str) -> Markup:
    """The HTML of a passage whose matched words stand between marks."""
    writer = _Quiet("")
    writer.read(dedent_lists(text[:LONGEST]))
    return Markup("".join(writer.out))  # noqa: S704 - every text went through escape


class _Quiet(Writer):
    """Shows headings as bold lines, links and pictures as their words, and rows of a cut table as lines."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self._marking = False  # a mark that goes on behind the next tag
        self._at_start = True  # of a line
        self._in_row = False

    def hear(self, event: str | Mapping[str, Any]) -> None:
        """Take the next event of the parser."""
        match event:
            case "SoftBreak" | {"Start": "Paragraph"}:
                self._at_start, self._in_row = True, False
            case {"Start": _}:
                self._at_start = self._in_row = False
        super().hear(event)

    def text(self, text: str) -> str:
        """A text with its marks, each closed where the text ends."""
        pieces = [OPEN] if self._marking else []
        for sign in self._as_row(text):
            if sign == OPEN or (sign == CLOSE and self._marking):
                pieces += [sign] if self._marking is (sign == CLOSE) else []
                self._marking = sign == OPEN
            elif sign != CLOSE:
                pieces.append(sign)
        pieces += [CLOSE] if self._marking else []
        shown = str(escape("".join(pieces)))
        return shown.replace(OPEN, "<mark>").replace(CLOSE, "</mark>")

    def _as_row(self, text: str) -> str:
        """A line of a table without its head, by dots instead of bars."""
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
        """How a thing begins and ends."""
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
