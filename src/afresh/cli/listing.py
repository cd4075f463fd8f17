"""A list that fits its terminal: the column that matters most is never cut, the others give way to it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

GAP = 2
READABLE = 50  # columns in which an address is still read at a glance
LEAST_CELL = 8


@dataclass(frozen=True)
class Column:
    """One column with the width its longest cell wants."""

    name: str
    right: bool
    main: bool
    cells: tuple[Text, ...]

    @property
    def width(self) -> int:
        """What the longest cell or the heading takes."""
        return max(len(self.name), *(cell.cell_len for cell in self.cells), 0)


@dataclass(frozen=True)
class Listing:
    """Rows below headings; decides when drawn which columns there is room for."""

    columns: tuple[Column, ...]
    less: tuple[str, ...]  # columns that may go, the least important first
    least: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """A table if the main column has room in it, else the main column on lines of its own."""
        main = next((column for column in self.columns if column.main), None)
        need = min(main.width, self.least) if main else 0
        others = [column for column in self.columns if not column.main]
        kept = _fitting(others, self.less, options.max_width - need)
        if main is None or _total(kept) + need <= options.max_width:
            yield _table([column for column in self.columns if column.main or column in kept])
        else:
            yield from _two_lines(_fitting(others, self.less, options.max_width), main, options.max_width)


def listing(
    names: Sequence[str], rows: Iterable[Sequence[str | Text]], less: Sequence[str], least: int
) -> Listing:
    """The list; names that start with `>` are right-aligned, the one with `*` is the main column."""
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    columns = (
        Column(name.lstrip(">*"), name.startswith(">"), name.startswith("*"), tuple(row[at] for row in cells))
        for at, name in enumerate(names)
    )
    return Listing(tuple(columns), tuple(less), least)


def _total(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _fitting(columns: Sequence[Column], less: Sequence[str], room: int) -> list[Column]:
    kept = list(columns)
    for name in less:
        if _total(kept) <= room:
            break
        kept = [column for column in kept if column.name != name]
    return kept


def _table(columns: Sequence[Column]) -> Table:
    drawn = Table(box=None, header_style="dim", padding=(0, GAP, 0, 0), pad_edge=False)
    for column in columns:
        drawn.add_column(
            column.name,
            justify="right" if column.right else "left",
            overflow="fold" if column.main else "ellipsis",
            no_wrap=not column.main,
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        drawn.add_row(*row)
    return drawn


def _two_lines(columns: Sequence[Column], main: Column, room: int) -> Iterator[RenderableType]:
    widths = _widths(columns, room)
    heads = [Text(column.name, style="dim") for column in columns]
    yield _line(columns, heads, widths)
    for row, last in zip(zip(*(column.cells for column in columns), strict=True), main.cells, strict=True):
        yield _line(columns, row, widths)
        shown = last.copy()
        shown.overflow = "fold"
        yield Padding(shown, (0, 0, 0, GAP), expand=False)


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """The width of each column; the widest gives up what there is no room for."""
    widths = [column.width for column in columns]
    excess = _total(columns) - GAP - room
    if widths and excess > 0:
        widest = widths.index(max(widths))
        widths[widest] = max(LEAST_CELL, widths[widest] - excess)
    return widths


def _line(columns: Sequence[Column], cells: Sequence[Text], widths: Sequence[int]) -> Text:
    shown = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        fitted = cell.copy()
        fitted.truncate(width, overflow="ellipsis")
        fitted.align("right" if column.right else "left", width)
        shown.append(fitted)
    line = Text(" " * GAP).join(shown)
    line.rstrip()
    return line
