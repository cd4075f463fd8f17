"""Convert PPTX to a document with a section for each slide: its title, text, tables and notes."""

import re
from collections.abc import Iterator
from typing import Any

from afresh.errors import ExtractError
from afresh.extract.html.head import one_line
from afresh.extract.markdown import file_name, heading, joined, linked, plain, table, written
from afresh.extract.office.package import OfficePackage, PartRelation, attribute, name_of
from afresh.model.fetch import Body, Document

MOST_SLIDES = 2_000
_NO_TITLE = re.compile(r"PowerPoint[- ]Pr\w+|Slide \d+", re.IGNORECASE)
_TITLES = frozenset({"title", "ctrTitle"})
_MARGINS = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})  # the same on every slide


def extract_pptx(body: Body) -> Document:
    package = OfficePackage(body.data)
    slides = list(_slides(package))
    if not slides:
        raise ExtractError("the presentation has no slides")
    sections = [_section(package, part, number) for number, part in enumerate(slides[:MOST_SLIDES], 1)]
    if len(slides) > MOST_SLIDES:
        sections.append(f"(cut after {MOST_SLIDES:,} slides)")
    # Use the title of the file, else that of the first slide, but no generated title.
    titles = (package.core_property("title"), sections[0].partition("\n")[0].removeprefix("## "))
    title = next((each for each in titles if each and not _NO_TITLE.fullmatch(each)), "")
    return written(body, joined(sections), title or file_name(body))


def _slides(package: OfficePackage) -> Iterator[str]:
    main = package.main("ppt/presentation.xml")
    relations = package.relations(main)
    for each in package.read(main).iterfind("{*}sldIdLst/{*}sldId"):
        ids = [value for key, value in each.items() if key.endswith("}id")]
        relation = relations.get(ids[0]) if ids else None
        if relation is not None and relation.target in package.zipped:
            yield relation.target


def _section(package: OfficePackage, part: str, number: int) -> str:
    root = package.read(part)
    relations = package.relations(part)
    title = ""
    blocks: list[str] = []
    for shape in root.iter("{*}sp", "{*}tbl"):
        if name_of(shape) == "tbl":
            rows = [row.iterfind("{*}tc") for row in shape.iterfind("{*}tr")]
            blocks.append(table([[_text_of(cell, relations) for cell in row] for row in rows]))
        elif _place(shape) in _TITLES and not title:
            title = one_line(_text_of(shape, relations))
        elif _place(shape) not in _MARGINS:
            blocks.append(_listed(shape, relations))
    notes = package.read_if_there(package.related(part, "notesSlide"))
    shapes = [shape for shape in notes.iter("{*}sp") if _place(shape) not in _MARGINS]
    words = [text for shape in shapes for _, text in _paragraphs(shape, {}) if text]
    blocks.append(f"Notes: {' '.join(words)}" if words else "")
    return joined([heading(2, title or f"Slide {number}"), *blocks])


def _place(shape: Any) -> str:
    """Return the placeholder type of a shape; "" if the shape is no placeholder."""
    placeholder = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return attribute(placeholder, "type") or "body" if placeholder is not None else ""


def _listed(shape: Any, relations: dict[str, PartRelation]) -> str:
    """Return the text of a shape: as a paragraph, or as a list if it has several paragraphs."""
    found = [(depth, text) for depth, text in _paragraphs(shape, relations) if text]
    if len(found) < 2:
        return plain(found[0][1]) if found else ""
    return "\n".join([f"{'  ' * depth}- {text}" for depth, text in found])


def _text_of(parent: Any, relations: dict[str, PartRelation]) -> str:
    return " ".join([text for _, text in _paragraphs(parent, relations)])


def _paragraphs(parent: Any, relations: dict[str, PartRelation]) -> Iterator[tuple[int, str]]:
    for paragraph in parent.iterfind("{*}txBody/{*}p"):
        depth = attribute(paragraph.find("{*}pPr"), "lvl")
        words = [_run(run, relations) for run in paragraph]
        yield int(depth) if depth in tuple("12345678") else 0, one_line("".join(words))


def _run(run: Any, relations: dict[str, PartRelation]) -> str:
    if name_of(run) == "br":
        return " "
    text = "".join([each.text or "" for each in run.iterfind("{*}t")])
    link = run.find("{*}rPr/{*}hlinkClick")
    relation = relations.get(attribute(link, "id")) if link is not None else None
    return linked(text, relation.target) if relation is not None and relation.external else text
