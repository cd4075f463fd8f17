"""What finders are shown of a page, and what they find; words of a page, cheaply."""

import re
from collections.abc import Mapping
from html import unescape
from types import MappingProxyType
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.extract.decode import storable
from afresh.extract.html.head import Head, one_line
from afresh.extract.links import LONGEST_TEXT

MOST_SCRIPTS = 200  # of a page
MOST_NODES = 60  # that are looked at for the text of one element: elements nest, and so would the work

_UNSEEN = ("", True)
_TAG = re.compile(r"<[^<>]{0,500}>")


class Hidden(NamedTuple):
    """A link as it is written, and the words that stand beside it."""

    raw_url: str
    text: str = ""


class Script(NamedTuple):
    """A script element."""

    attributes: dict[str, str | None]
    node: LexborNode

    @property
    def type(self) -> str:
        """Its media type, or nothing for a program."""
        return (self.attributes.get("type") or "").strip().lower()


class Shown(NamedTuple):
    """A page as finders see it."""

    html: str
    tree: LexborHTMLParser
    head: Head
    host: str  # that the page came from, with its port
    scripts: tuple["Script", ...] = ()
    visible: Mapping[str, tuple[str, bool]] = MappingProxyType({})  # its links as they are written, with text

    def shows(self, raw_url: str) -> bool:
        """Whether a visible link with words is written just so."""
        return self.visible.get(raw_url, _UNSEEN)[0] != ""


def scripts_of(tree: LexborHTMLParser) -> tuple[Script, ...]:
    """The scripts of a page, not too many of them."""
    return tuple([Script(node.attributes, node) for node in tree.tags("script")[:MOST_SCRIPTS]])


def told(text: str) -> str:
    """A text of a program as a reader would see it: one line without markup, not too long."""
    text = text[: 4 * LONGEST_TEXT]
    if "&" in text or "<" in text:
        text = unescape(_TAG.sub(" ", text))
    return one_line(storable(text))[:LONGEST_TEXT].rstrip()


def words_of(node: LexborNode) -> str:
    """The visible text of an element, as far as a few nodes show it, else what its attributes say."""
    pieces, length, waiting, seen = [], 0, [node.first_child], 0
    while waiting and seen < MOST_NODES and length < LONGEST_TEXT:
        here = waiting.pop()
        if here is None:
            continue
        seen += 1
        waiting.append(here.next)
        if here.tag == "-text":
            piece = one_line(here.text_content or "")
            pieces.append(piece)
            length += len(piece)
        elif here.tag not in ("script", "style", "template"):
            waiting.append(here.first_child)
    shown = one_line(" ".join(pieces)) or one_line(_spoken(node))
    return shown[:LONGEST_TEXT].rstrip()


def _spoken(node: LexborNode) -> str:
    attributes = node.attributes
    return attributes.get("aria-label") or attributes.get("title") or attributes.get("value") or ""
