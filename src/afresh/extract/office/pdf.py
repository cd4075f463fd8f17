"""Convert PDF to a document; recognise headings, paragraphs, lists and code by size, position and font."""

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import dropwhile, groupby, islice, pairwise, takewhile
from math import hypot
from statistics import median
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw as pdfium

from afresh.errors import ExtractError
from afresh.extract.html.head import one_line
from afresh.extract.links import MAX_LINKS
from afresh.extract.markdown import MOST_CHARS, fenced, heading, joined, plain, written
from afresh.model.fetch import Body, Document
from afresh.text.quantities import count

LARGER = 1.15  # a line with this ratio to the usual text size is a heading
MAX_HEADING_CHARS = 160
MOST_LEVELS = 5
FEWEST_IN_OUTLINE = 3
FEWEST_REPEATS = 3  # a line that begins or ends so many pages is a page header or footer
LOOSER = 1.3  # a distance with this ratio to the usual line distance begins a paragraph
MORE_HEADINGS = 0.3  # if more of the lines are large, size does not indicate headings

_BULLET = re.compile(r"[•◦▪●‣∙⁃■□–]\s*(?=\S)")
_LEADERS = re.compile(r"(?<!\s)(?:\s*+[.·…]){4,}+\s*+")
_PAGE_NUMBER = re.compile(r"(?:page\s+)?(?:\d{1,4}|[ivxlc]{1,8})(?:\s*(?:/|of)\s*\d{1,4})?|[-–]\s*\d{1,4}\s*[-–]", re.I)
_END_NUMBERS = re.compile(r"^\d{1,4}(?=\s)|(?<=\s)\d{1,4}$")
_DIGITS = re.compile(r"\d+")
_NOT_ALPHABETIC = re.compile(r"[\W\d_]+")
_ENDED = (".", "!", "?", ":", "。", "！", "？")

Outline = Mapping[tuple[int, str], int]  # (page, letters of a title) → heading level


class PdfLine(NamedTuple):
    text: str
    page: int
    size: float = 10.0
    left: float = 0.0
    base: float = 0.0  # height of the baseline above the bottom of the page
    foot: float = 0.0  # the same at the end of the line, which differs if hyphenation joined two lines
    fixed: bool = False  # has a monospaced font


def letters(text: str) -> str:
    """Return the letters of a title in lower case, to compare titles with different spellings."""
    return _NOT_ALPHABETIC.sub("", text).casefold()


def markdown_of(lines: Sequence[PdfLine], outline: Outline) -> str:
    kept = _without_margins(lines)
    named = dict(_by_outline(kept, outline))
    levels = named if len(named) >= FEWEST_IN_OUTLINE else _by_size(kept)
    steps = [one.foot - other.base for one, other in pairwise(kept) if one.page == other.page]
    pitch = median([step for step in steps if step > 0] or [12.0])  # the usual line distance
    return joined(_blocks(kept, levels, pitch))


def title_in(lines: Sequence[PdfLine]) -> str:
    """Return the text in the largest font on the first page if it is a heading, else ""."""
    first = [line for line in lines if line.page == lines[0].page and _may_head(line)][:30]
    largest = max((line.size for line in first), default=0.0)
    if not first or largest <= median(line.size for line in lines) * LARGER:
        return ""
    following = dropwhile(lambda line: line.size != largest, first)
    return " ".join([line.text for line in takewhile(lambda line: line.size == largest, following)])


