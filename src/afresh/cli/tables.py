"""Tables that fit their terminal, and other building blocks of views."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from afresh.dataclass import dataclass
from afresh.present.wording import ago, clean, count
from afresh.sync.reports import SinkView
from afresh.text.plain import shortened

GAP = 2
MIN_URL_WIDTH = 50  # columns in which a URL is still readable
MIN_CELL_WIDTH = 8
MAX_TITLE_WIDTH = 40


@dataclass(frozen=True)
class Column:
    name: str
    right: bool
    main: bool
    cells: tuple[Text, ...]

    @property
    def width(self) -> int:
        return max(len(self.name), *(cell.cell_len for cell in self.cells), 0)


@dataclass(frozen=True)
class ListTable:
    """A table with headings, which is drawn without some of the `optional` columns if the terminal is narrow."""

    columns: tuple[Column, ...]
    optional: tuple[str, ...]  # columns that may be dropped, least important first
    min_width: int  # of the main column, in characters

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw a table if the main column fits, else the main column on separate lines."""
        main = next((column for column in self.columns if column.main), None)
        need = min(main.width, self.min_width) if main else 0
        others = [column for column in self.columns if not column.main]
        kept = _fitting(others, self.optional, options.max_width - need)
        if main is None or _total(kept) + need <= options.max_width:
            yield _table([column for column in self.columns if column.main or column in kept])
        else:
            yield from _two_lines(_fitting(others, self.optional, options.max_width), main, options.max_width)


def _total(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _fitting(columns: Sequence[Column], optional: Sequence[str], room: int) -> list[Column]:
    kept = list(columns)
    for name in optional:
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
    widths = [column.width for column in columns]
    excess = _total(columns) - GAP - room
    if widths and excess > 0:  # shorten the widest column
        widest = widths.index(max(widths))
        widths[widest] = max(MIN_CELL_WIDTH, widths[widest] - excess)
    yield _line(columns, [Text(column.name, style="dim") for column in columns], widths)
    for row, last in zip(zip(*(column.cells for column in columns), strict=True), main.cells, strict=True):
        yield _line(columns, row, widths)
        drawn = last.copy()
        drawn.overflow = "fold"
        yield Padding(drawn, (0, 0, 0, GAP), expand=False)


def _line(columns: Sequence[Column], cells: Sequence[Text], widths: Sequence[int]) -> Text:
    drawn = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        fitted = cell.copy()
        fitted.truncate(width, overflow="ellipsis")
        fitted.align("right" if column.right else "left", width)
        drawn.append(fitted)
    line = Text(" " * GAP).join(drawn)
    line.rstrip()
    return line


_STATES_BY_STYLE = {
    "green": "completed uploaded replaced adopted verified active success not_modified",
    "cyan": "queued running waiting pending",
    "yellow": "partial cancelled needs_confirmation stuck",
    "red": "failed error gone timeout",
    "dim": "deleted redirect",
}
STATE_STYLES = {name: style for style, names in _STATES_BY_STYLE.items() for name in names.split()}


def text(value: object, style: str = "") -> Text:
    """Return a value as one sanitized line; an empty value becomes a dash."""
    if value is None or value == "":
        return Text("–", style="dim")
    return Text(clean(str(value)), style=style)


def short(title: str | None) -> str:
    return shortened(clean(title or ""), MAX_TITLE_WIDTH)


def state(value: object) -> Text:
    name = str(value or "–")
    return text(name.replace("_", " "), STATE_STYLES.get(name, ""))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    optional: Sequence[str] = (),
    min_width: int = MIN_URL_WIDTH,
    none: tuple[str, ...] = (),
) -> ListTable | Text:
    """Return a table without border lines; `>pages` aligns a column right, `*URL` marks the main column, never cut.

    In narrow terminals, `optional` columns are dropped, the first name first; if that leaves the main column fewer
    than `min_width` characters, it gets lines of its own. Without rows, `none` is shown: a sentence and a command.
    """
    cells = [[cell if isinstance(cell, Text) else text(cell) for cell in row] for row in rows]
    if none and not cells:
        return empty(*none)
    made = (
        Column(name.lstrip(">*"), name.startswith(">"), name.startswith("*"), tuple(row[at] for row in cells))
        for at, name in enumerate(columns)
    )
    return ListTable(tuple(made), tuple(optional), min_width)


def facts(pairs: Iterable[tuple[str, RenderableType]]) -> Padding:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, value)
    return Padding(grid, (0, 0, 0, 2), expand=False)


def empty(sentence: str, command: str = "") -> Text:
    return Text.assemble(sentence, " " if command else "", (command, "bold"))


def moment(value: datetime | None) -> str:
    return value.strftime("%Y-%m-%d %H:%M:%S") if value else "–"


def vectors(model: str | None, missing: int, wanted: str | None = None) -> Text:
    """Return a line with the model that answers searches, and with advice to run `afresh reindex` if that is needed.

    `missing` is the number of passages without a vector, `wanted` the model that the settings name.
    """
    drawn = text(model or "none (keyword search only)")
    if missing and (model or wanted):
        drawn.append(f", {count(missing, 'passage')} missing: run `afresh reindex`", "yellow")
    elif model and wanted and model != wanted:
        drawn.append(f"; the settings name {clean(wanted)}: run `afresh reindex` to switch", "yellow")
    return drawn


def states(view: SinkView) -> str:
    """Return a line such as `12 active, 1 ready for indexing`."""
    counts = (f"{count(number)} {name.replace('_', ' ')}" for name, number in view.states.items())
    return ", ".join(counts) or "no pages"


def sink(view: SinkView, now: datetime) -> Text:
    """Return a line such as `folder: 12 active, synced 2 min ago`, with current problems."""
    drawn = text(f"{view.kind}: {states(view)}, synced {ago(view.synced_at, now)}")
    if view.stuck:
        many = count(view.stuck, "document is", "documents are")
        drawn.append(f"; {many} stuck: run `afresh sync --to {clean(view.sink)}`", "yellow")
    if view.error:
        since = f", failing since {view.failing_since:%Y-%m-%d %H:%M} UTC" if view.failing_since else ""
        drawn.append(f"{since}: {clean(view.error)}; then run `afresh sync --to {clean(view.sink)}`", "red")
    return drawn
