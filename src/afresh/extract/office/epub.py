"""EPUB to a document: its chapters in reading order, each read as the page of HTML that it is."""

import re
from posixpath import dirname, join, normpath
from typing import Any, NamedTuple
from urllib.parse import unquote

from afresh.errors import ExtractError
from afresh.extract.html.html import HtmlExtractor
from afresh.extract.written import MOST_CHARS, joined, written
from afresh.extract.xml_tree import attribute, name_of, parse_xml
from afresh.extract.zip import Zipped
from afresh.model import recipe
from afresh.model.fetch import Body, Document

MOST_CHAPTERS = 2_000
INSIDE = "https://inside.invalid/"  # where chapters lie while they are read; nothing outside leads there

_PAGES = frozenset({"application/xhtml+xml", "text/html"})
_INNER_LINK = re.compile(
    rf"!?\[((?:[^\[\]\\]|\\.)*)\]\(<?{re.escape(INSIDE)}[^\s()]*(?:\([^()\s]*\)[^\s()]*)*\)"
)


class Book(NamedTuple):
    """What the package of a book says of it."""

    title: str
    language: str
    chapters: list[str]


class EpubExtractor:
    """Reads EPUB books."""

    version = recipe.EPUB

    def extract(self, body: Body) -> Document:
        """The document of an EPUB body."""
        zipped = Zipped(body.data)
        book = _book(zipped)
        if set(book.chapters) & _encrypted(zipped):
            raise ExtractError("encrypted: it cannot be read without its key")
        texts: list[str] = []
        size = 0
        for chapter in book.chapters[:MOST_CHAPTERS]:
            texts.append(_chapter(zipped, chapter))
            size += len(texts[-1])
            if size > MOST_CHARS:
                break
        if len(book.chapters) > MOST_CHAPTERS:
            texts.append(f"(cut after {MOST_CHAPTERS:,} chapters)")
        if not size:
            raise ExtractError("a book without text")
        return written(body, joined(texts), book.title, book.language or None)


def _book(zipped: Zipped) -> Book:
    path = _package_path(zipped)
    root = parse_xml(zipped.read(path), mend=True)
    pages = {
        attribute(item, "id"): normpath(
            join(dirname(path), unquote(attribute(item, "href").partition("#")[0]))
        )
        for item in root.iterfind("{*}manifest/{*}item")
        if attribute(item, "media-type") in _PAGES
    }
    spine = [attribute(item, "idref") for item in root.iterfind("{*}spine/{*}itemref")]
    chapters = [pages[item] for item in dict.fromkeys(spine) if pages.get(item, "") in zipped]
    if not chapters:
        raise ExtractError("a book without chapters")
    return Book(_said(root, "title"), _said(root, "language"), chapters)


def _package_path(zipped: Zipped) -> str:
    root = parse_xml(zipped.read("META-INF/container.xml"), mend=True)
    for each in root.iter("{*}rootfile"):
        path = normpath(attribute(each, "full-path"))
        if path in zipped:
            return path
    raise ExtractError("a book without a list of its chapters")


def _said(root: Any, name: str) -> str:
    for metadata in root.iterfind("{*}metadata"):
        for each in metadata.iter():
            if name_of(each) == name and each.text and each.text.strip():
                return str(each.text).strip()
    return ""


def _encrypted(zipped: Zipped) -> set[str]:
    """The files of a book that only some readers may open; fonts often are among them."""
    name = "META-INF/encryption.xml"
    if name not in zipped:
        return set()
    root = parse_xml(zipped.read(name), mend=True)
    return {normpath(unquote(attribute(each, "URI"))) for each in root.iter("{*}CipherReference")}


def _chapter(zipped: Zipped, name: str) -> str:
    page = Body(url=INSIDE + name, data=zipped.read(name), media_type="application/xhtml+xml")
    return _INNER_LINK.sub(r"\1", HtmlExtractor().extract(page).markdown)
