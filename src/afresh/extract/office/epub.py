"""Convert EPUB to a document: the chapters in reading order, each converted as an HTML page."""

import re
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote

from afresh.errors import ExtractError
from afresh.extract.html.html import extract_html
from afresh.extract.markdown import MOST_CHARS, joined, written
from afresh.extract.office.package import ZipReader, attribute, parse_xml
from afresh.model.fetch import Body, Document

MOST_CHAPTERS = 2_000
INSIDE = "https://inside.invalid/"  # base URL of chapters during conversion, different from all real URLs

_PAGES = frozenset({"application/xhtml+xml", "text/html"})
_INNER_LINK = re.compile(rf"!?\[((?:[^\[\]\\]|\\.)*)\]\(<?{re.escape(INSIDE)}[^\s()]*(?:\([^()\s]*\)[^\s()]*)*\)")


def extract_epub(body: Body) -> Document:
    zipped = ZipReader(body.data)
    path = _package_path(zipped)
    root = parse_xml(zipped.read(path), mend=True)
    chapters = _chapters(zipped, root, dirname(path))
    if set(chapters) & _encrypted(zipped):
        raise ExtractError("the book is encrypted and cannot be read")
    texts: list[str] = []
    size = 0
    for name in chapters[:MOST_CHAPTERS]:
        page = Body(url=INSIDE + name, data=zipped.read(name), media_type="application/xhtml+xml")
        texts.append(_INNER_LINK.sub(r"\1", extract_html(page).markdown))
        size += len(texts[-1])
        if size > MOST_CHARS:
            break
    if len(chapters) > MOST_CHAPTERS:
        texts.append(f"(cut after {MOST_CHAPTERS:,} chapters)")
    if not size:
        raise ExtractError("the book has no text")
    return written(body, joined(texts), _metadata(root, "title"), _metadata(root, "language") or None)


def _chapters(zipped: ZipReader, root: Any, folder: str) -> list[str]:
    pages = {
        attribute(item, "id"): normpath(join(folder, unquote(attribute(item, "href").partition("#")[0])))
        for item in root.iterfind("{*}manifest/{*}item")
        if attribute(item, "media-type") in _PAGES
    }
    spine = [attribute(item, "idref") for item in root.iterfind("{*}spine/{*}itemref")]
    chapters = [pages[item] for item in dict.fromkeys(spine) if pages.get(item, "") in zipped]
    if not chapters:
        raise ExtractError("the book has no chapters")
    return chapters


def _package_path(zipped: ZipReader) -> str:
    root = parse_xml(zipped.read("META-INF/container.xml"), mend=True)
    for each in root.iter("{*}rootfile"):
        path = normpath(attribute(each, "full-path"))
        if path in zipped:
            return path
    raise ExtractError("the book has no package file with the list of its chapters")


def _metadata(root: Any, name: str) -> str:
    found = (each.text for metadata in root.iterfind("{*}metadata") for each in metadata.iter(f"{{*}}{name}"))
    return next((text.strip() for text in found if text and text.strip()), "")


def _encrypted(zipped: ZipReader) -> set[str]:
    """Return the names of encrypted files of a book, which are often only fonts."""
    name = "META-INF/encryption.xml"
    if name not in zipped:
        return set()
    root = parse_xml(zipped.read(name), mend=True)
    return {normpath(unquote(attribute(each, "URI"))) for each in root.iter("{*}CipherReference")}
