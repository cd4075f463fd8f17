"""DOCX to a document: headings, paragraphs, lists, tables, code and links of the text as it stands."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from afresh.extract.office.package import Package, Relation
from afresh.extract.written import fenced, heading, joined, linked, plain, table, written
from afresh.extract.xml_tree import attribute, name_of
from afresh.model import recipe
from afresh.model.fetch import Body, Document

DEEPEST = 40  # of tables in tables and the like

_HEADING = re.compile(r"heading (\d)")
_CODE = re.compile(r"\bcode\b|preformatted|verbatim|source ?code")
_UNSEEN = frozenset({"del", "moveFrom", "Fallback", "instrText", "delText", "pPr", "rPr", "annotationRef"})


class Style(NamedTuple):
    """What a paragraph style means for the structure of a text."""

    level: int = 0  # of a heading
    listed: str = ""  # the number of the list it belongs to
    code: bool = False


class DocxExtractor:
    """Reads DOCX files."""

    version = recipe.OFFICE

    def extract(self, body: Body) -> Document:
        """The document of a DOCX body."""
        package = Package(body.data)
        part = package.main("word/document.xml")
        text = _Text(package, part)
        blocks = joined(text.blocks(package.read(part)))
        return written(body, blocks, package.title(), package.language() or None)


class _Text:
    """A text on its way to Markdown."""

    def __init__(self, package: Package, part: str) -> None:
        self._links: dict[str, Relation] = package.relations(part)
        styles = package.related(part, "styles")
        self._styles = _styles(package.read(styles)) if styles else {}
        numbering = package.related(part, "numbering")
        self._numbered = _numbered(package.read(numbering)) if numbering else set()

    def blocks(self, root: Any) -> Iterator[str]:
        """The blocks of Markdown, lists and code as one block each."""
        run: list[str] = []
        kind = ""
        for now, text in self._pieces(root, 0):
            if kind and now != kind:
                yield _closed(kind, run)
                run = []
            kind = now if now in ("list", "code") else ""
            if kind:
                run.append(text)
            else:
                yield text
        yield _closed(kind, run)

    def _pieces(self, parent: Any, depth: int) -> Iterator[tuple[str, str]]:
        for child in parent if depth < DEEPEST else ():
            match name_of(child):
                case "p":
                    yield self._paragraph(child)
                case "tbl":
                    yield from self._table(child, depth)
                case "body" | "sdt" | "sdtContent" | "ins" | "moveTo" | "customXml" | "smartTag":
                    yield from self._pieces(child, depth + 1)
                case _:
                    pass

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
        number, depth = _list_of(properties)
        number = number or style.listed
        if number and number != "0":
            mark = "1." if (number, depth) in self._numbered else "-"
            return "list", f"{'   ' * min(depth, 8)}{mark} {' '.join(text.split())}"
        return "text", plain(text)

    def _style(self, properties: Any | None) -> Style:
        named = properties.find("{*}pStyle") if properties is not None else None
        style = self._styles.get(attribute(named, "val"), Style()) if named is not None else Style()
        outline = properties.find("{*}outlineLvl") if properties is not None else None
        level = _number(attribute(outline, "val")) if outline is not None else None
        return style._replace(level=level + 1) if level is not None and level < 9 else style

    def _table(self, element: Any, depth: int) -> Iterator[tuple[str, str]]:
        rows = element.findall("{*}tr")
        if len(rows) == 1 and len(rows[0].findall("{*}tc")) == 1:  # a frame around a text
            yield from self._pieces(rows[0].find("{*}tc"), depth + 1)
            return
        yield (
            "table",
            table([[text for cell in row.iterfind("{*}tc") for text in self._cell(cell)] for row in rows]),
        )

    def _cell(self, cell: Any) -> list[str]:
        text = " ".join([self._inline(each, 0) for each in cell.iter("{*}p")])
        span = cell.find("{*}tcPr/{*}gridSpan")
        wide = _number(attribute(span, "val")) if span is not None else 1
        return [text, *[""] * min((wide or 1) - 1, 50)]

    def _inline(self, parent: Any, depth: int) -> str:
        """The words of a paragraph; what was deleted or stands twice is left out."""
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
                    parts.append(self._link(child, depth))
                case name if name not in _UNSEEN:
                    parts.append(self._inline(child, depth + 1))
        return "".join(parts)

    def _link(self, element: Any, depth: int) -> str:
        text = self._inline(element, depth + 1)
        relation = self._links.get(attribute(element, "id"))
        return linked(text, relation.target) if relation is not None and relation.external else text


def _closed(kind: str, run: list[str]) -> str:
    text = "\n".join(run)
    return fenced(text) if kind == "code" else text


def _styles(root: Any) -> dict[str, Style]:
    found = {}
    for each in root.iterfind("{*}style"):
        named = each.find("{*}name")
        name = attribute(named, "val").lower() if named is not None else ""
        level = _HEADING.match(name)
        listed = each.find("{*}pPr/{*}numPr/{*}numId")
        number = attribute(listed, "val") if listed is not None else ""
        found[attribute(each, "styleId")] = Style(
            level=int(level[1]) if level else 1 if name == "title" else 0,
            listed=number or ("bullet" if name.startswith("list bullet") else ""),
            code=bool(_CODE.search(name)) and attribute(each, "type") != "character",
        )
    return found


def _numbered(root: Any) -> set[tuple[str, int]]:
    """The lists, with their depths, that count their items instead of showing dots."""
    counted: dict[str, list[int]] = {}
    for abstract in root.iterfind("{*}abstractNum"):
        levels = []
        for level in abstract.iterfind("{*}lvl"):
            form = level.find("{*}numFmt")
            if form is not None and attribute(form, "val") not in ("bullet", "none"):
                levels.append(_number(attribute(level, "ilvl")) or 0)
        counted[attribute(abstract, "abstractNumId")] = levels
    found = set()
    for number in root.iterfind("{*}num"):
        abstract = number.find("{*}abstractNumId")
        for depth in counted.get(attribute(abstract, "val"), []) if abstract is not None else []:
            found.add((attribute(number, "numId"), depth))
    return found


def _list_of(properties: Any | None) -> tuple[str, int]:
    number = properties.find("{*}numPr/{*}numId") if properties is not None else None
    depth = properties.find("{*}numPr/{*}ilvl") if properties is not None else None
    return (
        attribute(number, "val") if number is not None else "",
        (_number(attribute(depth, "val")) or 0) if depth is not None else 0,
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None