def _without_margins(lines: Sequence[PdfLine]) -> list[PdfLine]:
    pages = [list(group) for _, group in groupby(lines, key=lambda line: line.page)]
    edges = [[at for at in {0, 1, len(page) - 2, len(page) - 1} if 0 <= at < len(page)] for page in pages]
    repeated: Counter[str] = Counter()
    counted: Counter[int] = Counter()
    for page, edge in zip(pages, edges, strict=True):
        repeated.update({_DIGITS.sub("", page[at].text) for at in edge})
        counted.update({shift for at in edge for shift in _shifts(page[at])})
    often = max(FEWEST_REPEATS, len(pages) // 4)
    usual = {shift for shift, times in counted.most_common(1) if times >= often}

    def is_margin(line: PdfLine) -> bool:
        same = repeated[_DIGITS.sub("", line.text)] >= often
        return same or bool(_PAGE_NUMBER.fullmatch(line.text)) or not usual.isdisjoint(_shifts(line))

    kept: list[PdfLine] = []
    for page in pages:
        above = len(list(takewhile(is_margin, page[:2])))
        below = len(list(takewhile(is_margin, reversed(page[max(above, len(page) - 2) :]))))
        kept += page[above : len(page) - below]
    return kept


def _shifts(line: PdfLine) -> Iterator[int]:
    """Yield the numbers at the ends of a line, minus the page index: page numbers give the same result on all pages."""
    for number in _END_NUMBERS.findall(line.text):
        yield int(number) - line.page


def _by_outline(lines: Sequence[PdfLine], outline: Outline) -> Iterator[tuple[int, int]]:
    """Yield the index and level of each line that is a heading according to the file's outline."""
    left = dict(outline)
    for at, line in enumerate(lines):
        key = (line.page, letters(line.text))
        if key in left:
            yield at, left.pop(key)
        elif at + 1 < len(lines) and len(line.text) < MAX_HEADING_CHARS:
            whole = (line.page, letters(line.text + lines[at + 1].text))
            if key[1] and whole in left:
                level = left.pop(whole)
                yield at, level
                yield at + 1, level


def _by_size(lines: Sequence[PdfLine]) -> dict[int, int]:
    amounts: Counter[float] = Counter()
    for line in lines:
        amounts[line.size] += len(line.text)
    usual = max(amounts, key=lambda size: amounts[size], default=0.0)
    large = [at for at, line in enumerate(lines) if line.size > usual * LARGER and _may_head(line)]
    if len(large) > len(lines) * MORE_HEADINGS and len(lines) > 20:
        return {}
    sizes = sorted({lines[at].size for at in large}, reverse=True)
    return {at: min(sizes.index(lines[at].size) + 1, MOST_LEVELS) for at in large}


def _may_head(line: PdfLine) -> bool:
    return len(line.text) <= MAX_HEADING_CHARS and not line.fixed and bool(letters(line.text))


def _blocks(lines: Sequence[PdfLine], levels: Mapping[int, int], pitch: float) -> Iterator[str]:
    open_lines: list[PdfLine] = []
    for at, line in enumerate(lines):
        if open_lines and not _goes_on(open_lines[-1], line, levels.get(at - 1), levels.get(at), pitch):
            yield _block(open_lines, levels.get(at - 1))
            open_lines = []
        open_lines.append(line)
    if open_lines:
        yield _block(open_lines, levels.get(len(lines) - 1))


def _goes_on(before: PdfLine, line: PdfLine, level_before: int | None, level: int | None, pitch: float) -> bool:
    if level_before != level or before.fixed != line.fixed:
        return False
    if line.fixed:
        return True
    step = before.foot - line.base
    flows = before.page == line.page and step >= 0
    if level is not None:
        return flows and step < 2.5 * line.size
    if _BULLET.match(line.text):
        return False
    if flows:
        return step <= max(pitch, line.size) * LOOSER
    return line.text[:1].islower() and not before.text.endswith(_ENDED)


def _block(lines: Sequence[PdfLine], level: int | None) -> str:
    if lines[0].fixed:  # code, whose indents are estimated from the left edges
        edge, width = min(line.left for line in lines), max(lines[0].size * 0.6, 1.0)
        indents = [" " * min(round((line.left - edge) / width), 40) for line in lines]
        return fenced("\n".join([indent + line.text for indent, line in zip(indents, lines, strict=True)]))
    text = _LEADERS.sub(" … ", " ".join(line.text for line in lines)).strip()
    if level is not None:
        return heading(level, text)
    bullet = _BULLET.match(text)
    return f"- {text[bullet.end() :]}" if bullet else plain(text)


MOST_PAGES = 2_000
MOST_PAGE_CHARS = 200_000
MOST_TITLES = 5_000  # titles of the outline that are read
MAX_URL_CHARS = 2_000
LARGEST_SIZE = 1_000  # font size in points; larger values are invalid

_FIXED_FONT = re.compile(r"mono|courier|consol|typewriter|cmtt|menlo|inconsolata|code", re.IGNORECASE)
_FIXED_FLAG = 1
_NO_TITLE = re.compile(
    r"\(?(?:untitled|anonymous|unspecified)\)?.{,20}|.*\.(?:docx?|tex|dvi|indd|pptx?|xlsx?|qxd|pdf|html?)",
    re.IGNORECASE,
)
_WRITERS = re.compile(r"^Microsoft (?:Word|PowerPoint) - ")
_SOFT_HYPHENS = re.compile("[\u00ad\u0002\ufffe]")


def extract_pdf(body: Body) -> Document:
    try:
        with closing(pypdfium2.PdfDocument(body.data)) as pdf:
            return _document(body, pdf)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD:
            raise ExtractError("the PDF is encrypted: it cannot be read without its password") from error
        raise ExtractError("the PDF is broken") from error


def _document(body: Body, pdf: Any) -> Document:
    lines, links, note = _read(pdf)
    markdown = markdown_of(lines, _outline(pdf))
    if not letters(markdown):
        raise ExtractError("the PDF has no text: its pages are images or empty")
    title = _WRITERS.sub("", one_line(pdf.get_metadata_value("Title")))
    title = title_in(lines) if not title or _NO_TITLE.fullmatch(title) else title
    if not title and not markdown.startswith("# ") and "\n# " not in markdown:
        title = lines[0].text
    return written(body, joined([markdown, note]), title, _language(pdf), links=links.items())


def _read(pdf: Any) -> tuple[list[PdfLine], dict[str, str], str]:
    """Return the lines and links of all pages, and a note if the text was cut or pages are unreadable."""
    lines: list[PdfLine] = []
    links: dict[str, str] = {}
    size = broken = 0
    for number in range(len(pdf)):
        if number >= MOST_PAGES or size > MOST_CHARS:
            return lines, links, f"(cut after {count(number, 'page')})"
        try:
            with closing(pdf[number]) as page, closing(page.get_textpage()) as text:
                chars = min(text.count_chars(), MOST_PAGE_CHARS)
                words = text.get_text_range(0, chars) if chars > 0 else ""
                at = 0
                for raw in words.split("\r\n"):
                    if text_line := one_line(_SOFT_HYPHENS.sub("", raw)):
                        lines.append(_line(text, raw, at, text_line, number))
                    at += len(raw) + 2
                if len(links) < MAX_LINKS:
                    links.update(_links(pdf, page, text))
                size += len(words)
        except pypdfium2.PdfiumError:
            broken += 1
    return lines, links, f"({count(broken, 'page')} could not be read)" if broken else ""


def _line(text: Any, raw: str, start: int, text_line: str, page: int) -> PdfLine:
    """Return `text_line` with its size, position and font; the PDF has it as `raw`, at index `start` of `text`."""
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
    return PdfLine(text_line, page, size, left, base, _origin(text, last)[1], fixed)


def _origin(text: Any, at: int) -> tuple[float, float]:
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(text, at, x, y)
    return x.value, y.value


def _is_fixed(text: Any, at: int) -> bool:
    name, flags = ctypes.create_string_buffer(128), ctypes.c_int()
    pdfium.FPDFText_GetFontInfo(text, at, name, len(name), flags)
    return bool(flags.value & _FIXED_FLAG) or bool(_FIXED_FONT.search(name.value.decode("latin-1")))


def _links(pdf: Any, page: Any, text: Any) -> Iterator[tuple[str, str]]:
    place, link, box = ctypes.c_int(0), pdfium.FPDF_LINK(), pdfium.FS_RECTF()
    for _ in range(MAX_LINKS):
        if not pdfium.FPDFLink_Enumerate(page, place, link):
            return
        action = pdfium.FPDFLink_GetAction(link)
        if not action or pdfium.FPDFAction_GetType(action) != pdfium.PDFACTION_URI:
            continue
        url = ctypes.create_string_buffer(MAX_URL_CHARS)
        if not 0 < pdfium.FPDFAction_GetURIPath(pdf, action, url, MAX_URL_CHARS) <= MAX_URL_CHARS:
            continue
        pdfium.FPDFLink_GetAnnotRect(link, box)
        words = text.get_text_bounded(box.left, box.bottom, box.right, box.top)
        yield url.value.decode("utf-8", "replace"), words


def _outline(pdf: Any) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    with suppress(pypdfium2.PdfiumError):
        for item in islice(pdf.get_toc(max_depth=6), MOST_TITLES):
            target = item.get_dest()
            page = target.get_index() if target is not None else None
            if page is not None:
                found.setdefault((page, letters(item.get_title())), item.level + 1)
    return found


def _language(pdf: Any) -> str | None:
    tag = (ctypes.c_ushort * 32)()
    size = pdfium.FPDFCatalog_GetLanguage(pdf, tag, 32)
    return "".join([chr(unit) for unit in tag[: max(size // 2 - 1, 0)]]) or None
