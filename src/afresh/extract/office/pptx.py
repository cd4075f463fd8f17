"""PPTX to a document: a section for each slide, with its title, its text, its tables and its notes."""

import re
from collections.abc import Iterator
from typing import Any

from afresh.errors import ExtractError
from afresh.extract.html.head import one_line
from afresh.extract.office.package import Package, Relation
from afresh.extract.written import file_name, heading, joined, linked, plain, table, written
from afresh.extract.xml_tree import attribute, name_of
from afresh.model import recipe
from afresh.model.fetch import Body, Document

MOST_SLIDES = 2_000
_NO_TITLE = re.compile(r"PowerPoint[- ]Pr\w+|Slide \d+", re.IGNORECASE)
_TITLES = frozenset({"title", "ctrTitle"})
_MARGINS = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})  # what stands on every slide alike


class PptxExtractor:
    """Reads PPTX files."""

    version = recipe.OFFICE

    def extract(self, body: Body) -> Document:
        """The document of a PPTX body."""
        package = Package(body.data)
        slides = list(_slides(package))
        if not slides:
            raise ExtractError("a presentation without slides")
        sections = [_section(package, part, number + 1) for number, part in enumerate(slides[:MOST_SLIDES])]
        if len(slides) > MOST_SLIDES:
            sections.append(f"(cut after {MOST_SLIDES:,} slides)")
        return written(body, joined(sections), _title(package, sections[0]) or file_name(body))


def _title(package: Package, first: str) -> str:
    """The title of the file, else that of its first slide, unless a program made it up."""
    for title in (package.title(), first.partition("\n")[0].removeprefix("## ")):
        if title and not _NO_TITLE.fullmatch(title):
            return title
    return ""


def _slides(package: Package) -> Iterator[str]:
    main = package.main("ppt/presentation.xml")
    relations = package.relations(main)
    for each in package.read(main).iterfind("{*}sldIdLst/{*}sldId"):
        ids = [value for key, value in each.items() if key.endswith("}id")]
        relation = relations.get(ids[0]) if ids else None
        if relation is not None and relation.target in package.zipped:
            yield relation.target


def _section(package: Package, part: str, number: int) -> str:
    root = package.read(part)
    relations = package.relations(part)
    title = ""
    blocks: list[str] = []
    for shape in root.iter("{*}sp", "{*}tbl"):
        if name_of(shape) == "tbl":
            blocks.append(_table(shape, relations))
        elif _place(shape) in _TITLES and not title:
            title = one_line(" ".join(text for _, text in _paragraphs(shape, relations)))
        elif _place(shape) not in _MARGINS:
            blocks.append(_listed(shape, relations))
    notes = package.related(part, "notesSlide")
    blocks.append(_notes(package, notes) if notes else "")
    return joined([heading(2, title or f"Slide {number}"), *blocks])


def _place(shape: Any) -> str:
    """What a shape is for, as the layout of its slide says."""
    placeholder = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return attribute(placeholder, "type") or "body" if placeholder is not None else ""


def _listed(shape: Any, relations: dict[str, Relation]) -> str:
    """The text of a shape: a paragraph, or a list where there are several."""
    found = [(depth, text) for depth, text in _paragraphs(shape, relations) if text]
    if len(found) < 2:
        return plain(found[0][1]) if found else ""
    return "\n".join([f"{'  ' * depth}- {text}" for depth, text in found])


def _notes(package: Package, part: str) -> str:
    shapes = [shape for shape in package.read(part).iter("{*}sp") if _place(shape) not in _MARGINS]
    words = [text for shape in shapes for _, text in _paragraphs(shape, {}) if text]
    return f"Notes: {' '.join(words)}" if words else ""


def _table(element: Any, relations: dict[str, Relation]) -> str:
    rows = element.iterfind("{*}tr")
    return table([[_cell(cell, relations) for cell in row.iterfind("{*}tc")] for row in rows])


def _cell(cell: Any, relations: dict[str, Relation]) -> str:
    return " ".join([text for _, text in _paragraphs(cell, relations)])


def _paragraphs(parent: Any, relations: dict[str, Relation]) -> Iterator[tuple[int, str]]:
    for paragraph in parent.iterfind("{*}txBody/{*}p"):
        properties = paragraph.find("{*}pPr")
        depth = attribute(properties, "lvl") if properties is not None else ""
        words = [_run(run, relations) for run in paragraph]
        yield int(depth) if depth in tuple("12345678") else 0, one_line("".join(words))


def _run(run: Any, relations: dict[str, Relation]) -> str:
    if name_of(run) == "br":
        return " "
    text = "".join([each.text or "" for each in run.iterfind("{*}t")])
    link = run.find("{*}rPr/{*}hlinkClick")
    relation = relations.get(attribute(link, "id")) if link is not None else None
    return linked(text, relation.target) if relation is not None and relation.external else text
