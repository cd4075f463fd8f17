"""Convert DOCX (headings, paragraphs, lists, tables, code, links) to a document, with tracked changes accepted."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from afresh.extract.markdown import fenced, heading, joined, linked, plain, table, written
from afresh.extract.office.package import OfficePackage, PartRelation, attribute, name_of, number_in
from afresh.model.fetch import Body, Document

DEEPEST = 40  # nesting of elements, such as tables in tables
MOST_DIGITS = 5  # of a heading level or a column span

_HEADING = re.compile(r"heading (\d)")
_CODE = re.compile(r"\bcode\b|preformatted|verbatim|source ?code")
_UNSEEN = frozenset({"del", "moveFrom", "Fallback", "instrText", "delText", "pPr", "rPr", "annotationRef"})


class Style(NamedTuple):
    level: int = 0  # heading level, 0 for other paragraphs
    listed: str = ""  # id of the list that paragraphs with this style belong to
    code: bool = False


def extract_docx(body: Body) -> Document:
    package = OfficePackage(body.data)
    part = package.main("word/document.xml")
    blocks = joined(_Text(package, part).blocks(package.read(part)))
    return written(body, blocks, package.core_property("title"), package.core_property("language") or None)


class _Text:
    def __init__(self, package: OfficePackage, part: str) -> None:
        self._links: dict[str, PartRelation] = package.relations(part)
        self._styles = _styles(package.read_if_there(package.related(part, "styles")))
        self._numbered = _numbered(package.read_if_there(package.related(part, "numbering")))

    def blocks(self, root: Any) -> Iterator[str]:
        """Yield Markdown blocks, in which each list and each run of code lines is one block."""
        for kind, run in groupby(self._pieces(root, 0), key=lambda piece: piece[0]):
            texts = [text for _, text in run]
            if kind in ("list", "code"):
                block = "\n".join(texts)
                texts = [fenced(block) if kind == "code" else block]
            yield from texts

    def _pieces(self, parent: Any, depth: int) -> Iterator[tuple[str, str]]:
        for child in parent if depth < DEEPEST else ():
            match name_of(child):
                case "p":
                    yield self._paragraph(child)
                case "tbl":
                    yield from self._table(child, depth)
                case "body" | "sdt" | "sdtContent" | "ins" | "moveTo" | "customXml" | "smartTag":
                    yield from self._pieces(child, depth + 1)

    def _paragraph(self, paragraph: Any) -> tuple[str, str]:
        properties = paragraph.find("{*}pPr")
        style = self._style(properties)
        text = self._inline(paragraph, 0)
        if not text.strip():
            return "text", ""
        if style.code:
            return "code", text
        if style.level:
            return "heading", heading(style.level, text)
        number, depth = style.listed, 0
        if properties is not None:
            number = attribute(properties.find("{*}numPr/{*}numId"), "val") or number
            depth = number_in(attribute(properties.find("{*}numPr/{*}ilvl"), "val"), MOST_DIGITS) or 0
        if number and number != "0":
            mark = "1." if (number, depth) in self._numbered else "-"
            return "list", f"{'   ' * min(depth, 8)}{mark} {' '.join(text.split())}"
        return "text", plain(text)

    def _style(self, properties: Any | None) -> Style:
        if properties is None:
            return Style()
        named = properties.find("{*}pStyle")
        style = self._styles.get(attribute(named, "val"), Style()) if named is not None else Style()
        level = number_in(attribute(properties.find("{*}outlineLvl"), "val"), MOST_DIGITS)
        return style._replace(level=level + 1) if level is not None and level < 9 else style

    def _table(self, element: Any, depth: int) -> Iterator[tuple[str, str]]:
        rows = element.findall("{*}tr")
        if len(rows) == 1 and len(rows[0].findall("{*}tc")) == 1:  # a table of one cell is a frame around text
            yield from self._pieces(rows[0].find("{*}tc"), depth + 1)
            return
        cells: list[list[str]] = []
        for row in rows:
            cells.append([])
            for cell in row.iterfind("{*}tc"):
                wide = number_in(attribute(cell.find("{*}tcPr/{*}gridSpan"), "val"), MOST_DIGITS)
                text = " ".join([self._inline(each, 0) for each in cell.iter("{*}p")])
                cells[-1] += [text, *[""] * min((wide or 1) - 1, 50)]
        yield "table", table(cells)

    def _inline(self, parent: Any, depth: int) -> str:
        """Return the text of a paragraph, without deleted text and the copies that Word adds for older programs."""
        parts: list[str] = []
        for child in parent if depth < DEEPEST else ():
            match name_of(child):
                case "t":
                    parts.append(child.text or "")
                case "tab":
                    parts.append(" ")
                case "br" | "cr":
                    parts.append("\n")
                case "noBreakHyphen":
                    parts.append("-")
                case "hyperlink":
                    text, relation = self._inline(child, depth + 1), self._links.get(attribute(child, "id"))
                    parts.append(linked(text, relation.target) if relation and relation.external else text)
                case name if name not in _UNSEEN:
                    parts.append(self._inline(child, depth + 1))
        return "".join(parts)


def _styles(root: Any) -> dict[str, Style]:
    found = {}
    for each in root.iterfind("{*}style"):
        name = attribute(each.find("{*}name"), "val").lower()
        level = _HEADING.match(name)
        number = attribute(each.find("{*}pPr/{*}numPr/{*}numId"), "val")
        found[attribute(each, "styleId")] = Style(
            level=int(level[1]) if level else 1 if name == "title" else 0,
            listed=number or ("bullet" if name.startswith("list bullet") else ""),
            code=bool(_CODE.search(name)) and attribute(each, "type") != "character",
        )
    return found


def _numbered(root: Any) -> set[tuple[str, int]]:
    """Return the list ids and depths that have numbered items."""
    counted: dict[str, list[int]] = {}
    for abstract in root.iterfind("{*}abstractNum"):
        levels = []
        for level in abstract.iterfind("{*}lvl"):
            form = level.find("{*}numFmt")
            if form is not None and attribute(form, "val") not in ("bullet", "none"):
                levels.append(number_in(attribute(level, "ilvl"), MOST_DIGITS) or 0)
        counted[attribute(abstract, "abstractNumId")] = levels
    found = set()
    for number in root.iterfind("{*}num"):
        abstract = number.find("{*}abstractNumId")
        for depth in counted.get(attribute(abstract, "val"), []) if abstract is not None else []:
            found.add((attribute(number, "numId"), depth))
    return found
