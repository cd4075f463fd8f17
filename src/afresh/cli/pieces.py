"""The pieces every view is built of; each takes text from outside and makes it safe."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from afresh.cli.listing import READABLE, Listing, listing
from afresh.present.safe_text import clean
from afresh.present.wording import count

STATE_STYLES = {
    "completed": "green",
    "queued": "cyan",
    "running": "cyan",
    "partial": "yellow",
    "cancelled": "yellow",
    "needs_confirmation": "yellow",
    "failed": "red",
    "uploaded": "green",
    "replaced": "green",
    "adopted": "green",
    "verified": "green",
    "waiting": "cyan",
    "stuck": "yellow",
    "active": "green",
    "pending": "cyan",
    "error": "red",
    "deleted": "dim",
    "redirect": "dim",
    "success": "green",
    "not_modified": "green",
    "gone": "red",
    "timeout": "red",
}


def text(value: object, style: str = "") -> Text:
    """One line of text from anywhere; nothing becomes a dash."""
    if value is None or value == "":
        return Text("–", style="dim")
    return Text(clean(str(value)), style=style)


def short(title: str | None, width: int = 40) -> str:
    """A title as it fits into a column."""
    title = clean(title or "")
    return title if len(title) <= width else f"{title[: width - 1]}…"


def state(value: object) -> Text:
    """A state in its colour."""
    name = str(value or "–")
    return text(name.replace("_", " "), STATE_STYLES.get(name, ""))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    less: Sequence[str] = (),
    least: int = READABLE,
) -> Listing:
    """A list without lines; columns that start with `>` are right-aligned, the one with `*` is never cut.

    Where there is little room, the columns in `less` go first; if `*` still has not `least` columns, it gets
    lines of its own.
    """
    return listing(columns, rows, less, least)


def facts(pairs: Iterable[tuple[str, RenderableType]]) -> Padding:
    """Names and values below each other."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, value)
    return Padding(grid, (0, 0, 0, 2), expand=False)


def empty(sentence: str, command: str = "") -> Text:
    """What stands where a list would be empty, and what to type."""
    return Text.assemble(sentence, " " if command else "", (command, "bold"))


def moment(value: datetime | None) -> str:
    """A time to the second, in UTC."""
    return value.strftime("%Y-%m-%d %H:%M:%S") if value else "–"


def vectors(model: str | None, lacking: int, wanted: str | None = None) -> Text:
    """Who answers searches, and what to do about chunks that only their words find."""
    shown = text(model or "none, searches go by words alone")
    if lacking and (model or wanted):
        shown.append(f", {count(lacking, 'chunk')} without: afresh reindex", "yellow")
    elif model and wanted and model != wanted:
        shown.append(f", {clean(wanted)} is set: afresh reindex", "yellow")
    return shown
