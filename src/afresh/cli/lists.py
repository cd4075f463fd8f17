"""Lists: sources, pages, attempts, changes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from afresh.cli.pieces import empty, facts, moment, short, state, table, text, vectors
from afresh.cli.sinks import sink
from afresh.model.history import HistoryEntry
from afresh.model.records import Attempt, ChangeKind
from afresh.model.reports import ChangeView, PageView, RunReport, SourceView
from afresh.present.safe_text import clean
from afresh.present.wording import ago, count, due, duration, label
from afresh.sync.reports import SyncedDocument

DIFF_LINES = 30
KIND_WIDTH = 9
WORDS = 24  # columns in which a sentence still reads well
CHANGE_STYLES = {
    ChangeKind.NEW: "green",
    ChangeKind.CHANGED: "yellow",
    ChangeKind.DELETED: "red",
    ChangeKind.MOVED: "cyan",
}
FIRST = "afresh crawl https://docs.example.org/"


def sources(views: Sequence[SourceView], now: datetime) -> RenderableType:
    """Every source on one line."""
    if not views:
        return empty("No sources yet. Add one:", FIRST)
    columns = ("source", "kind", ">pages", ">errors", "last run", "state", "*address")
    return table(columns, (_source(view, now) for view in views), less=("kind", "last run"))


def _source(view: SourceView, now: datetime) -> tuple[str | Text, ...]:
    return (
        text(label(view.name, view.version), "bold"),
        text(view.kind),
        count(view.pages),
        text(count(view.errors), "red" if view.errors else "dim"),
        ago(view.crawl_time, now),
        text("wrong settings", "red") if view.trouble else state(view.last_state),
        text(view.url, "blue"),
    )


def runs(reports: Sequence[RunReport]) -> RenderableType:
    """Every run on one line."""
    if not reports:
        return empty("No runs yet. Add a source:", FIRST)
    rows = ((*_run(each), duration(each.seconds)) for each in reports)
    columns = (">run", "*source", "mode", "state", ">looked at", ">new", ">changed", ">failed", ">took")
    return table(columns, rows, less=("mode", "took"))


def _run(report: RunReport) -> tuple[str | Text, ...]:
    """A run in numbers; of a sync those of its documents."""
    numbers, done = (report.checked, report.new, report.changed, report.failed), report.documents
    if done is not None:
        failed = done.failed + done.stuck
        taken = done.uploaded + done.adopted
        looked_at = taken + done.replaced + done.deleted + done.verified + done.waiting + failed
        numbers = (looked_at, taken, done.replaced, failed)
    *counted, failed = numbers
    return (
        str(report.run),
        text(label(report.source, report.version), "bold"),
        text(report.mode),
        state("interrupted" if report.interrupted else report.state),
        *map(count, counted),
        text(count(failed), "red" if failed else "dim"),
    )


def source(view: SourceView, now: datetime) -> RenderableType:
    """One source with all its numbers and its own rules."""
    own = {**view.rules, **view.policy}
    pairs: list[tuple[str, RenderableType]] = [
        ("address", text(view.url, "blue")),
        ("kind", text(view.kind)),
        ("pages", count(view.pages)),
        ("chunks", count(view.chunks)),
        ("vectors", vectors(view.model, view.unembedded or 0)),
        ("links", count(view.links)),
        ("errors", text(count(view.errors), "red" if view.errors else "")),
        ("doubtful", text(count(view.doubtful), "yellow" if view.doubtful else "")),
        ("last run", _last_run(view, now)),
        ("oldest check", ago(view.oldest_check, now)),
    ]
    pairs += [("trouble", text(view.trouble, "red"))] if view.trouble else []
    pairs += [("next time", due(view.next_time, now))] if view.next_time else []
    pairs += [(each.sink, sink(each, now)) for each in view.sinks or ()]
    pairs += [(clean(name), text(_value(value))) for name, value in own.items()]
    return Group(text(label(view.name, view.version), "bold"), facts(pairs))


def _last_run(view: SourceView, now: datetime) -> Text:
    if view.last_run is None:
        return text(None)
    when = ago(view.last_end or view.crawl_time, now)
    return Text.assemble(f"{view.last_run} ({view.last_mode}, ", state(view.last_state), f", {when})")


def _value(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "no limit"
        case list() | tuple():
            return ", ".join(map(str, value)) or "none"
        case Mapping():
            return ", ".join(f"{key}:{weight:g}" for key, weight in value.items()) or "none"
    return str(value)


def pages(views: Sequence[PageView], now: datetime) -> RenderableType:
    """Pages with their state and freshness."""
    if not views:
        return empty("No pages match.")
    columns = ("status", ">depth", "title", "checked", "changed", "*address")
    return table(
        columns,
        (
            (
                state(view.status),
                str(view.depth),
                text(short(view.title)),
                ago(view.checked_at, now),
                ago(view.changed_at, now),
                _where(view),
            )
            for view in views
        ),
        less=("depth", "changed", "checked"),
    )


def doubts(views: Sequence[PageView], now: datetime) -> RenderableType:
    """Pages that show what is not believed, each with why."""
    if not views:
        return empty("Nothing is doubtful.")
    return table(
        ("checked", "*address", "why"),
        ((ago(view.checked_at, now), text(view.url, "blue"), text(view.doubt)) for view in views),
        less=("checked",),
    )


def _where(view: PageView) -> Text:
    shown = text(view.url, "blue")
    return shown.append(f" → {clean(view.moved_to)}", "cyan") if view.moved_to else shown


def attempts(rows: Sequence[HistoryEntry], now: datetime) -> RenderableType:
    """The history of a page, attempt by attempt, and source by source where several hold it."""
    if not rows:
        return empty("Nothing was ever tried at this address.")
    columns = ("when", "outcome", ">code", ">run", "*evidence")
    sources = {key: list(part) for key, part in groupby(rows, lambda row: (row.source, row.version))}
    parts: list[RenderableType] = []
    for (source, version), part in sources.items():
        name = label(source, version) if source else "a source that was removed"
        parts += [text(name, "bold")] if len(sources) > 1 else []
        parts.append(table(columns, (_attempt(row, now) for row in part), less=("run", "code"), least=WORDS))
    return Group(*parts)


def attempts_of_run(rows: Sequence[Attempt]) -> RenderableType:
    """What a run looked at, attempt by attempt."""
    if not rows:
        return empty("It has looked at no such page.")
    columns = ("outcome", ">code", "evidence", "*page")
    return table(columns, map(_attempt_of_run, rows), less=("code",), least=WORDS)


def documents_of_run(rows: Sequence[SyncedDocument]) -> RenderableType:
    """What a sync did about documents: as it left each, and as it is now."""
    if not rows:
        return empty("It has done nothing about such a document.")
    columns = ("outcome", "then", "now", "store", "evidence", "*page")
    return table(columns, map(_document_of_run, rows), less=("store",), least=WORDS)


def _document_of_run(row: SyncedDocument) -> tuple[str | Text, ...]:
    evidence = text(row.error or row.remote_name)
    return state(row.outcome), state(row.state), state(row.state_now), text(row.sink), evidence, text(row.url)


def _attempt_of_run(row: Attempt) -> tuple[str | Text, ...]:
    evidence = text(row.reason or row.error_message)
    return state(row.outcome), text(row.status_code), evidence, text(row.url)


def _attempt(row: Attempt, now: datetime) -> tuple[str | Text, ...]:
    done = row.completed_at is not None
    return (
        text(moment(row.completed_at) if done else due(row.scheduled_for, now), "" if done else "dim"),
        state(row.outcome) if row.outcome else text("claimed" if row.locked_at else "waiting", "cyan"),
        text(row.status_code),
        text(row.run_id),
        text(row.reason or row.error_message),
    )


def changes(views: Sequence[ChangeView], now: datetime, *, whole: bool = False) -> RenderableType:
    """Changes, newest as given, each with its diff if it has one."""
    if not views:
        return empty("No changes on record.")
    return Group(*(_change(view, now, whole=whole) for view in views))


def _change(view: ChangeView, now: datetime, *, whole: bool) -> RenderableType:
    kind = text(view.kind, CHANGE_STYLES[view.kind])
    kind.pad_right(KIND_WIDTH - len(kind))
    line = Text.assemble(kind, text(view.url, "bold"))
    if view.moved_to:
        line.append(f" → {clean(view.moved_to)}", "cyan")
    line.append(f"  {clean(label(view.source, view.version))}, {ago(view.at, now)}", "dim")
    line.append(f", run {view.run}" if view.run else "", "dim")
    if view.kind is ChangeKind.CHANGED and view.diff is None:
        line.append(", no diff: its text was not kept", "dim")
    return (
        Group(line, Padding(diff(view.diff, whole=whole), (0, 0, 0, 2), expand=False)) if view.diff else line
    )


def diff(raw: str, *, whole: bool = False) -> Text:
    """A unified diff in colours; long ones are cut and say so."""
    lines = clean(raw, lines=True).rstrip("\n").split("\n")
    kept = lines if whole else lines[:DIFF_LINES]
    shown = Text("\n", overflow="fold").join(Text(line, style=_diff_style(line)) for line in kept)
    if len(kept) < len(lines):
        shown.append(f"\n… {count(len(lines) - len(kept), 'more line')} (-v shows all)", "dim")
    return shown


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "dim"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
