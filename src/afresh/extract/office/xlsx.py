"""Convert XLSX to a document with a table for each visible sheet, within limits of rows and cells."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from afresh.errors import ExtractError
from afresh.extract.markdown import file_name, heading, joined, linked, table, written
from afresh.extract.office.package import OfficePackage, attribute, elements, name_of, number_in
from afresh.model.fetch import Body, Document

MOST_ROWS = 2_000  # rows that are read, per sheet
MOST_COLUMNS = 64
MOST_CELLS = 200_000  # cells that are read, per file
MOST_TEXTS = 500_000  # shared strings that are read, per file
MAX_CELL_CHARS = 1_000

_DATE_FORMATS = frozenset([*range(14, 23), *range(45, 48)])  # ids of Excel's built-in date formats
_DATE_CODE = re.compile(r"[ymdhs]", re.IGNORECASE)
MAX_FORMAT_CHARACTERS = 1_000  # Excel allows 255
_NO_CODE = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 - sheets have no time zone
_LATER_FIRST_DAY = datetime(1904, 1, 1)  # noqa: DTZ001


class Workbook(NamedTuple):
    texts: list[str]
    dates: frozenset[int]  # ids of styles that show a number as a date
    first_day: datetime


def extract_xlsx(body: Body) -> Document:
    package = OfficePackage(body.data)
    part = package.main("xl/workbook.xml")
    root = package.read(part)
    book = _book(package, part, root)
    sections: list[str] = []
    left = MOST_CELLS
    for name, sheet in _sheets(package, part, root):
        text, used = _section(package, sheet, book, left)
        left -= used
        sections += [heading(2, name), text] if text else []
        if left <= 0:
            sections.append(f"(cut after {MOST_CELLS:,} cells)")
            break
    if not sections:
        raise ExtractError("all sheets of the workbook are empty")
    return written(body, joined(sections), package.core_property("title") or file_name(body))


def _book(package: OfficePackage, part: str, root: Any) -> Workbook:
    shared = package.related(part, "sharedStrings")
    found = elements(package.zipped.read(shared), "{*}si") if shared else ()
    later = attribute(root.find("{*}workbookPr"), "date1904") in ("1", "true")
    return Workbook(
        [_words(each) for each in islice(found, MOST_TEXTS)],
        _dates(package.read_if_there(package.related(part, "styles"))),
        _LATER_FIRST_DAY if later else _FIRST_DAY,
    )


def _words(element: Any) -> str:
    """Return the text of a cell, without phonetic readings."""
    runs = [each.text or "" for each in element.iter("{*}t") if name_of(each.getparent()) != "rPh"]
    return "".join(runs)[:MAX_CELL_CHARS]


def _dates(root: Any) -> frozenset[int]:
    codes = {
        attribute(each, "numFmtId"): _NO_CODE.sub("", attribute(each, "formatCode")[:MAX_FORMAT_CHARACTERS])
        for each in root.iterfind("{*}numFmts/{*}numFmt")
    }
    styles = [attribute(style, "numFmtId") for style in root.iterfind("{*}cellXfs/{*}xf")]
    return frozenset(
        index
        for index, number in enumerate(styles)
        if number_in(number) in _DATE_FORMATS or _DATE_CODE.search(codes.get(number, ""))
    )


def _sheets(package: OfficePackage, part: str, root: Any) -> Iterator[tuple[str, str]]:
    relations = package.relations(part)
    for each in root.iterfind("{*}sheets/{*}sheet"):
        relation = relations.get(attribute(each, "id"))
        hidden = attribute(each, "state") not in ("", "visible")
        if relation is not None and relation.kind == "worksheet" and not hidden:
            yield attribute(each, "name"), relation.target


def _section(package: OfficePackage, part: str, book: Workbook, left: int) -> tuple[str, int]:
    sheet = _Sheet(book)
    links = package.relations(part)
    for element in elements(package.zipped.read(part), "{*}row", "{*}hyperlink"):
        if name_of(element) == "row":
            sheet.add(element)
            if len(sheet.rows) >= MOST_ROWS or sheet.used >= left:
                return f"{sheet.to_table()}\n\n(cut after {len(sheet.rows):,} rows)", sheet.used
        elif (relation := links.get(attribute(element, "id"))) is not None:
            sheet.link(attribute(element, "ref"), relation.target)
    return sheet.to_table(), sheet.used


class _Sheet:
    """The non-empty cells of one sheet, by row number and column."""

    def __init__(self, book: Workbook) -> None:
        self._book = book
        self.rows: dict[int, dict[int, str]] = {}
        self.used = 0

    def add(self, row: Any) -> None:
        found: dict[int, str] = {}
        for place, cell in enumerate(row.iterfind("{*}c")):
            reference = _REFERENCE.fullmatch(attribute(cell, "r"))
            column = _column(reference[1]) if reference else place
            text = self._value(cell)
            if text and column < MOST_COLUMNS:
                found[column] = text
        if found:
            number = number_in(attribute(row, "r"))
            self.rows[max(self.rows, default=0) + 1 if number is None else number] = found
            self.used += len(found)

    def link(self, reference: str, url: str) -> None:
        place = _REFERENCE.fullmatch(reference)
        row = self.rows.get(int(place[2]), {}) if place else {}
        column = _column(place[1]) if place else 0
        if column in row:
            row[column] = linked(row[column], url)

    def to_table(self) -> str:
        """Return a Markdown table without the empty columns on the left; the first row is the head."""
        columns = [column for row in self.rows.values() for column in row]
        first, last = min(columns, default=0), max(columns, default=0)
        return table([[row.get(at, "") for at in range(first, last + 1)] for row in self.rows.values()])

    def _value(self, cell: Any) -> str:
        kind = attribute(cell, "t")
        if kind == "inlineStr":
            return _words(cell)
        value: str = cell.findtext("{*}v", "").strip()[:MAX_CELL_CHARS]
        if kind == "s":
            known = value.isascii() and value.isdigit() and int(value[:9]) < len(self._book.texts)
            return self._book.texts[int(value[:9])] if known else ""
        if kind == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(value, value)
        is_date = kind in ("", "n") and number_in(attribute(cell, "s")) in self._book.dates
        return _date(value, self._book.first_day) if is_date else value


def _column(letters: str) -> int:
    number = 0
    for character in letters:
        number = number * 26 + ord(character) - ord("A") + 1
    return number - 1


def _date(value: str, first_day: datetime) -> str:
    try:
        days = float(value)
        moment = first_day + timedelta(days=days)
    except (ValueError, OverflowError):
        return value
    if 0 <= days < 1:
        return moment.strftime("%H:%M:%S")
    rounded = moment + timedelta(milliseconds=500)
    return rounded.strftime("%Y-%m-%d" if days == int(days) else "%Y-%m-%d %H:%M:%S")
