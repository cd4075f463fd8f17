"""Which extractor reads a body: by its media type, else by its name, else by its bytes."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from afresh.errors import ExtractError
from afresh.extract.code.names import ENDINGS
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.similarity import sketch_of
from afresh.urls.scope import WHOLE_SITE

if TYPE_CHECKING:
    from afresh.ports import Extractor

SNIFFED_BYTES = 1_024

VERSION = recipe.READING


class Format(NamedTuple):
    """One format that is read; a row of the table below."""

    name: str  # as reasons call it
    reader: str  # module and class below `afresh.extract`, imported when first needed
    media: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # endings such as `.md`, or whole names such as `makefile`, in lower case
    magic: bytes = b""  # how each file of a binary format begins; text has none
    member: str = ""  # of a ZIP file: a folder or file in it that tells what it is


_ZIP = b"PK\x03\x04"
_PDF = b"%PDF-"  # somewhere in the first bytes: some writers put a line before it
_OFFICE = "application/vnd.openxmlformats-officedocument"
_HTML = Format(
    "HTML", "html.html:HtmlExtractor", ("text/html", "application/xhtml+xml"), (".html", ".htm", ".xhtml")
)
_TEXT = Format("text", "text:TextExtractor", (), (".txt", ".text"))

# The order matters only for ZIP files that nothing names: the first whose member is there reads them.
FORMATS = (
    _HTML,
    Format(
        "Markdown",
        "markdown:MarkdownExtractor",
        ("text/markdown", "text/x-markdown"),
        (".md", ".markdown", "llms.txt", WHOLE_SITE.strip("/")),
    ),
    Format("MDX", "mdx:MdxExtractor", ("text/mdx",), (".mdx",)),
    Format(
        "reStructuredText",
        "markup.rst:RstExtractor",
        ("text/x-rst", "text/prs.fallenstein.rst"),
        (".rst", ".rest"),
    ),
    Format(
        "AsciiDoc", "markup.asciidoc:AsciidocExtractor", ("text/asciidoc",), (".adoc", ".asciidoc", ".asc")
    ),
    _TEXT,
    Format("PDF", "office.pdf:PdfExtractor", ("application/pdf", "application/x-pdf"), (".pdf",), _PDF),
    Format(
        "DOCX",
        "office.docx:DocxExtractor",
        (f"{_OFFICE}.wordprocessingml.document", "application/vnd.ms-word.document.macroenabled.12"),
        (".docx", ".docm", ".dotx"),
        _ZIP,
        "word/",
    ),
    Format(
        "PPTX",
        "office.pptx:PptxExtractor",
        (f"{_OFFICE}.presentationml.presentation", f"{_OFFICE}.presentationml.slideshow"),
        (".pptx", ".pptm", ".ppsx"),
        _ZIP,
        "ppt/",
    ),
    Format(
        "XLSX",
        "office.xlsx:XlsxExtractor",
        (f"{_OFFICE}.spreadsheetml.sheet", "application/vnd.ms-excel.sheet.macroenabled.12"),
        (".xlsx", ".xlsm"),
        _ZIP,
        "xl/",
    ),
    Format(
        "EPUB",
        "office.epub:EpubExtractor",
        ("application/epub+zip",),
        (".epub",),
        _ZIP,
        "META-INF/container.xml",
    ),
    Format("notebook", "data.notebook:NotebookExtractor", ("application/x-ipynb+json",), (".ipynb",)),
    Format("JSON", "data.data:JsonExtractor", ("application/json", "text/json"), (".json", ".webmanifest")),
    Format(
        "YAML",
        "data.data:YamlExtractor",
        ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml"),
        (".yaml", ".yml"),
    ),
    Format("code", "code.code:CodeExtractor", (), ENDINGS),
)

# What says nothing, or just what a server calls everything it does not know.
_VAGUE_TYPES = frozenset(
    [
        "",
        "application/octet-stream",
        "application/unknown",
        "application/x-zip-compressed",
        "application/zip",
        "binary/octet-stream",
        "text/plain",
    ]
)

_MARKUP = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|title|meta|script|div|h1|p|a|table)"
    rb"(?=[\s>/])",
    re.IGNORECASE | re.DOTALL,
)
_SIGNATURES = (
    (b"%PDF-", "PDF"),
    (b"\x89PNG", "a PNG image"),
    (b"GIF8", "a GIF image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"PK\x03\x04", "a ZIP archive or office file"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted office file"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"),
    (b"RIFF", "a media file"),
    (b"OggS", "a media file"),
    (b"ID3", "a media file"),
)
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTROL = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0C, 0x0D, 0x1B})


def extract(body: Body, *, hidden_links: bool = True) -> Document:
    """The document of a body, read by the extractor that fits; ExtractError says why none does."""
    chosen = choose(body)
    _refuse_another(chosen, body)
    document = _reader(chosen.reader, hidden_links or chosen is not _HTML).extract(body)
    return replace(document, sketch=sketch_of(document.markdown, body.url))


def extract_visible(body: Body) -> Document:
    """The document of a body with the links that it shows, and no hidden ones."""
    return extract(body, hidden_links=False)


def choose(body: Body) -> Format:
    """The format of a body: as its media type says, else as its name ends, else as its bytes look."""
    media = body.media_type
    told = _by_media().get(media) or _by_suffix_of(media)
    if told is not None:
        return told
    return _by_name(body.url) or _by_look(body, media)


def _by_look(body: Body, media: str) -> Format:
    head = body.data[:SNIFFED_BYTES]
    found = next(
        (each for each in FORMATS if each.magic and not each.member and head.startswith(each.magic)), None
    )
    if head.startswith(_ZIP):
        found = _by_member(body.data) or found
    if found is not None:
        return found
    binary = _binary(head)
    if binary is not None:
        raise ExtractError(f"unknown binary ({media if media not in _VAGUE_TYPES else binary})")
    if media not in _VAGUE_TYPES:
        raise ExtractError(f"media type {media} is not text that afresh reads")
    is_page = media != "text/plain" and _MARKUP.match(head.removeprefix(b"\xef\xbb\xbf"))
    return _HTML if is_page else _TEXT


def _by_member(data: bytes) -> Format | None:
    """The format of a ZIP file, by what is in it."""
    from afresh.extract.zip import Zipped

    names = [member.name for member in Zipped(data).members]
    told = (each for each in FORMATS if each.member)
    return next((each for each in told if any(name.startswith(each.member) for name in names)), None)


def _by_name(url: str) -> Format | None:
    name = url.partition("?")[0].partition("#")[0].rpartition("/")[2].lower()
    _, *endings = name.rsplit(".", 2)
    known = _by_ending()
    for ending in (name, *("." + ".".join(endings[at:]) for at in range(len(endings)))):
        if ending in known:
            return known[ending]
    return None


def _by_suffix_of(media: str) -> Format | None:
    """What `application/problem+json` says of itself."""
    _, plus, family = media.rpartition("+")
    return _by_media().get(f"application/{family}") if plus and family in ("json", "yaml") else None


@cache
def _by_media() -> dict[str, Format]:
    return {media: each for each in FORMATS for media in each.media}


@cache
def _by_ending() -> dict[str, Format]:
    return {name: each for each in FORMATS for name in each.names}


@cache
def _reader(where: str, hidden_links: bool = True) -> "Extractor":
    module, _, name = where.partition(":")
    made = cast("Callable[..., Extractor]", getattr(import_module(f"afresh.extract.{module}"), name))
    return made() if hidden_links else made(hidden_links=False)


def _refuse_another(chosen: Format, body: Body) -> None:
    """Refuse a body that is plainly something else than it is called."""
    head = body.data[:SNIFFED_BYTES]
    magic = chosen.magic
    if magic and magic in (head if magic == _PDF else head[: len(magic)]):
        return
    binary = _binary(head)
    name = body.url.partition("?")[0].rpartition("/")[2]
    called = f"sent as {body.media_type}" if body.media_type else f"called {name[:100]}"
    if magic:
        raise ExtractError(f"{called}, but the body is {binary or 'text'} and no {chosen.name}")
    if binary is not None:
        raise ExtractError(f"{called}, but the body is {binary}")


def _binary(head: bytes) -> str | None:
    """What a body is that is no text."""
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    if head.startswith(_WIDE_MARKS):
        return None
    odd = len(head) - len(head.translate(None, _CONTROL))
    return "binary data" if odd * 10 > len(head) else None
