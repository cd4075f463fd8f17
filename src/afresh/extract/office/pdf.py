"""PDF to a document: read by PDFium, page by page, within limits."""

import ctypes
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from math import hypot
from typing import Any

from afresh.errors import ExtractError
from afresh.extract.html.head import one_line
from afresh.extract.links import MOST_LINKS
from afresh.extract.office.pdf_lines import Line, letters, markdown_of, title_in
from afresh.extract.written import MOST_CHARS, joined, written
from afresh.model import recipe
from afresh.model.fetch import Body, Document
from afresh.text.wording import count

MOST_PAGES = 2_000
MOST_PAGE_CHARS = 200_000
MOST_TITLES = 5_000  # of the outline
LONGEST_URL = 2_000
LARGEST_SIZE = 1_000  # of a letter, in points

_FIXED_FONT = re.compile(r"mono|courier|consol|typewriter|cmtt|menlo|inconsolata|code", re.IGNORECASE)
_FIXED_FLAG = 1
_NO_TITLE = re.compile(
    r"\(?(?:untitled|anonymous|unspecified)\)?.{,20}|.*\.(?:docx?|tex|dvi|indd|pptx?|xlsx?|qxd|pdf|html?)",
    re.IGNORECASE,
)
_WRITERS = re.compile(r"^Microsoft (?:Word|PowerPoint) - ")
_SOFT_HYPHENS = re.compile("[\u00ad\u0002\ufffe]")


class PdfExtractor:
    """Reads PDF files."""

    version = recipe.PDF

    def extract(self, body: Body) -> Document:
        """The document of a PDF body."""
        import pypdfium2

        try:
            with closing(pypdfium2.PdfDocument(body.data)) as pdf:
                return _document(body, pdf)
        except pypdfium2.PdfiumError as error:
            if getattr(error, "err_code", None) == pypdfium2.raw.FPDF_ERR_PASSWORD:
                raise ExtractError("an encrypted PDF: it cannot be read without its password") from error
            raise ExtractError("a broken PDF") from error


def _document(body: Body, pdf: Any) -> Document:
    reading = _Reading(pdf)
    note = reading.read()
    markdown = markdown_of(reading.lines, _outline(pdf))
    if not letters(markdown):
        raise ExtractError("a PDF without text: its pages are pictures or empty")
    title = _title(pdf.get_metadata_value("Title")) or title_in(reading.lines)
    if not title and not markdown.startswith("# ") and "\n# " not in markdown:
        title = reading.lines[0].text
    return written(body, joined([markdown, note]), title, _language(pdf), links=reading.links.items())


class _Reading:
    """The lines and links of a file, gathered page by page."""

    def __init__(self, pdf: Any) -> None:
        self._pdf = pdf
        self.lines: list[Line] = []
        self.links: dict[str, str] = {}

    def read(self) -> str:
        """Read all pages; what is returned says where the file was cut."""
        import pypdfium2

        size = broken = 0
        for number in range(len(self._pdf)):
            if number >= MOST_PAGES or size > MOST_CHARS:
                return f"(cut after {count(number, 'page')})"
            try:
                with closing(self._pdf[number]) as page, closing(page.get_textpage()) as text:
                    size += self._page(number, page, text)
            except pypdfium2.PdfiumError:
                broken += 1
        return f"({count(broken, 'page')} could not be read)" if broken else ""

    def _page(self, number: int, page: Any, text: Any) -> int:
        chars = min(text.count_chars(), MOST_PAGE_CHARS)
        words = text.get_text_range(0, chars) if chars > 0 else ""
        at = 0
        for raw in words.split("\r\n"):
            shown = one_line(_SOFT_HYPHENS.sub("", raw))
            if shown:
                self.lines.append(_line(text, raw, at, shown, number))
            at += len(raw) + 2
        if len(self.links) < MOST_LINKS:
            self.links.update(_links(self._pdf, page, text))
        return len(words)


def _line(text: Any, raw: str, start: int, shown: str, page: int) -> Line:
    """A line with how it is set, as some of its letters show."""
    from pypdfium2 import raw as pdfium

    first = start + len(raw) - len(raw.lstrip())
    last = start + len(raw.rstrip()) - 1
    middle = next((at for at in range((first + last) // 2, last) if not raw[at - start].isspace()), first)
    left, base = _origin(text, first)
    matrix = pdfium.FS_MATRIX()
    size = pdfium.FPDFText_GetFontSize(text, middle)
    if pdfium.FPDFText_GetMatrix(text, middle, matrix):
        size *= hypot(matrix.b, matrix.d)
    fixed = all(_is_fixed(text, at) for at in (first, middle, last))
    size = round(2 * size) / 2 if size < LARGEST_SIZE else 0.0
    return Line(shown, page, size, left, base, _origin(text, last)[1], fixed)


def _origin(text: Any, at: int) -> tuple[float, float]:
    """Where a letter stands."""
    from pypdfium2 import raw as pdfium

    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(text, at, x, y)
    return x.value, y.value


def _is_fixed(text: Any, at: int) -> bool:
    from pypdfium2 import raw as pdfium

    name, flags = ctypes.create_string_buffer(128), ctypes.c_int()
    pdfium.FPDFText_GetFontInfo(text, at, name, len(name), flags)
    return bool(flags.value & _FIXED_FLAG) or bool(_FIXED_FONT.search(name.value.decode("latin-1")))


def _links(pdf: Any, page: Any, text: Any) -> Iterator[tuple[str, str]]:
    """The addresses that a page links to, with the words that stand there."""
    from pypdfium2 import raw as pdfium

    place, link, box = ctypes.c_int(0), pdfium.FPDF_LINK(), pdfium.FS_RECTF()
    for _ in range(MOST_LINKS):
        if not pdfium.FPDFLink_Enumerate(page, place, link):
            return
        action = pdfium.FPDFLink_GetAction(link)
        if not action or pdfium.FPDFAction_GetType(action) != pdfium.PDFACTION_URI:
            continue
        url = ctypes.create_string_buffer(LONGEST_URL)
        if not 0 < pdfium.FPDFAction_GetURIPath(pdf, action, url, LONGEST_URL) <= LONGEST_URL:
            continue
        pdfium.FPDFLink_GetAnnotRect(link, box)
        yield (
            url.value.decode("utf-8", "replace"),
            text.get_text_bounded(box.left, box.bottom, box.right, box.top),
        )


def _outline(pdf: Any) -> dict[tuple[int, str], int]:
    """The outline of the file: on which page which heading stands, and how deep."""
    import pypdfium2

    found: dict[tuple[int, str], int] = {}
    try:
        for item in islice(pdf.get_toc(max_depth=6), MOST_TITLES):
            target = item.get_dest()
            page = target.get_index() if target is not None else None
            if page is not None:
                found.setdefault((page, letters(item.get_title())), item.level + 1)
    except pypdfium2.PdfiumError:
        pass
    return found


def _title(told: str) -> str:
    title = _WRITERS.sub("", one_line(told))
    return "" if _NO_TITLE.fullmatch(title) else title


def _language(pdf: Any) -> str | None:
    from pypdfium2 import raw as pdfium

    tag = (ctypes.c_ushort * 32)()
    size = pdfium.FPDFCatalog_GetLanguage(pdf, tag, 32)
    return "".join([chr(unit) for unit in tag[: max(size // 2 - 1, 0)]]) or None
