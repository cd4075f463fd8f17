"""Which extractor reads a body: by media type, checked against its first bytes."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from afresh.core.errors import ExtractError
from afresh.core.looks import Body, Document
from afresh.core.scope import WHOLE_SITE
from afresh.core.sketch import sketch_of
from afresh.extractors.html import HtmlExtractor
from afresh.extractors.markdown import MarkdownExtractor
from afresh.extractors.text import TextExtractor

if TYPE_CHECKING:
    from afresh.ports import Extractor

SNIFFED_BYTES = 1_024

HTML, MARKDOWN, TEXT = HtmlExtractor(), MarkdownExtractor(), TextExtractor()
VERSION = "+".join(extractor.version for extractor in (HTML, MARKDOWN, TEXT))

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown"})
_TEXT_TYPES = frozenset({"text/plain", "text/x-rst", "text/prs.fallenstein.rst", "text/asciidoc"})
_MARKDOWN_NAMES = (".md", ".markdown", ".mdx", "/llms.txt", WHOLE_SITE)
_UNNAMED_TYPES = frozenset({"", "application/octet-stream", "application/unknown", "binary/octet-stream"})

_MARKUP = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|title|meta|script|div|h1|p|a|table)"
    rb"(?=[\s>/])",
    re.IGNORECASE | re.DOTALL,
)
_SIGNATURES = (
    (b"%PDF-", "PDF"),
    (b"\x89PNG", "a PNG image"),
    (b"GIF8", "a GIF image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"PK\x03\x04", "a ZIP archive or office file"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"),
    (b"RIFF", "a media file"),
    (b"OggS", "a media file"),
    (b"ID3", "a media file"),
)
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTROL = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0C, 0x0D, 0x1B})


def extract(body: Body) -> Document:
    """The document of a body, read by the extractor that fits; ExtractError says why none does."""
    head = body.data[:SNIFFED_BYTES]
    foreign = _foreign(head)
    if foreign is not None:
        raise ExtractError(f"sent as {body.media_type or 'no type'}, but the body is {foreign}")
    document = _extractor(body, head).extract(body)
    return replace(document, sketch=sketch_of(document.markdown, body.url))


def _extractor(body: Body, head: bytes) -> "Extractor":
    media_type = body.media_type
    path = body.url.partition("?")[0].partition("#")[0].lower()
    if media_type in _HTML_TYPES:
        return HTML
    if media_type in _MARKDOWN_TYPES:
        return MARKDOWN
    if media_type in _TEXT_TYPES or media_type in _UNNAMED_TYPES:
        if media_type in _UNNAMED_TYPES and _MARKUP.match(head.removeprefix(b"\xef\xbb\xbf")):
            return HTML
        return MARKDOWN if path.endswith(_MARKDOWN_NAMES) else TEXT
    raise ExtractError(f"media type {media_type} is not text that afresh reads")


def _foreign(head: bytes) -> str | None:
    """What a body is that no extractor reads, whatever type it was sent with."""
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    if head.startswith(_WIDE_MARKS):
        return None
    odd = len(head) - len(head.translate(None, _CONTROL))
    return "binary data" if odd * 10 > len(head) else None
